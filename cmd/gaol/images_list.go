package main

import (
	"context"
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"gaol/images"
)

func newImagesListCommand(a *app) *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:     "ls",
		Aliases: []string{"list"},
		Short:   "List images",
		Args:    noArguments,
		RunE: func(c *cobra.Command, _ []string) error {
			return a.withStore(c.Context(), func(ctx context.Context, s *images.Store) error {
				list, err := s.List(ctx)
				if err != nil {
					return err
				}
				if asJSON {
					return encodeJSON(a.stdout, listedImages(list))
				}
				return printImages(a.stdout, list)
			})
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print one JSON array")
	return c
}

// listedImage is an image with the store that has it: "own" or "system".
type listedImage struct {
	images.Image
	Store string `json:"store"`
}

func listedImages(list []images.Image) []listedImage {
	listed := make([]listedImage, 0, len(list))
	for _, i := range list {
		listed = append(listed, listedImage{i, storeName(i)})
	}
	return listed
}

func storeName(i images.Image) string {
	if i.System {
		return "system"
	}
	return "own"
}

func printImages(w io.Writer, list []images.Image) error {
	if len(list) == 0 {
		_, err := fmt.Fprintln(w, "no images; `gaol images build python` makes the default one")
		return err
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "REFERENCE\tDIGEST\tPLATFORM\tROOTFS\tSTORE\tCREATED")
	for _, i := range list {
		fmt.Fprintf(t, "%s\t%.19s\t%s\t%s\t%s\t%s\n", i.Reference, i.Digest, i.Platform,
			bytesText(i.RootfsSize), storeName(i), i.Created.UTC().Format(time.DateTime))
	}
	return t.Flush()
}
