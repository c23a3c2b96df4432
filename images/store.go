package images

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// Errors that callers tell apart. Each comes wrapped with what it was about.
var (
	// ErrNotFound means that no image has the reference; see [NotFoundError].
	ErrNotFound = errors.New("image not found")
	// ErrNoRecipe means that the program carries no recipe of that name.
	ErrNoRecipe = errors.New("no such recipe")
	// ErrReadOnly means that the image is only in the system store, which
	// this user cannot change.
	ErrReadOnly = errors.New("image belongs to the read-only system store")
	// ErrBusy means that another process held a lock of the store for longer
	// than Config.LockTimeout; the message names its pid.
	ErrBusy = errors.New("store is locked")
	// ErrReference means that a reference is not well formed.
	ErrReference = errors.New("invalid image reference")
	// ErrInvalid means that the image, archive or recipe breaks its format
	// or contradicts itself.
	ErrInvalid = errors.New("invalid image")
	// ErrLimit means that an image exceeds a limit, which the message names.
	ErrLimit = errors.New("image exceeds a limit")
	// ErrPlatform means that an image has no variant for the wanted platform.
	ErrPlatform = errors.New("no image for the platform")
	// ErrDamaged means that stored data differs from what was published.
	ErrDamaged = errors.New("store is damaged")
)

// Config says where images are kept. Root is required; every other zero value
// is the default.
type Config struct {
	// Root is the absolute directory of the store that this user writes. It
	// is made on first use: mode 0700, or 0755 for the super-user, since
	// sandboxes then run under other ids that must reach the rootfs files.
	Root string
	// System is another store that is only read, after Root. "" means none.
	System string
	// Limits bound what an import may cost.
	Limits Limits
	// LockTimeout bounds the wait for another process; 0 means 30 seconds.
	LockTimeout time.Duration
}

// Store is an opened image store. Its methods may be called at once from many
// goroutines and many processes.
type Store struct {
	own    place
	system *place
	limits Limits
	wait   time.Duration
}

// Open checks cfg. It touches neither disk nor database: an absent store is
// an empty one.
func Open(cfg Config) (*Store, error) {
	for _, dir := range []string{cfg.Root, cfg.System} {
		if dir != "" && !filepath.IsAbs(dir) {
			return nil, fmt.Errorf("open store %q: path is not absolute", dir)
		}
	}
	if cfg.Root == "" {
		return nil, errors.New("open store: no root directory given")
	}
	limits, err := cfg.Limits.orDefault()
	if err != nil {
		return nil, fmt.Errorf("open store %q: %w", cfg.Root, err)
	}
	s := &Store{own: place{root: filepath.Clean(cfg.Root)}, limits: limits, wait: cfg.LockTimeout}
	if s.wait <= 0 {
		s.wait = 30 * time.Second
	}
	if cfg.System != "" && filepath.Clean(cfg.System) != s.own.root {
		s.system = &place{root: filepath.Clean(cfg.System), readOnly: true}
	}
	return s, nil
}

// Close releases what the store holds, which is nothing between calls. Open
// [Rootfs] values stay valid.
func (s *Store) Close() error { return nil }

// places lists the stores in the order in which references are looked up.
func (s *Store) places() []place {
	if s.system == nil {
		return []place{s.own}
	}
	return []place{s.own, *s.system}
}

// place is the directory of one store and the names of what is in it.
type place struct {
	root     string
	readOnly bool
}

func (p place) records() string  { return filepath.Join(p.root, "refs") }
func (p place) rootfses() string { return filepath.Join(p.root, "rootfs") }
func (p place) content() string  { return filepath.Join(p.root, "content") }
func (p place) database() string { return filepath.Join(p.root, "meta.db") }

// The two lock files: one keeps garbage collection apart from changes, the
// other orders the transactions of the database.
func (p place) gcLock() string       { return filepath.Join(p.root, "gc.lock") }
func (p place) databaseLock() string { return filepath.Join(p.root, "meta.lock") }

func (p place) rootfsFile(key string) string {
	return filepath.Join(p.rootfses(), key+".erofs")
}

// create makes the directories of the store. Modes are set by chmod, because
// a umask must not hide the rootfs files from the ids that sandboxes run as.
func (p place) create() error {
	mode := os.FileMode(0o700)
	if os.Geteuid() == 0 {
		mode = 0o755
	}
	if err := os.MkdirAll(filepath.Dir(p.root), mode); err != nil {
		return fmt.Errorf("make store: %w", err)
	}
	for _, dir := range []string{p.root, p.records(), p.rootfses(), p.content()} {
		err := os.Mkdir(dir, mode)
		if errors.Is(err, os.ErrExist) {
			continue
		}
		if err != nil {
			return fmt.Errorf("make store: %w", err)
		}
		if err := os.Chmod(dir, mode); err != nil {
			return fmt.Errorf("make store: %w", err)
		}
	}
	return nil
}
