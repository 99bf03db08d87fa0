package sim

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"time"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage"
	"github.com/partita-go/partita/storage/storagetest"
)

var (
	errDisk    = errors.New("injected: disk error")
	errCrashed = errors.New("the process has crashed")
)

// store is a node's handle on the disk, which all nodes of a run share. A call is done
// at one moment that the scheduler chooses, and is answered at another.
type store struct {
	s    *sim
	node *node
	disk *storagetest.Memory
	// owners says that owners of transactions call it, not leaves.
	owners bool
}

// call is one call of the store.
type call struct {
	op        op
	partition messages.PartitionID
	what      string
	// who tells calls of the same operation apart, "" if the partition does.
	who string
	// lanes are those for which a subscription's call is made.
	lanes []*laneRun
}

func (st *store) TakeEpoch(ctx context.Context, p messages.PartitionID) (storage.Register, error) {
	return do(ctx, st, call{op: opTakeEpoch, partition: p, what: ""}, func() (storage.Register, error) { return st.disk.TakeEpoch(ctx, p) })
}

func (st *store) Tail(ctx context.Context, p messages.PartitionID, from messages.PLogOffset, limit int) ([]messages.Numbering, error) {
	// Short pieces, so that a replay takes several.
	limit = min(limit, st.node.tailPiece)
	return do(ctx, st, call{op: opTail, partition: p, what: fmt.Sprintf("from %d", from)}, func() ([]messages.Numbering, error) {
		return st.disk.Tail(ctx, p, from, limit)
	})
}

func (st *store) Numbers(ctx context.Context, ws messages.WSID, periods ...messages.SequencePeriod) (storage.WorkspaceNumbers, error) {
	return do(ctx, st, call{op: opNumbers, partition: st.s.partitionOf(ws), what: fmt.Sprintf("of workspace %d", ws)}, func() (storage.WorkspaceNumbers, error) {
		return st.disk.Numbers(ctx, ws, periods...)
	})
}

func (st *store) Find(ctx context.Context, ws messages.WSID, id messages.DedupID) (messages.WLogOffset, error) {
	return do(ctx, st, call{op: opFind, partition: st.s.partitionOf(ws), what: fmt.Sprintf("in workspace %d", ws)}, func() (messages.WLogOffset, error) {
		return st.disk.Find(ctx, ws, id)
	})
}

func (st *store) Flush(ctx context.Context, f storage.Flush) error {
	c := call{op: opFlush, partition: f.Partition, what: fmt.Sprintf("epoch %d, %d to %d", f.Epoch, f.Expected, f.Checkpoint)}
	_, err := do(ctx, st, c, func() (struct{}, error) { return struct{}{}, st.disk.Flush(ctx, f) })
	return err
}

func (st *store) Append(ctx context.Context, b storage.Batch) error {
	c := call{op: opAppend, partition: b.Partition, what: fmt.Sprintf("epoch %d, %d events from %d", b.Epoch, len(b.Events), b.Events[0].PLogOffset)}
	writers := &st.node.writers[b.Partition]
	if st.owners {
		c.op = opWrite
		writers.owners++
		defer func() { writers.owners-- }()
	} else {
		writers.appender++
		defer func() { writers.appender-- }()
	}
	_, err := do(ctx, st, c, func() (struct{}, error) {
		if st.s.lies && !st.owners && st.s.random.IntN(30) == 0 {
			return struct{}{}, nil
		}
		err := st.disk.Append(ctx, b)
		if errors.Is(err, storage.ErrTailFull) {
			st.s.hit(faultTailFull, st.node, b.Partition)
		}
		if err == nil {
			st.s.checkBounds(st, &b)
		}
		return struct{}{}, err
	})
	return err
}

// Submit takes every batch without deduplication ids, half of the times. The rest answers before it returns.
func (st *store) Submit(b storage.Batch, done func(error)) (rest func(context.Context) error) {
	hasID := func(e messages.Event) bool { return !e.DedupID.IsZero() }
	// What still runs in a dead process must not draw from the seed.
	if st.s.isDead(st.node) || slices.ContainsFunc(b.Events, hasID) || st.s.random.IntN(2) == 0 {
		return func(ctx context.Context) error {
			done(st.Append(ctx, b))
			return nil
		}
	}
	work := func() {
		err := messages.ErrOutcomeUnknown
		defer func() {
			_ = recover() // a panic of the store's is not the actor's
			done(err)
		}()
		err = st.Append(context.Background(), b)
	}
	// The scheduler starts it: it must not arrive anywhere while the partition goes on.
	if !st.s.add(&task{node: st.node, key: fmt.Sprintf("%s submit/%d", st.node.name, b.Partition), start: work}) {
		go work()
	}
	return nil
}

