package images

import (
	"context"
	"fmt"
	"io"

	"github.com/containerd/containerd/v2/core/content"
	cimages "github.com/containerd/containerd/v2/core/images"
	"github.com/containerd/containerd/v2/core/metadata"
	"github.com/containerd/containerd/v2/pkg/namespaces"
	"github.com/containerd/containerd/v2/plugins/content/local"
	"github.com/containerd/log"
	"github.com/sirupsen/logrus"
)

// namespace is ours within containerd's database.
const namespace = "gaol"

// database is containerd's content store and metadata, assembled in this
// process. It holds nothing open between calls.
type database struct {
	meta *metadata.DB
	// content knows the references and labels, blobs only the files below.
	content content.Store
	blobs   content.Store
	images  cimages.Store
}

// openDatabase makes the database on first use.
func (s *Store) openDatabase(ctx context.Context) (*database, error) {
	tx := transactions{path: s.own.database(), lock: s.own.databaseLock(), wait: s.wait}
	if err := tx.create(ctx); err != nil {
		return nil, err
	}
	// It complains about file systems without fs-verity to the library's
	// standard logger, which no context replaces.
	log.L.Logger.SetLevel(logrus.PanicLevel)
	blobs, err := local.NewStore(s.own.content())
	if err != nil {
		return nil, fmt.Errorf("open content store: %w", err)
	}
	meta := metadata.NewDB(tx, blobs, nil)
	if err := meta.Init(ctx); err != nil {
		return nil, fmt.Errorf("open image database: %w", err)
	}
	return &database{
		meta: meta, content: meta.ContentStore(), blobs: blobs,
		images: metadata.NewImageStore(meta),
	}, nil
}

// containerdContext names our namespace and silences containerd's log: a
// library must not write to the terminal.
func containerdContext(ctx context.Context) context.Context {
	quiet := logrus.New()
	quiet.SetOutput(io.Discard)
	return log.WithLogger(namespaces.WithNamespace(ctx, namespace), logrus.NewEntry(quiet))
}
