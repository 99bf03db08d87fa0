package actors_test

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/partita-go/partita/actors"
	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage/storagetest"
)

// A clean stop leaves nothing to be replayed.
func TestPartitionCleanStop(t *testing.T) {
	r := readyRig(t, setup{partitions: 2})
	for ws := range messages.WSID(10) {
		r.commit(ws)
	}
	for p := range 2 {
		if s := r.stop(p); !s.Clean || s.Abandoned != 0 {
			t.Errorf("partition %d: got %+v", p, s)
		}
		s := r.partitions[p].Status()
		if s.State != messages.StateTerminated || !s.Clean || s.Checkpoint != 6 {
			t.Errorf("partition %d: got %+v", p, s)
		}
	}
	r.again()
	r.ready()
	for p := range 2 {
		if s := r.partitions[p].Status(); s.Replayed != 0 || s.Last != 5 {
			t.Errorf("partition %d: got %+v", p, s)
		}
	}
	if n := r.commit(0); n != 2 {
		t.Errorf("got number %d, want 2", n)
	}
}

// No timer outlives its incarnation, or new settings.
func TestPartitionTimersEnd(t *testing.T) {
	r := readyRig(t, setup{settings: messages.Settings{TransactionLimit: time.Hour, FlushInterval: 2 * time.Hour}})
	r.commit(7) // two timers run: of the flush, and of the transaction that has ended
	for range 3 {
		r.check(r.partitions[0].Reconfigure(r.ctx, r.ports, messages.Settings{}.WithDefaults()))
		if n := r.fake.Timers(); n != 2 {
			t.Fatalf("%d timers run after new settings, want 2", n)
		}
	}
	r.panicNow()
	r.awaitThat(0, "restarted", func(s messages.PartitionStatus) bool { return s.State == messages.StateNormal && s.Restarts == 1 })
	if n := r.fake.Timers(); n != 2 {
		t.Errorf("%d timers run after a restart, want those of the flush and of the catch-up", n)
	}
	tx := r.start(7)
	r.stopGivingUp(tx)
	if n := r.fake.Timers(); n != 0 {
		t.Errorf("%d timers outlive their partition", n)
	}
}

// stopGivingUp stops the first partition, whose owner does not end its transaction.
func (r *rig) stopGivingUp(tx *actors.Transaction) {
	r.t.Helper()
	r.check(tx.Write(r.ctx, nil))
	stopped := make(chan messages.Stopped, 1)
	go func() { stopped <- r.stop(0) }()
	r.await(0, messages.StateTerminating)
	r.fake.Advance(messages.Settings{}.WithDefaults().TransactionLimit)
	if s := next(r.t, stopped); !s.Clean {
		r.t.Error("the stop was not clean, although the log has told what became of the transaction")
	}
}

// stopAtTheLimit stops the first partition and lets its stop limit pass.
func (r *rig) stopAtTheLimit() <-chan messages.Stopped {
	r.t.Helper()
	stopped := make(chan messages.Stopped, 1)
	go func() { stopped <- r.stop(0) }()
	r.handled(1, &messages.Stop{})
	select {
	case s := <-stopped:
		r.t.Errorf("got %+v before the limit", s)
	default:
	}
	r.fake.Advance(messages.Settings{}.WithDefaults().StopLimit)
	return stopped
}

// A stop waits for the open transaction, but no longer than its limit; then it asks the log.
func TestPartitionStopGivesUpOnTheOpenTransaction(t *testing.T) {
	r := readyRig(t, setup{})
	tx := r.start(7)
	r.stopGivingUp(tx)
	wants(t, "flush", tx.Flush(r.ctx), messages.ErrStopped)
	r.again()
	r.ready()
	if len(r.log(0)) != 1 || r.partitions[0].Status().Replayed != 0 {
		t.Errorf("got %+v", r.partitions[0].Status())
	}
}

// stopHanging stops the first partition, one of whose leaves hangs.
func (r *rig) stopHanging(unawaited bool) messages.Stopped {
	r.t.Helper()
	if unawaited {
		return r.stop(0)
	}
	return next(r.t, r.stopAtTheLimit())
}

