package serve

import (
	"context"
	"errors"
	"fmt"

	"go.uber.org/zap"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage"
	"github.com/partita-go/partita/storage/bolt"
)

// openStore opens the store: under its own descriptor, or under the one of a file, which may extend it, or make the store if
// it is told so. What was made or extended is logged.
func (c *Config) openStore(ctx context.Context, d messages.Descriptor, o bolt.Options, logger *zap.Logger) (*bolt.Store, error) {
	if c.Descriptor == "" {
		return bolt.OpenExisting(ctx, c.Dir, o)
	}
	o.Create = c.Create
	store, err := bolt.Open(ctx, c.Dir, d, o)
	if errors.Is(err, storage.ErrNotFound) {
		return nil, fmt.Errorf("%w: %s: is the path right, and its volume mounted? Only --create makes a new store", storage.ErrNotFound, c.Dir)
	}
	if err != nil {
		return nil, err
	}
	now, found := store.Descriptor(), store.Found()
	if found == nil {
		logger.Warn("a new store was made", zap.String("dir", c.Dir), zap.String("application", now.Application))
	} else if added := now.Added(found); len(added) > 0 {
		logger.Warn("the store was extended", zap.String("dir", c.Dir), zap.Strings("added", added))
	}
	return store, nil
}
