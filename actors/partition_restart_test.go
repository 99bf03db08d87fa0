package actors_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/partita-go/partita/actors"
	"github.com/partita-go/partita/actors/actorstest"
	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage"
	"github.com/partita-go/partita/storage/storagetest"
)

// Whatever a leaf panics in, its partition comes back under a new epoch, and
// nothing is lost.
func TestPartitionRestartsWhenALeafPanics(t *testing.T) {
	for name, c := range map[string]struct {
		op      storagetest.Op
		provoke func(*rig)
	}{
		"Flush": {storagetest.OpFlush, func(r *rig) {
			r.fake.Advance(messages.Settings{}.WithDefaults().FlushInterval)
		}},
		"Numbers": {storagetest.OpNumbers, func(r *rig) {
			_, err := r.sequencers[0].Start(r.ctx, shop, 8)
			wants(r.t, "start", err, messages.ErrInterrupted)
		}},
		"TakeEpoch": {storagetest.OpTakeEpoch, func(r *rig) {
			r.check(r.start(7).Actualize(r.ctx))
		}},
		"Tail": {storagetest.OpTail, func(r *rig) {
			r.check(r.start(7).Actualize(r.ctx))
		}},
	} {
		t.Run(name, func(t *testing.T) {
			r := readyRig(t, setup{})
			for want := messages.Number(1); want <= 3; want++ {
				if n := r.commit(7); n != want {
					t.Fatalf("got number %d, want %d", n, want)
				}
			}
			r.store.Plant(storagetest.Fault{Op: c.op, Do: storagetest.Panic("injected"), Times: 1})
			back := make(chan struct{}, 1)
			go func() {
				r.restart()
				back <- struct{}{}
			}()
			c.provoke(r)
			next(t, back)
			r.await(0, messages.StateInitializing)
			s := r.awaitThat(0, "restarted", func(s messages.PartitionStatus) bool {
				return s.State == messages.StateNormal && s.Restarts == 1
			})
			if s.Epoch < 2 || s.Epoch != r.register(0).Epoch {
				t.Errorf("got epoch %d, the store has %d", s.Epoch, r.register(0).Epoch)
			}
			if n := r.commit(7); n != 4 {
				t.Errorf("got number %d, want 4", n)
			}
		})
	}
}

// A late Flush that waits for the reader when that panics is told so.
func TestPartitionRestartAnswersLateFlushes(t *testing.T) {
	r := readyRig(t, setup{})
	tx := r.start(7)
	r.check(tx.Write(r.ctx, nil))
	r.store.Plant(storagetest.Fault{Op: storagetest.OpPLog, Do: storagetest.Panic("injected"), Times: 1})
	r.check(tx.Actualize(r.ctx))
	late := make(chan error, 1)
	go func() { late <- tx.Flush(r.ctx) }()
	r.restart()
	err := next(t, late)
	wants(t, "late flush", err, messages.ErrOutcomeUnknown)
	wants(t, "late flush", err, messages.ErrInterrupted)
	r.awaitThat(0, "restarted", func(s messages.PartitionStatus) bool { return s.State == messages.StateNormal && s.Restarts == 1 })
	wants(t, "later flush", tx.Flush(r.ctx), nil)
}

