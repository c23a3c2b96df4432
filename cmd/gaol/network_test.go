package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	specs "github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"

	"gaol/runtime"
)

// networkProbe tries all ways out that it is given: HOST:PORT pairs and a Unix
// socket's path.
const networkProbe = `
import socket, errno, sys
quiet = (errno.ENETUNREACH, errno.ECONNREFUSED, errno.EADDRNOTAVAIL, errno.EHOSTUNREACH, errno.EAFNOSUPPORT)
for arg in sys.argv[1:]:
    host, port = arg.rsplit(":", 1); host = host.strip("[]")
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM):
        s = socket.socket(family, kind); s.settimeout(2)
        try:
            s.connect((host, int(port))); s.send(b"x")
            if kind == socket.SOCK_STREAM: print("LEAK", arg)
        except OSError as e:
            assert e.errno in quiet, (arg, e)
try: socket.getaddrinfo("example.com", 80); print("RESOLVED")
except OSError: pass
print("interfaces", *(n for _, n in socket.if_nameindex()))
print("routes", len(open("/proc/net/route").read().split("\n")[1:-1]))
`

// A1: no way out by the network. The listeners are the test's own, one on the
// host's loopback, one on a link to a network namespace of the test's.
func TestNoNetwork(t *testing.T) {
	engine, request := sandboxes(t, "python")
	var accepted atomic.Int32
	targets := []string{listen(t, "127.0.0.1:0", &accepted), listen(t, "[::1]:0", &accepted)}
	testHost := ""
	if os.Geteuid() == 0 {
		testHost = veth(t, &accepted)
		targets = append(targets, testHost)
	}
	req := python(request(), networkProbe)
	req.Code.Args = targets
	r, err := engine.Run(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	if got := string(r.Stdout.Bytes()); r.ExitCode != 0 || got != "interfaces lo\nroutes 0\n" {
		t.Errorf("exit %d, %s%s", r.ExitCode, got, r.Stderr.Bytes())
	}
	if n := accepted.Load(); n != 0 {
		t.Errorf("%d connections came out", n)
	}
	if testHost == "" {
		t.Log("the negative control needs root")
		return
	}
	// Negative control: with the host's network the same probe must report it.
	req.Code.Args = []string{testHost}
	if out := runWithHostNetwork(t, req); !strings.Contains(out, "LEAK "+testHost) {
		t.Errorf("a sandbox with a network reports no leak: %s", out)
	}
}

// listen counts the connections to an address of the host.
func listen(t *testing.T, address string, accepted *atomic.Int32) string {
	t.Helper()
	l, err := net.Listen("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			accepted.Add(1)
			_ = c.Close()
		}
	}()
	return l.Addr().String()
}

// veth makes a network namespace with a link to it, listens on the host's end
// of the link, and returns that address.
func veth(t *testing.T, accepted *atomic.Int32) string {
	t.Helper()
	name := fmt.Sprintf("gaolt%d", os.Getpid()%100000)
	must := func(args ...string) {
		t.Helper()
		if out, err := exec.CommandContext(t.Context(), "ip", args...).CombinedOutput(); err != nil {
			t.Fatalf("ip %v: %v: %s", args, err, out)
		}
	}
	must("netns", "add", name)
	t.Cleanup(func() { _ = exec.Command("ip", "netns", "del", name).Run() })
	must("link", "add", name, "type", "veth", "peer", "name", "eth0", "netns", name)
	must("addr", "add", "192.0.2.1/30", "dev", name)
	must("link", "set", name, "up")
	must("-n", name, "addr", "add", "192.0.2.2/30", "dev", "eth0")
	must("-n", name, "link", "set", "eth0", "up")
	return listen(t, "192.0.2.1:0", accepted)
}

// runWithHostNetwork runs a request by runsc alone, weakened to use the host's
// network.
func runWithHostNetwork(t *testing.T, req runtime.Request) string {
	t.Helper()
	dir := stateDir(t)
	bundle, ws := filepath.Join(dir, "bundle"), filepath.Join(dir, "ws")
	if err := os.Mkdir(ws, 0o777); err != nil {
		t.Fatal(err)
	}
	flags, stdin, err := runtime.BareBundle(bundle, ws, req)
	if err != nil {
		t.Fatal(err)
	}
	weakenNetwork(t, filepath.Join(bundle, "config.json"))
	args := append([]string{"--root=" + filepath.Join(dir, "state")}, flags...)
	args[slices.Index(args, "--network=none")] = "--network=host"
	args = append(args, "run", "--bundle="+bundle, "leaky")
	cmd := exec.CommandContext(t.Context(), testRunsc(), args...)
	cmd.Stdin = bytes.NewReader(stdin)
	out, err := cmd.CombinedOutput()
	_ = unix.Unmount(filepath.Join(dir, "state", "null-netns"), unix.MNT_DETACH) // runsc leaves it
	if err != nil {
		t.Fatalf("the weakened sandbox: %v: %s", err, out)
	}
	return string(out)
}

func weakenNetwork(t *testing.T, path string) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var spec specs.Spec
	if err := json.Unmarshal(data, &spec); err != nil {
		t.Fatal(err)
	}
	spec.Linux.Namespaces = slices.DeleteFunc(spec.Linux.Namespaces, func(n specs.LinuxNamespace) bool {
		return n.Type == specs.NetworkNamespace
	})
	if data, err = json.Marshal(spec); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
}

// A2, F15: a Unix socket and a FIFO of the host in the workspace cannot be used.
func TestHostSocketsAreUnreachable(t *testing.T) {
	engine, request := sandboxes(t, "python")
	dir := t.TempDir()
	l, err := net.Listen("unix", filepath.Join(dir, "host.sock"))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	var accepted atomic.Int32
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			accepted.Add(1)
			_ = c.Close()
		}
	}()
	if err := unix.Mkfifo(filepath.Join(dir, "host.fifo"), 0o666); err != nil {
		t.Fatal(err)
	}
	// Both ends are open here, so that inside no open has to wait for the other.
	fifo, err := os.OpenFile(filepath.Join(dir, "host.fifo"), os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer fifo.Close()
	req := python(request(), `
import os, socket
s = socket.socket(socket.AF_UNIX)
try: s.connect("/workspace/host.sock"); print("LEAK")
except OSError as e: print(type(e).__name__)
for way in os.O_RDONLY, os.O_WRONLY, os.O_RDWR:
    try: os.open("/workspace/host.fifo", way); print("LEAK")
    except OSError as e: print(type(e).__name__)
`)
	req.Workspace = openWorkspace(t, dir)
	r, err := engine.Run(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	want := "ConnectionRefusedError\n" + strings.Repeat("PermissionError\n", 3)
	if got := string(r.Stdout.Bytes()); got != want || accepted.Load() != 0 {
		t.Errorf("got %q, %d connections", got, accepted.Load())
	}
}
