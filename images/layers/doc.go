// Package layers merges the layers of an OCI image into one tree and writes it
// as one EROFS file, in a single pass over each layer's tar stream. Nothing is
// unpacked on the host, so it needs no root, no mount and no id mapping.
//
//	info, err := layers.Build(ctx, file, []layers.Layer{{Open: openBase}, {Open: openTop}}, layers.Config{})
//
// # How layers are merged
//
// The last entry for a path wins, within a layer and across layers; a directory
// over a directory merges, anything else replaces. Names are cleaned as absolute
// paths of the image ("../x" is "/x"), and their parents are looked up in the
// tree, symbolic links included, with the image's root as the root, as
// containerd does. Parents that are missing become root's directories, mode
// 0755, time 0. A parent that is a file is an error.
//
// Whiteouts (".wh.name") and opaque markers (".wh..wh..opq") hide what lower
// layers hold, never what their own layer holds, wherever in the layer they
// stand. A whiteout of nothing is nothing. A whiteout whose parent is reached
// through a symbolic link is refused. An entry called just ".wh." names nothing
// and is skipped; so are AUFS's own files (".wh..wh.plnk" and the like).
// No other name that starts with ".wh." gets into a tree.
//
// Hard links may point to lower layers and to later entries of the same layer;
// "../" stays inside the root. A link to a symbolic link is a second name of
// the link itself. The link entry's own mode and times are ignored: the inode
// has one entry that says them.
//
// Kept: modes with set-id bits, numeric owners, times to the nanosecond, FIFOs.
// Dropped: device nodes (gVisor makes its own /dev; a device 0/0 in the manner
// of overlayfs therefore hides the file below it and leaves nothing) and all
// extended attributes, since gVisor refuses an inode that has any.
//
// # What is added
//
// The mount points in /workspace, /proc, /sys, /dev, /dev/pts, /dev/shm, /run and /tmp, since nothing can be added to an EROFS
// file later: a missing one is made, one that is a symbolic link or a file is
// replaced. A name for user and group 1000 in /etc/passwd and /etc/group. The
// root directory's mode is at least 0755.
//
// # What it does not protect
//
// Digests: the caller's Layer.Open verifies them and reports a mismatch as a
// read error or at Close; Build then fails. Building is bounded by [Limits] and
// by ctx, but a hostile layer can use all that they grant. Data that a later
// layer hides stays in the file, where no path leads to it.
package layers
