package images

import (
	"testing"
	"time"
)

// The default image takes a minute to build, so it is built only where asked:
// go test -run TestBuildPython -timeout 20m -args -python.
func TestBuildPython(t *testing.T) {
	if !*buildPython {
		t.Skip("takes a minute; asked for by -args -python")
	}
	needBuilder(t)
	recipe, err := LoadRecipe("python")
	if err != nil {
		t.Fatal(err)
	}
	s := newStore(t)
	if *keepStore != "" {
		s = openStore(t, Config{Root: *keepStore})
	}
	begin := time.Now()
	image, err := s.Build(t.Context(), BuildOptions{Recipe: recipe, Progress: func(p Progress) { t.Log(time.Since(begin).Round(100*time.Millisecond), p.Stage, p.Item) }})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%s in %s: rootfs %d MB, content %d MB", image.Digest, time.Since(begin), image.RootfsSize>>20, image.ContentSize>>20)
	if image.RootfsSize > 400<<20 {
		t.Errorf("rootfs has %d bytes, more than 400 MiB", image.RootfsSize)
	}
}
