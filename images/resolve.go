package images

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	digest "github.com/opencontainers/go-digest"
	"golang.org/x/sys/unix"
)

// NotFoundError says which reference is missing, what is there instead, and
// the command that makes or fetches it. It matches [ErrNotFound].
type NotFoundError struct {
	Reference string
	Present   []string
	Command   string
}

func (e *NotFoundError) Error() string {
	present := "the store is empty"
	if len(e.Present) > 0 {
		present = "present: " + strings.Join(e.Present, ", ")
	}
	return fmt.Sprintf("image %q not found (%s); make it with: %s", e.Reference, present, e.Command)
}

// Is matches ErrNotFound.
func (e *NotFoundError) Is(target error) bool { return target == ErrNotFound }

// Rootfs is an image ready to boot. It holds a shared lock on its file until
// Close, so that no garbage collection takes it away.
type Rootfs struct {
	// Reference and Digest (of the manifest) name the image.
	Reference string
	Digest    digest.Digest
	// Platform is "os/arch" or "os/arch/variant".
	Platform string
	// Path is the EROFS file, Content its hash, Size its bytes.
	Path    string
	Content digest.Digest
	Size    int64
	// Config is what the image may decide.
	Config ImageConfig

	file *os.File
}

// File is the EROFS file, open for reading; it stays the Rootfs's own. A
// process that inherits it keeps the lock as long as it lives.
func (r *Rootfs) File() *os.File { return r.file }

// Close gives up the lock. Calling it again does nothing.
func (r *Rootfs) Close() error {
	if r.file == nil {
		return nil
	}
	f := r.file
	r.file = nil
	return f.Close()
}

// Resolve finds the image that ref names ("python", "name:tag", or either
// with "@sha256:…"), in the own store first, and locks its rootfs. The caller
// closes the result. No database is read. A missing image is a
// [*NotFoundError].
func (s *Store) Resolve(ctx context.Context, ref string) (*Rootfs, error) {
	name, pin, err := parseReference(ref)
	if err != nil {
		return nil, err
	}
	p, r, err := s.find(name, pin)
	if err != nil {
		return nil, err
	}
	// A file may be collected between reading its record and locking it;
	// then the record has changed as well, and once more is enough unless
	// somebody removes and adds the image in a loop.
	for range 3 {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		f, err := openLocked(p.rootfsFile(r.Rootfs), r.Image.RootfsSize)
		if err == nil {
			return newRootfs(p, r, f), nil
		}
		if !errors.Is(err, os.ErrNotExist) {
			return nil, fmt.Errorf("open rootfs of %q: %w", name, err)
		}
		if p, r, err = s.find(name, pin); err != nil {
			return nil, err
		}
	}
	return nil, fmt.Errorf("open rootfs of %q: %w: %s is missing; remove the image and make it again",
		name, ErrDamaged, p.rootfsFile(r.Rootfs))
}

func newRootfs(p place, r record, f *os.File) *Rootfs {
	return &Rootfs{
		Reference: r.Image.Reference, Digest: r.Image.Digest, Platform: r.Image.Platform,
		Path: p.rootfsFile(r.Rootfs), Content: r.Image.RootfsDigest, Size: r.Image.RootfsSize,
		Config: r.Config, file: f,
	}
}

// find reads the record of name from the first store that has it.
func (s *Store) find(name string, pin digest.Digest) (place, record, error) {
	for _, p := range s.places() {
		r, err := p.readRecord(name)
		if errors.Is(err, os.ErrNotExist) || (err == nil && pin != "" && r.Image.Digest != pin) {
			continue
		}
		if err != nil {
			return p, r, err
		}
		r.Image.System = p.readOnly
		return p, r, nil
	}
	return place{}, record{}, s.notFound(name, pin)
}

func (s *Store) notFound(name string, pin digest.Digest) error {
	e := &NotFoundError{Reference: name, Command: "gaol images import FILE --as " + name}
	if pin != "" {
		e.Reference += "@" + pin.String()
	}
	if isRecipe(name) {
		e.Command = "gaol images build " + name
	}
	for _, p := range s.places() {
		records, _ := p.allRecords()
		for _, r := range records {
			e.Present = append(e.Present, r.Image.Reference)
		}
	}
	return e
}

// openLocked opens a rootfs file and takes the shared lock. A file that was
// unlinked before the lock was there counts as missing.
func openLocked(path string, size int64) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NOFOLLOW, 0) //nolint:gosec // its last part is a key that isKey let pass
	if err != nil {
		return nil, err
	}
	err = unix.Flock(int(f.Fd()), unix.LOCK_SH|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) { // being collected right now
		err = os.ErrNotExist
	}
	var st unix.Stat_t
	if err == nil {
		err = unix.Fstat(int(f.Fd()), &st)
	}
	if err == nil && st.Nlink == 0 {
		err = os.ErrNotExist
	}
	if err == nil && st.Size != size {
		err = fmt.Errorf("%w: %s has %d bytes, want %d", ErrDamaged, path, st.Size, size)
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}
