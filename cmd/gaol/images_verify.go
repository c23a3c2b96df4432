package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"gaol/images"
)

func newImagesVerifyCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "verify",
		Short: "Read everything in the store again and check it",
		Long:  "Read every blob and rootfs file again and check its digest. The exit code is 1 when something is damaged.",
		Args:  noArguments,
		RunE: func(c *cobra.Command, _ []string) error {
			return a.withStore(c.Context(), func(ctx context.Context, s *images.Store) error {
				problems, err := s.Verify(ctx)
				if err != nil {
					return err
				}
				for _, p := range problems {
					fmt.Fprintln(a.stdout, safeText(p.String()))
				}
				if len(problems) > 0 {
					return exitError(1)
				}
				fmt.Fprintln(a.stdout, "everything is as it was published")
				return nil
			})
		},
	}
}
