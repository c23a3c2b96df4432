package main

import (
	"context"

	"github.com/spf13/cobra"

	"gaol/images"
)

func newImagesImportCommand(a *app) *cobra.Command {
	var opts images.ImportOptions
	c := &cobra.Command{
		Use:   "import FILE|DIRECTORY|-",
		Short: "Import an OCI or Docker archive or layout",
		Long: `Import images from an OCI or Docker archive (plain, gzip or zstd), a directory
in the OCI layout or Docker's, or an archive on standard input (-). Every digest
and size is checked; nothing in the image's configuration steers the host.`,
		Example: `  gaol images import app.tar --as app
  docker save app | gaol images import -`,
		Args: oneArgument("name one archive or directory, or - for standard input"),
		RunE: func(c *cobra.Command, args []string) error {
			return a.publish(c.Context(), func(ctx context.Context, s *images.Store) error {
				p := newProgress(a.stderr)
				opts.Progress = p.show
				var list []images.Image
				var err error
				if args[0] == "-" {
					list, err = s.Import(ctx, readUntil(ctx, a.stdin), opts)
				} else {
					list, err = s.ImportPath(ctx, args[0], opts)
				}
				p.end()
				if err != nil {
					return err
				}
				for _, image := range list {
					printPublished(a.stdout, image)
				}
				return nil
			})
		},
	}
	c.Flags().StringVar(&opts.Reference, "as", "", "`reference` of the image (default: the archive's own)")
	c.Flags().StringVar(&opts.Platform, "platform", "", "`os/arch` to take from a multi-platform image (default: this host's)")
	return c
}
