package policy

// Policy is a complete value: what one sandbox may do and use. It is never
// changed in place; Effective makes new ones.
type Policy struct {
	Limits      Limits      `toml:"limits" json:"limits"`
	Seccomp     Seccomp     `toml:"seccomp" json:"seccomp"`
	Env         Env         `toml:"env" json:"env"`
	Files       Files       `toml:"files" json:"files"`
	Python      Python      `toml:"python" json:"python"`
	Images      Images      `toml:"images" json:"images"`
	Enforcement Enforcement `toml:"enforcement" json:"enforcement"`
}

// Limits bound what a sandbox uses. A lower layer's smaller value wins.
type Limits struct {
	Memory         Size     `toml:"memory" json:"memory"`                   // of all processes together, file cache and tmpfs included
	CPUs           CPUs     `toml:"cpus" json:"cpus"`                       // processors' worth of time
	PIDs           int      `toml:"pids" json:"pids"`                       // processes and threads inside
	Timeout        Duration `toml:"timeout" json:"timeout"`                 // wall time of one execution
	Output         Size     `toml:"output" json:"output"`                   // kept of each stream, half head and half tail
	OutputTotal    Size     `toml:"output_total" json:"output_total"`       // of each stream before the run is stopped
	OpenFiles      int      `toml:"open_files" json:"open_files"`           // descriptors of one process
	FileSize       Size     `toml:"file_size" json:"file_size"`             // of one file written
	Tmp            Size     `toml:"tmp" json:"tmp"`                         // /tmp
	Shm            Size     `toml:"shm" json:"shm"`                         // /dev/shm
	Workspace      Size     `toml:"workspace" json:"workspace"`             // bytes in the workspace
	WorkspaceFiles int      `toml:"workspace_files" json:"workspace_files"` // files and directories in the workspace
}

// CPUs is processors' worth of time: above 0, at most 1024, in steps of 0.01.
type CPUs float64

// Seccomp narrows the built-in system call profile. Allow lists intersect,
// deny lists unite.
type Seccomp struct {
	// Allow keeps only these of what the profile allows. Nil keeps all, which
	// differs from an empty list, which keeps none.
	Allow []string `toml:"allow" json:"allow"`
	// Deny takes these away.
	Deny []string `toml:"deny" json:"deny"`
}

// Env holds the names of environment variables that a request may set; "*"
// means any. Lists intersect. Nothing is ever inherited from the host.
type Env struct {
	Allow []string `toml:"allow" json:"allow"`
}

// Files holds the absolute host directories beneath which a workspace or the
// source of a mount must lie. Of nested pairs the narrower stays.
type Files struct {
	Roots []string `toml:"roots" json:"roots"`
}

// Python holds the modules whose import is refused before the code runs. That
// is advice to whoever writes the code, not a boundary. Lists unite.
type Python struct {
	DenyImports []string `toml:"deny_imports" json:"deny_imports"`
}

// Images holds the references and digests that may be run; "*" means any.
// Lists intersect.
type Images struct {
	Allowed []string `toml:"allowed" json:"allowed"`
}

// Enforcement names the limits, by their keys in Limits, that may go
// unenforced on a host without the means. Lists intersect.
type Enforcement struct {
	AllowUnenforced []string `toml:"allow_unenforced" json:"allow_unenforced"`
}
