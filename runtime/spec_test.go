package runtime

import (
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	specs "github.com/opencontainers/runtime-spec/specs-go"

	"gaol/policy"
)

var update = flag.Bool("update", false, "write the golden files anew")

func TestSpecGolden(t *testing.T) {
	narrow := policy.Builtin().Policy
	narrow.Limits.Memory, narrow.Limits.CPUs, narrow.Limits.PIDs = 64*policy.MiB, 0.5, 16
	tests := map[string]specInput{
		"code": {
			args: []string{"python3", "-I", "-c", "GUEST"}, env: buildEnv(policy.Builtin().Policy, nil, nil),
			workDir: "/workspace", uid: 1000, gid: 1000, policy: policy.Builtin().Policy,
			rootfs: "/images/python.erofs", root: "/bundle/rootfs", workspace: "/home/user/data",
		},
		"command": {
			args: []string{"sh", "-c", "true"}, env: buildEnv(narrow, []string{"PATH=/opt/bin"}, []string{"A=1"}),
			workDir: "/tmp", uid: 101, gid: 0, policy: narrow,
			seccomp: &specs.LinuxSeccomp{DefaultAction: specs.ActErrno},
			rootfs:  "/images/shell.erofs", root: "/bundle/rootfs", workspace: "/ws",
			mounts: []bind{{source: "/srv/in", destination: "/workspace/in"}},
		},
	}
	for name, in := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := json.MarshalIndent(buildSpec(in), "", "  ")
			if err != nil {
				t.Fatal(err)
			}
			path := filepath.Join("testdata", "spec", name+".json")
			if *update {
				if err := os.WriteFile(path, append(got, '\n'), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), string(got)+"\n"); diff != "" {
				t.Errorf("spec differs (-want +got); run with -update if it should:\n%s", diff)
			}
		})
	}
}

func TestCheckDestination(t *testing.T) {
	for destination, ok := range map[string]bool{
		"/workspace/in": true, "/tmp/in": true, "/data": false, "/workspaces/x": false,
		"": false, "in": false, "/": false, "/workspace": false, "/tmp": false, "/workspace/../etc": false,
		"/proc/x": false, "/usr/lib": false, "/etc": false, "/dev/shm": false, "/workspace/": false, "/a\x00": false,
	} {
		if err := CheckDestination(destination); (err == nil) != ok {
			t.Errorf("CheckDestination(%q) = %v, want ok %t", destination, err, ok)
		}
	}
}
