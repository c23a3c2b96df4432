package layers_test

import (
	"archive/tar"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"gaol/images/layers"
)

type tree = map[string]string

// TestMerge tells what a chain of layers becomes. A case without a tree is
// refused.
func TestMerge(t *testing.T) {
	long := repeat("n", 255)
	tests := []struct {
		name  string
		chain [][]entry
		want  tree
	}{
		{"no layers", nil, tree{}},
		{"files and directories", [][]entry{{d("a/"), f("a/x", "1"), f("./b", "2"), f("/c", "3")}}, tree{"a": "/", "a/x": "1", "b": "2", "c": "3"}},
		{"missing parents are made", [][]entry{{f("no/such/dir/x", "1")}}, tree{"no": "/", "no/such": "/", "no/such/dir": "/", "no/such/dir/x": "1"}},
		{"last entry wins in a layer", [][]entry{{f("x", "1"), f("./x", "2"), f("/x", "3")}}, tree{"x": "3"}},
		{"upper layer wins", [][]entry{{f("x", "1")}, {f("x", "2")}}, tree{"x": "2"}},
		{"directories merge", [][]entry{{d("a"), f("a/x", "1")}, {d("a"), f("a/y", "2")}}, tree{"a": "/", "a/x": "1", "a/y": "2"}},
		{"file over directory", [][]entry{{f("a/x", "1")}, {f("a", "2")}}, tree{"a": "2"}},
		{"directory over file", [][]entry{{f("a", "1")}, {d("a"), f("a/x", "2")}}, tree{"a": "/", "a/x": "2"}},
		{"case and trailing slash", [][]entry{{f("x", "1"), f("X", "2"), f("y", "3"), d("y/"), d("z/"), f("z", "4")}}, tree{"x": "1", "X": "2", "y": "/", "z": "4"}},
		{"longest name", [][]entry{{f(long, "1")}}, tree{long: "1"}},

		// CASES.md H2.
		{"H2 as written", [][]entry{
			{f("a/x", "1"), f("a/y", "1"), f("b", "1")},
			{wh(".wh.b"), wh("a/.wh..wh..opq"), f("a/z", "2"), wh(".wh.absent"), wh("no/.wh.absent"), wh(".wh.")},
			{f("b/new", "3")},
		}, tree{"a": "/", "a/z": "2", "b": "/", "b/new": "3"}},
		{"whiteout of a directory", [][]entry{{f("a/b/x", "1")}, {wh("a/.wh.b")}}, tree{"a": "/"}},
		{"whiteout before the new file", [][]entry{{f("x", "1")}, {wh(".wh.x"), f("x", "2")}}, tree{"x": "2"}},
		{"whiteout spares its own layer", [][]entry{{f("x", "1")}, {f("x", "2"), wh(".wh.x")}}, tree{"x": "2"}},
		{"whiteout spares its own layer's files only", [][]entry{{f("a/x", "1"), f("a/y", "1")}, {f("a/x", "2"), wh(".wh.a")}}, tree{"a": "/", "a/x": "2"}},
		{"whiteout in the first layer", [][]entry{{f("x", "1"), wh(".wh.x"), wh(".wh..wh..opq")}}, tree{"x": "1"}},
		{"opaque after its layer's files", [][]entry{{f("a/x", "1"), f("a/s/y", "1")}, {f("a/s/z", "2"), wh("a/.wh..wh..opq")}}, tree{"a": "/", "a/s": "/", "a/s/z": "2"}},
		{"opaque twice, files between", [][]entry{{f("a/x", "1")}, {wh("a/.wh..wh..opq"), f("a/y", "2"), wh("a/.wh..wh..opq")}}, tree{"a": "/", "a/y": "2"}},
		{"opaque root", [][]entry{{f("a/x", "1"), f("b", "1")}, {f("c", "2"), wh(".wh..wh..opq")}}, tree{"c": "2"}},
		{"opaque directory that is not there", [][]entry{{}, {wh("a/.wh..wh..opq")}}, tree{}},
		{"opaque in two layers", [][]entry{{f("a/x", "1")}, {f("a/y", "2")}, {wh("a/.wh..wh..opq"), f("a/z", "3")}, {wh("a/.wh..wh..opq")}}, tree{"a": "/"}},
		{"whiteout below a file", [][]entry{{f("a", "1")}, {wh("a/.wh.x"), wh("a/.wh..wh..opq")}}, tree{"a": "1"}},
		{"whiteout of a link leaves its target", [][]entry{{f("a/x", "1"), s("l", "a")}, {wh(".wh.l")}}, tree{"a": "/", "a/x": "1"}},
		{"whiteout may not go through a link", [][]entry{{f("a/x", "1"), s("l", "a")}, {wh("l/.wh.x")}}, nil},
		{"opaque may not go through a link", [][]entry{{f("a/x", "1"), s("l", "a")}, {wh("l/.wh..wh..opq")}}, nil},
		{"whiteout of dot dot", [][]entry{{f("a/x", "1")}, {wh("a/.wh...")}}, nil},
		{"whiteout of dot", [][]entry{{f("a/x", "1")}, {wh("a/.wh..")}}, nil},
		{"whiteout above the root", [][]entry{{f("x", "1")}, {wh("../../.wh.x")}}, tree{}},
		{"AUFS's own files", [][]entry{{d(".wh..wh.plnk"), f(".wh..wh.plnk/1.2", "1"), wh(".wh..wh.aufs"), f("x", "1")}}, tree{"x": "1"}},
		{"whiteout name as a parent", [][]entry{{f(".wh.a/x", "1")}}, nil},
		{"whiteout name through a dangling link", [][]entry{{s("l", ".wh.a"), f("l/x", "1")}}, nil},
		{"overlayfs whiteout", [][]entry{{f("x", "1"), f("y", "1")}, {special("x", tar.TypeChar)}}, tree{"y": "1"}},

		// CASES.md H4.
		{"H4 as written", [][]entry{
			{f("lower", "0")},
			{f("f", "1"), h("h1", "f"), h("h2", "/f"), s("s", "f"), h("h3", "s"), h("no/such/parent/h4", "f"), h("low", "lower"), h("early", "late"), f("late", "2")},
		}, tree{"f": "1", "h1": "1", "h2": "1", "s": "-> f", "h3": "-> f", "no": "/", "no/such": "/", "no/such/parent": "/", "no/such/parent/h4": "1",
			"lower": "0", "low": "0", "early": "2", "late": "2"}},
		{"hard link up and out stays inside", [][]entry{{f("f", "1"), h("h", "../../f")}}, tree{"f": "1", "h": "1"}},
		{"hard link to nothing", [][]entry{{h("h", "nothing")}}, nil},
		{"hard link to the host's file", [][]entry{{h("h", "../../../../usr/bin/env")}}, nil},
		{"hard link, empty target", [][]entry{{f("f", "1"), h("h", "")}}, nil},
		{"hard link to a directory", [][]entry{{d("a"), h("h", "a")}}, nil},
		{"hard link to the root", [][]entry{{h("h", "/")}}, nil},
		{"hard link to itself", [][]entry{{h("h", "h")}}, nil},
		{"hard link to itself, there before", [][]entry{{f("h", "1"), h("h", "h")}}, tree{"h": "1"}},
		{"hard links in a circle", [][]entry{{h("a", "b"), h("b", "c"), h("c", "a")}}, nil},
		{"hard links in a chain, backwards", [][]entry{{h("a", "b"), h("b", "c"), h("c", "d"), f("d", "1")}}, tree{"a": "1", "b": "1", "c": "1", "d": "1"}},
		{"hard link that waits, then replaced", [][]entry{{h("a", "nothing"), f("a", "1")}}, tree{"a": "1"}},
		{"hard link into the directory that it replaces", [][]entry{{f("a/x", "1"), h("a", "a/x")}}, tree{"a": "1"}},
		{"hard link to what a whiteout removed", [][]entry{{f("f", "1")}, {wh(".wh.f"), h("h", "f")}}, nil},
		{"hard link, then whiteout of its target", [][]entry{{f("f", "1")}, {h("h", "f"), wh(".wh.f")}}, tree{"h": "1"}},
		{"hard link outlives opaque", [][]entry{{f("a/f", "1")}, {h("a/h", "a/f"), wh("a/.wh..wh..opq")}}, tree{"a": "/", "a/h": "1"}},
		{"hard link through a linked directory", [][]entry{{f("a/f", "1"), s("l", "a"), h("h", "l/f")}}, tree{"a": "/", "a/f": "1", "l": "-> a", "h": "1"}},
		{"replacing one name leaves the others", [][]entry{{f("f", "1"), h("h", "f")}, {f("f", "2")}}, tree{"f": "2", "h": "1"}},
		{"hard link to a device goes with it", [][]entry{{special("n", tar.TypeBlock), h("h", "n")}}, tree{}},

		// ATTACKS.md D1.
		{"absolute link, then a file through it", [][]entry{{s("l", "/var"), f("l/x", "1")}}, tree{"l": "-> /var", "var": "/", "var/x": "1"}},
		{"link up and out", [][]entry{{s("l", "../../../.."), f("l/x", "1")}}, tree{"l": "-> ../../../..", "x": "1"}},
		{"several hops", [][]entry{{d("a/b"), s("a/b/up", "../.."), s("l", "a/b/up/up2"), s("up2", "../../var"), f("l/x", "1")}}, tree{
			"a": "/", "a/b": "/", "a/b/up": "-> ../..", "l": "-> a/b/up/up2", "up2": "-> ../../var", "var": "/", "var/x": "1"}},
		{"a directory over a link", [][]entry{{s("l", "/var"), d("l"), f("l/x", "1")}}, tree{"l": "/", "l/x": "1"}},
		{"a file over a link", [][]entry{{f("a", "1"), s("l", "a"), f("l", "2")}}, tree{"a": "1", "l": "2"}},
		{"through a lower layer's link", [][]entry{{d("usr/bin"), s("bin", "usr/bin")}, {f("bin/x", "1")}}, tree{"usr": "/", "usr/bin": "/", "bin": "-> usr/bin", "usr/bin/x": "1"}},
		{"links in a circle", [][]entry{{s("a", "b"), s("b", "a"), f("a/x", "1")}}, nil},
		{"parent is a file", [][]entry{{f("a", "1"), f("a/x", "2")}}, nil},
		{"parent is a file of a lower layer", [][]entry{{f("a", "1")}, {f("a/x", "2")}}, nil},
		{"parent is a hard link that waits", [][]entry{{h("a", "late"), f("a/x", "2"), f("late", "1")}}, nil},
		{"link with an empty target", [][]entry{{s("l", "")}}, nil},
		{"name out of the root", [][]entry{{f("./../x", "1"), f("../../../y", "2"), f("a/../../z", "3")}}, tree{"x": "1", "y": "2", "z": "3"}},
		{"root as a file", [][]entry{{f(".", "1")}}, nil},
		{"root as a link", [][]entry{{s("a/..", "/var")}}, nil},
		{"name of 256 bytes", [][]entry{{f(repeat("n", 256), "1")}}, nil},
		{"unknown type", [][]entry{{special("x", 'Z')}}, nil},
		{"fifo", [][]entry{{special("p", tar.TypeFifo)}}, tree{"p": "p---------"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var streams [][]byte
			for _, entries := range tt.chain {
				streams = append(streams, layer(t, entries...))
			}
			out, _, err := build(t, chainOf(streams...), layers.Config{})
			if tt.want == nil {
				oneOf(t, err, layers.ErrEntry)
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			fsck(t, out.Name())
			if diff := cmp.Diff(tt.want, contents(t, out)); diff != "" {
				t.Fatal(diff)
			}
		})
	}
}

func TestHardLinksShareOneInode(t *testing.T) {
	out, _ := mustBuild(t, layer(t, f("f", "1"), h("h1", "f"), s("s", "f"), h("h3", "s")), layer(t, h("a/h4", "f"), f("alone", "2")))
	first := stat(t, out, "f")
	for _, name := range []string{"h1", "a/h4"} {
		if st := stat(t, out, name); st.Ino != first.Ino || st.Nlink != 3 {
			t.Errorf("%s: inode %d with %d links, want %d with 3", name, st.Ino, st.Nlink, first.Ino)
		}
	}
	if first.Mode.Perm() != 0o644 {
		t.Errorf("mode %v: a hard link's own mode got through", first.Mode)
	}
	if a, b := stat(t, out, "s"), stat(t, out, "h3"); a.Ino != b.Ino || a.Nlink != 2 {
		t.Errorf("the link and its hard link are inodes %d and %d, %d links", a.Ino, b.Ino, a.Nlink)
	}
	if st := stat(t, out, "alone"); st.Nlink != 1 {
		t.Errorf("alone has %d links", st.Nlink)
	}
}

// TestMetadataIsKept checks what Python and others rely on: exact times, set-id
// bits, owners beyond 16 bits, and directories described after their files.
func TestMetadataIsKept(t *testing.T) {
	when := time.Unix(1_600_000_000, 987_654_321)
	e := f("x.py", "pass")
	e.Mode, e.Uid, e.Gid, e.ModTime, e.Format = 0o6755, 100_000, 4_000_000_000, when, tar.FormatPAX
	e.PAXRecords = map[string]string{"SCHILY.xattr.security.capability": "\x01", "SCHILY.xattr.user.note": "hi"}
	dir := d("late")
	dir.Mode, dir.ModTime = 0o1770, time.Unix(5, 0)
	rootDir := d("./")
	rootDir.Mode, rootDir.ModTime = 0o700, time.Unix(77, 0)
	out, _ := mustBuild(t, layer(t, e, f("late/f", "1"), dir, rootDir), layer(t, f("late/g", "2")))

	st := stat(t, out, "x.py")
	got := []any{st.Mode.String(), st.UID, st.GID, st.Mtime, st.MtimeNs, len(st.Xattrs)}
	want := []any{"ugrwxr-xr-x", uint32(100_000), uint32(4_000_000_000), uint64(1_600_000_000), uint32(987_654_321), 0}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if st := stat(t, out, "late"); st.Mode.String() != "dtrwxrwx---" || st.Mtime != 5 {
		t.Errorf("directory is %v, time %d", st.Mode, st.Mtime)
	}
	if st := stat(t, out, "."); st.Mode.Perm() != 0o755 || st.Mtime != 77 {
		t.Errorf("root is %v, time %d", st.Mode, st.Mtime)
	}
}

func TestOwnersOutOfRangeAreRefused(t *testing.T) {
	for _, id := range []int{-1, 1<<32 - 1, 1 << 32, 1 << 40} {
		e := f("x", "1")
		e.Uid, e.Format = id, tar.FormatGNU
		if _, _, err := build(t, chainOf(layer(t, e)), layers.Config{}); err == nil {
			t.Errorf("owner %d was accepted", id)
		} else {
			oneOf(t, err, layers.ErrEntry, tar.ErrHeader)
		}
	}
}
