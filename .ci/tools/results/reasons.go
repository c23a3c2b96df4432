package main

import (
	"fmt"
	"os"
	"regexp"
	"strings"
)

// location is what testing puts before a message: file, line, colon.
var location = regexp.MustCompile(`^\s*\S+\.go:\d+: `)

// readReasons reads one regular expression a line; # starts a comment line.
func readReasons(path string) ([]*regexp.Regexp, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read the reasons for a skip: %w", err)
	}
	var reasons []*regexp.Regexp
	for number, line := range strings.Split(string(text), "\n") {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		reason, err := regexp.Compile(`^(?:` + line + `)`)
		if err != nil {
			return nil, fmt.Errorf("read %s, line %d: %w", path, number+1, err)
		}
		reasons = append(reasons, reason)
	}
	return reasons, nil
}

// reasonOf finds why a test was skipped: the last message that it logged.
func reasonOf(output []string) string {
	reason := ""
	for _, line := range output {
		if found := location.FindString(line); found != "" {
			reason = strings.TrimSpace(line[len(found):])
		}
	}
	return reason
}