// The transaction that is open when its partition fails is fenced; whoever waits
// for a turn has it later.
func TestPartitionRestartFencesTheOpenTransaction(t *testing.T) {
	r := readyRig(t, setup{})
	r.commit(7)
	tx := r.start(7)
	_, err := tx.Next(r.ctx, invoices)
	r.check(err)
	waiting := make(chan error, 2)
	for i := range cap(waiting) {
		go func() {
			next, err := r.sequencers[0].Start(r.ctx, shop, 7)
			if err == nil {
				err = next.Cancel(r.ctx)
			}
			waiting <- err
		}()
		r.queued(i + 1)
	}
	r.store.Plant(storagetest.Fault{Op: storagetest.OpFlush, Do: storagetest.Panic("injected"), Times: 1})
	r.fake.Advance(time.Second)
	delay := r.failed()
	late := make(chan error, 1)
	go func() { late <- r.askNext(tx) }()
	r.fake.Advance(delay)
	wants(t, "next", next(t, late), messages.ErrFenced)
	for range cap(waiting) {
		if err := next(t, waiting); err != nil && !errors.Is(err, messages.ErrBusy) {
			t.Errorf("got %v, want a turn, or busy", err)
		}
	}
	// Until the new epoch is taken a write would still land, and be replayed.
	r.awaitThat(0, "restarted", func(s messages.PartitionStatus) bool { return s.State == messages.StateNormal && s.Restarts == 1 })
	wants(t, "commit", tx.Commit(r.ctx, nil), messages.ErrFenced)
	r.getsThrough(7)
	if n := r.commit(7); n != 2 {
		t.Errorf("got number %d, want 2", n)
	}
}

// leaves is how many leaves end that the partition of the test below hears of: an actualizer
// of each incarnation, and the reader of the first.
const leaves = 3

// An owner that was watched before the restart means nothing after it.
func TestPartitionRestartForgetsTheOwner(t *testing.T) {
	r := readyRig(t, setup{})
	o := r.newOwner()
	o.start(7)
	r.panicNow()
	r.await(0, messages.StateInitializing)
	r.await(0, messages.StateNormal)
	epoch := r.register(0).Epoch
	tx := r.start(7)
	o.Stop()
	r.eventually("the owner's end", func() bool { return r.spy.count("handled", "partition", &actor.Terminated{}) == leaves+1 })
	r.check(tx.Commit(r.ctx, nil))
	if got := r.register(0).Epoch; got != epoch {
		t.Errorf("got epoch %d, want %d: the death of an earlier owner ended a transaction", got, epoch)
	}
}

// panicNow makes the partition fail and come back.
func (r *rig) panicNow() {
	r.t.Helper()
	r.spy.do(func(k actors.Key, m any) {
		if _, ok := m.(*messages.Reconfigure); ok && k.Group == "partition" {
			panic("injected")
		}
	})
	failed := make(chan struct{})
	go func() { r.restart(); close(failed) }()
	err := r.partitions[0].Reconfigure(r.ctx, r.ports, messages.Settings{}.WithDefaults())
	wants(r.t, "who was in the actor's hands", err, messages.ErrInterrupted)
	next(r.t, failed)
	r.spy.do(nil)
}

// A panic in the partition itself, here of an observer that it must not have: the
// requester gets ErrInterrupted, once.
func TestPartitionPanicsItself(t *testing.T) {
	r := readyRig(t, setup{})
	r.commit(7)
	r.panicNow()
	r.await(0, messages.StateInitializing)
	if s := r.await(0, messages.StateNormal); s.Restarts != 1 || s.Replayed != 1 {
		t.Errorf("got %+v, want one restart and one event replayed", s)
	}
	if n := r.commit(7); n != 2 {
		t.Errorf("got number %d, want 2", n)
	}
}

// Failures in a row are answered with growing delays.
func TestPartitionRestartsBackOff(t *testing.T) {
	r := newRig(t, setup{})
	r.ready()
	r.store.Plant(storagetest.Fault{Op: storagetest.OpTakeEpoch, Do: storagetest.Panic("injected"), Times: 6})
	r.check(r.start(7).Actualize(r.ctx))
	var last time.Duration
	for i := range 6 {
		delay := r.failed()
		if i%2 == 1 && delay <= last {
			t.Errorf("failure %d: got a delay of %v after %v", i+1, delay, last)
		}
		if i%2 == 1 {
			last = delay
		}
		r.fake.Advance(delay)
	}
	r.awaitThat(0, "6 restarts", func(s messages.PartitionStatus) bool { return s.Restarts == 6 && s.State == messages.StateNormal })
	r.getsThrough(7)
}

