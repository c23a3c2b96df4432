package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){
		"gaol": func() {
			os.Exit(run(context.Background(), os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
		},
	})
}

// TestScripts runs the real main: each script beneath testdata/script reads
// like a page of a manual. They need gVisor.
func TestScripts(t *testing.T) {
	needSandbox(t)
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Setup:               setupScript,
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"field":   fieldCommand,
			"nothing": nothingCommand,
			"prints":  printsCommand,
		},
		Condition: func(condition string) (bool, error) {
			switch condition {
			case "root":
				return os.Geteuid() == 0, nil
			case "cgroup":
				return haveCgroup(), nil
			}
			return false, fmt.Errorf("unknown condition %q", condition)
		},
	})
}

// setupScript gives each script directories of its own; images come from the
// system's store.
func setupScript(e *testscript.Env) error {
	// As root, sandboxes run under ids that must come through.
	if err := os.Chmod(filepath.Dir(e.WorkDir), 0o711); err != nil {
		return err
	}
	e.Setenv("HOME", filepath.Join(e.WorkDir, "home"))
	e.Setenv("XDG_CONFIG_HOME", filepath.Join(e.WorkDir, "cfg"))
	for _, name := range []string{"XDG_DATA_HOME", "XDG_STATE_HOME", "XDG_RUNTIME_DIR", "DBUS_SESSION_BUS_ADDRESS"} {
		e.Setenv(name, "")
	}
	for _, dir := range []string{"home", "cfg/gaol", "ws"} {
		if err := os.MkdirAll(filepath.Join(e.WorkDir, dir), 0o755); err != nil {
			return err
		}
	}
	data, err := filepath.Abs("testdata/demo")
	if err != nil {
		return err
	}
	e.Setenv("DEMO", data)
	e.Setenv("RUNSC", testRunsc())
	return os.WriteFile(filepath.Join(e.WorkDir, "cfg/gaol/config.toml"), []byte(testConfig(e.WorkDir)), 0o600)
}

// testConfig is a config.toml whose state lies beneath dir.
func testConfig(dir string) string {
	return fmt.Sprintf("runsc = %q\n[host]\ndata = %q\nstate = %q\n", testRunsc(), filepath.Join(dir, "d"), filepath.Join(dir, "s"))
}

// printsCommand compares all of the last command's standard output with a text,
// in which \n is a newline: `stdout` looks for a line among others, and a leak may
// stand beside it.
func printsCommand(ts *testscript.TestScript, negated bool, args []string) {
	if len(args) != 1 || negated {
		ts.Fatalf("usage: prints TEXT")
	}
	want := strings.ReplaceAll(args[0], `\n`, "\n")
	if got := ts.ReadFile("stdout"); got != want {
		ts.Fatalf("standard output is %q, want %q", got, want)
	}
}

// fieldCommand compares a field of the JSON that the last command printed:
// `field usage.wall_ms 12`, with - for null, [N] for the length of a list and \n
// for a newline.
func fieldCommand(ts *testscript.TestScript, negated bool, args []string) {
	if len(args) != 2 {
		ts.Fatalf("usage: field PATH VALUE")
	}
	var value any
	if err := json.Unmarshal([]byte(ts.ReadFile("stdout")), &value); err != nil {
		ts.Fatalf("standard output is no JSON: %v", err)
	}
	for _, key := range strings.Split(args[0], ".") {
		switch v := value.(type) {
		case map[string]any:
			value = v[key]
		case []any:
			i, err := strconv.Atoi(key)
			if err != nil || i >= len(v) {
				ts.Fatalf("%s: no element %s of %d", args[0], key, len(v))
			}
			value = v[i]
		default:
			ts.Fatalf("%s: no %s in %v", args[0], key, v)
		}
	}
	want := strings.ReplaceAll(args[1], `\n`, "\n")
	if got := fieldText(value); (got == want) == negated {
		ts.Fatalf("%s is %q, want %q (negated: %t)", args[0], got, args[1], negated)
	}
}

func fieldText(value any) string {
	switch v := value.(type) {
	case nil:
		return "-"
	case []any:
		return fmt.Sprintf("[%d]", len(v))
	default:
		return fmt.Sprint(v)
	}
}

// nothingCommand fails when gaol left anything: a sandbox's directory, a host
// id, a process that names the script's directory.
func nothingCommand(ts *testscript.TestScript, negated bool, _ []string) {
	left := leftovers(ts.Getenv("WORK"))
	if (len(left) > 0) != negated {
		ts.Fatalf("left behind: %v", left)
	}
}

// leftovers lists what gaol with its state beneath dir has left.
func leftovers(dir string) []string {
	var left []string
	for _, pattern := range []string{"s/run/*", "s/ids/*"} {
		found, _ := filepath.Glob(filepath.Join(dir, pattern))
		left = append(left, found...)
	}
	commands, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, path := range commands {
		if line, err := os.ReadFile(path); err == nil && strings.HasPrefix(string(line), "runsc") && strings.Contains(string(line), dir+"/s/") {
			left = append(left, path+": "+strings.ReplaceAll(string(line), "\x00", " "))
		}
	}
	return left
}
