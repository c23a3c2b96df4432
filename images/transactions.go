package images

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	bolt "go.etcd.io/bbolt"
	"golang.org/x/sys/unix"
)

// transactions runs each transaction on a freshly opened bolt database and
// closes it again, so that no process keeps the others out. A lock of our own
// comes first: bolt's polls slowly and names nobody.
type transactions struct {
	path string
	lock string
	wait time.Duration
}

// View runs fn in a transaction that only reads.
func (t transactions) View(fn func(*bolt.Tx) error) error {
	return t.with(unix.LOCK_SH, true, func(db *bolt.DB) error { return db.View(fn) })
}

// Update runs fn in a transaction that is on disk when it returns nil.
func (t transactions) Update(fn func(*bolt.Tx) error) error {
	return t.with(unix.LOCK_EX, false, func(db *bolt.DB) error { return db.Update(fn) })
}

func (t transactions) with(how int, readOnly bool, fn func(*bolt.DB) error) (err error) {
	// The interface that this implements passes no context.
	held, err := flock(context.Background(), t.lock, how, t.wait)
	if err != nil {
		return err
	}
	defer held.Close()
	db, err := bolt.Open(t.path, 0o600, &bolt.Options{Timeout: t.wait, ReadOnly: readOnly})
	if err != nil {
		return fmt.Errorf("open image database: %w", err)
	}
	defer func() {
		// containerd compares fn's error by value, so it must stay as it is.
		if closed := db.Close(); closed != nil {
			err = errors.Join(err, fmt.Errorf("close image database: %w", closed))
		}
	}()
	return fn(db)
}

// create makes the database unless it is there. It appears whole: a process
// that dies half way leaves only a temporary file.
func (t transactions) create(ctx context.Context) error {
	if _, err := os.Stat(t.path); err == nil {
		return nil
	}
	held, err := flock(ctx, t.lock, unix.LOCK_EX, t.wait)
	if err != nil {
		return err
	}
	defer held.Close()
	if _, err := os.Stat(t.path); err == nil {
		return nil
	}
	temp := t.path + tempSuffix
	if err := os.RemoveAll(temp); err != nil {
		return fmt.Errorf("make image database: %w", err)
	}
	db, err := bolt.Open(temp, 0o600, nil)
	if err != nil {
		return fmt.Errorf("make image database: %w", err)
	}
	if err := db.Close(); err != nil {
		return fmt.Errorf("make image database: %w", err)
	}
	if err := os.Rename(temp, t.path); err != nil {
		return fmt.Errorf("make image database: %w", err)
	}
	return nil
}
