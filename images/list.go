package images

import (
	"cmp"
	"context"
	"errors"
	"slices"
)

// List gives every image, sorted by reference, the own store's before the
// system store's. Images that can be read are returned even with an error,
// which then names the damaged records.
func (s *Store) List(ctx context.Context) ([]Image, error) {
	var all []Image
	var bad []error
	for _, p := range s.places() {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		records, errs := p.allRecords()
		bad = append(bad, errs...)
		for _, r := range records {
			all = append(all, r.Image)
		}
	}
	slices.SortStableFunc(all, func(a, b Image) int { return cmp.Compare(a.Reference, b.Reference) })
	return all, errors.Join(bad...)
}
