package main

import (
	"fmt"
	"os"
	"regexp"
	"strings"
)

// location is what testing puts before a message: file, line, colon.
var location = regexp.MustCompile(`^\s*\S+\.go:\d+: `)

// readReasons reads "WHO REGEXP" lines and keeps those for who or for any; #
// starts a comment line. A reason has to match from its start.
func readReasons(path, who string) ([]*regexp.Regexp, error) {
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
		whose, pattern, _ := strings.Cut(line, " ")
		if pattern == "" {
			return nil, fmt.Errorf("read %s, line %d: want WHO REGEXP, got %q", path, number+1, line)
		}
		reason, err := regexp.Compile(`^(?:` + strings.TrimSpace(pattern) + `)`)
		if err != nil {
			return nil, fmt.Errorf("read %s, line %d: %w", path, number+1, err)
		}
		if whose == who || whose == "any" {
			reasons = append(reasons, reason)
		}
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
