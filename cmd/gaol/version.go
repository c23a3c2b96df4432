package main

import (
	"fmt"

	"github.com/spf13/cobra"
)

// newVersionCommand is --version for those who look for a verb.
func newVersionCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print gaol's version, like --version",
		Args:  noArguments,
		RunE: func(*cobra.Command, []string) error {
			_, err := fmt.Fprintf(a.stdout, "gaol %s\n", version)
			return err
		},
	}
}
