package images

import (
	"fmt"
	"path"
	"slices"
	"strings"
)

// defaultPath is for an image that sets none.
const defaultPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// allowedEnv are the variables that an image may set: where its programs are,
// language and time zone, and how its interpreters behave. Nothing that loads
// code (LD_PRELOAD, PYTHONSTARTUP, PYTHONPATH, NODE_OPTIONS) and nothing that
// points a client somewhere (OPENAI_BASE_URL, HTTP_PROXY) is among them: the
// environment inside is built from empty, and an image only fills these in.
var allowedEnv = []string{
	"PATH", "LANG", "LANGUAGE", "TZ", "TZDIR", "SSL_CERT_FILE", "SSL_CERT_DIR",
	"PYTHONUNBUFFERED", "PYTHONDONTWRITEBYTECODE", "PYTHONHASHSEED", "PYTHONUTF8",
	"PYTHONIOENCODING", "PYTHONOPTIMIZE", "PYTHONFAULTHANDLER", "PYTHONNOUSERSITE",
	"PYTHON_VERSION", "VIRTUAL_ENV", "CONDA_PREFIX", "CONDA_DEFAULT_ENV", "MPLBACKEND",
	"JAVA_HOME", "GOROOT", "GOPATH", "CARGO_HOME", "RUSTUP_HOME", "NODE_VERSION", "R_HOME",
}

func envAllowed(name string) bool {
	return slices.Contains(allowedEnv, name) || strings.HasPrefix(name, "LC_")
}

// imageEnv keeps the allowed variables of an image, the last of each name,
// and names the dropped ones. PATH is always set.
func imageEnv(env []string) (kept, dropped []string) {
	values := map[string]string{}
	var order []string
	for _, pair := range env {
		name, value, ok := strings.Cut(pair, "=")
		if name == "PATH" {
			value = absoluteOnly(value)
		}
		if !ok || !envName.MatchString(name) || !envAllowed(name) || strings.ContainsAny(value, "\x00\n\r") ||
			(name == "PATH" && value == "") {
			dropped = append(dropped, fmt.Sprintf("env %.100q", name))
			continue
		}
		if _, again := values[name]; !again {
			order = append(order, name)
		}
		values[name] = value
	}
	if _, ok := values["PATH"]; !ok {
		order = append([]string{"PATH"}, order...)
		values["PATH"] = defaultPath
	}
	for _, name := range order {
		kept = append(kept, name+"="+values[name])
	}
	return kept, dropped
}

// absoluteOnly drops the elements of a search path that depend on the working
// directory, which is where hostile files are.
func absoluteOnly(value string) string {
	var kept []string
	for _, dir := range strings.Split(value, ":") {
		clean := path.Clean(dir)
		if path.IsAbs(dir) && clean != "/workspace" && !strings.HasPrefix(clean, "/workspace/") {
			kept = append(kept, dir)
		}
	}
	return strings.Join(kept, ":")
}
