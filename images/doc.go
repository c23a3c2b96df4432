// Package images keeps container images and turns each into one read-only
// EROFS file that gVisor boots from.
//
// An image enters the store from a recipe ([Store.Build]), from an archive or
// layout ([Store.Import], [Store.ImportPath]) and leaves it as a [Rootfs]:
//
//	store, err := images.Open(images.Config{Root: root})
//	if err != nil {
//		return err
//	}
//	defer store.Close()
//	rootfs, err := store.Resolve(ctx, "python")
//	if err != nil {
//		return err
//	}
//	defer rootfs.Close() // until then garbage collection keeps its file
//
// Blobs and their references live in containerd's content store and metadata
// database, opened in this process for as long as one transaction takes, so
// that many processes share a store without a daemon. What a run needs is in
// one small JSON record for each reference, published after the file that it
// names: Resolve touches no database.
//
// Images are untrusted. Every size, count and depth is bounded, every blob is
// checked against digest and size, and of an image's config only a command, a
// filtered environment, a working directory and a user other than root
// survive; the rest is dropped and named.
//
// The package does not protect against a writer of the store itself: whoever
// can write below Config.Root decides what runs. It does not judge what an
// image contains either; that is the sandbox's part.
package images