// A stop during the back-off ends as soon as the partition is back.
func TestPartitionStopsDuringTheBackOff(t *testing.T) {
	r := readyRig(t, setup{})
	r.commit(7)
	r.store.Plant(storagetest.Fault{Op: storagetest.OpFlush, Do: storagetest.Panic("injected"), Times: 1})
	r.fake.Advance(time.Second)
	delay := r.failed()
	stopped := make(chan messages.Stopped, 1)
	go func() { stopped <- r.stop(0) }()
	r.eventually("the stop to be asked for", func() bool { return r.spy.count("posted", "partition", &messages.Stop{}) == 1 })
	r.fake.Advance(delay)
	s := next(t, stopped)
	if s.Abandoned != 0 {
		t.Errorf("got %+v, want nothing left behind", s)
	}
	r.cleanIfFlushed(s)
	r.again()
	r.ready()
	if n := r.commit(7); n != 2 {
		t.Errorf("got number %d, want 2", n)
	}
}

// The last flush panics: the stop goes on with the next incarnation.
func TestPartitionStopSurvivesAPanic(t *testing.T) {
	r := readyRig(t, setup{})
	r.commit(7)
	r.store.Plant(storagetest.Fault{Op: storagetest.OpFlush, Do: storagetest.Panic("injected"), Times: 1})
	stopped := make(chan messages.Stopped, 1)
	go func() { stopped <- r.stop(0) }()
	r.restart()
	r.cleanIfFlushed(next(t, stopped))
}

// cleanIfFlushed: the incarnation behind a restart stops at once, or, if it has replayed
// the tail before it is asked, with a flush.
func (r *rig) cleanIfFlushed(s messages.Stopped) {
	r.t.Helper()
	register, err := r.store.Register(r.ctx, 0)
	if flushed := register.Checkpoint > register.Last; err != nil || s.Clean && !flushed {
		r.t.Errorf("got clean %t, flushed %t, error %v", s.Clean, flushed, err)
	}
}

// A restart waits for its leaves. What they answer meanwhile was asked by the
// earlier incarnation, and means nothing to the next: here a failure that would
// have been the end of the earlier one.
func TestPartitionIgnoresAnswersToTheEarlierIncarnation(t *testing.T) {
	memory := longLog(t, tailPiece+100)
	var store *staged
	r := newRig(t, setup{
		memory: memory,
		wrap: func(f *storagetest.Faulty) actors.PartitionStore {
			store = newStaged(f)
			return store
		},
		// A checkpoint is due after the first piece, while the second is read.
		settings: messages.Settings{FlushThreshold: 1, BusyLimit: 1, BusyEvents: 1 << 20},
	})
	next(t, store.flushing)
	next(t, store.reading)
	close(store.panicNow)
	r.restart()
	close(store.breakNow)
	r.await(0, messages.StateNormal)
	if slices.Contains(r.board.history(0), messages.StateFailed) {
		t.Errorf("an answer to the earlier incarnation failed the next: %v", r.board.history(0))
	}
	r.countsItsLeaves()
}

// countsItsLeaves checks that stale answers have not upset the count of leaves
// that have work in their hands.
func (r *rig) countsItsLeaves() {
	r.t.Helper()
	gate := r.newGate()
	r.store.Plant(storagetest.Fault{Op: storagetest.OpTakeEpoch, Do: storagetest.Hold(gate), Times: 1})
	r.check(r.startSoon(0).Actualize(r.ctx))
	r.arrives(gate)
	if s := next(r.t, r.stopAtTheLimit()); s.Abandoned != 1 {
		r.t.Errorf("got %+v, want one leaf left behind", s)
	}
	gate.Release()
	next(r.t, r.partitions[0].Terminated())
}

