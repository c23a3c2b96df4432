// Command results reads the output of `go test -json`, prints what a person
// wants to see of it (one line a package, everything of a test that failed,
// the reason of each skip, a count at the end) and fails when a test failed,
// when none ran, or, under CI, when one was skipped for an unlisted reason.
//
//	go test -json ./... 2>&1 | results -skips skips.txt -as user -log all.json
package main

import (
	"bufio"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
)

func main() {
	skips := flag.String("skips", "", "file with the reasons that a test may be skipped for")
	who := flag.String("as", "", "whose reasons: root or user")
	log := flag.String("log", "", "file that gets the whole input")
	flag.Parse()
	if err := run(*skips, *who, *log, os.Getenv("CI") == "true"); err != nil {
		fmt.Fprintln(os.Stderr, "results: error:", err)
		os.Exit(1)
	}
}

func run(skips, who, log string, strict bool) error {
	allowed, err := readReasons(skips, who)
	if err != nil {
		return err
	}
	file, err := os.Create(log)
	if err != nil {
		return fmt.Errorf("create the log: %w", err)
	}
	input := bufio.NewReader(io.TeeReader(os.Stdin, file))
	tally := newTally(os.Stdout, allowed)
	for {
		line, err := input.ReadBytes('\n')
		if len(line) > 0 {
			tally.line(line)
		}
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return errors.Join(fmt.Errorf("read test output: %w", err), file.Close())
		}
	}
	return errors.Join(tally.verdict(strict), file.Close())
}
