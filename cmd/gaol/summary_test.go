package main

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"gaol/runtime"
	"gaol/runtime/workspace"
)

func TestSummary(t *testing.T) {
	created := func(name, kind, target string, risky bool) workspace.Change {
		return workspace.Change{Path: name, Kind: workspace.Created, Type: kind, Size: 1, Target: target, Risky: risky}
	}
	usage := runtime.Usage{Wall: 2 * time.Second, CPU: 10 * time.Millisecond, MemoryPeak: 2048}
	for _, test := range []struct {
		name      string
		result    runtime.Result
		temporary bool
		want      string
	}{
		{"all known", runtime.Result{Outcome: runtime.Exited, Usage: usage}, true, "gaol: exited 0 · 2s · cpu 10ms · memory 2.0 KiB\n"},
		{"nothing known", runtime.Result{Outcome: runtime.Exited, ExitCode: 3, Usage: runtime.Usage{Wall: time.Second}}, false, "gaol: exited 3 · 1s\n"},
		{"never started", runtime.Result{Outcome: runtime.StartFailed, Reason: "x: not found"}, false, "gaol: start_failed: x: not found\n"},
		{
			"discarded",
			runtime.Result{Outcome: runtime.StartFailed, Files: []workspace.Change{created("a.csv", "file", "", false)}}, true,
			"gaol: start_failed\ngaol: created a.csv (1 B, file), discarded with the temporary workspace; keep it by --workspace DIR or --keep\n",
		},
		{
			"several discarded",
			runtime.Result{Outcome: runtime.StartFailed, Files: []workspace.Change{created("a", "file", "", false), created("b", "file", "", false)}}, true,
			"gaol: start_failed\ngaol: created a (1 B, file)\ngaol: created b (1 B, file)\n" +
				"gaol: all of them discarded with the temporary workspace; keep it by --workspace DIR or --keep\n",
		},
		{
			"risky",
			runtime.Result{Outcome: runtime.StartFailed, Files: []workspace.Change{
				created("Makefile", "file", "", true), created("d/out", "symlink", "../../x", true),
				created("abs", "symlink", "/etc", true), created("d/.bashrc", "symlink", "../in", true),
			}}, false,
			"gaol: start_failed\ngaol: created Makefile (1 B, file) — common tools would execute it\n" +
				"gaol: created d/out (1 B, symlink) — points outside the workspace\n" +
				"gaol: created abs (1 B, symlink) — points outside the workspace\n" +
				"gaol: created d/.bashrc (1 B, symlink) — common tools would execute it\n",
		},
		{
			"marks",
			runtime.Result{Outcome: runtime.StartFailed, Files: []workspace.Change{created("e\u0301\u0301\u0301\u0301\u0301", "file", "", false)}}, false,
			"gaol: start_failed\ngaol: created e\u0301\u0301\u0301\u0301\\u0301 (1 B, file)\n",
		},
	} {
		if diff := cmp.Diff(test.want, summary(&test.result, test.temporary)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", test.name, diff)
		}
	}
}

func TestSummaryListsSoManyFiles(t *testing.T) {
	var files []workspace.Change
	want := ""
	for i := range maxShown + 40 {
		name := fmt.Sprintf("f%d", i)
		files = append(files, workspace.Change{Path: name, Kind: workspace.Deleted})
		if i < maxShown {
			want += "gaol: deleted " + name + "\n"
		}
	}
	want += "gaol: and 40 more (--json lists all)\n"
	if diff := cmp.Diff(want, filesText(files, false)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
