package main

import (
	"fmt"

	"github.com/spf13/cobra"
)

// oneArgument wants exactly one; missing says what to name.
func oneArgument(missing string) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		if len(args) == 1 {
			return nil
		}
		return wrongArguments(c, missing)
	}
}

// someArguments wants at least one; missing says what to name.
func someArguments(missing string) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		if len(args) > 0 {
			return nil
		}
		return wrongArguments(c, missing)
	}
}

func noArguments(c *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	return wrongArguments(c, fmt.Sprintf("%q is one argument too many, it takes none", args[0]))
}

func wrongArguments(c *cobra.Command, what string) error {
	return &hinted{fmt.Errorf("%s: %s", c.CommandPath(), what), "usage: " + c.UseLine()}
}
