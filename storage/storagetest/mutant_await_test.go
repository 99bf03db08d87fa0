package storagetest

import (
	"context"
	"errors"
	"iter"
	"runtime"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage"
)

func (m *mutant) AwaitPLog(ctx context.Context, p messages.PartitionID, offset messages.PLogOffset) error {
	if m.bug.awaitPLog != nil {
		return m.bug.awaitPLog(m, ctx, p, offset)
	}
	return m.Memory.AwaitPLog(ctx, p, offset)
}

func (m *mutant) AwaitWLog(ctx context.Context, ws messages.WSID, offset messages.WLogOffset) error {
	if m.bug.awaitWLog != nil {
		return m.bug.awaitWLog(m, ctx, ws, offset)
	}
	return m.Memory.AwaitWLog(ctx, ws, offset)
}

func (m *mutant) AwaitAny(ctx context.Context, seen uint64) (uint64, error) {
	if m.bug.awaitAny != nil {
		return m.bug.awaitAny(m, ctx, seen)
	}
	return m.Memory.AwaitAny(ctx, seen)
}

// TestRunFindsBugsOfWaiting runs the checks that must find each bug, in a bubble: whoever
// would wait for ever is found at once.
func TestRunFindsBugsOfWaiting(t *testing.T) {
	for _, b := range slices.Concat(awaitBugs(), awaitAnyBugs(), awaitEndBugs()) {
		t.Run(b.name, func(t *testing.T) {
			for _, name := range b.by {
				i := slices.IndexFunc(checks(), func(c check) bool { return c.name == name })
				if i < 0 {
					t.Fatalf("no check is called %s", name)
				}
				synctest.Test(t, func(t *testing.T) {
					failure := failureOf(t, checks()[i], mutants{&b})
					if failure == "" {
						t.Errorf("%s did not find the bug", name)
					}
					t.Logf("%s: %.300s", name, failure)
				})
			}
		})
	}
}

const (
	atOnce    = "AwaitReturnsAtOnce"
	ownAppend = "AwaitWaitsForItsAppend"
	beside    = "AwaitBesideAppendsAndFlushes"
)

func awaitBugs() []bug {
	return []bug{
		{name: "nobody is woken", by: []string{ownAppend, beside, "CloseEndsAwait"},
			awaitPLog: func(m *mutant, ctx context.Context, p messages.PartitionID, offset messages.PLogOffset) error {
				if there, err := m.hasPLog(ctx, p, offset); there || err != nil {
					return err
				}
				<-ctx.Done()
				return ctx.Err()
			}},
		{name: "an event before it is good enough", by: []string{ownAppend, beside},
			awaitPLog: func(m *mutant, ctx context.Context, p messages.PartitionID, offset messages.PLogOffset) error {
				return m.Memory.AwaitPLog(ctx, p, max(offset, 2)-1)
			}},
		{name: "an event before it in the workspace is good enough", by: []string{ownAppend, beside},
			awaitWLog: func(m *mutant, ctx context.Context, ws messages.WSID, offset messages.WLogOffset) error {
				return m.Memory.AwaitWLog(ctx, ws, max(offset, 2)-1)
			}},
		{name: "one more event must be there", by: []string{atOnce, ownAppend},
			awaitPLog: func(m *mutant, ctx context.Context, p messages.PartitionID, offset messages.PLogOffset) error {
				return m.Memory.AwaitPLog(ctx, p, offset+1)
			}},
		{name: "offset 0 is there in an empty log", by: []string{ownAppend},
			awaitWLog: func(m *mutant, ctx context.Context, ws messages.WSID, offset messages.WLogOffset) error {
				if offset == 0 {
					return nil
				}
				return m.Memory.AwaitWLog(ctx, ws, offset)
			}},
		{name: "an append of another workspace is good enough", by: []string{ownAppend, beside},
			awaitWLog: func(m *mutant, ctx context.Context, ws messages.WSID, offset messages.WLogOffset) error {
				p := messages.PartitionOf(ws, m.disk.desc.Partitions)
				r, err := m.Memory.Register(ctx, p)
				if there := firstFailure(err, m.hasWLog(ctx, ws, offset)); !errors.Is(there, errAbsent) {
					return there
				}
				return m.Memory.AwaitPLog(ctx, p, r.Last+1)
			}},
		{name: "an append to another partition is good enough", by: []string{ownAppend},
			awaitPLog: func(m *mutant, ctx context.Context, p messages.PartitionID, offset messages.PLogOffset) error {
				if there, err := m.hasPLog(ctx, p, offset); there || err != nil {
					return err
				}
				n, err := m.Memory.AwaitAny(ctx, 0)
				if err == nil {
					_, err = m.Memory.AwaitAny(ctx, n)
				}
				return err
			}},
		{name: "what is told cannot be read yet", by: []string{ownAppend, beside}, wlog: (*mutant).lateWLog},
		{name: "what comes between looking and waiting is missed", by: []string{beside}, awaitPLog: (*mutant).awaitNextPLog},
		{name: "what is flushed between looking and waiting is missed", by: []string{beside}, awaitWLog: (*mutant).awaitTailWLog},
		{name: "one of those who wait is woken", by: []string{"AwaitByMany", ownAppend},
			awaitPLog: func(m *mutant, ctx context.Context, p messages.PartitionID, offset messages.PLogOffset) error {
				defer m.waits.Add(-1)
				if m.waits.Add(1) > 1 {
					<-ctx.Done()
					return ctx.Err()
				}
				return m.Memory.AwaitPLog(ctx, p, offset)
			}},
		{name: "the first event of a batch is told of", by: []string{"AwaitByMany"},
			append: func(m *mutant, ctx context.Context, b storage.Batch) error {
				m.disk.mu.Lock()
				if len(b.Events) > 1 {
					m.quiet = b.Events[1:]
				}
				m.disk.mu.Unlock()
				return m.Memory.Append(ctx, b)
			},
			awaitWLog: func(m *mutant, ctx context.Context, ws messages.WSID, offset messages.WLogOffset) error {
				err := m.Memory.AwaitWLog(ctx, ws, offset)
				m.disk.mu.Lock()
				quiet := slices.ContainsFunc(m.quiet, func(e messages.Event) bool { return e.Workspace == ws && e.WLogOffset == offset })
				m.disk.mu.Unlock()
				if quiet {
					<-ctx.Done()
					return ctx.Err()
				}
				return err
			}},
		{name: "waiting for a partition too many", by: []string{"NoSuchPartition"},
			awaitPLog: func(m *mutant, ctx context.Context, p messages.PartitionID, offset messages.PLogOffset) error {
				if uint32(p) >= m.disk.desc.Partitions {
					return nil
				}
				return m.Memory.AwaitPLog(ctx, p, offset)
			}},
	}
}

