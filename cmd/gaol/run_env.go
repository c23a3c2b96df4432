package main

import (
	"fmt"
	"io"
	"os"
	"strings"
)

// maxEnvFile bounds a file of variables, in bytes.
const maxEnvFile = 1 << 20

// environment gathers the variables of --env-file and -e, the latter last.
func (f *runFlags) environment() ([]string, error) {
	var env []string
	for _, name := range f.envFiles {
		text, err := readEnvFile(name)
		if err != nil {
			return nil, err
		}
		for line := range strings.Lines(text) {
			line = strings.TrimRight(line, "\r\n")
			if line != "" && !strings.HasPrefix(line, "#") {
				env = appendVariable(env, line)
			}
		}
	}
	for _, pair := range f.env {
		env = appendVariable(env, pair)
	}
	return env, nil
}

func readEnvFile(name string) (string, error) {
	file, err := os.Open(name)
	if err != nil {
		return "", fmt.Errorf("read the environment file: %w", err)
	}
	defer file.Close()
	data, err := io.ReadAll(io.LimitReader(file, maxEnvFile+1))
	if err != nil {
		return "", fmt.Errorf("read the environment file: %w", err)
	}
	if len(data) > maxEnvFile {
		return "", fmt.Errorf("read the environment file %q: more than %s", name, bytesText(maxEnvFile))
	}
	return string(data), nil
}

// appendVariable gives a bare name the value that gaol's own environment has,
// and leaves it out when there is none.
func appendVariable(env []string, pair string) []string {
	if pair == "" || strings.Contains(pair, "=") {
		return append(env, pair)
	}
	if value, ok := os.LookupEnv(pair); ok {
		return append(env, pair+"="+value)
	}
	return env
}
