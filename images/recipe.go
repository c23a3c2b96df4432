package images

import (
	"bytes"
	"embed"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/BurntSushi/toml"
)

//go:embed recipes/*.toml
var embedded embed.FS

// Recipe says how an image is made from Debian packages.
type Recipe struct {
	// Name is the default reference of the image: [a-z0-9-], 2 to 40.
	Name        string `toml:"name"`
	Description string `toml:"description"`
	// Suite is the Debian release, such as "bookworm".
	Suite string `toml:"suite"`
	// Variant is mmdebstrap's: which packages come without being asked for.
	// "" means "custom": only Packages and what they need.
	Variant string `toml:"variant"`
	// Packages are Debian package names.
	Packages []string `toml:"packages"`
	// Prune are patterns of paths that are left out, Keep exceptions to it.
	// Both are absolute; * matches within one name, ** any number of names;
	// a directory that matches takes what is below with it.
	Prune []string `toml:"prune"`
	Keep  []string `toml:"keep"`
	// Skip are directories that dpkg does not even unpack: as Prune, and
	// quicker. Plain paths; nothing below can be kept, and no package's
	// scripts may need them.
	Skip []string `toml:"skip"`
	// Links are symbolic links to add.
	Links []Link `toml:"links"`
	// Env, Entrypoint, Cmd, User and WorkingDir go to the image's config.
	Env        map[string]string `toml:"env"`
	Entrypoint []string          `toml:"entrypoint"`
	Cmd        []string          `toml:"cmd"`
	User       string            `toml:"user"`
	WorkingDir string            `toml:"working_dir"`
}

// Link adds Directory/name, a symbolic link to To, for each of Names.
type Link struct {
	Directory string   `toml:"directory"`
	To        string   `toml:"to"`
	Names     []string `toml:"names"`
}

// recipeNames lists the recipes that the program carries, sorted.
func recipeNames() []string {
	files, _ := embedded.ReadDir("recipes") // embedded, so it is there
	names := make([]string, len(files))
	for i, f := range files {
		names[i] = strings.TrimSuffix(f.Name(), ".toml")
	}
	return names
}

// isRecipe tells whether the program carries a recipe of that name.
func isRecipe(name string) bool { return slices.Contains(recipeNames(), name) }

// LoadRecipe reads the recipe of that name which the program carries, or the
// file if nameOrPath contains a slash or ends in ".toml". [ErrNoRecipe] comes
// with the names that there are.
func LoadRecipe(nameOrPath string) (Recipe, error) {
	if !strings.Contains(nameOrPath, "/") && !strings.HasSuffix(nameOrPath, ".toml") {
		if !isRecipe(nameOrPath) {
			return Recipe{}, fmt.Errorf("load recipe %q: %w (there are: %s; a file's path needs a slash or .toml)",
				nameOrPath, ErrNoRecipe, strings.Join(recipeNames(), ", "))
		}
		data, err := embedded.ReadFile("recipes/" + nameOrPath + ".toml")
		if err != nil {
			return Recipe{}, fmt.Errorf("load recipe %q: %w", nameOrPath, err)
		}
		return ParseRecipe(nameOrPath, data)
	}
	info, err := os.Stat(nameOrPath)
	if err != nil {
		return Recipe{}, fmt.Errorf("load recipe: %w", err)
	}
	if !info.Mode().IsRegular() || info.Size() > 1<<20 {
		return Recipe{}, fmt.Errorf("load recipe %s: not a regular file of at most 1 MiB", nameOrPath)
	}
	data, err := os.ReadFile(nameOrPath)
	if err != nil {
		return Recipe{}, fmt.Errorf("load recipe: %w", err)
	}
	return ParseRecipe(filepath.Base(nameOrPath), data)
}

