package actors_test

import (
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/partita-go/partita/actors"
	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage"
	"github.com/partita-go/partita/storage/storagetest"
)

// No more partitions replay at once than there are permits, and all have their turn.
func TestPartitionActualizationsAreBounded(t *testing.T) {
	const partitions, permits = 64, 2
	var gates [partitions + 1]*storagetest.Gate
	var store *storagetest.Faulty
	r := newRig(t, setup{partitions: partitions, permits: permits, wrap: func(f *storagetest.Faulty) actors.PartitionStore {
		store = f
		// Each call is held at a gate of its own.
		for i := range partitions {
			gates[i] = storagetest.NewGate()
			f.Plant(storagetest.Fault{Op: storagetest.OpTakeEpoch, Do: storagetest.Hold(gates[i]), Times: 1})
		}
		return f
	}})
	r.gates = gates[:partitions]
	for i := range partitions {
		r.arrives(gates[i])
		if n := store.Calls(storagetest.OpTakeEpoch); n > i+permits {
			t.Fatalf("%d partitions replay at once", n-i)
		}
		if n := r.permits.Given(); n > permits {
			t.Fatalf("%d permits are taken", n)
		}
		gates[i].Release()
	}
	r.ready()
	r.freePermits()
}

// Whoever sees that a partition takes transactions again sees what it has read of the log, too.
func TestPartitionStatusHasTheLogWithTheState(t *testing.T) {
	core, _ := observer.New(zap.InfoLevel)
	var handle atomic.Pointer[actors.Partition]
	normal := make(chan messages.PartitionStatus, 1)
	r := readyRig(t, setup{logger: zap.New(core, zap.Hooks(func(e zapcore.Entry) error {
		if p := handle.Load(); p != nil && e.Message == "partition is normal" {
			normal <- p.Status()
		}
		return nil
	}))})
	handle.Store(r.partitions[0])
	tx := r.start(7)
	r.check(tx.Write(r.ctx, nil))
	r.check(tx.Actualize(r.ctx))
	if s := next(t, normal); s.State != messages.StateNormal || s.Last != 1 {
		t.Errorf("got %+v, want the written event", s)
	}
}

// However many partitions wait for a permit, none keeps a goroutine meanwhile.
func TestPartitionsThatWaitToReplayKeepNoGoroutine(t *testing.T) {
	const partitions, most = 1024, 200
	gate := storagetest.NewGate()
	before := runtime.NumGoroutine()
	r := newRig(t, setup{partitions: partitions, permits: 2, wrap: func(f *storagetest.Faulty) actors.PartitionStore {
		f.Plant(storagetest.Fault{Op: storagetest.OpTakeEpoch, Do: storagetest.Hold(gate), Times: 2})
		return f
	}})
	r.gates = append(r.gates, gate)
	r.arrives(gate)
	r.eventually("all others to wait", func() bool { return r.permits.Waiting() == partitions-2 })
	r.eventually("their goroutines to end", func() bool { return runtime.NumGoroutine()-before <= most })
	gate.Release()
	r.ready()
	r.freePermits()
}

// A partition that has nothing to do has no leaves, and gets new ones when it has.
func TestPartitionThatRestsHasNoLeaves(t *testing.T) {
	r := readyRig(t, setup{settings: messages.Settings{FlushThreshold: 1}})
	ended := func(n int) {
		t.Helper()
		r.eventually(fmt.Sprint(n, " leaves to end"), func() bool { return r.spy.count("handled", "partition", &actor.Terminated{}) == n })
	}
	ended(1) // the actualizer
	for i, want := range []int{3, 4} {
		if n := r.commit(7); n != messages.Number(i+1) {
			t.Errorf("got number %d, want %d", n, i+1)
		}
		ended(want) // the flusher, and once the reader
	}
}

// freePermits waits until no permit is taken.
func (r *rig) freePermits() {
	r.t.Helper()
	r.eventually("all permits to be given back", func() bool { return r.permits.Given() == 0 })
}

