package logdb

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.etcd.io/bbolt"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage"
)

const (
	// applyBytes is how much waits for a transaction of log.db,
	applyBytes = 1 << 20
	// applyRest for how long less than that waits, and what log.db has no room for; applyMost is
	// how much one takes. Commits wait while the disk writes it.
	applyRest = time.Second
	applyMost = 4 << 20
)

// applier brings to log.db what is in log.wal.
type applier struct {
	l *Log
	// wake has room for one. rest wakes it, too.
	wake chan struct{}
	rest *time.Timer
	// leaves says that what a crash has left is still to be removed. Only the applier's goroutine changes it.
	leaves bool
	// stop is closed when nothing more will come, ended when the applier has ended.
	stop, ended chan struct{}
}

func newApplier(l *Log) *applier {
	a := &applier{l: l, wake: make(chan struct{}, 1), leaves: l.left, stop: make(chan struct{}), ended: make(chan struct{})}
	a.rest = time.AfterFunc(applyRest, a.hurry)
	if !a.leaves { // else it has no haste: its syncs are not to be in the way of those who begin
		a.rest.Stop()
	}
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
			err := a.bring()
			if errors.Is(err, messages.ErrOutcomeUnknown) {
				a.l.failed(err)
				return
			}
			if errors.Is(err, storage.ErrFull) || a.leaves && err == nil {
				a.rest.Reset(applyRest) // there may be room by then, and nobody who appends
			}
		case <-a.stop:
			// What is left stays in log.wal.
			_ = a.l.applyAll()
			return
		}
	}
}

// bring removes what a crash has left, and brings to log.db what is pending. In this order: under load there is always more.
func (a *applier) bring() error {
	if l := a.l; a.leaves && l.pending.state().next > l.end {
		err := l.removeLeft()
		if errors.Is(err, messages.ErrOutcomeUnknown) {
			return l.uncertain(err)
		}
		// What else is in its way is told to who appends, or closes.
		a.leaves = errors.Is(err, storage.ErrFull)
	}
	return a.l.applyAll()
}

// applyAll brings to log.db what is pending.
func (l *Log) applyAll() error {
	for {
		t := l.pending.take(applyMost)
		if len(t.values)+len(t.entries) == 0 {
			return nil
		}
		err := l.File.Update(func(tx *bbolt.Tx) error { return l.put(tx, &t) })
		switch {
		case errors.Is(err, messages.ErrOutcomeUnknown):
			return l.uncertain(err) // they are in log.wal, and the next open brings them
		case errors.Is(err, storage.ErrConflict):
			l.failed(err)
		}
		l.pending.tell(t, err)
		if err != nil {
			return err
		}
		if len(t.entries) > 0 {
			l.trim(t.kept.Index)
		}
	}
}

// uncertain tells whoever waits that nothing is written from now on, since the outcome of a commit is unknown.
func (l *Log) uncertain(err error) error {
	l.pending.tell(taken{}, fmt.Errorf("%w: %v", storage.ErrClosed, err)) //nolint:errorlint // its outcome is not theirs
	return err
}

// AwaitApplied waits until log.db has an LSN, or could not be given it.
func (l *Log) AwaitApplied(ctx context.Context, lsn messages.LSN) error {
	return l.await(ctx, func(now *applied) bool { return now.next > lsn })
}

// await waits until log.db has something, or could not be given it.
func (l *Log) await(ctx context.Context, there func(now *applied) bool) error {
	begun := l.pending.state()
	if !there(&begun) && l.applier == nil {
		return begun.failed
	}
	for now := begun; !there(&now); now = l.pending.state() {
		if now.tries != begun.tries && now.failed != nil {
			return now.failed
		}
		l.applier.hurry()
		select {
		case <-now.more:
		case <-l.applier.ended:
			return storage.ErrClosed
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}
