package images

import (
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// tempSuffix marks files that are not published yet. The sweep removes them
// when nobody is at work.
const tempSuffix = ".partial"

// publishFile writes a file so that its name shows either nothing, what was
// there before, or all of it, even after a power failure: temporary file,
// fsync, rename, fsync of the directory. The file is readable by all.
func publishFile(path string, write func(*os.File) error) (err error) {
	temp := path + "." + rand.Text() + tempSuffix
	f, err := os.OpenFile(temp, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return fmt.Errorf("make file: %w", err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, f.Close(), os.Remove(temp))
		}
	}()
	if err := write(f); err != nil {
		return err
	}
	if err := f.Chmod(0o644); err != nil {
		return fmt.Errorf("open file to all: %w", err)
	}
	if err := f.Sync(); err != nil {
		return fmt.Errorf("sync file: %w", err)
	}
	if err := os.Rename(temp, path); err != nil {
		return fmt.Errorf("publish file: %w", err)
	}
	return errors.Join(f.Close(), syncDirectory(filepath.Dir(path)))
}

func syncDirectory(dir string) error {
	d, err := os.Open(dir) //nolint:gosec // a directory of the store, which its owner chose
	if err != nil {
		return fmt.Errorf("sync directory: %w", err)
	}
	if err := errors.Join(d.Sync(), d.Close()); err != nil {
		return fmt.Errorf("sync directory %s: %w", dir, err)
	}
	return nil
}
