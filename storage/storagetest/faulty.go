package storagetest

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage"
)

// Faulty is a store that does what the inner one does, except where a fault is
// planted. It counts the calls of each operation. All its methods may be called
// concurrently; faults can be planted and healed while calls are under way.
//
// If several faults could strike the same call, the one planted first does; the
// others do not see that call.
type Faulty struct {
	inner storage.Store

	mu       sync.Mutex
	planted  []*Planted
	calls    [numOps]int
	injected [numOps]int
}

var _ storage.Store = (*Faulty)(nil)

// NewFaulty returns a wrapper with no faults.
func NewFaulty(inner storage.Store) *Faulty { return &Faulty{inner: inner} }

// Inner returns the store inside.
func (f *Faulty) Inner() storage.Store { return f.inner }

// Plant puts a fault in place. The returned value heals it and counts.
func (f *Faulty) Plant(fault Fault) *Planted {
	p := newPlanted(fault)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.planted = append(f.planted, p)
	return p
}

// Heal ends all faults that are planted. Calls that are held at a gate stay there.
func (f *Faulty) Heal() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, p := range f.planted {
		p.Heal()
	}
	f.planted = nil
}

// Calls returns how many calls of an operation have begun, spoilt or not. A call
// of an iterator begins with its loop.
func (f *Faulty) Calls(op Op) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.calls[op]
}

// Injected returns how many calls of an operation suffered from a fault.
func (f *Faulty) Injected(op Op) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.injected[op]
}

// begin counts a call and returns what it suffers, nil if nothing.
func (f *Faulty) begin(op Op) *Effect {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.calls[op]++
	i := slices.IndexFunc(f.planted, func(p *Planted) bool { return p.fault.Op == op && p.strikes() })
	if i < 0 {
		return nil
	}
	f.injected[op]++
	return &f.planted[i].fault.Do
}

// spoil does a call with whatever is planted for it.
func (f *Faulty) spoil(ctx context.Context, op Op, call func() error) error {
	effect := f.begin(op)
	if effect == nil {
		return call()
	}
	if effect.before != nil {
		if err := effect.before(ctx); err != nil {
			return err
		}
	}
	err := call()
	if effect.after != nil {
		return effect.after(ctx, op, err)
	}
	return err
}

// spoilValue is spoil for calls with a result, which an error takes away.
func spoilValue[T any](ctx context.Context, f *Faulty, op Op, call func() (T, error)) (T, error) {
	var value T
	err := f.spoil(ctx, op, func() (err error) {
		value, err = call()
		return err
	})
	if err != nil {
		var none T
		return none, err
	}
	return value, nil
}

// spoilSeq is spoil for iterators.
func spoilSeq[T any](ctx context.Context, f *Faulty, op Op, seq iter.Seq2[T, error]) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		effect := f.begin(op)
		if effect == nil {
			seq(yield)
			return
		}
		var none T
		if effect.before != nil {
			if err := effect.before(ctx); err != nil {
				yield(none, err)
				return
			}
		}
		if effect.breaking != nil {
			breakOff(seq, effect, yield)
			return
		}
		if effect.after != nil {
			// The answer of an iterator is kept before its first element.
			if err := effect.after(ctx, op, nil); err != nil {
				yield(none, err)
				return
			}
		}
		seq(yield)
	}
}

// breakOff yields as many elements as the effect says and then its error.
func breakOff[T any](seq iter.Seq2[T, error], effect *Effect, yield func(T, error) bool) {
	var none T
	left := effect.elements
	if left > 0 {
		for v, err := range seq {
			if !yield(v, err) || err != nil {
				return
			}
			if left--; left == 0 {
				break
			}
		}
	}
	yield(none, effect.breaking)
}

// Descriptor is the inner store's.
func (f *Faulty) Descriptor() messages.Descriptor { return f.inner.Descriptor() }

