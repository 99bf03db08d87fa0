package partition

import (
	"context"
	"fmt"
	"iter"
	"sync/atomic"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage"
)

// Reader reads the logs and the records of a store, also while the application is
// deployed over it. What an append has written can be read when that is answered, and a
// log is always read as a prefix of it: an offset is a position, behind which nothing will
// ever appear. It is safe for concurrent use.
//
// Sequences stop after the first error, which is their last element: the error of the
// context, ErrClosed of package storage after the store was closed, a
// [*storage.DamagedError] where something cannot be read. No lock is held while the
// caller's loop body runs, so that a reader that is slow slows nobody.
type Reader struct {
	store  storage.Store
	recent recent
}

// NewReader returns a reader of a store. Feeds that are followed share what they read if they are of one Reader: a
// program needs one for each store.
func NewReader(store storage.Store) *Reader {
	partitions := store.Descriptor().Partitions
	return &Reader{store: store, recent: recent{logs: make([]atomic.Pointer[recentLog], partitions)}}
}

// Reader returns the reader of the application's store: always the same.
func (a *App) Reader() *Reader { return a.reader }

// PLog returns the events of a partition from an offset on (0 means 1), as far as its log
// goes when the loop begins.
func (r *Reader) PLog(ctx context.Context, p messages.PartitionID, from messages.PLogOffset) iter.Seq2[messages.Event, error] {
	return r.store.PLog(ctx, p, from)
}

// WLog returns the events of a workspace from an offset on (0 means 1), as far as its log
// goes when the loop begins.
func (r *Reader) WLog(ctx context.Context, ws messages.WSID, from messages.WLogOffset) iter.Seq2[messages.Event, error] {
	return r.store.WLog(ctx, ws, from)
}

// FollowPLog is PLog, and goes on with what is appended, until ctx ends. It is woken by
// the append. What it has not read yet is on disk: it needs no more memory when it is slow.
func (r *Reader) FollowPLog(ctx context.Context, p messages.PartitionID, from messages.PLogOffset) iter.Seq2[messages.Event, error] {
	return follow(from,
		func(next messages.PLogOffset) iter.Seq2[messages.Event, error] { return r.store.PLog(ctx, p, next) },
		func(next messages.PLogOffset) error { return r.store.AwaitPLog(ctx, p, next) })
}

// FollowWLog is WLog, and goes on like FollowPLog.
func (r *Reader) FollowWLog(ctx context.Context, ws messages.WSID, from messages.WLogOffset) iter.Seq2[messages.Event, error] {
	return follow(from,
		func(next messages.WLogOffset) iter.Seq2[messages.Event, error] { return r.store.WLog(ctx, ws, next) },
		func(next messages.WLogOffset) error { return r.store.AwaitWLog(ctx, ws, next) })
}

// follow reads a log to its end, again and again.
func follow[O ~uint64](from O, read func(O) iter.Seq2[messages.Event, error], await func(O) error) iter.Seq2[messages.Event, error] {
	return func(yield func(messages.Event, error) bool) {
		for next := max(from, 1); ; {
			for e, err := range read(next) {
				if !yield(e, err) || err != nil {
					return
				}
				next++
			}
			if err := await(next); err != nil {
				yield(messages.Event{}, err)
				return
			}
		}
	}
}

// PLogPage returns at most limit events of a partition from an offset on (0 means 1); less
// only if the log ends there. A limit below 1 is taken for 1.
func (r *Reader) PLogPage(ctx context.Context, p messages.PartitionID, from messages.PLogOffset, limit int) ([]messages.Event, error) {
	return page(r.store.PLog(ctx, p, from), limit)
}

// WLogPage is PLogPage for a workspace.
func (r *Reader) WLogPage(ctx context.Context, ws messages.WSID, from messages.WLogOffset, limit int) ([]messages.Event, error) {
	return page(r.store.WLog(ctx, ws, from), limit)
}

