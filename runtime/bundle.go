package runtime

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	goruntime "runtime"
	"slices"

	specs "github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"
)

// places are the paths that a sandbox is built from, as runsc sees them.
type places struct {
	workspace, rootfs, runsc string
	binds                    []bind
	// private mounts bring them there when gaol runs as root.
	private []privateMount
}

// locate finds the places. As root each is a private mount beneath the lease's
// directory, which the sandbox's host id can reach.
func (x *execution) locate() (places, error) {
	p := places{workspace: x.workspace.Path(), rootfs: x.req.Rootfs.Path, runsc: x.engine.cfg.Runsc}
	for _, m := range x.req.Mounts {
		p.binds = append(p.binds, bind{source: m.Source.Path(), destination: m.Destination})
	}
	if !x.engine.root {
		return p, nil
	}
	uid, gid := x.workspace.Owner()
	p.workspace = x.private(&p, "workspace", x.workspace.File(), 0, &ids{uid, gid})
	for i, m := range x.req.Mounts {
		uid, gid := m.Source.Owner()
		p.binds[i].source = x.private(&p, fmt.Sprintf("mounts/%d", i), m.Source.File(), unix.MOUNT_ATTR_RDONLY, &ids{uid, gid})
	}
	for name, path := range map[string]*string{"image": &p.rootfs, "runsc": &p.runsc} {
		file, err := os.OpenFile(*path, unix.O_PATH, 0)
		if err != nil {
			return places{}, fmt.Errorf("open %s: %w", *path, err)
		}
		x.sources = append(x.sources, file)
		*path = x.private(&p, name, file, unix.MOUNT_ATTR_RDONLY, nil)
	}
	for i, m := range p.private {
		directory := i == 0 || i <= len(x.req.Mounts) && x.req.Mounts[i-1].Source.IsDir()
		if err := makeMountPoint(m.target, directory); err != nil {
			return places{}, err
		}
	}
	return p, nil
}

// private adds a private mount and returns where it will be.
func (x *execution) private(p *places, name string, source *os.File, attrs uint64, owner *ids) string {
	m := privateMount{
		source: source, target: x.lease.path(name), attrs: attrs | unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV,
		owner: owner, hostID: x.lease.HostID,
	}
	p.private = append(p.private, m)
	return m.target
}

// writeBundle writes the OCI bundle that runsc reads, and makes runsc's root.
func (x *execution) writeBundle(p places) error {
	l := x.lease
	if err := os.Mkdir(l.path("r"), 0o700); err != nil {
		return fmt.Errorf("make runsc's root: %w", err)
	}
	if l.HostID != 0 {
		if err := os.Chown(l.path("r"), int(l.HostID), int(l.HostID)); err != nil {
			return fmt.Errorf("hand runsc's root to the host id: %w", err)
		}
	}
	spec, err := x.req.spec(p, bundleRoot(l.path("bundle")))
	if err != nil {
		return err
	}
	return writeBundle(l.path("bundle"), spec)
}

// bundleRoot is the empty directory that OCI wants as root.path.
func bundleRoot(bundle string) string { return filepath.Join(bundle, "rootfs") }

func writeBundle(dir string, spec *specs.Spec) error {
	if err := os.MkdirAll(bundleRoot(dir), 0o755); err != nil {
		return fmt.Errorf("make the bundle: %w", err)
	}
	data, err := json.Marshal(spec)
	if err != nil {
		return fmt.Errorf("encode the OCI spec: %w", err)
	}
	if err := os.WriteFile(filepath.Join(dir, "config.json"), data, 0o644); err != nil {
		return fmt.Errorf("write the OCI spec: %w", err)
	}
	return nil
}

// spec is the OCI spec of the request in the given places.
func (r Request) spec(p places, root string) (*specs.Spec, error) {
	seccomp, err := r.Policy.SeccompProfile(goruntime.GOARCH)
	if err != nil {
		return nil, err
	}
	args := r.Command
	if r.Code != nil {
		args = []string{"python3", "-I", "-c", guestProgram}
	}
	workDir := r.WorkDir
	if workDir == "" {
		workDir = workspacePath
	}
	return buildSpec(specInput{
		args: args, env: buildEnv(r.Policy, r.Rootfs.Env, r.Env), workDir: workDir,
		uid: r.Rootfs.UID, gid: r.Rootfs.GID, policy: r.Policy, seccomp: seccomp,
		rootfs: p.rootfs, root: root, workspace: p.workspace, mounts: p.binds,
	}), nil
}

// BareBundle writes the bundle of a request so that runsc alone can run it as
// this user, to compare the two, and returns the flags that gaol gives runsc
// and what the program reads from its standard input. The workspace is the
// directory given. As root there is no user namespace, which runsc refuses
// there.
func BareBundle(dir, workspaceDir string, req Request) (flags []string, stdin []byte, err error) {
	spec, err := req.spec(places{workspace: workspaceDir, rootfs: req.Rootfs.Path}, bundleRoot(dir))
	if err != nil {
		return nil, nil, err
	}
	spec.Linux.UIDMappings[0].HostID = uint32(os.Geteuid())
	spec.Linux.GIDMappings[0].HostID = uint32(os.Getegid())
	if os.Geteuid() == 0 {
		spec.Linux.UIDMappings, spec.Linux.GIDMappings = nil, nil
		spec.Linux.Namespaces = slices.DeleteFunc(spec.Linux.Namespaces, func(n specs.LinuxNamespace) bool {
			return n.Type == specs.UserNamespace
		})
	}
	if req.Code != nil {
		f, err := newFrame(req.Code, req.Policy.Python.DenyImports)
		if err != nil {
			return nil, nil, err
		}
		stdin = f.data
	}
	return slices.Clone(runscFlags), stdin, writeBundle(dir, spec)
}
