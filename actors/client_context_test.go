package actors_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/partita-go/partita/actors"
	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage/storagetest"
)

// In these tests the clock stands still: the transaction limit helps nobody.

var errGone = errors.New("the client is gone")

// client is a context that a test ends.
func (r *rig) client() (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(r.ctx)
	return ctx, func() { cancel(errGone) }
}

func TestClientContextEndedBeforeStart(t *testing.T) {
	r := readyRig(t, setup{})
	ctx, leave := r.client()
	leave()
	for name, start := range r.starts() {
		_, err := start(ctx, shop, 7)
		wants(t, name, err, errGone)
	}
	if n := r.spy.count("posted", "partition", &messages.Start{}); n != 0 {
		t.Errorf("%d Starts were sent", n)
	}
	r.getsThrough(7)
}

// starts are the two ways to begin.
func (r *rig) starts() map[string]func(context.Context, messages.WSKind, messages.WSID, ...actors.StartOption) (*actors.Transaction, error) {
	return map[string]func(context.Context, messages.WSKind, messages.WSID, ...actors.StartOption) (*actors.Transaction, error){
		"Start": r.sequencers[0].Start, "StartWaiting": r.sequencers[0].StartWaiting,
	}
}

// A client that gave up while it waited for its turn is granted a transaction
// all the same, which is given back.
func TestClientContextEndedWhileWaitingForATurn(t *testing.T) {
	for _, name := range []string{"Start", "StartWaiting"} {
		t.Run(name, func(t *testing.T) {
			r := readyRig(t, setup{})
			open := r.start(7)
			ctx, leave := r.client()
			result := make(chan error, 1)
			go func() {
				_, err := r.starts()[name](ctx, shop, 7)
				result <- err
			}()
			r.queued(1)
			leave()
			wants(t, name, next(t, result), errGone)
			r.check(open.Commit(r.ctx, nil))
			r.getsThrough(7)
			if n := r.commit(7); n != 1 {
				t.Errorf("got number %d, want 1", n)
			}
		})
	}
}

func TestClientContextEndedAfterTheGrant(t *testing.T) {
	r := readyRig(t, setup{})
	for range 20 {
		ctx, leave := r.client()
		tx, err := r.sequencers[0].Start(ctx, shop, 7)
		r.check(err)
		_, err = tx.Next(r.ctx, invoices)
		r.check(err)
		leave()
		r.getsThrough(7)
		if _, err = tx.Next(r.ctx, invoices); !errors.Is(err, messages.ErrNoTransaction) {
			t.Fatalf("got error %v, want %v", err, messages.ErrNoTransaction)
		}
		wants(t, "commit", tx.Commit(r.ctx, nil), messages.ErrNoTransaction)
		wants(t, "cancel", tx.Cancel(r.ctx), nil)
	}
	if n := r.commit(7); n != 1 {
		t.Errorf("got number %d, want 1", n)
	}
}

// The context that Start was given belongs to the transaction: once it has ended, no call
// with another one goes on, not even when it comes before the goroutine that watches.
func TestTransactionEndsWithItsContext(t *testing.T) {
	for name, do := range map[string]func(context.Context, *actors.Transaction) error{
		"Next":   doNext,
		"Raise":  doRaise,
		"Write":  func(ctx context.Context, tx *actors.Transaction) error { return tx.Write(ctx, nil) },
		"Commit": func(ctx context.Context, tx *actors.Transaction) error { return tx.Commit(ctx, nil) },
		"Flush":  func(ctx context.Context, tx *actors.Transaction) error { return tx.Flush(ctx) },
		"Event": func(_ context.Context, tx *actors.Transaction) error {
			_, err := tx.Event(nil)
			return err
		},
		"Write with explicit id": func(ctx context.Context, tx *actors.Transaction) error {
			return tx.Write(ctx, nil, messages.Record{ID: messages.RecordID{Seq: invoices, Number: 9}, New: true})
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := readyRig(t, setup{})
			for range 500 {
				ctx, leave := r.client()
				tx, err := r.sequencers[0].Start(ctx, shop, 7)
				r.check(err)
				r.check(doNext(r.ctx, tx))
				leave()
				err = do(r.ctx, tx)
				wants(t, name, err, messages.ErrNoTransaction)
				wants(t, name, err, errGone)
				wants(t, "cancel", tx.Cancel(r.ctx), nil)
			}
			if n := r.commit(7); n != 1 || len(r.log(0)) != 1 {
				t.Errorf("got number %d and %d events, want 1 and 1", n, len(r.log(0)))
			}
			if s := r.partitions[0].Status(); s.Actualizations != 1 {
				t.Errorf("got %d actualizations, want 1", s.Actualizations)
			}
		})
	}
}