// hang describes a leaf that hangs in storage, deaf to its context.
type hang struct {
	op      storagetest.Op
	provoke func(*rig)
	// unawaited says that the stop does not wait for it.
	unawaited bool
}

func hangs() map[string]hang {
	return map[string]hang{
		"Flush": {storagetest.OpFlush, func(r *rig) { r.fake.Advance(time.Second) }, false},
		"TakeEpoch": {storagetest.OpTakeEpoch, func(r *rig) {
			r.check(r.start(7).Actualize(r.ctx))
		}, false},
		"Tail": {storagetest.OpTail, func(r *rig) {
			r.check(r.start(7).Actualize(r.ctx))
		}, false},
		"Numbers": {storagetest.OpNumbers, func(r *rig) {
			go func() { _, _ = r.sequencers[0].Start(r.ctx, shop, 8) }()
		}, true},
	}
}

// A leaf hangs: the stop ends, the leaf is left behind, counted and shown. When
// the hang ends nothing of it is left, and the log has everything.
func TestPartitionStopLeavesAHangingLeafBehind(t *testing.T) {
	for name, c := range hangs() {
		t.Run(name, func(t *testing.T) {
			r := readyRig(t, setup{wrap: hardOfHearing})
			r.commit(7)
			gate := r.newGate()
			r.store.Plant(storagetest.Fault{Op: c.op, Do: storagetest.Hold(gate), Times: 1})
			c.provoke(r)
			r.arrives(gate)
			s := r.stopHanging(c.unawaited)
			if s.Abandoned != 1 {
				t.Errorf("got %+v, want one leaf left behind", s)
			}
			if s := r.partitions[0].Status(); s.State != messages.StateTerminated || s.Abandoned != 1 {
				t.Errorf("got %+v, want one leaf left behind", s)
			}
			if s := r.stop(0); s.Abandoned != 1 {
				t.Errorf("stopped again: got %+v", s)
			}
			gate.Release()
			next(t, r.partitions[0].Terminated())
			if s := r.partitions[0].Status(); s.Abandoned != 0 {
				t.Errorf("got %+v after the hang", s)
			}
			r.again()
			r.ready()
			if n := r.commit(7); n != 2 {
				t.Errorf("got number %d, want 2", n)
			}
		})
	}
}

// flushHangs returns a rig whose partition has a flush that hangs until the gate is released.
func flushHangs(t *testing.T) (*rig, *storagetest.Gate) {
	t.Helper()
	r := readyRig(t, setup{wrap: hardOfHearing})
	r.commit(7)
	gate := r.newGate()
	r.store.Plant(storagetest.Fault{Op: storagetest.OpFlush, Do: storagetest.Hold(gate), Times: 1})
	r.fake.Advance(time.Second)
	r.arrives(gate)
	return r, gate
}

// The next deployment need not wait for a hang: what the leaf still writes is
// refused.
func TestPartitionStartsAnewDespiteAHangingLeaf(t *testing.T) {
	r, gate := flushHangs(t)
	former := r.partitions[0]
	go r.pass(func() bool { return former.Status().State == messages.StateTerminated })
	r.again()
	r.ready()
	r.commit(7)
	gate.Release()
	next(t, former.Terminated())
	if n := r.commit(7); n != 3 {
		t.Errorf("got number %d, want 3", n)
	}
}

// pass lets time pass until a condition holds.
func (r *rig) pass(until func() bool) {
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for !until() && r.ctx.Err() == nil {
		<-tick.C
		r.fake.Advance(time.Second)
	}
}