// Claim takes the inner store.
func (f *Faulty) Claim(application string) (func(), error) { return f.inner.Claim(application) }

// Close closes the inner store.
func (f *Faulty) Close(ctx context.Context) error {
	return f.spoil(ctx, OpClose, func() error { return f.inner.Close(ctx) })
}

// TakeEpoch takes an epoch in the inner store.
func (f *Faulty) TakeEpoch(ctx context.Context, p messages.PartitionID) (storage.Register, error) {
	return spoilValue(ctx, f, OpTakeEpoch, func() (storage.Register, error) { return f.inner.TakeEpoch(ctx, p) })
}

// Append appends to the inner store.
func (f *Faulty) Append(ctx context.Context, b storage.Batch) error {
	return f.spoil(ctx, OpAppend, func() error { return f.inner.Append(ctx, b) })
}

// Flush flushes the inner store.
func (f *Faulty) Flush(ctx context.Context, fl storage.Flush) error {
	return f.spoil(ctx, OpFlush, func() error { return f.inner.Flush(ctx, fl) })
}

// Numbers reads the inner store's numbers.
func (f *Faulty) Numbers(ctx context.Context, ws messages.WSID, periods ...messages.SequencePeriod) (storage.WorkspaceNumbers, error) {
	return spoilValue(ctx, f, OpNumbers, func() (storage.WorkspaceNumbers, error) { return f.inner.Numbers(ctx, ws, periods...) })
}

// Register reads the inner store's register.
func (f *Faulty) Register(ctx context.Context, p messages.PartitionID) (storage.Register, error) {
	return spoilValue(ctx, f, OpRegister, func() (storage.Register, error) { return f.inner.Register(ctx, p) })
}

// Tail reads the inner store's tail.
func (f *Faulty) Tail(ctx context.Context, p messages.PartitionID, from messages.PLogOffset, limit int) ([]messages.Numbering, error) {
	return spoilValue(ctx, f, OpTail, func() ([]messages.Numbering, error) { return f.inner.Tail(ctx, p, from, limit) })
}

// PLog reads the inner store's log.
func (f *Faulty) PLog(ctx context.Context, p messages.PartitionID, from messages.PLogOffset) iter.Seq2[messages.Event, error] {
	return spoilSeq(ctx, f, OpPLog, f.inner.PLog(ctx, p, from))
}

// WLog reads the inner store's log.
func (f *Faulty) WLog(ctx context.Context, ws messages.WSID, from messages.WLogOffset) iter.Seq2[messages.Event, error] {
	return spoilSeq(ctx, f, OpWLog, f.inner.WLog(ctx, ws, from))
}

// Records reads the inner store's records.
func (f *Faulty) Records(ctx context.Context, ws messages.WSID, r storage.RecordRange) iter.Seq2[storage.Row, error] {
	return spoilSeq(ctx, f, OpRecords, f.inner.Records(ctx, ws, r))
}

// Find asks the inner store for an event.
func (f *Faulty) Find(ctx context.Context, ws messages.WSID, id messages.DedupID) (messages.WLogOffset, error) {
	return spoilValue(ctx, f, OpFind, func() (messages.WLogOffset, error) { return f.inner.Find(ctx, ws, id) })
}

// AwaitPLog waits in the inner store.
func (f *Faulty) AwaitPLog(ctx context.Context, p messages.PartitionID, offset messages.PLogOffset) error {
	return f.spoil(ctx, OpAwaitPLog, func() error { return f.inner.AwaitPLog(ctx, p, offset) })
}

// AwaitWLog waits in the inner store.
func (f *Faulty) AwaitWLog(ctx context.Context, ws messages.WSID, offset messages.WLogOffset) error {
	return f.spoil(ctx, OpAwaitWLog, func() error { return f.inner.AwaitWLog(ctx, ws, offset) })
}

