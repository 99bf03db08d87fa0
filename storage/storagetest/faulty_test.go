package storagetest

import (
	"context"
	"errors"
	"iter"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// faultyFactory makes Faulty stores around those of another factory.
type faultyFactory struct{ MemoryFactory }

func (f faultyFactory) Open(t testing.TB, d messages.Descriptor) storage.Store {
	return NewFaulty(f.MemoryFactory.Open(t, d))
}

func (f faultyFactory) Reopen(t testing.TB, s storage.Store) storage.Store {
	return NewFaulty(f.MemoryFactory.Reopen(t, s.(*Faulty).Inner()))
}

func (f faultyFactory) Crash(t testing.TB, s storage.Store) storage.Store { return f.Reopen(t, s) }

func (f faultyFactory) OpenLimited(t testing.TB, d messages.Descriptor, events int) storage.Store {
	return NewFaulty(f.MemoryFactory.OpenLimited(t, d, events))
}

func TestFaultyWithoutFaultsConforms(t *testing.T) { Run(t, faultyFactory{}) }

var errInjected = errors.New("injected")

// newFaulty returns a store without faults and the driver of its partition 0,
// which has one event of workspace 3. The test ends with the invariants.
func newFaulty(t *testing.T) (*Faulty, *Partition) {
	f := NewFaulty(MemoryFactory{}.Open(t, Descriptor(messages.TrustNone)))
	t.Cleanup(func() { Verify(t, f.Inner()) })
	p := Take(t, f, 0)
	p.Append(t, Spec{Workspace: 3, Create: []messages.SeqID{SeqOrder}})
	return f, p
}

// calls does one call of each operation but Close.
func calls(ctx context.Context, s storage.Store, p *Partition) map[Op]func() error {
	return map[Op]func() error{
		OpTakeEpoch: func() error { _, err := s.TakeEpoch(ctx, 1); return err },
		OpAppend:    func() error { return s.Append(ctx, p.Build(Spec{Workspace: 3})) },
		OpFlush:     func() error { return s.Flush(ctx, p.BuildFlush(p.Last()+1)) },
		OpNumbers:   func() error { _, err := s.Numbers(ctx, 3); return err },
		OpRegister:  func() error { _, err := s.Register(ctx, 0); return err },
		OpTail:      func() error { _, err := s.Tail(ctx, 0, p.Last(), 9); return err },
		OpPLog:      func() error { return lastError(s.PLog(ctx, 0, 1)) },
		OpWLog:      func() error { return lastError(s.WLog(ctx, 3, 1)) },
		OpFind:      func() error { _, err := s.Find(ctx, 3, messages.DedupID{1}); return err },
		OpRecords:   func() error { return lastError(s.Records(ctx, 3, storage.RecordRange{Seq: SeqOrder})) },
		OpAwaitPLog: func() error { return s.AwaitPLog(ctx, 0, 1) },
		OpAwaitWLog: func() error { return s.AwaitWLog(ctx, 3, 1) },
		OpAwaitAny:  func() error { _, err := s.AwaitAny(ctx, 0); return err },
	}
}

func lastError[T any](seq iter.Seq2[T, error]) error {
	_, err := collect(seq)
	return err
}

func TestFaultyFailsEachOperation(t *testing.T) {
	for op := range OpClose {
		t.Run(op.String(), func(t *testing.T) {
			f, p := newFaulty(t)
			before, err := f.Inner().Register(t.Context(), 0)
			if err != nil {
				t.Fatal(err)
			}
			counted := f.Calls(op)
			f.Plant(Fault{Op: op, Do: Fail(errInjected)})
			for other, call := range calls(t.Context(), f, p) {
				if err := call(); other == op && !errors.Is(err, errInjected) {
					t.Errorf("got error %v, want the injected one", err)
				}
				if f.Injected(other) != 0 && other != op {
					t.Errorf("%v suffered from a fault of %v", other, op)
				}
			}
			if f.Injected(op) != 1 || f.Calls(op) != counted+1 {
				t.Errorf("got %d injected and %d calls, want 1 and %d", f.Injected(op), f.Calls(op), counted+1)
			}
			f.Heal()
			if op != OpAppend && op != OpFlush {
				// They were done by the loop above.
				if err := calls(t.Context(), f, p)[op](); err != nil && !errors.Is(err, storage.ErrCheckpoint) {
					t.Errorf("healed: got error %v", err)
				}
			}
			after, err := f.Inner().Register(t.Context(), 0)
			if err != nil || op == OpAppend && after.Last != before.Last || op == OpFlush && after.Checkpoint != before.Checkpoint {
				t.Errorf("a failed %v was done: before %+v, after %+v, error %v", op, before, after, err)
			}
		})
	}
}

func TestFaultyClose(t *testing.T) {
	f, p := newFaulty(t)
	f.Plant(Fault{Op: OpClose, Do: Fail(errInjected)})
	if err := f.Close(t.Context()); !errors.Is(err, errInjected) {
		t.Errorf("got error %v, want the injected one", err)
	}
	p.Append(t, Spec{Workspace: 3})
}

func TestFaultyDiskFull(t *testing.T) {
	f, p := newFaulty(t)
	f.Plant(Fault{Op: OpAppend, Do: Full()})
	if err := f.Append(t.Context(), p.Build(Spec{Workspace: 3})); !errors.Is(err, storage.ErrFull) {
		t.Errorf("got error %v, want %v", err, storage.ErrFull)
	}
	f.Heal()
	p.Append(t, Spec{Workspace: 3})
}

func TestFaultyOutcomeUnknown(t *testing.T) {
	for name, c := range map[string]struct {
		do   Effect
		done bool
	}{"done": {UnknownDone(), true}, "not done": {UnknownNotDone(), false}} {
		t.Run(name, func(t *testing.T) {
			f, p := newFaulty(t)
			f.Plant(Fault{Op: OpAppend, Do: c.do, Times: 1})
			f.Plant(Fault{Op: OpFlush, Do: c.do, Times: 1})
			f.Plant(Fault{Op: OpTakeEpoch, Do: c.do, Times: 1})
			flush := p.BuildFlush(2)
			if err := f.Append(t.Context(), p.Build(Spec{Workspace: 3})); !errors.Is(err, messages.ErrOutcomeUnknown) {
				t.Errorf("append: got error %v", err)
			}
			if err := f.Flush(t.Context(), flush); !errors.Is(err, messages.ErrOutcomeUnknown) {
				t.Errorf("flush: got error %v", err)
			}
			if r, err := f.TakeEpoch(t.Context(), 0); !errors.Is(err, messages.ErrOutcomeUnknown) || r != (storage.Register{}) {
				t.Errorf("take epoch: got %+v and error %v", r, err)
			}
			got, err := f.Register(t.Context(), 0)
			want := storage.Register{Epoch: 1, Last: 1, LastRegisteredAt: 1, Checkpoint: 1}
			if c.done {
				want = storage.Register{Epoch: 2, Last: 2, LastRegisteredAt: 2, Checkpoint: 2}
			}
			if err != nil || got != want {
				t.Errorf("got %+v and error %v, want %+v", got, err, want)
			}
		})
	}
}

// TestFaultyHold: the call does nothing before it is released, and answers after.
func TestFaultyHold(t *testing.T) {
	for name, c := range map[string]struct {
		effect func(*Gate) Effect
		// last is where the log ends while the call is held.
		last messages.PLogOffset
	}{"before": {Hold, 1}, "answer": {HoldAnswer, 2}} {
		t.Run(name, func(t *testing.T) {
			f, p := newFaulty(t)
			g := NewGate()
			f.Plant(Fault{Op: OpAppend, Do: c.effect(g)})
			b := p.Build(Spec{Workspace: 3})
			result := make(chan error)
			go func() { result <- f.Append(t.Context(), b) }()
			if err := g.Await(t.Context()); err != nil {
				t.Fatal(err)
			}
			if r, err := f.Register(t.Context(), 0); err != nil || r.Last != c.last {
				t.Errorf("while held: got register %+v and error %v, want last %d", r, err, c.last)
			}
			g.Release()
			g.Release()
			if err := <-result; err != nil {
				t.Errorf("released: got error %v", err)
			}
			if r, err := f.Register(t.Context(), 0); err != nil || r.Last != 2 {
				t.Errorf("got register %+v and error %v, want last 2", r, err)
			}
		})
	}
}

// TestFaultyHoldContext: a held call obeys its context.
func TestFaultyHoldContext(t *testing.T) {
	for name, c := range map[string]struct {
		effect func(*Gate) Effect
		op     Op
		want   error
		absent error
	}{
		"before a write":   {Hold, OpAppend, context.Canceled, messages.ErrOutcomeUnknown},
		"a write's answer": {HoldAnswer, OpAppend, messages.ErrOutcomeUnknown, storage.ErrClosed},
		"a read's answer":  {HoldAnswer, OpNumbers, context.Canceled, messages.ErrOutcomeUnknown},
		"a loop":           {Hold, OpPLog, context.Canceled, messages.ErrOutcomeUnknown},
	} {
		t.Run(name, func(t *testing.T) {
			f, p := newFaulty(t)
			g := NewGate()
			f.Plant(Fault{Op: c.op, Do: c.effect(g)})
			ctx, cancel := context.WithCancel(t.Context())
			result := make(chan error)
			go func() { result <- calls(ctx, f, p)[c.op]() }()
			<-g.Arrived()
			cancel()
			if err := <-result; !errors.Is(err, c.want) || errors.Is(err, c.absent) {
				t.Errorf("got error %v, want %v and not %v", err, c.want, c.absent)
			}
		})
	}
}

func TestFaultyPanics(t *testing.T) {
	f, p := newFaulty(t)
	f.Plant(Fault{Op: OpAppend, Do: Panic("the leaf"), Times: 1})
	func() {
		defer func() {
			if v := recover(); v != "the leaf" {
				t.Errorf("got panic %v", v)
			}
		}()
		_ = f.Append(t.Context(), p.Build(Spec{Workspace: 3}))
		t.Error("got no panic")
	}()
	p.Append(t, Spec{Workspace: 3})
}

func TestFaultyBreaksIterators(t *testing.T) {
	f, p := newFaulty(t)
	p.Append(t, Spec{Workspace: 3}, Spec{Workspace: 3})
	for elements, want := range map[int]int{0: 0, 2: 2, 99: 3} {
		planted := f.Plant(Fault{Op: OpPLog, Do: Break(elements, errInjected)})
		events, err := collectEvents(f.PLog(t.Context(), 0, 1))
		if len(events) != want || !errors.Is(err, errInjected) {
			t.Errorf("break after %d: got %d events and error %v, want %d and the injected one", elements, len(events), err, want)
		}
		planted.Heal()
	}
}

// TestFaultySelectsCalls: by number, by chance, until healed.
func TestFaultySelectsCalls(t *testing.T) {
	strikes := func(f *Faulty, calls int) (struck []int) {
		for i := range calls {
			if _, err := f.Numbers(t.Context(), 3); err != nil {
				struck = append(struck, i)
			}
		}
		return struck
	}
	f, _ := newFaulty(t)
	planted := f.Plant(Fault{Op: OpNumbers, Do: Fail(errInjected), Skip: 2, Times: 3})
	if got := strikes(f, 9); len(got) != 3 || got[0] != 2 || got[2] != 4 || planted.Injected() != 3 {
		t.Errorf("skip 2, times 3: struck %v", got)
	}
	every := f.Plant(Fault{Op: OpNumbers, Do: Fail(errInjected)})
	if got := strikes(f, 5); len(got) != 5 {
		t.Errorf("every call: struck %v", got)
	}
	every.Heal()
	if got := strikes(f, 5); len(got) != 0 {
		t.Errorf("healed: struck %v", got)
	}
	var runs [2][]int
	for i := range runs {
		g, _ := newFaulty(t)
		g.Plant(Fault{Op: OpNumbers, Do: Fail(errInjected), Chance: 0.3, Seed: 7})
		runs[i] = strikes(g, 1000)
	}
	if n := len(runs[0]); n < 200 || n > 400 || n != len(runs[1]) || runs[0][n-1] != runs[1][n-1] {
		t.Errorf("chance 0.3: struck %d and %d of 1000, want about 300 and the same", len(runs[0]), len(runs[1]))
	}
}

// TestFaultyConcurrently plants, heals and calls at the same time, for the race
// detector.
func TestFaultyConcurrently(t *testing.T) {
	f, p := newFaulty(t)
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 100 {
				f.Plant(Fault{Op: OpNumbers, Do: Fail(errInjected), Chance: 0.5})
				_, _ = f.Numbers(t.Context(), 3)
				_ = calls(t.Context(), f, p)[OpPLog]()
				f.Heal()
			}
		})
	}
	wg.Wait()
	if f.Calls(OpNumbers) != 400 {
		t.Errorf("got %d calls, want 400", f.Calls(OpNumbers))
	}
}
