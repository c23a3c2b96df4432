package images

import "fmt"

// Limits bound what one import may cost. A zero field means its default; a
// negative one is an error: nothing is ever unlimited.
type Limits struct {
	// Bytes bounds the archive and, apart from it, the decompressed layers
	// of one image. Default 8 GiB.
	Bytes int64
	// Ratio bounds how far compressed data may expand once it has given
	// RatioFloor bytes. Default 500 times, from 256 MiB on.
	Ratio      int64
	RatioFloor int64
	// JSON bounds each index, manifest and config in bytes. Default 4 MiB.
	JSON int64
	// Files bounds the entries of an archive or layout. Default 20,000.
	Files int
	// Layers bounds the layers of one image. Default 127.
	Layers int
	// Manifests bounds the manifests that are looked at. Default 256.
	Manifests int
	// Depth bounds how deep indexes may nest. Default 3.
	Depth int
}

func (l Limits) orDefault() (Limits, error) {
	sizes := []struct {
		name string
		v    *int64
		def  int64
	}{
		{"bytes", &l.Bytes, 8 << 30}, {"ratio", &l.Ratio, 500},
		{"ratio floor", &l.RatioFloor, 256 << 20}, {"json", &l.JSON, 4 << 20},
	}
	counts := []struct {
		name string
		v    *int
		def  int
	}{
		{"files", &l.Files, 20_000}, {"layers", &l.Layers, 127},
		{"manifests", &l.Manifests, 256}, {"depth", &l.Depth, 3},
	}
	for _, s := range sizes {
		if *s.v < 0 {
			return l, fmt.Errorf("limit %s is negative: %d", s.name, *s.v)
		}
		if *s.v == 0 {
			*s.v = s.def
		}
	}
	for _, c := range counts {
		if *c.v < 0 {
			return l, fmt.Errorf("limit %s is negative: %d", c.name, *c.v)
		}
		if *c.v == 0 {
			*c.v = c.def
		}
	}
	return l, nil
}
