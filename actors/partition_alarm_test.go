package actors_test

import (
	"errors"
	"testing"
	"time"

	"github.com/partita-go/partita/actors"
	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage/storagetest"
)

const alarmAfter = 4 * time.Second

// looks lets the time of n looks pass; before the next one each has been made.
func (r *rig) looks(n int) {
	r.t.Helper()
	for range n {
		r.fake.Advance(alarmAfter / 2)
		r.getsThrough7()
	}
}

// getsThrough7 waits until the partition has handled all that came before.
func (r *rig) getsThrough7() {
	r.t.Helper()
	r.check(r.partitions[0].Reconfigure(r.ctx, r.ports, r.setup.settings.WithDefaults()))
}

// wantStatus compares state and details, in the partition's status and where everybody looks.
func (r *rig) wantStatus(state messages.ActorState, details string) {
	r.t.Helper()
	s, all := r.partitions[0].Status(), r.partitions[0].Standing().Status()
	if s.State != state || s.Details != details || all.State != state || all.Details != details || all.Partition.State != state {
		r.t.Errorf("got %v %q, to all %v %q, want %v %q", s.State, s.Details, all.State, all.Details, state, details)
	}
}

// A leaf that hangs is an alarm of its partition, which says for how long, and ends when it answers.
func TestAlarmOfALeafThatHangs(t *testing.T) {
	r := readyRig(t, setup{alarmAfter: alarmAfter})
	gate := r.newGate()
	r.store.Plant(storagetest.Fault{Op: storagetest.OpFlush, Do: storagetest.Hold(gate), Times: 1})
	r.commit(7)
	r.fake.Advance(500 * time.Millisecond)
	r.arrives(gate)
	r.looks(2)
	r.wantStatus(messages.StateNormal, "")
	r.looks(1)
	r.wantStatus(messages.StateAlarming, "the flusher has not answered for 4 s")
	r.looks(1)
	r.wantStatus(messages.StateAlarming, "the flusher has not answered for 6 s")
	r.commit(7) // it goes on all the same
	gate.Release()
	r.handled(1, &messages.Written{})
	r.looks(1)
	r.wantStatus(messages.StateNormal, "")
}

// A leaf that answers again and again is no alarm, however long it is busy.
func TestNoAlarmOfALeafThatGetsOn(t *testing.T) {
	r := readyRig(t, setup{alarmAfter: alarmAfter, settings: messages.Settings{FlushThreshold: 3}})
	for range 10 {
		gate := r.newGate()
		r.store.Plant(storagetest.Fault{Op: storagetest.OpFlush, Do: storagetest.Hold(gate), Times: 1})
		r.commit(7)
		r.fake.Advance(alarmAfter / 4)
		r.arrives(gate)
		r.looks(1)
		r.wantStatus(messages.StateNormal, "")
		gate.Release()
		r.eventually("the flush", func() bool { return r.partitions[0].Figures().Requests.Requests == 0 })
	}
}

// A partition that is idle does not look.
func TestAlarmTimerOfAnIdlePartition(t *testing.T) {
	r := readyRig(t, setup{alarmAfter: alarmAfter})
	r.commit(1)
	r.fake.Advance(time.Second)
	r.handled(1, &messages.Written{})
	r.getsThrough7()
	if n := r.fake.Timers(); n > 1 { // the catch-up of the start
		t.Errorf("%d timers run", n)
	}
	r.fake.Advance(time.Minute)
	r.getsThrough7()
	if n := r.fake.Timers(); n != 0 {
		t.Errorf("%d timers run", n)
	}
}

// A partition that was busy for long says what is unflushed, and why it cannot flush: at which try.
func TestAlarmOfABusyPartition(t *testing.T) {
	r := readyRig(t, setup{alarmAfter: alarmAfter, settings: messages.Settings{FlushThreshold: 3, BusyEvents: 2, RetryDelay: time.Hour}})
	r.store.Plant(storagetest.Fault{Op: storagetest.OpFlush, Do: storagetest.Fail(errors.New("state.db: no space left"))})
	r.commit(1)
	r.await(0, messages.StateAlarming)
	r.wantStatus(messages.StateAlarming, "cannot flush: state.db: no space left, 1st try")
	r.commit(2)
	_, err := r.sequencers[0].Start(r.ctx, shop, 1)
	wants(t, "start", err, messages.ErrBusy)
	// Whether a leaf works meanwhile depends on the delays between the tries.
	r.fake.Advance(2 * time.Hour)
	r.awaitThat(0, "another try", func(s messages.PartitionStatus) bool { return s.FlushFailures >= 2 })
	r.eventually("the alarm", func() bool {
		r.fake.Advance(alarmAfter / 2)
		r.getsThrough7()
		s := r.partitions[0].Status()
		return contains(s.Details, " try; busy for ") && contains(s.Details, " s: 2 events unflushed")
	})
	r.store.Heal()
	r.fake.Advance(2 * time.Hour)
	r.awaitThat(0, "normal", func(s messages.PartitionStatus) bool { return s.State == messages.StateNormal && s.Details == "" })
}

// A sequence that will end is an alarm.
func TestAlarmOfASequence(t *testing.T) {
	d := described(1, messages.TrustNone)
	d.Kinds[0].Sequences[0].Largest = 2
	memory, err := storagetest.NewMemory(d)
	if err != nil {
		t.Fatal(err)
	}
	r := readyRig(t, setup{memory: memory})
	r.commit(7)
	r.wantStatus(messages.StateNormal, "")
	r.commit(7)
	r.wantStatus(messages.StateAlarming, "sequence Invoice of workspace 7 is at 2 of 2")
	r.commit(8)
	r.commit(8)
	r.wantStatus(messages.StateAlarming, "sequence Invoice of workspace 7 is at 2 of 2, and 1 more")
}

// A long replay says how far it is.
func TestStatusOfAReplay(t *testing.T) {
	r := readyRig(t, setup{settings: messages.Settings{FlushInterval: time.Hour, InFlightEvents: 8192}})
	drafts := make([]messages.Draft, 5000)
	_, err := r.sequencers[0].AppendAll(r.ctx, actors.AppendTo{Workspace: 7, Kind: shop}, drafts)
	r.check(err)
	r.panicNow()
	s := r.awaitThat(0, "a piece of the replay", func(s messages.PartitionStatus) bool { return s.Replayed == 4096 })
	if s.State != messages.StateInitializing || s.Details != "replaying: 4,096 of 5,000" {
		t.Errorf("got %v, %q", s.State, s.Details)
	}
	r.awaitThat(0, "its end", func(s messages.PartitionStatus) bool { return s.State == messages.StateNormal && s.Details == "" })
}
