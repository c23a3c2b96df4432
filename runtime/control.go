package runtime

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"syscall"
)

// control speaks gVisor's control protocol (pkg/urpc): JSON requests and
// answers, one at a time, over the sandbox's Unix socket. runsc's own commands
// do the same; each of them costs the start of an 80 MB binary.
type control struct {
	conn *net.UnixConn
	// bound limits one answer: who answers is the sandbox, and not trusted.
	bound *io.LimitedReader
	dec   *json.Decoder
}

// dialControl connects to the sandbox's socket in runsc's root.
func dialControl(root string) (*control, error) {
	// The socket's path may be longer than an address allows; a descriptor's
	// name is not.
	dir, err := os.Open(root)
	if err != nil {
		return nil, fmt.Errorf("open runsc's root: %w", err)
	}
	defer dir.Close()
	address := &net.UnixAddr{Net: "unix", Name: fmt.Sprintf("/proc/self/fd/%d/runsc-%s.sock", dir.Fd(), containerID)}
	conn, err := net.DialUnix("unix", nil, address)
	if err != nil {
		return nil, fmt.Errorf("connect to the sandbox: %w", err)
	}
	bound := &io.LimitedReader{R: conn}
	return &control{conn: conn, bound: bound, dec: json.NewDecoder(bound)}, nil
}

// close may be called more than once.
func (c *control) close() error {
	if err := c.conn.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
		return fmt.Errorf("close the connection to the sandbox: %w", err)
	}
	return nil
}

// maxAnswer bounds one answer, maxComplaint an error's text, in bytes.
const (
	maxAnswer    = 1 << 20
	maxComplaint = 4 << 10
)

// canceledOr is why ctx ended, if it did: what else failed follows from that.
func canceledOr(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// call makes one request. Cancelling ctx closes the connection.
func (c *control) call(ctx context.Context, method string, arg, result any) error {
	stop := context.AfterFunc(ctx, func() { _ = c.conn.Close() })
	defer stop()
	request, err := json.Marshal(map[string]any{"method": method, "arg": arg})
	if err != nil {
		return fmt.Errorf("encode the request %s: %w", method, err)
	}
	if _, err := c.conn.Write(request); err != nil {
		return fmt.Errorf("send the request %s: %w", method, canceledOr(ctx, err))
	}
	answer := struct {
		Success bool            `json:"success"`
		Err     string          `json:"err"`
		Result  json.RawMessage `json:"result"`
	}{}
	c.bound.N = maxAnswer
	if err := c.dec.Decode(&answer); err != nil {
		return fmt.Errorf("read the answer to %s: %w", method, canceledOr(ctx, err))
	}
	if !answer.Success {
		return &remoteError{method, answer.Err[:min(len(answer.Err), maxComplaint)]}
	}
	if result == nil {
		return nil
	}
	if err := json.Unmarshal(answer.Result, result); err != nil {
		return fmt.Errorf("read the result of %s: %w", method, err)
	}
	return nil
}

// remoteError is an error of the sandbox's own, not of the connection.
type remoteError struct{ method, text string }

func (e *remoteError) Error() string { return fmt.Sprintf("request %s: %s", e.method, e.text) }

// loopback is the only interface that a sandbox without a network has. The
// shape is that of gVisor's boot.LoopbackLink.
var loopback = map[string]any{
	"Name": "lo",
	"Addresses": []map[string]any{
		{"Address": net.IPv4(127, 0, 0, 1), "PrefixLen": 8},
		{"Address": net.IPv6loopback, "PrefixLen": 128},
	},
	"Routes": []map[string]any{
		{"Destination": net.IPNet{IP: net.IPv4(127, 0, 0, 0), Mask: net.CIDRMask(8, 32)}},
		{"Destination": net.IPNet{IP: net.IPv6loopback, Mask: net.CIDRMask(128, 128)}},
	},
}

// start starts the created container, with nothing but a loopback interface.
func (c *control) start(ctx context.Context) error {
	links := map[string]any{"LoopbackLinks": []any{loopback}}
	if err := c.call(ctx, "containerManager.SetNetworkArgs", links, nil); err != nil {
		return err
	}
	return c.call(ctx, "containerManager.StartRoot", containerID, nil)
}

// wait returns the program's true wait status, which the exit code of runsc
// does not hold: there a signal and an exit code over 128 look alike. As long
// as the connection is open the sandbox does not end, so that a program which
// ended at once is waited for as well.
func (c *control) wait(ctx context.Context) (syscall.WaitStatus, error) {
	var status uint32
	err := c.call(ctx, "containerManager.Wait", containerID, &status)
	return syscall.WaitStatus(status), err
}
