package cgroup

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"strconv"

	"github.com/coreos/go-systemd/v22/dbus"
	godbus "github.com/godbus/dbus/v5"
)

// scoper moves a process into a delegated group of its own.
type scoper interface {
	enter(ctx context.Context, pid int) error
}

// systemd is a systemd manager behind a D-Bus address.
type systemd struct{ address string }

// enter starts a transient scope that holds pid and waits until it stands. It
// goes away by itself when its last process does.
func (s systemd) enter(ctx context.Context, pid int) error {
	conn, err := dbus.NewConnection(func() (*godbus.Conn, error) { return s.dial(ctx) })
	if err != nil {
		return fmt.Errorf("reach systemd's user manager: %w", err)
	}
	defer conn.Close()
	name := fmt.Sprintf("gaol-%d-%s.scope", pid, rand.Text()[:8])
	done := make(chan string, 1)
	_, err = conn.StartTransientUnitContext(ctx, name, "fail", []dbus.Property{
		dbus.PropDescription("gaol and its sandboxes"),
		dbus.PropPids(uint32(pid)),
		{Name: "Delegate", Value: godbus.MakeVariant(true)},
	}, done)
	if err != nil {
		return fmt.Errorf("start %s: %w", name, err)
	}
	select {
	case result := <-done:
		if result != "done" {
			return fmt.Errorf("start %s: systemd's job ended as %q", name, result)
		}
		return nil
	case <-ctx.Done():
		return fmt.Errorf("start %s: %w", name, ctx.Err())
	}
}

func (s systemd) dial(ctx context.Context) (*godbus.Conn, error) {
	conn, err := godbus.Dial(s.address, godbus.WithContext(ctx))
	if err != nil {
		return nil, err
	}
	uid := strconv.Itoa(os.Geteuid())
	if err := conn.Auth([]godbus.Auth{godbus.AuthExternal(uid)}); err != nil {
		return nil, fmt.Errorf("authenticate as user %s: %w", uid, closed(conn, err))
	}
	if err := conn.Hello(); err != nil {
		return nil, closed(conn, err)
	}
	return conn, nil
}

// closed gives up conn and passes on why.
func closed(conn *godbus.Conn, err error) error {
	return errors.Join(err, conn.Close())
}