// A permit comes back whatever becomes of its partition.
func TestPartitionGivesItsPermitBack(t *testing.T) {
	damaged := &storage.DamagedError{PLogOffset: 1, Cause: errors.New("bad")}
	for name, c := range map[string]struct {
		fault storagetest.Fault
		then  func(*rig)
	}{
		"epoch fails for now":  {storagetest.Fault{Op: storagetest.OpTakeEpoch, Do: storagetest.Fail(errors.New("injected"))}, nil},
		"epoch fails for good": {storagetest.Fault{Op: storagetest.OpTakeEpoch, Do: storagetest.Fail(damaged)}, nil},
		"tail fails for now":   {storagetest.Fault{Op: storagetest.OpTail, Do: storagetest.Fail(errors.New("injected"))}, nil},
		"tail fails for good":  {storagetest.Fault{Op: storagetest.OpTail, Do: storagetest.Fail(damaged)}, nil},
		"flush fails for good": {storagetest.Fault{Op: storagetest.OpFlush, Do: storagetest.Fail(damaged)}, nil},
		"panic":                {storagetest.Fault{Op: storagetest.OpTail, Do: storagetest.Panic("injected"), Times: 1}, func(r *rig) { r.restart() }},
		"panic in taking":      {storagetest.Fault{Op: storagetest.OpTakeEpoch, Do: storagetest.Panic("injected"), Times: 1}, func(r *rig) { r.restart() }},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, setup{
				memory: longLog(t, tailPiece+1), permits: 1,
				settings: messages.Settings{FlushThreshold: 1, BusyLimit: 1},
				wrap: func(f *storagetest.Faulty) actors.PartitionStore {
					f.Plant(c.fault)
					return f
				},
			})
			r.eventually("the fault to strike", func() bool { return r.store.Injected(c.fault.Op) > 0 })
			if c.then != nil {
				c.then(r)
			}
			r.freePermits()
		})
	}
}

// A long tail comes in pieces, with checkpoints in between.
func TestPartitionReplaysALongTailInPieces(t *testing.T) {
	for name, c := range map[string]struct {
		settings messages.Settings
		flushes  int
	}{
		"without checkpoints": {messages.Settings{BusyEvents: 1 << 20}, 0},
		"at the busy limit":   {messages.Settings{FlushThreshold: 1, BusyLimit: 1, BusyEvents: 1 << 20}, 3},
	} {
		t.Run(name, func(t *testing.T) {
			const events = 2*tailPiece + 50
			r := newRig(t, setup{memory: longLog(t, events), settings: c.settings})
			s := r.await(0, messages.StateNormal)
			if s.Replayed != events || s.Last != events {
				t.Errorf("got %+v", s)
			}
			if n := r.store.Calls(storagetest.OpTail); n != 3 {
				t.Errorf("got %d pieces, want 3", n)
			}
			r.eventually("the checkpoints", func() bool { return r.store.Calls(storagetest.OpFlush) >= c.flushes })
			tx := r.startSoon(3)
			n, err := tx.Next(r.ctx, invoices)
			r.check(err)
			if want := messages.Number(events/10 + 1 + 0); n < want {
				t.Errorf("got number %d, want at least %d", n, want)
			}
			r.check(tx.Commit(r.ctx, nil))
		})
	}
}

// An epoch that cannot be taken is asked for again and again; meanwhile Start is
// busy.
func TestPartitionTakeEpochFailsAndHeals(t *testing.T) {
	r := newRig(t, setup{memory: longLog(t, 10), wrap: func(f *storagetest.Faulty) actors.PartitionStore {
		f.Plant(storagetest.Fault{Op: storagetest.OpTakeEpoch, Do: storagetest.Fail(errors.New("injected")), Times: 3})
		f.Plant(storagetest.Fault{Op: storagetest.OpTail, Do: storagetest.Fail(errors.New("injected")), Times: 2})
		return f
	}})
	for i := range 5 {
		s := r.awaitThat(0, "a failure", func(s messages.PartitionStatus) bool { return s.Err != nil })
		if s.State != messages.StateInitializing {
			t.Fatalf("got %+v", s)
		}
		_, err := r.sequencers[0].Start(r.ctx, shop, 3)
		var busy *messages.BusyError
		if !errors.As(err, &busy) || busy.Reason != messages.BusyActualizing || busy.RetryAfter <= 0 {
			t.Fatalf("got %v, want busy: actualizing", err)
		}
		// As long as the delay can be, which doubles each time. So the next retry waits for the next turn, also if it is
		// asked for while the clock moves.
		r.fake.Advance(messages.Settings{}.WithDefaults().RetryDelay / 100 << i)
	}
	if s := r.await(0, messages.StateNormal); s.Err != nil || s.Last != 10 {
		t.Errorf("got %+v", s)
	}
	if n := r.commit(3); n != 2 {
		t.Errorf("got number %d, want 2", n)
	}
}