func page(events iter.Seq2[messages.Event, error], limit int) (all []messages.Event, err error) {
	for e, err := range events {
		if err != nil {
			return nil, err
		}
		if all = append(all, e); len(all) >= limit {
			break
		}
	}
	return all, nil
}

// AwaitPLog waits until a partition's log has come to an offset; 0 means 1. It is woken by
// the append. It returns the error of ctx, ErrClosed of package storage, or why the partition
// has failed.
func (r *Reader) AwaitPLog(ctx context.Context, p messages.PartitionID, offset messages.PLogOffset) error {
	return r.store.AwaitPLog(ctx, p, offset)
}

// AwaitWLog is AwaitPLog for a workspace.
func (r *Reader) AwaitWLog(ctx context.Context, ws messages.WSID, offset messages.WLogOffset) error {
	return r.store.AwaitWLog(ctx, ws, offset)
}

// AwaitCursor waits until the log of each partition has come to a cursor, as AwaitPLog does: a replica may be behind one that
// was made elsewhere. It does not look whether the cursor is of this application, as Feed does.
func (r *Reader) AwaitCursor(ctx context.Context, c Cursor) error {
	for p, next := range c.next {
		if next <= 1 {
			continue
		}
		if err := r.store.AwaitPLog(ctx, messages.PartitionID(p), next-1); err != nil {
			return err
		}
	}
	return nil
}

// PartitionEvent returns the event of a partition at an offset, or ErrNoEvent.
func (r *Reader) PartitionEvent(ctx context.Context, p messages.PartitionID, offset messages.PLogOffset) (messages.Event, error) {
	return first(r.store.PLog(ctx, p, offset),
		func(e *messages.Event) bool { return e.PLogOffset == offset },
		ErrNoEvent, "partition %d, offset %d", p, offset)
}

// WorkspaceEvent returns the event of a workspace at an offset, or ErrNoEvent.
func (r *Reader) WorkspaceEvent(ctx context.Context, ws messages.WSID, offset messages.WLogOffset) (messages.Event, error) {
	return first(r.store.WLog(ctx, ws, offset),
		func(e *messages.Event) bool { return e.WLogOffset == offset },
		ErrNoEvent, "workspace %d, offset %d", ws, offset)
}

// Record returns a row of a workspace as it stands, or ErrNoRecord.
func (r *Reader) Record(ctx context.Context, ws messages.WSID, id messages.RecordID) (storage.Row, error) {
	return first(r.store.Records(ctx, ws, storage.RecordRange{Seq: id.Seq, From: id.Number, To: id.Number}),
		func(row *storage.Row) bool { return row.ID == id },
		ErrNoRecord, "workspace %d, sequence %d, number %d", ws, id.Seq, id.Number)
}

// first returns the first one of a sequence, if that is what is wanted; else none, and where
// it was looked for.
func first[T any](all iter.Seq2[T, error], wanted func(*T) bool, none error, where string, args ...any) (T, error) {
	for one, err := range all {
		if err != nil || wanted(&one) {
			return one, err
		}
		break
	}
	var zero T
	return zero, fmt.Errorf("%w: %s", none, fmt.Sprintf(where, args...))
}

// Records returns the rows of a workspace whose ids lie in a range: see [storage.Reader].
func (r *Reader) Records(ctx context.Context, ws messages.WSID, in storage.RecordRange) iter.Seq2[storage.Row, error] {
	return r.store.Records(ctx, ws, in)
}

// End returns how many events a partition has: the offset of its last one.
func (r *Reader) End(ctx context.Context, p messages.PartitionID) (messages.PLogOffset, error) {
	register, err := r.store.Register(ctx, p)
	return register.Last, err
}

// ends returns the End of each partition, from the first one on.
func (r *Reader) ends(ctx context.Context, partitions int) ([]messages.PLogOffset, error) {
	ends := make([]messages.PLogOffset, partitions)
	for p := range ends {
		var err error
		if ends[p], err = r.End(ctx, messages.PartitionID(p)); err != nil {
			return nil, err
		}
	}
	return ends, nil
}
