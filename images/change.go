package images

import (
	"context"
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// change runs fn on the own store under the lock that keeps garbage
// collection away. Whatever an earlier process left half done is removed
// first, and what fn left without a reference afterwards, in both cases only
// if nobody else is at work; they will do it otherwise.
func (s *Store) change(ctx context.Context, fn func(context.Context, *database) error) error {
	if err := s.own.create(); err != nil {
		return err
	}
	ctx = containerdContext(ctx)
	held, db, err := s.enter(ctx)
	if err != nil {
		return err
	}
	err = fn(ctx, db)
	held.Close()
	return errors.Join(err, s.tidy(context.WithoutCancel(ctx)))
}

// enter takes the shared lock, by way of the exclusive one when it is free.
func (s *Store) enter(ctx context.Context) (*os.File, *database, error) {
	held, err := flock(ctx, s.own.gcLock(), unix.LOCK_EX, 0)
	alone := err == nil
	if errors.Is(err, ErrBusy) {
		held, err = flock(ctx, s.own.gcLock(), unix.LOCK_SH, s.wait)
	}
	if err != nil {
		return nil, nil, err
	}
	db, err := s.openDatabase(ctx)
	if err == nil && alone {
		err = s.sweep(ctx, db)
	}
	if err == nil && alone {
		err = unix.Flock(int(held.Fd()), unix.LOCK_SH)
	}
	if err != nil {
		held.Close()
		return nil, nil, err
	}
	return held, db, nil
}

// tidy collects garbage if nobody else is at work.
func (s *Store) tidy(ctx context.Context) error {
	held, err := flock(ctx, s.own.gcLock(), unix.LOCK_EX, 0)
	if errors.Is(err, ErrBusy) {
		return nil
	}
	if err != nil {
		return err
	}
	defer held.Close()
	_, err = s.collect(ctx)
	return err
}
