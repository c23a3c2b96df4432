package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"gaol/images"
)

func newImagesRemoveCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:     "rm REFERENCE...",
		Aliases: []string{"remove"},
		Short:   "Remove images, and free what nothing else needs",
		Long: `Remove images and free at once what nothing else needs, except a rootfs that a
sandbox runs from: images prune frees it when the sandbox has ended.`,
		Args: someArguments("name the images to remove"),
		RunE: func(c *cobra.Command, args []string) error {
			return a.withStore(c.Context(), func(ctx context.Context, s *images.Store) error {
				for _, ref := range args {
					if err := s.Remove(ctx, ref); err != nil {
						return err
					}
					fmt.Fprintf(a.stdout, "removed %s\n", ref)
				}
				return nil
			})
		},
	}
}