// A partition that has panicked waits for its leaves before it comes back. A stop
// must end all the same when one of them hangs.
func TestPartitionStopsWhileARestartHangs(t *testing.T) {
	r, gate := flushHangs(t)
	r.store.Plant(storagetest.Fault{Op: storagetest.OpNumbers, Do: storagetest.Panic("injected"), Times: 1})
	waiting := make(chan error, 1)
	go func() {
		_, err := r.sequencers[0].Start(r.ctx, shop, 8)
		waiting <- err
	}()
	r.restart()
	wants(t, "who waited for the load", next(t, waiting), messages.ErrInterrupted)
	late := make(chan error, 1)
	go func() {
		_, err := r.sequencers[0].Start(r.ctx, shop, 7)
		late <- err
	}()
	r.queued(1)
	stopped := make(chan messages.Stopped, 1)
	go func() { stopped <- r.stop(0) }()
	r.eventually("the stop to be asked for", func() bool { return r.spy.count("posted", "partition", &messages.Stop{}) == 1 })
	done := make(chan struct{})
	go func() {
		r.pass(func() bool { return len(stopped) == 1 })
		close(done)
	}()
	next(t, done)
	if s := next(t, stopped); s.Clean || s.Abandoned == 0 {
		t.Errorf("got %+v, want a leaf left behind", s)
	}
	wants(t, "who waited in the lane", next(t, late), messages.ErrStopped)
	gate.Release()
	next(t, r.partitions[0].Terminated())
	r.again()
	r.ready()
	if n := r.commit(7); n != 2 {
		t.Errorf("got number %d, want 2", n)
	}
}

// Nobody asked it to stop, and it waits for a leaf that hangs: whoever asks for something is answered, and
// whoever stops it does not wait for ever.
func TestPartitionThatEndsAnswers(t *testing.T) {
	r, gate := flushHangs(t)
	system.Root.Stop(r.partitions[0].PID())
	r.eventually("the stop to begin", func() bool { return r.spy.count("handled", "partition", &actor.Stop{}) == 1 })
	for name, call := range map[string]func() error{
		"start": func() error {
			_, err := r.of(8).Start(r.ctx, shop, 8)
			return err
		},
		"append": func() error {
			_, err := r.of(7).Append(r.ctx, to(7), large(1))
			return err
		},
	} {
		answer := make(chan error, 1)
		go func() { answer <- call() }()
		wants(t, name, next(t, answer), messages.ErrStopped)
	}
	if s := r.stop(0); s.Clean || s.Abandoned != 1 {
		t.Errorf("got %+v, want one leaf left behind", s)
	}
	gate.Release()
	next(t, r.partitions[0].Terminated())
	if n := len(r.log(0)); n != 1 {
		t.Errorf("got %d events, want 1", n)
	}
}

// Whoever asks a partition to stop that has just stopped waits for its leaves as well.
func TestPartitionStopWaitsForLeavesTwice(t *testing.T) {
	r := readyRig(t, setup{wrap: hardOfHearing})
	gate := r.newGate()
	r.store.Plant(storagetest.Fault{Op: storagetest.OpNumbers, Do: storagetest.Hold(gate), Times: 1})
	go func() { _, _ = r.sequencers[0].Start(r.ctx, shop, 8) }()
	r.arrives(gate)
	stopped := make(chan messages.Stopped, 2)
	go func() { stopped <- r.stop(0) }()
	r.await(0, messages.StateTerminated)
	go func() { stopped <- r.stop(0) }()
	r.eventually("both to have asked", func() bool { return r.spy.count("handled", "partition", &messages.Stop{}) == 2 })
	gate.Release()
	for range 2 {
		if s := next(t, stopped); !s.Clean || s.Abandoned != 0 {
			t.Errorf("got %+v, want no leaf left behind", s)
		}
	}
}

// A partition that ends lets its end be that of its leaves: if it told them itself as well, the second
// word would often reach nobody, and be logged as a dead letter.
func TestPartitionStopTellsItsLeavesOnce(t *testing.T) {
	r := readyRig(t, setup{})
	r.commit(7)
	var early atomic.Int64
	r.spy.do(func(k actors.Key, m any) {
		if _, ok := m.(*actor.Stop); ok && k.Group == "partition" {
			early.Store(int64(r.spy.count("posted", "flusher", &actor.Stop{})))
		}
	})
	r.stop(0)
	if n := early.Load(); n != 0 {
		t.Errorf("the flusher was told %d times before its partition was", n)
	}
}
