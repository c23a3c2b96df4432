package main

import (
	"context"

	"github.com/spf13/cobra"

	"gaol/images"
)

func newImagesBuildCommand(a *app) *cobra.Command {
	var ref string
	c := &cobra.Command{
		Use:   "build RECIPE",
		Short: "Build an image from Debian packages",
		Long: `Build an image from a recipe: the name of one that gaol carries (python, shell)
or a TOML file. The packages come from this host's own Debian mirror through
mmdebstrap. The same packages give the same image.`,
		Example: `  gaol images build python
  gaol images build ./tools.toml --as tools`,
		Args: oneArgument("name one recipe, or its TOML file"),
		RunE: func(c *cobra.Command, args []string) error {
			recipe, err := images.LoadRecipe(args[0])
			if err != nil {
				return err
			}
			return a.publish(c.Context(), func(ctx context.Context, s *images.Store) error {
				p := newProgress(a.stderr)
				image, err := s.Build(ctx, images.BuildOptions{Recipe: recipe, Reference: ref, Progress: p.show})
				p.end()
				if err != nil {
					return err
				}
				printPublished(a.stdout, image)
				return nil
			})
		},
	}
	c.Flags().StringVar(&ref, "as", "", "`reference` of the image (default: the recipe's name)")
	return c
}