func awaitAnyBugs() []bug {
	const counts = "AwaitAnyCountsEvents"
	return []bug{
		{name: "the count is of appends", by: []string{counts},
			append: func(m *mutant, ctx context.Context, b storage.Batch) error {
				m.disk.mu.Lock()
				before := m.disk.events
				m.disk.mu.Unlock()
				err := m.Memory.Append(ctx, b)
				if err == nil {
					m.disk.mu.Lock()
					defer m.disk.mu.Unlock()
					m.disk.events = before + 1
				}
				return err
			}},
		{name: "the count is one more than was seen", by: []string{counts, atOnce},
			awaitAny: func(m *mutant, ctx context.Context, seen uint64) (uint64, error) {
				_, err := m.Memory.AwaitAny(ctx, seen)
				return seen + 1, err
			}},
		{name: "the count begins anew with each start", by: []string{counts, atOnce},
			reopened: func(d *disk) { d.events = 0 }},
		{name: "as many events as were seen are enough", by: []string{counts},
			awaitAny: func(m *mutant, ctx context.Context, seen uint64) (uint64, error) {
				return m.Memory.AwaitAny(ctx, max(seen, 1)-1)
			}},
		{name: "refused appends are counted", by: []string{counts, "AwaitIsNotEndedByRefusals"},
			append: func(m *mutant, ctx context.Context, b storage.Batch) error {
				err := m.Memory.Append(ctx, b)
				if err != nil {
					m.disk.mu.Lock()
					defer m.disk.mu.Unlock()
					m.disk.countMore(0, len(b.Events))
				}
				return err
			}},
		{name: "flushes are counted", by: []string{counts},
			flush: func(m *mutant, ctx context.Context, f storage.Flush) error {
				err := m.Memory.Flush(ctx, f)
				m.disk.mu.Lock()
				defer m.disk.mu.Unlock()
				m.disk.countMore(f.Partition, 1)
				return err
			}},
	}
}

// countMore counts events that nobody has written, and tells of them. The caller holds the lock.
func (d *disk) countMore(p messages.PartitionID, events int) {
	d.events += uint64(events)
	d.tell(p, make([]messages.Event, events))
}

