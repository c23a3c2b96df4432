package main

import (
	"context"

	"github.com/spf13/cobra"

	"gaol/images"
)

func newImagesInspectCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "inspect REFERENCE",
		Short: "Print what the store knows of an image, as JSON",
		Args:  oneArgument("name one image"),
		RunE: func(c *cobra.Command, args []string) error {
			return a.withStore(c.Context(), func(ctx context.Context, s *images.Store) error {
				details, err := s.Inspect(ctx, args[0])
				if err != nil {
					return err
				}
				return encodeIndented(a.stdout, details)
			})
		},
	}
}
