package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"unicode"
	"unicode/utf8"

	"golang.org/x/sys/unix"
	"pgregory.net/rapid"
)

// B10, F3: whatever a program prints, a terminal gets nothing that steers it.
func TestSafeWriterProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		pieces := rapid.SliceOf(rapid.OneOf(
			rapid.SliceOfN(rapid.Byte(), 0, 40),
			rapid.Map(rapid.String(), func(s string) []byte { return []byte(s) }),
			rapid.SampledFrom([][]byte{[]byte("\x1b]52;c;ZWNobw==\x07"), []byte("\u202e"), []byte("\u200b"), {0x9b}, []byte("e\u0301\u0301\u0301\u0301\u0301\u0301"), []byte("\r"), {0xc2}}),
		)).Draw(t, "pieces")
		var out bytes.Buffer
		s := &safeWriter{w: &out}
		for _, p := range pieces {
			if n, err := s.Write(p); n != len(p) || err != nil {
				t.Fatalf("Write = %d, %v", n, err)
			}
		}
		if err := s.flush(); err != nil {
			t.Fatal(err)
		}
		marks := 0
		for i, r := range out.String() {
			if r == utf8.RuneError && !strings.HasPrefix(out.String()[i:], "\uFFFD") {
				t.Fatalf("byte %d of %q is no text", i, out.String())
			}
			if unicode.IsControl(r) && r != '\n' && r != '\t' || unicode.Is(unicode.Cf, r) {
				t.Fatalf("%U comes through in %q", r, out.String())
			}
			if marks++; !unicode.Is(unicode.M, r) {
				marks = 0
			}
			if marks > maxMarks {
				t.Fatalf("%d combining marks in a row", marks)
			}
		}
	})
}

func TestSafeWriterKeepsText(t *testing.T) {
	for in, want := range map[string]string{
		"plain\ttext\n": "plain\ttext\n",
		"漢字 é 🎈\n":      "漢字 é 🎈\n",
		"\x1b[2J":       `\x1b[2J`,
		"a\rb":          `a\x0db`,
		"\xff":          `\xff`,
		"\xe6\xbc":      `\xe6\xbc`,
		"\u202eabc":     `\u202eabc`,
	} {
		if got := safeText(in); got != want {
			t.Errorf("safeText(%q) = %q, want %q", in, got, want)
		}
	}
}

// The real main, on a terminal of its own: safe by default, raw on request.
func TestTerminalGetsNoEscapes(t *testing.T) {
	needSandbox(t)
	dir := stateDir(t)
	code := filepath.Join(dir, "escape.py")
	source := `print("\x1b]0;pwned\x07\x1b[2J\x1b]52;c;ZWNobw==\x07"); open("\x1b[31m", "w")`
	if err := os.WriteFile(code, []byte(source), 0o600); err != nil {
		t.Fatal(err)
	}
	safe := onTerminal(t, gaolCommand(t, dir, "run", code))
	if strings.ContainsRune(safe, 0x1b) || strings.ContainsRune(safe, 0x07) || !strings.Contains(safe, `\x1b]0;pwned\x07`) {
		t.Errorf("the terminal got %q", safe)
	}
	if raw := onTerminal(t, gaolCommand(t, dir, "run", "--raw", "-q", code)); !strings.Contains(raw, "\x1b]0;pwned") {
		t.Errorf("with --raw the terminal got %q", raw)
	}
	piped, err := gaolCommand(t, dir, "run", "-q", code).Output()
	if err != nil || !strings.HasPrefix(string(piped), "\x1b]0;pwned") {
		t.Errorf("the pipe got %q: %v", piped, err)
	}
}

// onTerminal runs a command with a new pseudo-terminal as its streams and
// returns what the terminal got.
func onTerminal(t *testing.T, cmd *exec.Cmd) string {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Skipf("no pseudo-terminals here: %v", err)
	}
	defer master.Close()
	if err := unix.IoctlSetPointerInt(int(master.Fd()), unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	n, err := unix.IoctlGetInt(int(master.Fd()), unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	slave, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = slave, slave, slave
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	got := make(chan string)
	go func() {
		data, _ := io.ReadAll(master) // ends with EIO when the last slave closes
		got <- string(data)
	}()
	err = cmd.Wait()
	_ = slave.Close()
	text := <-got
	if err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	return text
}
