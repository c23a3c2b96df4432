package images

import (
	"archive/tar"
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestRecipesAreValid(t *testing.T) {
	for _, name := range recipeNames() {
		r, err := LoadRecipe(name)
		if err != nil || r.Name != name || r.Description == "" {
			t.Errorf("recipe %s: %+v, %v", name, r, err)
		}
	}
	if d := cmp.Diff([]string{"python", "shell"}, recipeNames()); d != "" {
		t.Error(d)
	}
}

const smallRecipe = "name = \"mine\"\nsuite = \"bookworm\"\npackages = [\"dash\"]\n"

func TestRecipeIsStrict(t *testing.T) {
	for name, text := range map[string]string{
		"unknown key":      smallRecipe + "colour = 1\n",
		"unknown in links": smallRecipe + "[[links]]\ndirectory=\"/bin\"\nto=\"x\"\nnames=[\"y\"]\nmode=1\n",
		"wrong type":       smallRecipe + "prune = \"/x\"\n",
		"syntax":           smallRecipe + "env = [",
		"no name":          "suite = \"bookworm\"\npackages = [\"dash\"]\n",
		"no packages":      "name = \"mine\"\nsuite = \"bookworm\"\n",
		"option as package": "name = \"mine\"\nsuite = \"bookworm\"\n" +
			"packages = [\"--setup-hook=touch /pwned\"]\n",
		"two packages in one": "name = \"mine\"\nsuite = \"bookworm\"\npackages = [\"dash,sudo\"]\n",
		"option as suite":     "name = \"mine\"\nsuite = \"--help\"\npackages = [\"dash\"]\n",
		"path as suite":       "name = \"mine\"\nsuite = \"../x\"\npackages = [\"dash\"]\n",
		"variant":             smallRecipe + "variant = \"everything\"\n",
		"relative prune":      smallRecipe + "prune = [\"usr\"]\n",
		"climbing prune":      smallRecipe + "prune = [\"/usr/../etc\"]\n",
		"prune all":           smallRecipe + "prune = [\"/\"]\n",
		"skip with wildcard":  smallRecipe + "skip = [\"/usr/*\"]\n",
		"link climbs":         smallRecipe + "[[links]]\ndirectory=\"/bin/..\"\nto=\"x\"\nnames=[\"y\"]\n",
		"link with slash":     smallRecipe + "[[links]]\ndirectory=\"/bin\"\nto=\"x\"\nnames=[\"../y\"]\n",
		"env":                 smallRecipe + "[env]\nLD_PRELOAD = \"x\"\n",
		"user":                smallRecipe + "user = \"-1\"\n",
		"working directory":   smallRecipe + "working_dir = \"../x\"\n",
	} {
		t.Run(name, func(t *testing.T) {
			_, err := ParseRecipe("test", []byte(text))
			if !errors.Is(err, ErrInvalid) {
				t.Errorf("error %v", err)
			}
		})
	}
}

func TestRecipeFromFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "mine.toml")
	if err := os.WriteFile(file, []byte(smallRecipe), 0o600); err != nil {
		t.Fatal(err)
	}
	r, err := LoadRecipe(file)
	if err != nil || r.Name != "mine" {
		t.Errorf("%+v %v", r, err)
	}
	for _, name := range []string{"mine", "", "Python", "python "} {
		_, err := LoadRecipe(name)
		if !errors.Is(err, ErrNoRecipe) {
			t.Errorf("unknown name %q: %v", name, err)
			continue
		}
		for _, known := range recipeNames() {
			if !strings.Contains(err.Error(), known) {
				t.Errorf("%v does not name %s", err, known)
			}
		}
	}
}

func TestUnknownKeyHasItsLine(t *testing.T) {
	for key, want := range map[string]int{"colour": 4, "env.sub": 6} {
		text := smallRecipe + "colour = 1\n[env]\nsub = 2\n"
		if got := keyLine([]byte(text), strings.Split(key, ".")); got != want {
			t.Errorf("%s: line %d, want %d", key, got, want)
		}
	}
}

