package bolt

import (
	"context"
	"io"
	"os"
	"path/filepath"

	"go.etcd.io/bbolt"

	"github.com/partita-go/partita/messages"
)

// Backup writes a copy of the store to a directory, which must be new or empty: both
// files, synced, and checked unless the options say otherwise. The store can be in use.
// A copy whose check finds a fault, or that is not finished, is not kept.
//
// state.db is copied first and log.db after it, so that the projections of the copy are
// never ahead of its log; opening the copy reads what they lack. state.db is copied under
// one read transaction, page by page: meanwhile flushes do not use pages again, and wait
// if the file outgrows Options.MmapSize; appends go on up to the limits of the tail.
// log.db is copied in short transactions, which hold nobody up.
func (s *Store) Backup(ctx context.Context, dir string, o CopyOptions) (Copied, error) {
	c := newCopying(o)
	if err := s.enter(ctx); err != nil {
		return c.result, err
	}
	c.result.ID = s.id.String()
	err := c.into(ctx, dir, func(temporary string) error {
		if err := c.copyState(ctx, s.state, temporary); err != nil {
			return err
		}
		return c.copyLog(ctx, s.log, temporary, s.id, s.descriptor, messages.LSN(s.lastLSN.Load()))
	})
	return c.result, err
}

// copyState copies the pages of state.db as of one moment.
func (c *copying) copyState(ctx context.Context, from *file, dir string) error {
	to, err := os.OpenFile(filepath.Join(dir, stateFileName), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	c.result.StateFrom = from.size()
	err = from.view(func(tx *bbolt.Tx) error {
		_, err := tx.WriteTo(&copyWriter{ctx: ctx, w: to, c: c, total: uint64(tx.Size())})
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
	done, total uint64
}

func (w *copyWriter) Write(b []byte) (int, error) {
	if err := w.ctx.Err(); err != nil {
		return 0, err
	}
	n, err := w.w.Write(b)
	w.done += uint64(n)
	w.c.o.Progress(CopyProgress{Phase: "copy " + stateFileName, Done: w.done, Total: w.total})
	return n, err
}
