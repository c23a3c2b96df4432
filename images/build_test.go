package images

import (
	"os"
	"os/exec"
	"testing"
)

// needBuilder skips where packages cannot be installed, but not where that is
// promised.
func needBuilder(t *testing.T) {
	t.Helper()
	if _, _, err := builderMode(os.Geteuid()); err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatalf("builder missing under CI: %v", err)
		}
		t.Skipf("no builder here: %v", err)
	}
	if _, err := exec.LookPath("apt-config"); err != nil {
		t.Skip("no apt here")
	}
}

func TestBuildShellTwiceGivesTheSameDigest(t *testing.T) {
	needBuilder(t)
	recipe, err := LoadRecipe("shell")
	if err != nil {
		t.Fatal(err)
	}
	var digests []string
	for range 2 {
		s := newStore(t)
		image, err := s.Build(t.Context(), BuildOptions{Recipe: recipe, Progress: func(p Progress) { t.Log(p.Stage, p.Item) }})
		if err != nil {
			t.Fatal(err)
		}
		digests = append(digests, image.Digest.String()+" "+image.RootfsDigest.String())
		rootfs, err := s.Resolve(t.Context(), "shell:latest")
		if err != nil {
			t.Fatal(err)
		}
		defer rootfs.Close()
		if rootfs.Size > 8<<20 {
			t.Errorf("rootfs has %d bytes", rootfs.Size)
		}
		if left := leftovers(t, s); len(left) > 0 {
			t.Errorf("left behind: %v", left)
		}
	}
	if digests[0] != digests[1] {
		t.Errorf("two builds differ: %v", digests)
	}
}
