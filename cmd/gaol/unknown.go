package main

import (
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// unknownVerb refuses what is no verb of a command that has only verbs.
func unknownVerb(c *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	c.SuggestionsMinimumDistance = 2 // letters
	hint := fmt.Sprintf("`%s --help` lists the verbs", c.CommandPath())
	if near := c.SuggestionsFor(args[0]); len(near) > 0 {
		hint = fmt.Sprintf("did you mean `%s %s`?", c.CommandPath(), near[0])
	} else if info, err := os.Stat(args[0]); err == nil && info.Mode().IsRegular() && !c.HasParent() {
		hint = fmt.Sprintf("did you mean `gaol run %s`?", args[0])
	}
	return &hinted{fmt.Errorf("unknown verb %q", args[0]), hint}
}

// badFlag adds to an error of a flag what to do instead.
func badFlag(c *cobra.Command, err error) error {
	hint := fmt.Sprintf("`%s --help` lists the flags", c.CommandPath())
	var unknown *pflag.NotExistError
	if errors.As(err, &unknown) && c.Name() == "run" {
		name := unknown.GetSpecifiedName()
		docker, known := dockerHints[name]
		switch {
		case c.Flags().NArg() > 0: // the flag comes after the file
			dashes := "--"
			if unknown.GetSpecifiedShortnames() != "" {
				dashes = "-"
			}
			hint = fmt.Sprintf("what is the program's goes after --: `gaol run %s -- %s%s`", c.Flags().Arg(0), dashes, name)
		case known:
			hint = docker
		}
	}
	return &hinted{err, hint}
}

// dockerHints are for those who know docker run: its flags that have no like
// here, and why.
var dockerHints = map[string]string{
	"rm":         "it is not needed: every sandbox is removed",
	"t":          "there is no terminal inside; -i gives the program standard input",
	"tty":        "there is no terminal inside; -i gives the program standard input",
	"network":    "there is none: no sandbox has a network",
	"net":        "there is none: no sandbox has a network",
	"p":          "there is no network, and so no port",
	"publish":    "there is no network, and so no port",
	"name":       "sandboxes have no names; --json and --receipt give the id",
	"u":          "the user inside is the image's, and none of this host",
	"user":       "the user inside is the image's, and none of this host",
	"tmpfs":      "/tmp and /dev/shm are tmpfs already; limits.tmp and limits.shm of a policy file bound them",
	"mount":      "use -v SRC:DST:ro, or --workspace for what the program may write",
	"d":          "there is no daemon: gaol run waits for the program",
	"detach":     "there is no daemon: gaol run waits for the program",
	"read-only":  "it is not needed: all but the workspace, /tmp and /dev/shm is read-only",
	"entrypoint": "name the command after --",
}
