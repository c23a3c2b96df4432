package layers_test

import (
	"archive/tar"
	"io/fs"
	"testing"

	reader "github.com/erofs/go-erofs"
	"github.com/google/go-cmp/cmp"

	"gaol/images/layers"
)

const (
	newPasswd = "root:x:0:0:root:/root:/bin/sh\ngaol:x:1000:1000:gaol:/tmp:/bin/sh\n"
	newGroup  = "root:x:0:\ngaol:x:1000:\n"
)

func TestMountPoints(t *testing.T) {
	want := map[string]string{
		"workspace": "drwxr-xr-x", "proc": "dr-xr-xr-x", "sys": "dr-xr-xr-x", "dev": "drwxr-xr-x", "dev/pts": "drwxr-xr-x",
		"dev/shm": "dtrwxrwxrwx", "run": "drwxr-xr-x", "tmp": "dtrwxrwxrwx",
	}
	tests := []struct {
		name    string
		entries []entry
		change  map[string]string
	}{
		{"empty image", nil, nil},
		{"there already", []entry{d("tmp"), d("dev/shm")}, map[string]string{"tmp": "drwxr-xr-x", "dev/shm": "drwxr-xr-x"}},
		{"links inside", []entry{s("run", "/var/run"), d("var/run"), s("tmp", "var/tmp"), s("dev/shm", "/run/shm")}, nil},
		{"links anywhere", []entry{s("workspace", "/etc"), s("dev", "/"), s("proc", "proc"), s("sys", "/nowhere")}, nil},
		{"files and devices", []entry{f("tmp", "1"), special("run", tar.TypeFifo), special("proc", tar.TypeChar), f("dev", "1")}, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			out, _ := mustBuild(t, layer(t, tt.entries...))
			for path, mode := range want {
				if other, ok := tt.change[path]; ok {
					mode = other
				}
				if got := stat(t, out, path).Mode.String(); got != mode {
					t.Errorf("/%s is %s, want %s", path, got, mode)
				}
			}
		})
	}
}

func TestAccounts(t *testing.T) {
	const own = "root:x:0:0::/root:/bin/bash\n"
	named := "app:x:1000:1000::/home/app:/bin/sh"
	owned := f("etc/passwd", own)
	owned.Mode, owned.Uid = 0o600, 3
	tests := []struct {
		name          string
		entries       []entry
		passwd, group string // as Info says; "" for none
		at            string // where the passwd file lies, if not /etc/passwd
	}{
		{"none", nil, newPasswd, newGroup, ""},
		{"without 1000", []entry{owned}, own + "gaol:x:1000:1000:gaol:/tmp:/bin/sh\n", newGroup, ""},
		{"with 1000", []entry{f("etc/passwd", own+named), f("etc/group", "app:x:1000:")}, own + named, "app:x:1000:", ""},
		{"no newline at the end", []entry{f("etc/passwd", "a:x:1:1::/:/a")}, "a:x:1:1::/:/a\ngaol:x:1000:1000:gaol:/tmp:/bin/sh\n", newGroup, ""},
		{"1000 in another field", []entry{f("etc/passwd", "a:1000:1:1000:1000:/:/a\n")}, "a:1000:1:1000:1000:/:/a\ngaol:x:1000:1000:gaol:/tmp:/bin/sh\n", newGroup, ""},
		{"empty", []entry{f("etc/passwd", "")}, "gaol:x:1000:1000:gaol:/tmp:/bin/sh\n", newGroup, ""},
		{"a link", []entry{f("lib/passwd", own), s("etc/passwd", "../lib/passwd")}, own + "gaol:x:1000:1000:gaol:/tmp:/bin/sh\n", newGroup, "lib/passwd"},
		{"a link out of the root", []entry{s("etc/passwd", "../../../../etc/shadow"), f("etc/shadow", own)}, own + "gaol:x:1000:1000:gaol:/tmp:/bin/sh\n", newGroup, "etc/shadow"},
		{"links through a linked directory", []entry{f("usr/etc/passwd", own), s("etc", "/usr/etc")}, own + "gaol:x:1000:1000:gaol:/tmp:/bin/sh\n", newGroup, "usr/etc/passwd"},
		{"a link to nothing", []entry{s("etc/passwd", "/nowhere/passwd")}, newPasswd, newGroup, ""},
		{"a link to itself", []entry{s("etc/passwd", "passwd")}, newPasswd, newGroup, ""},
		{"a hard link", []entry{f("etc/other", own), h("etc/passwd", "etc/other")}, own + "gaol:x:1000:1000:gaol:/tmp:/bin/sh\n", newGroup, ""},
		{"a directory", []entry{d("etc/passwd")}, "", newGroup, "-"},
		{"etc is a file", []entry{f("etc", "1")}, "", "", "-"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			out, info := mustBuild(t, layer(t, tt.entries...))
			if diff := cmp.Diff([]string{tt.passwd, tt.group}, []string{string(info.Passwd), string(info.Group)}); diff != "" {
				t.Fatal(diff)
			}
			at := tt.at
			if at == "" {
				at = "etc/passwd"
			}
			if at == "-" {
				return
			}
			fsys, err := reader.Open(out)
			if err != nil {
				t.Fatal(err)
			}
			if got, err := fs.ReadFile(fsys, at); err != nil || string(got) != tt.passwd {
				t.Fatalf("%s holds %q, %v", at, got, err)
			}
		})
	}
}

func TestAccountFileKeepsItsOwner(t *testing.T) {
	e := f("etc/passwd", "root:x:0:0::/:/a\n")
	e.Mode, e.Uid = 0o600, 3
	out, _ := mustBuild(t, layer(t, e, h("etc/other", "etc/passwd")))
	if st := stat(t, out, "etc/passwd"); st.Mode.Perm() != 0o600 || st.UID != 3 || st.Mtime != 1000 {
		t.Errorf("/etc/passwd became %v, owner %d, time %d", st.Mode, st.UID, st.Mtime)
	}
	if got := contents(t, out)["etc/other"]; got != e.content {
		t.Errorf("its hard link changed too: %q", got)
	}
}

func TestHugeAccountFileIsRefused(t *testing.T) {
	_, _, err := build(t, chainOf(layer(t, f("etc/passwd", repeat("#", 1<<20+1)))), layers.Config{})
	oneOf(t, err, layers.ErrLimit)
}

func TestInfoCounts(t *testing.T) {
	_, info := mustBuild(t, layer(t, f("x", "123"), d("a"), special("n", tar.TypeChar), special("a/m", tar.TypeBlock)))
	// x, a, and what every image gets: 8 mount points, /etc and its two files.
	got := []int64{int64(info.Entries), info.Bytes, int64(info.Devices)}
	if diff := cmp.Diff([]int64{13, 3, 2}, got); diff != "" {
		t.Fatal(diff)
	}
}
