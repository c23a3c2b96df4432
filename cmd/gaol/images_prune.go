package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"gaol/images"
)

func newImagesPruneCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "prune",
		Short: "Free what no image needs and no sandbox runs from",
		Args:  noArguments,
		RunE: func(c *cobra.Command, _ []string) error {
			return a.withStore(c.Context(), func(ctx context.Context, s *images.Store) error {
				p, err := s.Prune(ctx)
				if err != nil {
					return err
				}
				fmt.Fprintf(a.stdout, "freed %s: %d blobs, %d rootfs files; %d still in use\n",
					bytesText(p.Bytes), p.Blobs, p.Rootfses, p.InUse)
				return nil
			})
		},
	}
}
