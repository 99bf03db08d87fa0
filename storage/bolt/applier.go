package bolt

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.etcd.io/bbolt"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage"
	"github.com/partita-go/partita/storage/bolt/internal/boltfile"
	"github.com/partita-go/partita/storage/bolt/internal/format"
)

const (
	// applyBytes is how much waits for a transaction of log.db,
	applyBytes = 4 << 20
	// applyRest for how long less than that waits, and what log.db has no room for; applyMost is
	// how much one takes.
	applyRest = time.Second
	applyMost = 16 << 20
)

// applier brings to log.db what is in log.wal.
type applier struct {
	s *Store
	// wake has room for one. rest wakes it, too.
	wake chan struct{}
	rest *time.Timer
	// stop is closed when nothing more will come, ended when the applier has ended.
	stop, ended chan struct{}
}

func newApplier(s *Store) *applier {
	a := &applier{s: s, wake: make(chan struct{}, 1), stop: make(chan struct{}), ended: make(chan struct{})}
	a.rest = time.AfterFunc(applyRest, a.hurry)
	a.rest.Stop()
	return a
}

// hurry lets it bring what there is at once.
func (a *applier) hurry() {
	select {
	case a.wake <- struct{}{}:
	default:
	}
}

// added says that more bytes are pending.
func (a *applier) added(before, after int64) {
	switch {
	case after >= applyBytes:
		a.hurry()
	case before == 0:
		a.rest.Reset(applyRest)
	}
}

func (a *applier) run() {
	defer close(a.ended)
	defer a.rest.Stop()
	for {
		select {
		case <-a.wake:
			switch err := a.s.applyAll(); {
			case errors.Is(err, messages.ErrOutcomeUnknown):
				a.s.cause.Store(&err)
				a.s.triggerClose()
				return
			case errors.Is(err, storage.ErrFull):
				a.rest.Reset(applyRest) // there may be room by then, and nobody who appends
			}
		case <-a.stop:
			// What is left stays in log.wal.
			_ = a.s.applyAll()
			return
		}
	}
}

// applyAll brings to log.db what is pending.
func (s *Store) applyAll() error {
	for {
		first, values := s.pending.take(applyMost)
		if len(values) == 0 {
			return nil
		}
		err := s.log.Update(func(tx *bbolt.Tx) error { return putLog(tx, first, values) })
		switch {
		case errors.Is(err, messages.ErrOutcomeUnknown):
			// They are in log.wal, and the next open brings them. Of what is asked for from
			// now on nothing is written.
			s.pending.tell(0, fmt.Errorf("%w: %v", storage.ErrClosed, err)) //nolint:errorlint // its outcome is not theirs
			return err
		case errors.Is(err, storage.ErrConflict):
			s.broken.Store(&err)
			s.board.RingAll()
		}
		s.pending.tell(len(values), err)
		if err != nil {
			return err
		}
	}
}

// awaitApplied waits until log.db has an LSN, or could not be given it.
func (s *Store) awaitApplied(ctx context.Context, lsn messages.LSN) error {
	begun := s.pending.state()
	if begun.next <= lsn && s.applier == nil {
		return begun.failed
	}
	for now := begun; now.next <= lsn; now = s.pending.state() {
		if now.tries != begun.tries && now.failed != nil {
			return now.failed
		}
		s.applier.hurry()
		select {
		case <-now.more:
		case <-s.applier.ended:
			return storage.ErrClosed
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// putLog puts events at the end of the log. It overwrites nothing: the log must end before
// them. The bucket's sequence, which stands in another page than the log's last entries,
// says where it ends then.
func putLog(tx *bbolt.Tx, first messages.LSN, values [][]byte) error {
	log := tx.Bucket(format.BucketLog)
	log.FillPercent = boltfile.LogFill
	if err := checkEnd(log, first-1, first-1, values); err != nil {
		return err
	}
	var key [format.LSNKeyLen]byte
	lsn := first
	for _, v := range values {
		if err := log.Put(format.AppendLSNKey(key[:0], lsn), v); err != nil {
			return err
		}
		lsn++
	}
	return log.SetSequence(uint64(lsn - 1))
}

// checkEnd makes sure that the log ends at an LSN from least to most, so that the next
// places are free. The values are those that would go there.
func checkEnd(log *bbolt.Bucket, least, most messages.LSN, values [][]byte) error {
	k, _ := log.Cursor().Last()
	if k == nil && least == 0 {
		return nil
	}
	end, ok := format.ParseLSN(k)
	switch {
	case ok && end >= least && end <= most:
		return nil
	case !ok || end < least:
		return &storage.DamagedError{
			Where: format.PlaceOf(format.BucketLog, "key %x", k),
			Cause: fmt.Errorf("the log ends there, want LSN %d", least),
		}
	}
	conflict := &storage.ConflictError{Place: storage.PlaceLog, LSN: end}
	var view format.EventView
	if len(values) > 0 && view.Decode(most+1, values[0]) == nil {
		conflict.Partition, conflict.PLogOffset, conflict.Workspace, conflict.WLogOffset = view.Partition, view.PLogOffset, view.Workspace, view.WLogOffset
	}
	return conflict
}
