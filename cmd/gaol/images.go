package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"text/tabwriter"
	"time"

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
		fmt.Fprintln(a.stderr, "gaol: interrupted; nothing was published")
		return exitError(exitSignal + int(sig))
	}
	return err
}

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
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			recipe, err := images.LoadRecipe(args[0])
			if err != nil {
				return err
			}
			return a.withStore(c.Context(), func(ctx context.Context, s *images.Store) error {
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
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			return a.withStore(c.Context(), func(ctx context.Context, s *images.Store) error {
				p := newProgress(a.stderr)
				opts.Progress = p.show
				var list []images.Image
				var err error
				if args[0] == "-" {
					list, err = s.Import(ctx, a.stdin, opts)
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

func printPublished(w io.Writer, image images.Image) {
	fmt.Fprintf(w, "%s %s\n", image.Reference, image.Digest)
	if len(image.Absent) > 0 {
		fmt.Fprintf(w, "  not imported: %s\n", safeText(strings.Join(image.Absent, ", ")))
	}
}

func newImagesListCommand(a *app) *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:     "ls",
		Aliases: []string{"list"},
		Short:   "List images",
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return a.withStore(c.Context(), func(ctx context.Context, s *images.Store) error {
				list, err := s.List(ctx)
				if err != nil {
					return err
				}
				if asJSON {
					if list == nil {
						list = []images.Image{}
					}
					return encodeJSON(a.stdout, list)
				}
				return printImages(a.stdout, list)
			})
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print one JSON array")
	return c
}

func printImages(w io.Writer, list []images.Image) error {
	if len(list) == 0 {
		_, err := fmt.Fprintln(w, "no images; `gaol images build python` makes the default one")
		return err
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "REFERENCE\tDIGEST\tPLATFORM\tROOTFS\tSTORE\tCREATED")
	for _, i := range list {
		store := "own"
		if i.System {
			store = "system"
		}
		fmt.Fprintf(t, "%s\t%.19s\t%s\t%s\t%s\t%s\n", i.Reference, i.Digest, i.Platform,
			bytesText(i.RootfsSize), store, i.Created.UTC().Format(time.DateTime))
	}
	return t.Flush()
}

func newImagesInspectCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "inspect REFERENCE",
		Short: "Print what the store knows of an image, as JSON",
		Args:  cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			return a.withStore(c.Context(), func(ctx context.Context, s *images.Store) error {
				details, err := s.Inspect(ctx, args[0])
				if err != nil {
					return err
				}
				return encodeJSON(a.stdout, details)
			})
		},
	}
}

func newImagesRemoveCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:     "rm REFERENCE...",
		Aliases: []string{"remove"},
		Short:   "Remove images; what they hold goes with the next prune",
		Args:    cobra.MinimumNArgs(1),
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

func newImagesPruneCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "prune",
		Short: "Free what no image needs and no sandbox runs from",
		Args:  cobra.NoArgs,
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

func newImagesVerifyCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "verify",
		Short: "Read everything in the store again and check it",
		Long:  "Read every blob and rootfs file again and check its digest. The exit code is 1 when something is damaged.",
		Args:  cobra.NoArgs,
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

// progress shows how far a long operation is: one changing line on a terminal,
// elsewhere a line for each stage.
type progress struct {
	w        io.Writer
	terminal bool
	stage    string
	last     time.Time
	dirty    bool
}

func newProgress(w io.Writer) *progress {
	return &progress{w: w, terminal: isTerminal(w) && os.Getenv("TERM") != "dumb"}
}

func (p *progress) show(step images.Progress) {
	if !p.terminal {
		if step.Stage != p.stage {
			fmt.Fprintf(p.w, "gaol: %s %s\n", step.Stage, safeText(step.Item))
		}
		p.stage = step.Stage
		return
	}
	if step.Stage == p.stage && time.Since(p.last) < 100*time.Millisecond {
		return
	}
	p.stage, p.last, p.dirty = step.Stage, time.Now(), true
	how := ""
	switch {
	case step.Total > 0:
		how = fmt.Sprintf(" %d%%", 100*step.Done/step.Total)
	case step.Done > 0:
		how = " " + bytesText(step.Done)
	}
	fmt.Fprintf(p.w, "\r\x1b[Kgaol: %s %.60s%s", step.Stage, safeText(step.Item), how)
}

// end clears the line.
func (p *progress) end() {
	if p.dirty {
		fmt.Fprint(p.w, "\r\x1b[K")
	}
}