func TestPruneAndKeep(t *testing.T) {
	p, err := newPruner([]string{"/usr/share/doc", "/usr/lib/*/perl*", "/var/cache/**", "/a/**/tests", "/x?"}, []string{"/usr/share/doc/keep", "/a/b/tests/__init__.py"})
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]bool{
		"/usr/share/doc": true, "/usr/share/doc/x/y": true, "/usr/share/docs": false, "/usr/share/doc/keep": false, "/usr/share/doc/keep/z": false,
		"/usr/lib/x86/perl5": true, "/usr/lib/x86/perl5/y": true, "/usr/lib/x86/lib/perl": false, "/usr/lib/perl": false,
		"/var/cache": true, "/var/cache/a/b": true, "/var/cached": false, "/a/tests": true, "/a/b/c/tests/d": true, "/a/b/tests/__init__.py": false,
		"/x": false, "/xy": true, "/xyz": false,
	} {
		if got := p.drops(name); got != want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func TestFilterTree(t *testing.T) {
	var in bytes.Buffer
	w := tar.NewWriter(&in)
	for _, h := range []*tar.Header{
		{Name: "./", Typeflag: tar.TypeDir, Mode: 0o755},
		{Name: "./dev/null", Typeflag: tar.TypeChar, Devmajor: 1, Devminor: 3},
		{Name: "./doc/", Typeflag: tar.TypeDir, Mode: 0o711},
		{Name: "./doc/drop", Typeflag: tar.TypeReg},
		{Name: "./doc/keep", Typeflag: tar.TypeReg, Uname: "host"},
		{Name: "./other/", Typeflag: tar.TypeDir, Mode: 0o755},
		{Name: "./other/twin", Typeflag: tar.TypeLink, Linkname: "./doc/keep"},
	} {
		must(w.WriteHeader(h))
	}
	must(w.Close())
	var out bytes.Buffer
	recipe := Recipe{Prune: []string{"/doc"}, Keep: []string{"/doc/keep"}, Links: []Link{{Directory: "/bin", To: "x", Names: []string{"b", "a"}}}}
	if err := filterTree(&out, bytes.NewReader(in.Bytes()), recipe); err != nil {
		t.Fatal(err)
	}
	var names []string
	r := tar.NewReader(&out)
	for {
		h, err := r.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if h.Uname != "" {
			t.Errorf("%s: user name %q", h.Name, h.Uname)
		}
		names = append(names, h.Name)
	}
	if d := cmp.Diff([]string{"./doc/", "./doc/keep", "./other/", "./other/twin", "./bin/a", "./bin/b"}, names); d != "" {
		t.Error(d)
	}
	recipe.Keep = nil
	if err := filterTree(io.Discard, bytes.NewReader(in.Bytes()), recipe); !errors.Is(err, ErrInvalid) {
		t.Errorf("link to a pruned file: %v", err)
	}
}

func TestHostSources(t *testing.T) {
	etc := t.TempDir()
	if err := os.Mkdir(filepath.Join(etc, "sources.list.d"), 0o755); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"sources.list":             "# comment\ndeb [arch=amd64 signed-by=/k.gpg] http://mirror.example/debian bookworm main contrib # x\ndeb http://mirror.example/debian trixie main\ndeb-src http://mirror.example/debian bookworm main\n",
		"sources.list.d/a.sources": "Types: deb deb-src\nURIs: http://mirror.example/security\nSuites: bookworm-security trixie\nComponents: main\nSigned-By:\n -----BEGIN\n .\n x\n\nTypes: deb\nEnabled: no\nURIs: http://off.example\nSuites: bookworm\n",
		"sources.list.d/b.list":    "deb http://mirror.example/x bookworm-updates main\n",
		"sources.list.d/c.off":     "deb http://off.example bookworm main\n",
	} {
		if err := os.WriteFile(filepath.Join(etc, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := hostSources(etc, "bookworm")
	if err != nil {
		t.Fatal(err)
	}
	want := "Types: deb\nURIs: http://mirror.example/debian\nSuites: bookworm\nComponents: main contrib\nSigned-By: /k.gpg\n\n" +
		"Types: deb\nURIs: http://mirror.example/security\nSuites: bookworm-security\nComponents: main\nSigned-By: \n -----BEGIN\n .\n x\n\n" +
		"Types: deb\nURIs: http://mirror.example/x\nSuites: bookworm-updates\nComponents: main\n"
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	if none, err := hostSources(t.TempDir(), "bookworm"); err != nil || none != "" {
		t.Errorf("no sources: %q, %v", none, err)
	}
}
