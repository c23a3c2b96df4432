package workspace

import (
	"errors"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func TestRemoveEmpty(t *testing.T) {
	outside := newCanary(t)
	writeFile(t, outside.dir+"/empty", "")
	outside.before = fingerprint(t, outside.dir)
	dir := newDir(t)
	ws := dir.Path()
	check(t, os.MkdirAll(ws+"/full/inner", 0o755))
	check(t, os.Mkdir(ws+"/locked", 0))
	writeFile(t, ws+"/empty", "")
	writeFile(t, ws+"/full/empty", "")
	writeFile(t, ws+"/byte", "x")
	check(t, unix.Mkfifo(ws+"/fifo", 0o600))
	for name, target := range map[string]string{
		"link": "byte", "hollow": outside.dir + "/empty", "out": outside.dir, "dangling": "nowhere",
	} {
		check(t, os.Symlink(target, ws+"/"+name))
	}
	for _, test := range []struct {
		rel  string
		want error
	}{
		{"empty", nil}, {"empty", nil}, {"locked", nil}, {"absent/x", nil},
		{"full", ErrLeftover}, {"full/empty", nil}, {"full", ErrLeftover}, {"full/inner/", nil}, {"full", nil},
		{"byte", ErrLeftover}, {"fifo", ErrNotRegular}, {"link", ErrSymlink}, {"hollow", ErrSymlink},
		{"dangling", ErrSymlink}, {"out/empty", ErrSymlink}, {"out/sub", ErrSymlink}, {"byte/x", ErrNotDirectory},
		{"..", ErrEscape}, {"/etc", ErrEscape}, {".", ErrBadName}, {"", ErrBadName},
	} {
		if err := dir.RemoveEmpty(test.rel); !errors.Is(err, test.want) {
			t.Errorf("RemoveEmpty(%q) = %v, want %v", test.rel, err, test.want)
		}
	}
	if left := strings.Join(names(t, ws), " "); left != "byte dangling fifo hollow link out" {
		t.Errorf("left %s", left)
	}
	outside.check(t)
}

// swaps are what may take the place of an empty file.
var swaps = map[string]func(path string) error{
	"file":      func(path string) error { return os.WriteFile(path, []byte("kept"), 0o600) },
	"directory": func(path string) error { return os.MkdirAll(path+"/kept", 0o700) },
	"link":      func(path string) error { return os.Symlink("kept", path) },
}

// TestRemoveEmptyKeepsWhatCame is the race as it is lost at worst: the swap
// comes after the look.
func TestRemoveEmptyKeepsWhatCame(t *testing.T) {
	for name, lay := range swaps {
		t.Run(name, func(t *testing.T) {
			ws := t.TempDir()
			writeFile(t, ws+"/f", "")
			parent, err := os.Open(ws)
			check(t, err)
			defer parent.Close()
			fd := int(parent.Fd())
			id, _, err := empty(fd, "f")
			check(t, err)
			check(t, lay(ws+"/other"))
			check(t, unix.Renameat2(fd, "f", fd, "other", unix.RENAME_EXCHANGE))
			var before, after unix.Stat_t
			check(t, unix.Lstat(ws+"/f", &before))
			if err := removeEmptyFile(fd, "f", id); err == nil {
				t.Error("no error")
			}
			check(t, unix.Lstat(ws+"/f", &after))
			if after.Ino != before.Ino {
				t.Error("another one is in its place")
			}
			if left := strings.Join(names(t, ws), " "); left != "f other" {
				t.Errorf("left %s", left)
			}
		})
	}
}

// TestRaceRemoveEmpty exchanges the empty file for a full one, for a directory
// and for a link all the time: none of these may ever go, and no trace stays.
func TestRaceRemoveEmpty(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	for name, lay := range swaps {
		t.Run(name, func(t *testing.T) {
			dir := newDir(t)
			ws := dir.Path()
			check(t, lay(ws+"/other"))
			var kept unix.Stat_t
			check(t, unix.Lstat(ws+"/other", &kept))
			var stop atomic.Bool
			var group sync.WaitGroup
			group.Go(func() {
				for !stop.Load() {
					_ = unix.Renameat2(int(dir.File().Fd()), "f", int(dir.File().Fd()), "other", unix.RENAME_EXCHANGE)
				}
			})
			var calls tally
			for end := time.Now().Add(raceTime); time.Now().Before(end); {
				// The empty one is whichever name is free, or there already.
				for _, free := range []string{"/f", "/other"} {
					if file, err := os.OpenFile(ws+free, os.O_CREATE|os.O_EXCL, 0o600); err == nil {
						check(t, file.Close())
					}
				}
				calls.add(dir.RemoveEmpty("f"))
			}
			stop.Store(true)
			group.Wait()
			if calls.fine == 0 || calls.refused == 0 {
				t.Errorf("%d removed, %d refused: there was no race", calls.fine, calls.refused)
			}
			found := false
			for _, name := range names(t, ws) {
				var st unix.Stat_t
				check(t, unix.Lstat(ws+"/"+name, &st))
				found = found || st.Ino == kept.Ino
				if strings.HasPrefix(name, ".gaol-") {
					t.Errorf("%s was left", name)
				}
			}
			if !found {
				t.Error("what was not empty is gone")
			}
		})
	}
}
