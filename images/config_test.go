package images

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Cases D6 and H8: what an image's config may decide, and what it may not.
func TestImageConfigKeepsOnlyWhatIsAllowed(t *testing.T) {
	passwd := file{name: "etc/passwd", data: []byte("root:x:0:0::/:/bin/sh\napp:x:1234:567::/:/bin/sh\nzero:x:0:5::/:\n")}
	group := file{name: "etc/group", data: []byte("root:x:0:\nstaff:x:50:app\n")}
	path := "PATH=" + defaultPath
	for _, tt := range []struct {
		name   string
		config map[string]any
		want   ImageConfig
	}{
		{"nothing", nil, ImageConfig{Env: []string{path}, WorkingDir: "/workspace", UID: 1000, GID: 1000}},
		{
			"a command", map[string]any{"Entrypoint": []string{"/a"}, "Cmd": []string{"b", ""}, "WorkingDir": "/srv/x/"},
			ImageConfig{Env: []string{path}, Entrypoint: []string{"/a"}, Cmd: []string{"b", ""}, WorkingDir: "/srv/x", UID: 1000, GID: 1000},
		},
		{
			"environment", map[string]any{"Env": []string{
				"PATH=/opt/bin:.:bin:/workspace/bin:/bin", "LANG=de", "LC_TIME=C", "TZ=UTC", "PYTHONUNBUFFERED=1", "LANG=fr",
				"LD_PRELOAD=/x.so", "PYTHONSTARTUP=/x.py", "PYTHONPATH=/workspace", "OPENAI_BASE_URL=http://evil", "HOME=/root",
				"NODE_OPTIONS=-r x", "BASH_ENV=x", "novalue", "=x", "A B=c", "LC_X=a\nb", "http_proxy=x", "GODEBUG=x",
			}},
			ImageConfig{
				Env: []string{"PATH=/opt/bin:/bin", "LANG=fr", "LC_TIME=C", "TZ=UTC", "PYTHONUNBUFFERED=1"}, WorkingDir: "/workspace", UID: 1000, GID: 1000,
				Dropped: []string{
					`env "LD_PRELOAD"`, `env "PYTHONSTARTUP"`, `env "PYTHONPATH"`, `env "OPENAI_BASE_URL"`, `env "HOME"`, `env "NODE_OPTIONS"`,
					`env "BASH_ENV"`, `env "novalue"`, `env ""`, `env "A B"`, `env "LC_X"`, `env "http_proxy"`, `env "GODEBUG"`,
				},
			},
		},
		{
			"control words", map[string]any{
				"Labels":     map[string]string{"dev.gvisor.flag.host-uds": "open", "io.kubernetes.x": "y", "containerd.io/restart": "z"},
				"Volumes":    map[string]any{"/../../etc": map[string]any{}},
				"StopSignal": "SIGKILL", "Healthcheck": map[string]any{"Test": []string{"CMD", "x"}}, "OnBuild": []string{"RUN x"},
				"ExposedPorts": map[string]any{"80/tcp": map[string]any{}}, "Shell": []string{"/bin/x"},
			},
			ImageConfig{Env: []string{path}, WorkingDir: "/workspace", UID: 1000, GID: 1000, Dropped: []string{
				`label "containerd.io/restart"`, `label "dev.gvisor.flag.host-uds"`, `label "io.kubernetes.x"`, `volume "/../../etc"`,
				`port "80/tcp"`, "stop signal", "health check", "on-build steps", "shell",
			}},
		},
		{"root", map[string]any{"User": "root"}, ImageConfig{Env: []string{path}, WorkingDir: "/workspace", UID: 1000, GID: 1000, Dropped: []string{`user "root" (runs as 1000:1000)`}}},
		{"zero", map[string]any{"User": "0:0"}, ImageConfig{Env: []string{path}, WorkingDir: "/workspace", UID: 1000, GID: 1000, Dropped: []string{`user "0:0" (runs as 1000:1000)`}}},
		{"zero by name", map[string]any{"User": "zero"}, ImageConfig{Env: []string{path}, WorkingDir: "/workspace", UID: 1000, GID: 1000, Dropped: []string{`user "zero" (runs as 1000:1000)`}}},
		{"a name", map[string]any{"User": "app"}, ImageConfig{Env: []string{path}, WorkingDir: "/workspace", UID: 1234, GID: 567}},
		{"name and group", map[string]any{"User": "app:staff"}, ImageConfig{Env: []string{path}, WorkingDir: "/workspace", UID: 1234, GID: 50}},
		{"a known number", map[string]any{"User": "1234"}, ImageConfig{Env: []string{path}, WorkingDir: "/workspace", UID: 1234, GID: 567}},
		{"an unknown number", map[string]any{"User": "77"}, ImageConfig{Env: []string{path}, WorkingDir: "/workspace", UID: 77, GID: 0}},
		{"numbers", map[string]any{"User": "77:88"}, ImageConfig{Env: []string{path}, WorkingDir: "/workspace", UID: 77, GID: 88}},
		{"directory climbs", map[string]any{"WorkingDir": "../.."}, ImageConfig{Env: []string{path}, WorkingDir: "/workspace", UID: 1000, GID: 1000, Dropped: []string{`working directory "../.."`}}},
		{"directory climbs inside", map[string]any{"WorkingDir": "/a/../b"}, ImageConfig{Env: []string{path}, WorkingDir: "/workspace", UID: 1000, GID: 1000, Dropped: []string{`working directory "/a/../b"`}}},
		{"directory in proc", map[string]any{"WorkingDir": "/proc/self/fd/9"}, ImageConfig{Env: []string{path}, WorkingDir: "/workspace", UID: 1000, GID: 1000, Dropped: []string{`working directory "/proc/self/fd/9"`}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := newStore(t)
			archive := simple("x", picture{layers: [][]byte{tarOf(passwd, group)}, config: tt.config})
			if _, err := s.Import(t.Context(), bytes.NewReader(archive), ImportOptions{}); err != nil {
				t.Fatal(err)
			}
			rootfs, err := s.Resolve(t.Context(), "x")
			if err != nil {
				t.Fatal(err)
			}
			defer rootfs.Close()
			if d := cmp.Diff(tt.want, rootfs.Config); d != "" {
				t.Error(d)
			}
		})
	}
}

func TestImageWithoutPasswd(t *testing.T) {
	for _, tt := range []struct {
		user     string
		uid, gid uint32
		err      error
	}{
		{"", 1000, 1000, nil},
		{"1001", 1001, 0, nil},
		{"app", 0, 0, ErrInvalid},
	} {
		uid, gid, _, err := resolveUser(tt.user, nil, nil)
		if uid != tt.uid || gid != tt.gid || !errors.Is(err, tt.err) {
			t.Errorf("%q: %d:%d %v", tt.user, uid, gid, err)
		}
	}
}

func TestDroppedNamesAreBounded(t *testing.T) {
	labels := map[string]string{}
	for i := range 500 {
		labels[strings.Repeat("x", i+1)] = ""
	}
	s := newStore(t)
	if _, err := s.Import(t.Context(), bytes.NewReader(simple("x", picture{config: map[string]any{"Labels": labels}})), ImportOptions{}); err != nil {
		t.Fatal(err)
	}
	details, err := s.Inspect(t.Context(), "x")
	if err != nil || len(details.Config.Dropped) != droppedNames+1 {
		t.Errorf("%d names, %v", len(details.Config.Dropped), err)
	}
}