// ParseRecipe reads a recipe strictly: an unknown key, a wrong type or a
// value that is no package, suite or path is an error with its line where
// there is one. source names the text in errors.
func ParseRecipe(source string, data []byte) (Recipe, error) {
	var r Recipe
	meta, err := toml.NewDecoder(bytes.NewReader(data)).Decode(&r)
	if err != nil {
		var parse toml.ParseError
		if errors.As(err, &parse) {
			return r, fmt.Errorf("recipe %s:%d: %w: %s", source, parse.Position.Line, ErrInvalid, parse.Message)
		}
		return r, fmt.Errorf("recipe %s: %w: %w", source, ErrInvalid, err)
	}
	if unknown := meta.Undecoded(); len(unknown) > 0 {
		return r, fmt.Errorf("recipe %s:%d: %w: unknown key %q", source, keyLine(data, unknown[0]), ErrInvalid, unknown[0].String())
	}
	if err := r.check(); err != nil {
		return r, fmt.Errorf("recipe %s: %w: %w", source, ErrInvalid, err)
	}
	return r, nil
}

// keyLine finds where an unknown key stands, which the library does not tell.
func keyLine(data []byte, key toml.Key) int {
	last := regexp.QuoteMeta(key[len(key)-1])
	re := regexp.MustCompile(`^\s*(\[+[^\]]*)?["']?` + last + `["']?\s*[=.\]]`)
	for i, line := range bytes.Split(data, []byte("\n")) {
		if re.Match(line) {
			return i + 1
		}
	}
	return 1
}

var (
	recipeName  = regexp.MustCompile(`^[a-z0-9][a-z0-9-]{1,39}$`)
	packageName = regexp.MustCompile(`^[a-z0-9][a-z0-9+.-]+$`)
	envName     = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)
	variants    = []string{"", "extract", "custom", "essential", "apt", "required", "minbase"}
)

// check refuses what would reach mmdebstrap or the image as something else
// than it looks.
func (r Recipe) check() error {
	if !recipeName.MatchString(r.Name) {
		return fmt.Errorf("name %q: want %s", r.Name, recipeName)
	}
	if !recipeName.MatchString(r.Suite) {
		return fmt.Errorf("suite %q: want a Debian release name", r.Suite)
	}
	if !slices.Contains(variants, r.Variant) {
		return fmt.Errorf("variant %q: want one of %s", r.Variant, strings.Join(variants[1:], ", "))
	}
	if len(r.Packages) == 0 {
		return errors.New("no packages")
	}
	for _, p := range r.Packages {
		if !packageName.MatchString(p) {
			return fmt.Errorf("package %q: not a Debian package name", p)
		}
	}
	for _, link := range r.Links {
		if !path.IsAbs(link.Directory) || path.Clean(link.Directory) != link.Directory || link.To == "" || strings.ContainsRune(link.To, 0) {
			return fmt.Errorf("link in %q to %q: want a clean absolute directory and a target", link.Directory, link.To)
		}
		for _, name := range link.Names {
			if name == "" || name == "." || name == ".." || strings.ContainsAny(name, "/\x00") {
				return fmt.Errorf("link %q: want a single name", name)
			}
		}
	}
	for name, value := range r.Env {
		if !envAllowed(name) {
			return fmt.Errorf("env %q: an image cannot set it", name)
		}
		if !envName.MatchString(name) || strings.ContainsRune(value, 0) {
			return fmt.Errorf("env %q: not a variable", name)
		}
	}
	if err := checkUser(r.User); err != nil {
		return err
	}
	if _, ok := workingDir(r.WorkingDir); !ok {
		return fmt.Errorf("working_dir %q: want an absolute path", r.WorkingDir)
	}
	for _, dir := range r.Skip {
		if !path.IsAbs(dir) || path.Clean(dir) != dir || dir == "/" || strings.ContainsAny(dir, "*?[\\,\"\n") {
			return fmt.Errorf("skip %q: want a clean absolute path without wildcards", dir)
		}
	}
	_, err := r.pruner()
	return err
}
