package layers

import (
	"bufio"
	"context"
	"fmt"
	"io"
)

// metered is a layer's stream that stops at the budget's end or ctx's.
type metered struct {
	ctx    context.Context
	r      io.Reader
	budget *budget
}

func (m *metered) Read(p []byte) (int, error) {
	if err := m.ctx.Err(); err != nil {
		return 0, err
	}
	n, err := m.r.Read(p)
	if over := m.budget.read(n); over != nil {
		return 0, over
	}
	return n, err
}

// readLayer opens the layer and calls apply with its stream, then reads what
// apply left: a digest can be judged only at the very end.
func readLayer(ctx context.Context, layer Layer, b *budget, apply func(io.Reader) error) (err error) {
	rc, err := layer.Open()
	if err != nil {
		return fmt.Errorf("open: %w", err)
	}
	defer func() {
		if closed := rc.Close(); err == nil && closed != nil {
			err = fmt.Errorf("close: %w", closed)
		}
	}()
	r := bufio.NewReaderSize(&metered{ctx, rc, b}, 128<<10)
	if err := apply(r); err != nil {
		return err
	}
	if _, err := io.Copy(io.Discard, r); err != nil {
		return fmt.Errorf("read to the end: %w", err)
	}
	return nil
}