// The context of Next, which is not that of Start, has ended: the transaction is
// cancelled.
func TestClientContextEndedInNext(t *testing.T) {
	for name, do := range map[string]func(context.Context, *actors.Transaction) error{"Next": doNext, "Raise": doRaise} {
		t.Run(name, func(t *testing.T) {
			r := readyRig(t, setup{})
			tx := r.start(7)
			ctx, leave := r.client()
			leave()
			wants(t, name, do(ctx, tx), errGone)
			r.getsThrough(7)
			wants(t, "next", doNext(r.ctx, tx), messages.ErrNoTransaction)
		})
	}
}

// After a write has begun the end of the context is not the end of the
// transaction: Flush is.
func TestClientContextEndedAfterAWriteBegan(t *testing.T) {
	r := readyRig(t, setup{})
	ctx, leave := r.client()
	tx, err := r.sequencers[0].Start(ctx, shop, 7)
	r.check(err)
	r.check(tx.Write(ctx, nil))
	leave()
	wants(t, "flush", tx.Flush(ctx), errGone) // asked for all the same
	r.getsThrough(7)
	if s := r.partitions[0].Status(); s.Actualizations != 1 {
		t.Errorf("got %d actualizations, want 1", s.Actualizations)
	}
	if n := r.commit(7); n != 1 || len(r.log(0)) != 2 {
		t.Errorf("got number %d and %d events", n, len(r.log(0)))
	}
}

// A context that ends while the append is under way: the answer is true.
func TestClientContextEndedInMidAppend(t *testing.T) {
	for name, c := range map[string]struct {
		hold   func(*storagetest.Gate) storagetest.Effect
		want   error
		landed int
		// actualizations: one at the start. What has surely left nothing costs none.
		actualizations uint64
	}{
		"before the hand-over": {storagetest.Hold, context.Canceled, 0, 1},
		"after the hand-over":  {storagetest.HoldAnswer, messages.ErrOutcomeUnknown, 1, 2},
	} {
		t.Run(name, func(t *testing.T) {
			r := readyRig(t, setup{})
			gate := r.newGate()
			r.store.Plant(storagetest.Fault{Op: storagetest.OpAppend, Do: c.hold(gate), Times: 1})
			ctx, leave := r.client()
			tx, err := r.sequencers[0].Start(ctx, shop, 7)
			r.check(err)
			_, err = tx.Next(ctx, invoices)
			r.check(err)
			result := make(chan error, 1)
			go func() { result <- tx.Commit(ctx, nil) }()
			r.arrives(gate)
			leave()
			wants(t, "commit", next(t, result), c.want)
			if c.actualizations > 1 {
				r.await(0, messages.StateInitializing)
				r.await(0, messages.StateNormal)
			}
			if got := len(r.log(0)); got != c.landed {
				t.Fatalf("got %d events, want %d", got, c.landed)
			}
			if n := r.commit(7); n != messages.Number(c.landed+1) {
				t.Errorf("got number %d, want %d", n, c.landed+1)
			}
			if got := r.partitions[0].Status().Actualizations; got != c.actualizations {
				t.Errorf("got %d actualizations, want %d", got, c.actualizations)
			}
		})
	}
}

// A context that ends during a write which then leaves nothing ends the
// transaction after all, also if its owner just walks away.
func TestClientContextEndedDuringARefusedWrite(t *testing.T) {
	for name, refused := range map[string]bool{"before the hand-over": false, "refused": true} {
		t.Run(name, func(t *testing.T) {
			r := readyRig(t, setup{})
			gate := r.newGate()
			ctx, leave := r.client()
			appending := ctx
			if refused {
				r.memory.LimitTail(1)
				r.commit(7)
				appending = r.ctx
			}
			r.store.Plant(storagetest.Fault{Op: storagetest.OpAppend, Do: storagetest.Hold(gate), Times: 1})
			tx, err := r.sequencers[0].Start(ctx, shop, 7)
			r.check(err)
			result := make(chan error, 1)
			go func() { result <- tx.Write(appending, nil) }()
			r.arrives(gate)
			leave()
			// The end of the context is seen, in vain, before the write ends.
			r.eventually("the end of the context", func() bool { return tx.Lapsed() })
			gate.Release()
			if next(t, result) == nil {
				t.Fatal("written")
			}
			r.getsThrough(7)
			wants(t, "next", doNext(r.ctx, tx), messages.ErrNoTransaction)
		})
	}
}

