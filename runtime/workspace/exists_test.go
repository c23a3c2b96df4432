package workspace

import (
	"errors"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

func TestExists(t *testing.T) {
	outside := newCanary(t)
	dir := newDir(t)
	linksOut(t, dir.Path(), outside.dir)
	check(t, unix.Mkfifo(dir.Path()+"/fifo", 0o600))
	for _, test := range []struct {
		rel  string
		want bool
		err  error
	}{
		{"real", true, nil}, {"real/", true, nil}, {"./real//f", true, nil}, {"fifo", true, nil},
		{"a", true, nil}, {"dangling", true, nil}, {"loop", true, nil}, {"dir/", true, nil}, {"real/up", true, nil},
		{"absent", false, nil}, {"absent/f", false, nil}, {"real/absent", false, nil},
		{"out/secret", false, ErrSymlink}, {"here/real/f", false, ErrSymlink}, {"loop/x", false, ErrSymlink},
		{"dangling/x", false, ErrSymlink}, {"real/f/x", false, ErrNotDirectory},
		{"..", false, ErrEscape}, {"/etc/passwd", false, ErrEscape}, {"real/../../x", false, ErrEscape},
		{"", false, ErrBadName}, {".", false, ErrBadName}, {"a\x00b", false, ErrBadName},
		{strings.Repeat("n", 256), false, unix.ENAMETOOLONG},
	} {
		got, err := dir.Exists(test.rel)
		if got != test.want || !errors.Is(err, test.err) {
			t.Errorf("Exists(%q) = %v, %v, want %v, %v", test.rel, got, err, test.want, test.err)
		}
	}
	outside.check(t)
}

func TestExistsAtAnyDepth(t *testing.T) {
	dir := newDir(t)
	name := string(make255())
	makeDeep(t, dir.Path(), name, 40)
	deep := strings.Repeat(name+"/", 40)
	for rel, want := range map[string]bool{deep + "bottom": true, deep + "other": false} {
		if got, err := dir.Exists(rel); got != want || err != nil {
			t.Errorf("Exists at the %s = %v, %v", rel[len(deep):], got, err)
		}
	}
}

func TestExistsAfterClose(t *testing.T) {
	dir := newDir(t)
	check(t, dir.Close())
	if _, err := dir.Exists("f"); err == nil {
		t.Error("a closed workspace answers")
	}
}
