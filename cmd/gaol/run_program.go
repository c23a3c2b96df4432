package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"

	"gaol/runtime"
)

// program puts the code or the command into the request.
func (a *app) program(req *runtime.Request, f *runFlags, args []string, dash int) error {
	if len(args) == 0 {
		return &hinted{errors.New("nothing to run"), "name a Python file, - for standard input, or -- and a command"}
	}
	if f.interactive {
		req.Stdin = a.stdin
	}
	if dash == 0 {
		req.Command = args
		return nil
	}
	code := &runtime.Code{Name: args[0], Args: args[1:]}
	var err error
	if code.Name == "-" {
		if f.interactive {
			return errors.New("--interactive: the code itself is standard input")
		}
		code.Name = "<stdin>"
		code.Source, err = readCode(a.stdin, "standard input")
	} else {
		code.Source, err = readCodeFile(code.Name)
	}
	if err != nil {
		return err
	}
	req.Code = code
	return nil
}

// maxCode bounds a program's source, in bytes.
const maxCode = 16 << 20

func readCodeFile(name string) ([]byte, error) {
	// Without O_NONBLOCK a FIFO of this name would hold us for ever.
	f, err := os.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, fmt.Errorf("read the code: %w", err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, fmt.Errorf("read the code: %w", err)
	}
	if !info.Mode().IsRegular() {
		return nil, &hinted{fmt.Errorf("read the code: %q is not a regular file", name), "use - to read code from standard input"}
	}
	return readCode(f, name)
}

func readCode(r io.Reader, name string) ([]byte, error) {
	source, err := io.ReadAll(io.LimitReader(r, maxCode+1))
	if err != nil {
		return nil, fmt.Errorf("read the code from %s: %w", name, err)
	}
	if len(source) > maxCode {
		return nil, fmt.Errorf("read the code from %s: more than %d MiB", name, maxCode>>20)
	}
	return source, nil
}
