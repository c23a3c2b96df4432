// Command gaol runs code that nobody trusts in a gVisor sandbox: no daemon, no
// root, no network, limits that are really in force.
//
//	gaol run report.py --workspace ./data
//
// Each verb has a file of its own here; they own flags, configuration, printing
// and exit codes, and nothing below prints. What gaol does not protect is
// written in SECURITY.md.
package main

import (
	"context"
	"errors"
	"io"
	"os"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// version is set by the build.
var version = "devel"

func main() {
	// gaol's own memory is to stay small beside what it bounds. A result has the
	// output in several forms for a moment: garbage is collected early.
	debug.SetGCPercent(25)
	os.Exit(run(context.Background(), os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}

// run is main without the process: it returns the exit code.
func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	defer catchBrokenPipe()()
	a := &app{stdin: stdin, stdout: &stream{w: stdout, name: "standard output"}, stderr: &stream{w: stderr, name: "standard error"}}
	root := newRootCommand(a) //nolint:contextcheck // each verb takes ctx from its command, which ExecuteContext gives it
	root.SetArgs(args)
	root.SetIn(stdin)
	root.SetOut(a.stdout)
	root.SetErr(a.stderr)
	err := root.ExecuteContext(ctx)
	var exit exitError
	// What was to be printed and was not is no success, whatever the verb did;
	// but an interrupt, which may have ended the reader too, comes first.
	if failure := a.stdout.failure(); failure != nil && (!errors.As(err, &exit) || exit < exitSignal) {
		err = failure
	}
	switch {
	case err == nil:
		return 0
	case errors.As(err, &exit):
		return int(exit)
	}
	printError(a.stderr, err, a.own)
	return exitCannot
}

// app is what every verb shares.
type app struct {
	stdin          io.Reader
	stdout, stderr *stream
	configFile     string
	configGiven    func() bool // --config is on the command line
	own            []string    // gaol's own directories, once the configuration is read
}

func newRootCommand(a *app) *cobra.Command {
	root := &cobra.Command{
		Use:   "gaol",
		Short: "Run code that nobody trusts, in a gVisor sandbox",
		Long: `gaol runs code that nobody trusts, mostly Python that a language model wrote,
in a gVisor sandbox: no daemon, no root, no network, limits really in force.`,
		Example: `  gaol images build python                     # once: the image with numpy, pandas, matplotlib
  gaol run report.py --workspace ./data        # a script over a directory
  echo 'print(6*7)' | gaol run -               # code from standard input
  gaol run -- python3 -c 'import sys; print(sys.version)'
  gaol run --json report.py | jq .outcome
  gaol doctor                                  # what this host can enforce`,
		Version:       version,
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          unknownVerb,
		RunE:          func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	root.SetVersionTemplate("gaol {{.Version}}\n")
	root.PersistentFlags().StringVar(&a.configFile, "config", "", "read this `file` instead of the user's or the system's config.toml")
	a.configGiven = func() bool { return root.PersistentFlags().Changed("config") }
	root.SetFlagErrorFunc(badFlag)
	root.AddCommand(newRunCommand(a), newImagesCommand(a), newPolicyCommand(a), newDoctorCommand(a), newGCCommand(a), newBenchCommand(a), newVersionCommand(a))
	return root
}