func awaitEndBugs() []bug {
	const byContext, byClose = "AwaitEndsWithItsContext", "CloseEndsAwait"
	return []bug{
		{name: "waiting ignores its context", by: []string{"EndedContext", byContext},
			awaitWLog: func(m *mutant, ctx context.Context, ws messages.WSID, offset messages.WLogOffset) error {
				return m.Memory.AwaitWLog(context.WithoutCancel(ctx), ws, offset)
			}},
		{name: "the context is looked at before waiting only", by: []string{byContext},
			awaitAny: func(m *mutant, ctx context.Context, seen uint64) (uint64, error) {
				if err := ctx.Err(); err != nil {
					return 0, err
				}
				ctx.Done()
				return m.Memory.AwaitAny(context.WithoutCancel(ctx), seen)
			}},
		{name: "the end of a context ends others' waiting", by: []string{byContext},
			awaitPLog: func(m *mutant, ctx context.Context, p messages.PartitionID, offset messages.PLogOffset) error {
				err := m.Memory.AwaitPLog(ctx, p, offset)
				if errors.Is(err, context.Canceled) {
					_ = m.Memory.Close(ctx)
				}
				return err
			}},
		{name: "an ended context is no error", by: []string{"EndedContext", byContext},
			awaitPLog: func(m *mutant, ctx context.Context, p messages.PartitionID, offset messages.PLogOffset) error {
				if err := m.Memory.AwaitPLog(ctx, p, offset); !errors.Is(err, context.Canceled) {
					return err
				}
				return nil
			}},
		{name: "a closed store is no error", by: []string{"ClosedStoreRefusesEverything", byClose},
			awaitWLog: func(m *mutant, ctx context.Context, ws messages.WSID, offset messages.WLogOffset) error {
				if err := m.Memory.AwaitWLog(ctx, ws, offset); !errors.Is(err, storage.ErrClosed) {
					return err
				}
				return nil
			}},
		{name: "closing wakes nobody", by: []string{byClose},
			close: func(m *mutant, _ context.Context) error {
				m.disk.mu.Lock()
				defer m.disk.mu.Unlock()
				m.closed = true
				return nil
			}},
	}
}

func (m *mutant) hasPLog(ctx context.Context, p messages.PartitionID, offset messages.PLogOffset) (bool, error) {
	r, err := m.Memory.Register(ctx, p)
	return r.Last >= max(offset, 1), err
}

var errAbsent = errors.New("no such event")

// hasWLog returns errAbsent if a workspace's log has not come to an offset.
func (m *mutant) hasWLog(ctx context.Context, ws messages.WSID, offset messages.WLogOffset) error {
	e, err := firstOf(m.Memory.WLog(ctx, ws, offset))
	if err == nil && e.WLogOffset == 0 {
		err = errAbsent
	}
	return err
}

// lateWLog shows an event only when it has been read before in vain.
func (m *mutant) lateWLog(ctx context.Context, ws messages.WSID, from messages.WLogOffset) iter.Seq2[messages.Event, error] {
	all, err := collectEvents(m.Memory.WLog(ctx, ws, from))
	return func(yield func(messages.Event, error) bool) {
		for i, e := range all {
			if i == len(all)-1 && m.loops.Add(1)%2 == 1 || !yield(e, nil) {
				return
			}
		}
		if err != nil {
			yield(messages.Event{}, err)
		}
	}
}

// awaitNextPLog looks, and then waits for an event that comes after that.
func (m *mutant) awaitNextPLog(ctx context.Context, p messages.PartitionID, offset messages.PLogOffset) error {
	for {
		if there, err := m.hasPLog(ctx, p, offset); there || err != nil {
			return err
		}
		for range 100 {
			runtime.Gosched()
		}
		r, err := m.Memory.Register(ctx, p)
		if err != nil {
			return err
		}
		if err := m.Memory.AwaitPLog(ctx, p, r.Last+1); err != nil {
			return err
		}
	}
}

// awaitTailWLog looks at what was flushed first, and then at the tail alone.
func (m *mutant) awaitTailWLog(ctx context.Context, ws messages.WSID, offset messages.WLogOffset) error {
	for {
		r, err := m.Memory.Register(ctx, messages.PartitionOf(ws, m.disk.desc.Partitions))
		if err != nil {
			return err
		}
		e, err := firstOf(m.Memory.WLog(ctx, ws, offset))
		if err != nil || e.WLogOffset != 0 && e.PLogOffset < r.Checkpoint {
			return err
		}
		for range 100 {
			runtime.Gosched()
		}
		e, err = firstOf(m.Memory.WLog(ctx, ws, offset))
		if err != nil || e.WLogOffset != 0 && e.PLogOffset >= m.checkpoint(e.Partition) {
			return err
		}
		last, err := m.Memory.AwaitAny(ctx, 0)
		if err == nil {
			_, err = m.Memory.AwaitAny(ctx, last)
		}
		if err != nil {
			return err
		}
	}
}