// AwaitAny waits in the inner store.
func (f *Faulty) AwaitAny(ctx context.Context, seen uint64) (uint64, error) {
	return spoilValue(ctx, f, OpAwaitAny, func() (uint64, error) { return f.inner.AwaitAny(ctx, seen) })
}

// Submitting is a Faulty that takes batches without making their sender wait: every
// other one, so that both ways are gone, and none with deduplication ids.
type Submitting struct {
	*Faulty
	batches, rests *atomic.Int64
}

// NewSubmitting returns a Submitting that takes the first batch.
func NewSubmitting(f *Faulty) Submitting { return Submitting{f, new(atomic.Int64), new(atomic.Int64)} }

var _ storage.Submitter = Submitting{}

// Rests returns how often the rest of what Submit did not take was called.
func (f Submitting) Rests() int { return int(f.rests.Load()) }

// Submit appends on another goroutine. What panics there has an unknown outcome. The rest answers before it returns.
func (f Submitting) Submit(b storage.Batch, done func(error)) (rest func(context.Context) error) {
	hasID := func(e messages.Event) bool { return !e.DedupID.IsZero() }
	if slices.ContainsFunc(b.Events, hasID) || f.batches.Add(1)%2 == 0 {
		return func(ctx context.Context) error {
			f.rests.Add(1)
			done(f.Append(ctx, b))
			return nil
		}
	}
	go func() {
		err := messages.ErrOutcomeUnknown
		defer func() {
			_ = recover()
			done(err)
		}()
		err = f.Append(context.Background(), b)
	}()
	return nil
}

// Subscribing is a Faulty around a store that keeps subscriptions.
type Subscribing struct {
	*Faulty
	inner storage.Subscriptions
}

var (
	_ storage.Store         = Subscribing{}
	_ storage.Subscriptions = Subscribing{}
)

// NewSubscribing returns a Subscribing, or an error if the inner store keeps no
// subscriptions.
func NewSubscribing(f *Faulty) (Subscribing, error) {
	inner, ok := f.Inner().(storage.Subscriptions)
	if !ok {
		return Subscribing{}, fmt.Errorf("%T keeps no subscriptions", f.Inner())
	}
	return Subscribing{Faulty: f, inner: inner}, nil
}

// SubscriptionNames reads the inner store's.
func (f Subscribing) SubscriptionNames(ctx context.Context) ([]string, error) {
	return spoilValue(ctx, f.Faulty, OpSubscriptionNames, func() ([]string, error) { return f.inner.SubscriptionNames(ctx) })
}

// Subscription reads the inner store's.
func (f Subscribing) Subscription(ctx context.Context, name string) (storage.Subscription, error) {
	return spoilValue(ctx, f.Faulty, OpSubscription, func() (storage.Subscription, error) { return f.inner.Subscription(ctx, name) })
}

// ParkedEvents reads the inner store's.
func (f Subscribing) ParkedEvents(ctx context.Context, name string, after storage.ParkedEvent, limit int) ([]storage.ParkedEvent, error) {
	return spoilValue(ctx, f.Faulty, OpParkedEvents, func() ([]storage.ParkedEvent, error) { return f.inner.ParkedEvents(ctx, name, after, limit) })
}

// PutSubscription makes one in the inner store.
func (f Subscribing) PutSubscription(ctx context.Context, s storage.Subscription) error {
	return f.spoil(ctx, OpPutSubscription, func() error { return f.inner.PutSubscription(ctx, s) })
}

// MoveSubscription moves one in the inner store.
func (f Subscribing) MoveSubscription(ctx context.Context, m storage.SubscriptionMove) error {
	return f.spoil(ctx, OpMoveSubscription, func() error { return f.inner.MoveSubscription(ctx, m) })
}

// DeleteSubscription deletes one in the inner store.
func (f Subscribing) DeleteSubscription(ctx context.Context, name string) error {
	return f.spoil(ctx, OpDeleteSubscription, func() error { return f.inner.DeleteSubscription(ctx, name) })
}