// The deadline of the context travels with the Start, by the clock of the partition.
func TestClientDeadlineTravels(t *testing.T) {
	r := readyRig(t, setup{})
	ctx, cancel := context.WithTimeout(context.Background(), time.Hour)
	defer cancel()
	got := make(chan messages.Timestamp, 2)
	r.spy.do(func(_ actors.Key, m any) {
		if start, ok := m.(*messages.Start); ok {
			got <- start.Deadline
		}
	})
	for name, start := range r.starts() {
		tx, err := start(ctx, shop, 7)
		r.check(err)
		now := r.clock.Now()
		if d := next(t, got).Time(); d.After(now.Add(time.Hour)) || d.Before(now.Add(time.Minute)) {
			t.Errorf("%s: got deadline %v, want an hour after %v", name, d, now)
		}
		r.check(tx.Cancel(r.ctx))
	}
}

// A Start whose deadline has passed is dropped with an answer, never granted.
func TestClientDeadlinePassedInTheLane(t *testing.T) {
	r := readyRig(t, setup{})
	open := r.start(7)
	answers := make(chan any, 2)
	for _, left := range []time.Duration{time.Second, time.Hour} {
		deadline := messages.TimestampOf(r.clock.Now().Add(left))
		go func() {
			reply, _ := r.ports.Ask(r.ctx, r.partitions[0].PID(), &messages.Start{Workspace: 7, Kind: shop, Deadline: deadline}, nil)
			answers <- reply
		}()
	}
	r.queued(2)
	r.fake.Advance(2 * time.Second)
	r.check(open.Commit(r.ctx, nil))
	var granted, dropped int
	for range 2 {
		switch m := next(t, answers).(type) {
		case *messages.Started:
			granted++
			r.ask(0, &messages.Cancel{Token: m.Token})
		case *messages.Refused:
			wants(t, "late start", m.Err, messages.ErrDeadlineExceeded)
			dropped++
		}
	}
	if granted != 1 || dropped != 1 {
		t.Errorf("got %d granted and %d dropped, want 1 and 1", granted, dropped)
	}
}

// The same for one that had been taken already, and waits for the end of another
// transaction.
func TestClientDeadlinePassedBehindALoad(t *testing.T) {
	r := readyRig(t, setup{})
	first, second := r.twoReady(time.Second)
	r.fake.Advance(2 * time.Second)
	r.check(first.Commit(r.ctx, nil))
	refused, ok := next(t, second).(*messages.Refused)
	if !ok {
		t.Fatal("a Start was granted after its deadline")
	}
	wants(t, "late start", refused.Err, messages.ErrDeadlineExceeded)
	r.getsThrough(7)
}

// The limit of a transaction begins with its grant, not with that of the one
// before.
func TestClientLimitBeginsWithTheGrant(t *testing.T) {
	r := readyRig(t, setup{})
	first, second := r.twoReady(time.Hour)
	r.fake.Advance(4900 * time.Millisecond)
	r.check(first.Commit(r.ctx, nil))
	started, ok := next(t, second).(*messages.Started)
	if !ok {
		t.Fatal("not granted")
	}
	if now := messages.TimestampOf(r.clock.Now()); started.RegisteredAt != now {
		t.Errorf("got time %v, want %v", started.RegisteredAt, now)
	}
	r.fake.Advance(200 * time.Millisecond)
	if _, ok := r.ask(0, &messages.Cancel{Token: started.Token}).(*messages.Cancelled); !ok {
		t.Error("the transaction was given up after a fraction of its limit")
	}
}

// twoReady makes two Starts wait for loads, so that the second is granted at the
// moment when the first transaction, which is returned, ends.
func (r *rig) twoReady(left time.Duration) (*actors.Transaction, <-chan any) {
	r.t.Helper()
	gate := r.newGate()
	r.store.Plant(storagetest.Fault{Op: storagetest.OpNumbers, Do: storagetest.Hold(gate), Times: 2})
	first, second := make(chan *actors.Transaction, 1), make(chan any, 1)
	go func() {
		tx, err := r.sequencers[0].Start(r.ctx, shop, 7)
		if err != nil {
			r.t.Error(err)
		}
		first <- tx
	}()
	r.arrives(gate)
	deadline := messages.TimestampOf(r.clock.Now().Add(left))
	go func() {
		reply, _ := r.ports.Ask(r.ctx, r.partitions[0].PID(), &messages.Start{Workspace: 8, Kind: shop, Deadline: deadline}, nil)
		second <- reply
	}()
	r.handled(2, &messages.Start{})
	gate.Release()
	tx := next(r.t, first)
	r.handled(2, &messages.Loaded{})
	return tx, second
}
