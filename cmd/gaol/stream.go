package main

import (
	"errors"
	"fmt"
	"io"
	"sync"
	"syscall"
)

// stream is standard output or standard error. It remembers the first error of
// a write, since most of those who print do not look.
type stream struct {
	w    io.Writer
	name string

	mu     sync.Mutex
	err    error
	broken func(error)
}

// exitPipe is what a shell shows for a program that SIGPIPE ended.
const exitPipe = exitSignal + int(syscall.SIGPIPE)

func (s *stream) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil {
		return 0, s.err
	}
	n, err := s.w.Write(p)
	if err != nil {
		s.err = fmt.Errorf("write %s: %w", s.name, err)
		if s.broken != nil {
			s.broken(s.err)
		}
	}
	return n, s.err
}

// onError has broken called with the first error to come.
func (s *stream) onError(broken func(error)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.broken = broken
}

// failure is the first error, an exitError when the reader went away: then
// nobody is there to be told.
func (s *stream) failure() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if errors.Is(s.err, syscall.EPIPE) {
		return exitError(exitPipe)
	}
	return s.err
}
