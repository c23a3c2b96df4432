package main

import (
	"context"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"gaol/images"
	"gaol/policy"
	"gaol/runtime"
	"gaol/runtime/cgroup"
	"gaol/runtime/workspace"
)

// needSandbox skips a test on a machine without runsc and the images that make
// test prepares, and fails it under CI, where nothing may go untested.
func needSandbox(t testing.TB) {
	t.Helper()
	missing := ""
	if err := runtime.CheckRunsc(testRunsc()); err != nil {
		missing = err.Error()
	} else {
		for _, ref := range []string{"python", "shell"} {
			if rootfs, err := testStore(t).Resolve(context.Background(), ref); err != nil {
				missing = err.Error()
			} else {
				_ = rootfs.Close()
			}
		}
	}
	switch {
	case missing == "":
	case os.Getenv("CI") == "true":
		t.Fatalf("gVisor test cannot run: %s", missing)
	default:
		t.Skipf("gVisor test skipped: %s", missing)
	}
}

// testRunsc is the runsc that make build makes.
func testRunsc() string {
	path, err := filepath.Abs("../../bin/runsc")
	if err != nil {
		panic(err)
	}
	return path
}

func testStore(t testing.TB) *images.Store {
	t.Helper()
	store, err := images.Open(images.Config{Root: filepath.Join(t.TempDir(), "images"), System: filepath.Join(systemData, "images")})
	if err != nil {
		t.Fatal(err)
	}
	return store
}

var haveCgroup = sync.OnceValue(func() bool {
	_, err := cgroup.Find(context.Background(), cgroup.Config{})
	return err == nil
})

// sandboxes opens an engine with state of its own and yields a function that
// makes requests of the image. Both end with the test.
func sandboxes(t testing.TB, image string) (*runtime.Engine, func() runtime.Request) {
	t.Helper()
	needSandbox(t)
	state := stateDir(t)
	engine, err := runtime.Open(t.Context(), runtime.Config{State: filepath.Join(state, "s"), Runsc: testRunsc(), IDs: runtime.IDRange{First: 1879048192, Last: 1879113727}})
	if err != nil {
		t.Fatal(err)
	}
	rootfs, err := testStore(t).Resolve(t.Context(), image)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := engine.Close(); err != nil {
			t.Error(err)
		}
		if left := leftovers(state); len(left) > 0 {
			t.Errorf("left behind: %v", left)
		}
		_ = rootfs.Close()
	})
	return engine, func() runtime.Request {
		return runtime.Request{
			Policy: policy.Builtin().Policy,
			Rootfs: rootfsOf(rootfs),
		}
	}
}

// python is a request that runs source.
func python(req runtime.Request, source string) runtime.Request {
	req.Code = &runtime.Code{Name: "test.py", Source: []byte(source)}
	return req
}

func openWorkspace(t testing.TB, path string) *workspace.Dir {
	t.Helper()
	dir, err := workspace.Open(path, workspace.Rules{Roots: []string{"/"}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = dir.Close() })
	return dir
}
