package main

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"gaol/images"
)

func newImagesCommand(a *app) *cobra.Command {
	c := &cobra.Command{
		Use:     "images",
		Aliases: []string{"image"},
		Short:   "Build, import, list, check and remove images",
		Example: `  gaol images build python
  gaol images import app.tar --as app
  gaol images ls`,
		Args: unknownVerb,
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(
		newImagesBuildCommand(a), newImagesImportCommand(a), newImagesListCommand(a),
		newImagesInspectCommand(a), newImagesRemoveCommand(a), newImagesPruneCommand(a), newImagesVerifyCommand(a),
	)
	return c
}

// withStore runs a verb over the store.
func (a *app) withStore(ctx context.Context, do func(context.Context, *images.Store) error) error {
	return a.overStore(ctx, "interrupted", do)
}

// publish runs a verb that adds to the store, whole or not at all.
func (a *app) publish(ctx context.Context, do func(context.Context, *images.Store) error) error {
	return a.overStore(ctx, "interrupted; nothing was published", do)
}

func (a *app) overStore(ctx context.Context, interruption string, do func(context.Context, *images.Store) error) error {
	cfg, err := a.loadConfig()
	if err != nil {
		return err
	}
	store, err := cfg.store()
	if err != nil {
		return err
	}
	defer store.Close()
	ctx, interrupted, stop := interruptible(ctx)
	defer stop()
	err = do(ctx, store)
	if sig := interrupted(); sig != 0 && err != nil {
		fmt.Fprintln(a.stderr, "gaol: "+interruption)
		return exitError(exitSignal + int(sig))
	}
	return err
}

func printPublished(w io.Writer, image images.Image) {
	fmt.Fprintf(w, "%s %s\n", image.Reference, image.Digest)
	if len(image.Absent) > 0 {
		fmt.Fprintf(w, "  not imported: %s\n", lineText(strings.Join(image.Absent, ", ")))
	}
}