// A log that contradicts itself, or is damaged, fails the partition and names the
// place.
func TestPartitionActualizationFails(t *testing.T) {
	for name, c := range map[string]struct {
		op  storagetest.Op
		err error
		at  messages.PLogOffset
	}{
		"damaged":  {storagetest.OpTail, &storage.DamagedError{PLogOffset: 4, Cause: errors.New("bad")}, 4},
		"conflict": {storagetest.OpTakeEpoch, &storage.ConflictError{Place: storage.PlacePLog, PLogOffset: 11}, 11},
		"closed":   {storagetest.OpTakeEpoch, storage.ErrClosed, 0},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, setup{memory: longLog(t, 10), wrap: func(f *storagetest.Faulty) actors.PartitionStore {
				f.Plant(storagetest.Fault{Op: c.op, Do: storagetest.Fail(c.err), Times: 1})
				return f
			}})
			s := r.await(0, messages.StateFailed)
			var place *messages.PartitionError
			if !errors.As(s.Err, &place) || place.PLogOffset != c.at || !errors.Is(s.Err, c.err) {
				t.Errorf("got %v, want offset %d", s.Err, c.at)
			}
		})
	}
}

// New settings take effect at once, and survive a restart.
func TestPartitionReconfigure(t *testing.T) {
	r := readyRig(t, setup{})
	reconfigure := func(s messages.Settings) error {
		return r.partitions[0].Reconfigure(r.ctx, r.ports, s.WithDefaults())
	}
	r.check(reconfigure(messages.Settings{FlushThreshold: 3}))
	r.commit(1)
	r.handled(1, &messages.Written{})
	r.leafPanics()
	r.awaitThat(0, "restarted", func(s messages.PartitionStatus) bool { return s.State == messages.StateNormal && s.Restarts == 1 })
	r.commit(2)
	r.handled(2, &messages.Written{})
	if got := r.register(0).Checkpoint; got != 3 {
		t.Errorf("got checkpoint %d, want 3: the settings did not survive the restart", got)
	}
	r.stop(0)
	wants(t, "reconfigure", reconfigure(messages.Settings{}), messages.ErrStopped)
}

// leafPanics makes a leaf panic, which ends in a restart.
func (r *rig) leafPanics() {
	r.t.Helper()
	r.store.Plant(storagetest.Fault{Op: storagetest.OpNumbers, Do: storagetest.Panic("injected"), Times: 1})
	failed := make(chan struct{})
	go func() { r.restart(); close(failed) }()
	_, err := r.sequencers[0].Start(r.ctx, shop, 1<<40)
	wants(r.t, "start", err, messages.ErrInterrupted)
	next(r.t, failed)
}

// Statuses and what the observer sees, in order.
func TestPartitionStatusesInOrder(t *testing.T) {
	r := readyRig(t, setup{})
	r.commit(1)
	r.store.Plant(storagetest.Fault{Op: storagetest.OpFlush, Do: storagetest.Fail(errors.New("injected")), Times: 1})
	r.fake.Advance(time.Second)
	r.await(0, messages.StateAlarming)
	r.fake.Advance(time.Second)
	r.await(0, messages.StateNormal)
	r.check(r.start(1).Actualize(r.ctx))
	r.await(0, messages.StateNormal)
	r.commit(1)
	r.stop(0)
	want := []messages.PartitionState{
		messages.StateInitializing, messages.StateNormal, messages.StateAlarming, messages.StateNormal,
		messages.StateInitializing, messages.StateNormal, messages.StateTerminating, messages.StateTerminated,
	}
	if got := r.board.history(0); !slices.Equal(got, want) {
		t.Errorf("got  %v\nwant %v", got, want)
	}
	r.everyMessageIsHandled()
}

// everyMessageIsHandled checks what the observer was told: every message that was
// posted was taken, and handled.
func (r *rig) everyMessageIsHandled() {
	r.t.Helper()
	for _, group := range []string{"partition", "flusher", "actualizer", "reader"} {
		for _, m := range []any{
			&messages.Start{}, &messages.Next{}, &messages.Flush{}, &messages.Actualize{}, &messages.Stop{}, &messages.Taken{},
			&messages.Written{}, &messages.Loaded{}, &messages.WriteProjections{}, &messages.Replay{}, &messages.LoadNumbers{},
		} {
			what := fmt.Sprintf("%s %T", group, m)
			r.eventually(what, func() bool {
				posted := r.spy.count("posted", group, m)
				return r.spy.count("taken", group, m) == posted && r.spy.count("handled", group, m) == posted
			})
		}
	}
	if r.spy.count("handled", "flusher", &messages.WriteProjections{}) == 0 || r.spy.count("handled", "reader", &messages.LoadNumbers{}) == 0 {
		r.t.Error("the leaves are not observed")
	}
}