func (st *store) PLog(ctx context.Context, p messages.PartitionID, from messages.PLogOffset) iter.Seq2[messages.Event, error] {
	return each(ctx, st, call{op: opPLog, partition: p, what: fmt.Sprintf("from %d", from)}, st.disk.PLog(ctx, p, from))
}

func (st *store) WLog(ctx context.Context, ws messages.WSID, from messages.WLogOffset) iter.Seq2[messages.Event, error] {
	c := call{op: opWLog, partition: st.s.partitionOf(ws), what: fmt.Sprintf("workspace %d from %d", ws, from)}
	return each(ctx, st, c, st.disk.WLog(ctx, ws, from))
}

// each makes a call of an iterator: it is spoilt as a whole.
func each(ctx context.Context, st *store, c call, seq iter.Seq2[messages.Event, error]) iter.Seq2[messages.Event, error] {
	return func(yield func(messages.Event, error) bool) {
		if _, err := do(ctx, st, c, func() (struct{}, error) { return struct{}{}, nil }); err != nil {
			yield(messages.Event{}, err)
			return
		}
		seq(yield)
	}
}

// do makes a call, with what the seed has in store for it.
func do[T any](ctx context.Context, st *store, c call, work func() (T, error)) (T, error) {
	var none T
	if err := st.pass(ctx, &c, 0); err != nil {
		return none, err
	}
	if err := st.s.hold(ctx, st, &c); err != nil {
		return none, err
	}
	m, late := st.s.spoil(ctx, st, &c)
	st.s.notef("%s store: %v %s: %v", st.node.name, c.op, c.what, m)
	if m == modeLate {
		if err := st.pass(ctx, &c, late); err != nil {
			return none, err
		}
	}
	if err := m.before(&c); err != nil {
		st.node.broken = st.node.broken || m == modeClosesLost
		return none, err
	}
	value, err := work()
	if err != nil && st.s.isDead(st.node) {
		return none, err // it has waited meanwhile, and must not draw from the seed
	}
	st.s.checkAnswer(st, &c, err)
	if m == modePanicAfter {
		panic("injected after " + c.op.String())
	}
	if m.loses() {
		st.node.broken = st.node.broken || m == modeClosesDone
		return none, fmt.Errorf("%w: injected, done", messages.ErrOutcomeUnknown)
	}
	if answerErr := st.answer(ctx, &c, m, late); answerErr != nil {
		return none, answerErr
	}
	if err != nil {
		st.s.notef("%s store: %v %s: %v", st.node.name, c.op, c.what, err)
	}
	return value, err
}

// pass waits until the scheduler lets the call be done. If it returns an error, nothing
// was done.
func (st *store) pass(ctx context.Context, c *call, late time.Duration) error {
	return st.await(ctx, &task{node: st.node, key: st.key(c), ctx: ctx, due: st.s.after(late)})
}

func (st *store) await(ctx context.Context, t *task) error {
	st.s.wait(t)
	switch {
	case st.s.isDead(st.node), st.node.broken:
		return storage.ErrClosed
	case ctx.Err() != nil:
		return context.Cause(ctx)
	}
	return nil
}

// answer waits until the scheduler lets the call be answered: a crash may come before.
func (st *store) answer(ctx context.Context, c *call, m mode, late time.Duration) error {
	if m == modeLateAnswer {
		st.s.wait(&task{node: st.node, key: st.key(c), ctx: ctx, due: st.s.after(late)})
	} else if st.s.random.IntN(2) == 0 {
		st.s.gate(st.node, st.key(c))
	}
	gone := st.s.isDead(st.node) || (m == modeLateAnswer && ctx.Err() != nil)
	switch {
	case !gone:
		return nil
	case c.op.writes():
		return fmt.Errorf("%w: %w", messages.ErrOutcomeUnknown, context.Canceled)
	}
	return context.Canceled
}

func (st *store) key(c *call) string {
	if c.who != "" {
		return fmt.Sprintf("%s store %v %s", st.node.name, c.op, c.who)
	}
	return fmt.Sprintf("%s store %v/%d", st.node.name, c.op, c.partition)
}