// startSoon opens a transaction as soon as the partition is not busy.
func (r *rig) startSoon(ws messages.WSID) (tx *actors.Transaction) {
	r.t.Helper()
	r.eventually("a transaction", func() bool {
		var err error
		if tx, err = r.of(ws).Start(r.ctx, shop, ws); !errors.Is(err, messages.ErrBusy) {
			r.check(err)
		}
		return err == nil
	})
	return tx
}

// tailPiece is how many events the actualizer reads at once.
const tailPiece = 4096

// longLog returns a store whose one partition has so many events that are not in
// the projections.
func longLog(t *testing.T, events int) *storagetest.Memory {
	t.Helper()
	memory, err := storagetest.NewMemory(described(1, messages.TrustNone))
	if err != nil {
		t.Fatal(err)
	}
	specs := make([]storagetest.Spec, events)
	for i := range specs {
		specs[i] = storagetest.Spec{Workspace: messages.WSID(i % 10), Give: []messages.SeqID{invoices}}
	}
	storagetest.Take(t, memory, 0).Append(t, specs...)
	return memory
}

// staged is a store that is deaf, whose first Flush panics and whose second Tail
// fails for good, both when they are told to.
type staged struct {
	deaf
	tails, flushes     atomic.Int32
	reading, flushing  chan struct{}
	breakNow, panicNow chan struct{}
}

func newStaged(f *storagetest.Faulty) *staged {
	return &staged{
		deaf:    deaf{f},
		reading: make(chan struct{}, 1), flushing: make(chan struct{}, 1),
		breakNow: make(chan struct{}), panicNow: make(chan struct{}),
	}
}

func (s *staged) Tail(ctx context.Context, p messages.PartitionID, from messages.PLogOffset, limit int) ([]messages.Numbering, error) {
	if s.tails.Add(1) == 2 {
		s.reading <- struct{}{}
		<-s.breakNow
		return nil, storage.ErrClosed
	}
	return s.deaf.Tail(ctx, p, from, limit)
}

func (s *staged) Flush(ctx context.Context, f storage.Flush) error {
	if s.flushes.Add(1) == 1 {
		s.flushing <- struct{}{}
		<-s.panicNow
		panic("injected")
	}
	return s.deaf.Flush(ctx, f)
}

// An actor that is stopped while it waits to be restarted ends twice: whoever it
// had in its hands is answered once.
func TestPartitionStoppedWhileRestartingAnswersOnce(t *testing.T) {
	r := readyRig(t, setup{wrap: hardOfHearing})
	r.commit(7)
	gate := r.newGate()
	r.store.Plant(storagetest.Fault{Op: storagetest.OpNumbers, Do: storagetest.Hold(gate), Times: 1})
	go func() { _, _ = r.sequencers[0].Start(r.ctx, shop, 8) }()
	r.arrives(gate)
	r.store.Plant(storagetest.Fault{Op: storagetest.OpFlush, Do: storagetest.Panic("injected"), Times: 1})
	i := actorstest.NewInbox(t, system)
	system.Root.Send(r.partitions[0].PID(), i.From(&messages.Stop{}))
	r.restart()
	wants(t, "stop", r.refusedWith(next(t, i.User)), messages.ErrInterrupted)
	system.Root.Stop(r.partitions[0].PID())
	r.eventually("the end", func() bool { return r.spy.count("handled", "partition", &actor.Stop{}) == 1 })
	if more := i.Received(); len(more) != 0 {
		t.Errorf("answered again: %+v", more)
	}
	gate.Release()
	next(t, r.partitions[0].Terminated())
}

// A stop that nobody waits for yet is not forgotten by a restart.
func TestPartitionRestartRemembersTheStop(t *testing.T) {
	r := readyRig(t, setup{})
	r.commit(7)
	var once sync.Once
	r.spy.do(func(k actors.Key, m any) {
		if _, ok := m.(*messages.Stop); ok && k.Group == "partition" {
			once.Do(func() { panic("injected") })
		}
	})
	r.partitions[0].BeginStop()
	r.restart()
	next(t, r.partitions[0].Terminated())
}
