package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"
)

func newGCCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "gc",
		Short: "Remove what dead gaol processes left behind",
		Long: `Remove the sandboxes, cgroups and directories of gaol processes that were
killed. Every gaol run does this too; nothing of a live one is touched.`,
		Args: noArguments,
		RunE: func(c *cobra.Command, _ []string) error {
			cfg, err := a.loadConfig()
			if err != nil {
				return err
			}
			engine, err := cfg.engine(c.Context())
			if err != nil {
				return err
			}
			n, err := engine.Reap(c.Context())
			fmt.Fprintf(a.stdout, "removed what %d dead sandboxes left\n", n)
			return errors.Join(err, engine.Close())
		},
	}
}
