package images

import (
	"encoding/json"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	digest "github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

const (
	configWords  = 128 << 10 // bytes of command and environment
	droppedNames = 64
)

// imageFile is the part of an image's config that is read.
type imageFile struct {
	ocispec.Platform
	Config struct {
		User         string
		Env          []string
		Entrypoint   []string
		Cmd          []string
		WorkingDir   string
		Volumes      map[string]json.RawMessage
		Labels       map[string]json.RawMessage
		ExposedPorts map[string]json.RawMessage
		StopSignal   json.RawMessage
		Healthcheck  json.RawMessage
		OnBuild      []json.RawMessage
		Shell        []json.RawMessage
	} `json:"config"`
	RootFS struct {
		Type    string          `json:"type"`
		DiffIDs []digest.Digest `json:"diff_ids"`
	} `json:"rootfs"`
}

// parseImageFile reads a config and checks what can be checked without the
// layers.
func parseImageFile(data []byte, layers int) (imageFile, error) {
	var f imageFile
	if err := decodeJSON(data, &f); err != nil {
		return f, fmt.Errorf("image config: %w", err)
	}
	if f.RootFS.Type != "layers" {
		return f, fmt.Errorf("image config: %w: rootfs type %q, want \"layers\"", ErrInvalid, f.RootFS.Type)
	}
	if len(f.RootFS.DiffIDs) != layers {
		return f, fmt.Errorf("image config: %w: %d diff ids for %d layers", ErrInvalid, len(f.RootFS.DiffIDs), layers)
	}
	for _, id := range f.RootFS.DiffIDs {
		if err := checkDigest(id); err != nil {
			return f, fmt.Errorf("image config: diff id: %w", err)
		}
	}
	if err := checkUser(f.Config.User); err != nil {
		return f, fmt.Errorf("image config: %w", err)
	}
	words := 0
	for _, list := range [][]string{f.Config.Entrypoint, f.Config.Cmd, f.Config.Env} {
		for _, word := range list {
			words += len(word) + 1
			if strings.ContainsRune(word, 0) {
				return f, fmt.Errorf("image config: %w: %.100q contains a zero byte", ErrInvalid, word)
			}
		}
	}
	if words > configWords {
		return f, fmt.Errorf("image config: %w: command and environment have more than %d bytes", ErrLimit, configWords)
	}
	return f, nil
}

// imageConfig keeps what an image may decide and names the rest.
func (f imageFile) imageConfig(passwd, group []byte) (ImageConfig, error) {
	uid, gid, root, err := resolveUser(f.Config.User, passwd, group)
	if err != nil {
		return ImageConfig{}, fmt.Errorf("image config: %w", err)
	}
	c := ImageConfig{Entrypoint: f.Config.Entrypoint, Cmd: f.Config.Cmd, UID: uid, GID: gid}
	if root && f.Config.User != "" {
		c.Dropped = append(c.Dropped, fmt.Sprintf("user %q (runs as %d:%d)", f.Config.User, uid, gid))
	}
	var dropped []string
	c.Env, dropped = imageEnv(f.Config.Env)
	c.Dropped = append(c.Dropped, dropped...)
	var ok bool
	if c.WorkingDir, ok = workingDir(f.Config.WorkingDir); !ok {
		c.Dropped = append(c.Dropped, fmt.Sprintf("working directory %.200q", f.Config.WorkingDir))
	}
	c.Dropped = append(c.Dropped, f.ignored()...)
	if extra := len(c.Dropped) - droppedNames; extra > 0 {
		c.Dropped = append(c.Dropped[:droppedNames], fmt.Sprintf("and %d more", extra))
	}
	return c, nil
}

// ignored names what an image cannot ask for at all.
func (f imageFile) ignored() []string {
	var all []string
	for _, group := range []struct {
		what string
		keys map[string]json.RawMessage
	}{{"label", f.Config.Labels}, {"volume", f.Config.Volumes}, {"port", f.Config.ExposedPorts}} {
		for _, key := range slices.Sorted(maps.Keys(group.keys)) {
			all = append(all, fmt.Sprintf("%s %.100q", group.what, key))
		}
	}
	for _, field := range []struct {
		what string
		set  bool
	}{
		{"stop signal", isSet(f.Config.StopSignal)}, {"health check", isSet(f.Config.Healthcheck)},
		{"on-build steps", len(f.Config.OnBuild) > 0}, {"shell", len(f.Config.Shell) > 0},
	} {
		if field.set {
			all = append(all, field.what)
		}
	}
	return all
}

func isSet(raw json.RawMessage) bool {
	return len(raw) > 0 && string(raw) != "null" && string(raw) != `""`
}

// workingDir gives the directory to start in. One that is relative, climbs,
// or leads into a file system that the kernel answers for is not taken.
func workingDir(dir string) (string, bool) {
	const ours = "/workspace"
	if dir == "" {
		return ours, true
	}
	if !path.IsAbs(dir) || len(dir) > 4000 || strings.ContainsAny(dir, "\x00\n\r") ||
		slices.Contains(strings.Split(dir, "/"), "..") {
		return ours, false
	}
	clean := path.Clean(dir)
	for _, virtual := range []string{"/proc", "/sys", "/dev"} {
		if clean == virtual || strings.HasPrefix(clean, virtual+"/") {
			return ours, false
		}
	}
	return clean, true
}
