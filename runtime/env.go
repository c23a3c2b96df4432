package runtime

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"gaol/policy"
)

const defaultPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// buildEnv makes the environment inside from nothing: gaol's own variables,
// over them what the image says, over them what the request asks for.
func buildEnv(p policy.Policy, image, request []string) []string {
	threads := strconv.Itoa(max(1, int(math.Ceil(float64(p.Limits.CPUs)))))
	env := map[string]string{
		"PATH": defaultPath, "HOME": "/tmp", "TMPDIR": "/tmp", "LANG": "C.UTF-8", "USER": "gaol",
		"PYTHONPYCACHEPREFIX": "/tmp/.cache/pycache",
		"MPLBACKEND":          "Agg", "MPLCONFIGDIR": "/tmp/.cache/matplotlib",
		"XDG_CACHE_HOME": "/tmp/.cache", "NUMBA_CACHE_DIR": "/tmp/.cache/numba",
		"OMP_NUM_THREADS": threads, "OPENBLAS_NUM_THREADS": threads, "MKL_NUM_THREADS": threads,
		// Without these pip waits for a network that is not there.
		"PIP_NO_INDEX": "1", "PIP_RETRIES": "0", "PIP_DEFAULT_TIMEOUT": "1", "PIP_DISABLE_PIP_VERSION_CHECK": "1",
	}
	for _, pair := range slices.Concat(image, request) {
		name, value, _ := strings.Cut(pair, "=")
		env[name] = value
	}
	pairs := make([]string, 0, len(env))
	for _, name := range slices.Sorted(maps.Keys(env)) {
		pairs = append(pairs, name+"="+env[name])
	}
	return pairs
}

// CheckEnv tells whether a policy lets a request set the variables.
func CheckEnv(p policy.Policy, env []string) error {
	total := 0
	for _, pair := range env {
		name, value, ok := strings.Cut(pair, "=")
		switch {
		case !ok || !isEnvName(name):
			return fmt.Errorf("%w: %q is not NAME=value, with a name of letters, digits and _", ErrBadRequest, pair)
		case strings.ContainsRune(value, 0):
			return fmt.Errorf("%w: the value of %s has a NUL byte", ErrBadRequest, name)
		case !slices.Contains(p.Env.Allow, "*") && !slices.Contains(p.Env.Allow, name):
			return fmt.Errorf("%w: the policy does not let a request set %s (env.allow)", ErrBadRequest, name)
		}
		total += len(pair)
	}
	if total > maxEnv {
		return fmt.Errorf("%w: the environment has %d bytes, at most %d are allowed", ErrBadRequest, total, maxEnv)
	}
	return nil
}

// maxEnv bounds the environment that a request brings, in bytes.
const maxEnv = 128 << 10

func isEnvName(name string) bool {
	for i, r := range name {
		letter := r == '_' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z'
		if !letter && (i == 0 || r < '0' || r > '9') {
			return false
		}
	}
	return name != ""
}
