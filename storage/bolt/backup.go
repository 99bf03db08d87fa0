package bolt

import (
	"context"
	"io"

	"go.etcd.io/bbolt"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage/bolt/internal/boltfile"
	"github.com/partita-go/partita/storage/bolt/internal/format"
)

// Backup writes a copy of the store to a directory, which must be new or empty: its
// files, synced, and checked unless the options say otherwise. The store can be in use.
// A copy whose check finds a fault, or that is not finished, is not kept.
//
// subscriptions.db, if there is one, is copied first, then state.db, and log.db after them, so
// that neither the subscriptions nor the projections of the copy are ever ahead of its log;
// opening the copy reads what the projections lack. Both are copied under one read transaction,
// page by page: meanwhile flushes do not use pages again, and wait if the file outgrows
// Options.MmapSize; appends go on up to the limits of the tail.
// log.db is copied in short transactions, which hold nobody up.
func (s *Store) Backup(ctx context.Context, dir string, o CopyOptions) (Copied, error) {
	c := newCopying(o)
	if err := s.enter(ctx); err != nil {
		return c.result, err
	}
	c.result.ID = s.files.ID.String()
	err := c.into(ctx, dir, func(temporary *boltfile.Directory) error {
		if f := s.files.Subscriptions.Load(); f != nil {
			c.result.SubscriptionsFrom = f.Size()
			if err := c.copyPages(ctx, f, temporary, format.SubscriptionsFileName); err != nil {
				return err
			}
		}
		c.result.StateFrom = s.state.Size()
		if err := c.copyPages(ctx, s.state, temporary, format.StateFileName); err != nil {
			return err
		}
		return c.copyLog(ctx, s.log, temporary, s.files.ID, s.files.Descriptor, messages.LSN(s.lastLSN.Load()))
	})
	return c.result, err
}

// copyPages copies the pages of a file as of one moment.
func (c *copying) copyPages(ctx context.Context, from *boltfile.File, d *boltfile.Directory, name string) error {
	to, err := d.MakeFile(name, 0)
	if err != nil {
		return err
	}
	err = from.View(func(tx *bbolt.Tx) error {
		_, err := tx.WriteTo(&copyWriter{ctx: ctx, w: to, c: c, name: name, total: uint64(tx.Size())})
		return err
	})
	switch {
	case err == nil:
		err = to.Sync()
	case ctx.Err() != nil:
		// bbolt keeps the text only.
		err = ctx.Err()
	}
	if closeErr := to.Close(); err == nil {
		err = closeErr
	}
	return err
}

// copyWriter writes until the context ends, and tells how far it is.
type copyWriter struct {
	ctx         context.Context
	w           io.Writer
	c           *copying
	name        string
	done, total uint64
}

func (w *copyWriter) Write(b []byte) (int, error) {
	if err := w.ctx.Err(); err != nil {
		return 0, err
	}
	n, err := w.w.Write(b)
	w.done += uint64(n)
	w.c.o.Progress(CopyProgress{Phase: "copy " + w.name, Done: w.done, Total: w.total})
	return n, err
}
