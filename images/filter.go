package images

import (
	"archive/tar"
	"fmt"
	"io"
	"path"
	"slices"
	"time"
)

// builtAt is the time of every file that the build itself made. A file with a
// time of its package keeps it: Python compares it with its .pyc files.
var builtAt = time.Date(2024, time.January, 1, 0, 0, 0, 0, time.UTC)

// fileTree filters one package tree on its way into a layer.
type fileTree struct {
	out   *tar.Writer
	prune pruner
	start time.Time
	// waiting are pruned directories that come back if something below is
	// kept, from the root downwards.
	waiting []*tar.Header
	dropped map[string]bool // files that a hard link could still ask for
}

// filterTree copies the tree from in to out without what the recipe prunes,
// then adds its links. Device nodes and everything about this host and this
// minute are left out as well.
func filterTree(out io.Writer, in io.Reader, recipe Recipe) error {
	prune, err := recipe.pruner()
	if err != nil {
		return err
	}
	t := &fileTree{out: tar.NewWriter(out), prune: prune, dropped: map[string]bool{},
		// Packages are older than the build by more than clocks differ.
		start: time.Now().Add(-time.Hour)}
	packages := tar.NewReader(in)
	for {
		header, err := packages.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			return fmt.Errorf("read packages: %w", err)
		}
		if err := t.copy(header, packages); err != nil {
			return err
		}
	}
	// mmdebstrap pads its stream.
	if _, err := io.Copy(io.Discard, in); err != nil {
		return fmt.Errorf("read packages: %w", err)
	}
	if err := t.addLinks(recipe.Links); err != nil {
		return err
	}
	if err := t.out.Close(); err != nil {
		return fmt.Errorf("write layer: %w", err)
	}
	return nil
}

func (t *fileTree) copy(header *tar.Header, body io.Reader) error {
	name := rooted(header.Name)
	if name == "/" || header.Typeflag == tar.TypeChar || header.Typeflag == tar.TypeBlock {
		return nil
	}
	for len(t.waiting) > 0 && !within(name, rooted(t.waiting[len(t.waiting)-1].Name)) {
		t.waiting = t.waiting[:len(t.waiting)-1]
	}
	if t.prune.drops(name) {
		if header.Typeflag == tar.TypeDir {
			t.waiting = append(t.waiting, header)
		} else {
			t.dropped[name] = true
		}
		return nil
	}
	if target := rooted(header.Linkname); header.Typeflag == tar.TypeLink && t.dropped[target] {
		return fmt.Errorf("prune: %w: %s is kept and is a hard link to %s, which is not", ErrInvalid, name, target)
	}
	for _, directory := range t.waiting {
		if err := t.write(directory, nil); err != nil {
			return err
		}
	}
	t.waiting = nil
	return t.write(header, body)
}

// rooted is an entry's name as its place in the tree. It only compares names;
// nothing is opened or unpacked by it.
func rooted(name string) string { return path.Join("/", name) }

func within(name, directory string) bool {
	return len(name) > len(directory) && name[:len(directory)] == directory && name[len(directory)] == '/'
}

// write gives the entry only what belongs to the packages.
func (t *fileTree) write(from *tar.Header, body io.Reader) error {
	header := &tar.Header{
		Typeflag: from.Typeflag, Name: from.Name, Linkname: from.Linkname, Size: from.Size,
		Mode: from.Mode, Uid: from.Uid, Gid: from.Gid, ModTime: from.ModTime.Truncate(time.Second),
	}
	if header.ModTime.After(t.start) {
		header.ModTime = builtAt
	}
	if err := t.out.WriteHeader(header); err != nil {
		return fmt.Errorf("write layer: %s: %w", from.Name, err)
	}
	if body == nil || from.Typeflag != tar.TypeReg {
		return nil
	}
	if _, err := io.Copy(t.out, body); err != nil {
		return fmt.Errorf("write layer: %s: %w", from.Name, err)
	}
	return nil
}

// addLinks writes the recipe's symbolic links at the end, in order.
func (t *fileTree) addLinks(links []Link) error {
	for _, link := range links {
		names := slices.Clone(link.Names)
		slices.Sort(names)
		for _, name := range names {
			header := &tar.Header{Typeflag: tar.TypeSymlink, Name: "." + path.Join(link.Directory, name), Linkname: link.To, Mode: 0o777, ModTime: builtAt}
			if err := t.write(header, nil); err != nil {
				return err
			}
		}
	}
	return nil
}
