package runtime

import (
	"fmt"
	"math"
	"path"
	"strconv"
	"strings"

	specs "github.com/opencontainers/runtime-spec/specs-go"

	"gaol/policy"
)

// insideID is the user that runsc runs as in the user namespace that gaol makes
// for it. The host id behind it differs; the spec, and so a snapshot, does not.
const insideID = 1000

// addressSpaceHeadroom is what a process may map beyond the memory limit. A
// Python with numpy and its threads maps several hundred MiB that it never
// touches; without any RLIMIT_AS an absurd allocation never fails in gVisor.
const addressSpaceHeadroom = 2 << 30

// cpuPeriod is the kernel's usual period for CPU quotas, in microseconds.
const cpuPeriod = 100_000

// specInput is all that shapes an OCI spec.
type specInput struct {
	args     []string
	env      []string
	workDir  string
	uid, gid uint32
	policy   policy.Policy
	seccomp  *specs.LinuxSeccomp
	rootfs   string // path of the EROFS file
	root     string // path of the empty directory that OCI wants as root
	// workspace is bound at /workspace, read-write.
	workspace string
	mounts    []bind
}

// bind is a read-only bind mount.
type bind struct{ source, destination string }

// buildSpec makes the OCI spec of a sandbox. It is a pure function.
func buildSpec(in specInput) *specs.Spec {
	limits := in.policy.Limits
	memory := int64(limits.Memory)
	quota := int64(math.Round(float64(limits.CPUs) * cpuPeriod))
	period := uint64(cpuPeriod)
	return &specs.Spec{
		Version:  "1.2.1",
		Hostname: "gaol",
		Root:     &specs.Root{Path: in.root, Readonly: true},
		Process: &specs.Process{
			Args:            in.args,
			Env:             in.env,
			Cwd:             in.workDir,
			User:            specs.User{UID: in.uid, GID: in.gid},
			Capabilities:    &specs.LinuxCapabilities{},
			Rlimits:         buildRlimits(limits),
			NoNewPrivileges: true,
		},
		Mounts: buildMounts(in),
		Annotations: map[string]string{
			"dev.gvisor.spec.rootfs.source": in.rootfs,
			"dev.gvisor.spec.rootfs.type":   "erofs",
		},
		Linux: &specs.Linux{
			UIDMappings: []specs.LinuxIDMapping{{ContainerID: in.uid, HostID: insideID, Size: 1}},
			GIDMappings: []specs.LinuxIDMapping{{ContainerID: in.gid, HostID: insideID, Size: 1}},
			Namespaces: []specs.LinuxNamespace{
				{Type: specs.UserNamespace}, {Type: specs.PIDNamespace}, {Type: specs.MountNamespace},
				{Type: specs.IPCNamespace}, {Type: specs.UTSNamespace}, {Type: specs.NetworkNamespace},
			},
			Resources: &specs.LinuxResources{
				Memory: &specs.LinuxMemory{Limit: &memory},
				CPU:    &specs.LinuxCPU{Quota: &quota, Period: &period},
			},
			Seccomp: in.seccomp,
		},
	}
}

func buildRlimits(l policy.Limits) []specs.POSIXRlimit {
	same := func(name string, value uint64) specs.POSIXRlimit {
		return specs.POSIXRlimit{Type: name, Soft: value, Hard: value}
	}
	// The wall time kills from outside. This bounds what each process of a
	// sandbox can burn whose owner was killed, until the next command finds it.
	cpuSeconds := uint64(math.Ceil(l.Timeout.Std().Seconds()*math.Ceil(float64(l.CPUs)))) + 5
	return []specs.POSIXRlimit{
		same("RLIMIT_AS", uint64(l.Memory)+addressSpaceHeadroom),
		same("RLIMIT_CORE", 0),
		same("RLIMIT_CPU", cpuSeconds),
		same("RLIMIT_FSIZE", uint64(min(l.FileSize, l.Workspace))),
		same("RLIMIT_NOFILE", uint64(l.OpenFiles)),
		same("RLIMIT_NPROC", uint64(l.PIDs)),
	}
}

func buildMounts(in specInput) []specs.Mount {
	tmpfs := func(destination string, size policy.Size, mode string) specs.Mount {
		return specs.Mount{Destination: destination, Type: "tmpfs", Source: "tmpfs", Options: []string{
			"rw", "nosuid", "nodev", "mode=" + mode, "size=" + strconv.FormatInt(int64(size), 10),
		}}
	}
	mounts := []specs.Mount{
		{Destination: "/proc", Type: "proc", Source: "proc", Options: []string{"nosuid", "noexec", "nodev"}},
		{Destination: "/sys", Type: "sysfs", Source: "sysfs", Options: []string{"ro", "nosuid", "noexec", "nodev"}},
		tmpfs("/dev/shm", in.policy.Limits.Shm, "1777"),
		tmpfs("/tmp", in.policy.Limits.Tmp, "1777"),
		{Destination: workspacePath, Type: "bind", Source: in.workspace, Options: []string{"bind", "rw", "nosuid", "nodev", "private"}},
	}
	for _, b := range in.mounts {
		mounts = append(mounts, specs.Mount{
			Destination: b.destination, Type: "bind", Source: b.source,
			Options: []string{"bind", "ro", "nosuid", "nodev", "private"},
		})
	}
	return mounts
}

// workspacePath is where the workspace is inside.
const workspacePath = "/workspace"

// CheckDestination tells whether a mount may be shown at path inside: absolute,
// clean, and beneath /workspace or /tmp, since no mount point can be made in the
// image.
func CheckDestination(destination string) error {
	if !path.IsAbs(destination) || path.Clean(destination) != destination || strings.ContainsRune(destination, 0) {
		return fmt.Errorf("%w: mount destination %q is not a clean absolute path", ErrBadRequest, destination)
	}
	if !strings.HasPrefix(destination, workspacePath+"/") && !strings.HasPrefix(destination, "/tmp/") {
		return fmt.Errorf("%w: mount destination %q is not beneath %s or /tmp; the image itself is never changed", ErrBadRequest, destination, workspacePath)
	}
	return nil
}
