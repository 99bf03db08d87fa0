package actors_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage"
	"github.com/partita-go/partita/storage/storagetest"
)

// A flush begins at the threshold or when the interval has passed, never else.
func TestPartitionFlushesAtThresholdOrInterval(t *testing.T) {
	r := readyRig(t, setup{settings: messages.Settings{FlushThreshold: 6}})
	r.commit(1) // three keys: the workspace, its offset, its invoice
	if n := r.store.Calls(storagetest.OpFlush); n != 0 {
		t.Fatalf("%d flushes below the threshold", n)
	}
	r.commit(2)
	r.handled(1, &messages.Written{})
	if got := r.register(0).Checkpoint; got != 3 {
		t.Fatalf("got checkpoint %d, want 3", got)
	}
	r.commit(3)
	r.fake.Advance(499 * time.Millisecond)
	r.getsThrough(1)
	if n := r.store.Calls(storagetest.OpFlush); n != 1 {
		t.Fatalf("%d flushes before the interval has passed", n-1)
	}
	r.fake.Advance(time.Millisecond)
	r.handled(2, &messages.Written{})
	if got := r.register(0).Checkpoint; got != 4 {
		t.Fatalf("got checkpoint %d, want 4", got)
	}
}

// An idle partition runs no timer.
func TestPartitionIdleRunsNoTimer(t *testing.T) {
	r := readyRig(t, setup{})
	r.commit(1)
	r.fake.Advance(time.Second)
	r.handled(1, &messages.Written{})
	r.fake.Advance(time.Minute)
	if n := r.fake.Timers(); n != 0 {
		t.Errorf("%d timers run", n)
	}
}

// While flushing fails, the same batch is tried again, the status is alarming and
// transactions go on until the limit; when it heals, all is as before.
func TestPartitionFlushFailsAndHeals(t *testing.T) {
	for name, settings := range map[string]messages.Settings{
		"limit of keys":   {FlushThreshold: 3, BusyLimit: 12},
		"limit of events": {FlushThreshold: 3, BusyEvents: 4},
	} {
		t.Run(name, func(t *testing.T) {
			r := readyRig(t, setup{settings: settings})
			injected := errors.New("injected")
			r.store.Plant(storagetest.Fault{Op: storagetest.OpFlush, Do: storagetest.Fail(injected)})
			r.commit(1)
			s := r.await(0, messages.StateAlarming)
			if !errors.Is(s.Err, injected) || s.FlushFailures != 1 {
				t.Errorf("got %+v", s)
			}
			for ws := messages.WSID(2); ws <= 4; ws++ {
				r.commit(ws)
			}
			_, err := r.sequencers[0].Start(r.ctx, shop, 1)
			var busy *messages.BusyError
			if !errors.As(err, &busy) || busy.Reason != messages.BusyUnflushed || busy.RetryAfter <= 0 {
				t.Fatalf("got %v, want busy: unflushed", err)
			}
			for failures := 2; failures <= 5; failures++ {
				r.fake.Advance(time.Second)
				r.awaitThat(0, fmt.Sprint(failures, " failures"), func(s messages.PartitionStatus) bool { return s.FlushFailures == failures })
			}
			r.store.Heal()
			r.fake.Advance(time.Second)
			if s := r.await(0, messages.StateNormal); s.Err != nil || s.FlushFailures != 0 {
				t.Errorf("got %+v", s)
			}
			r.check(r.startSoon(1).Cancel(r.ctx))
			r.handled(7, &messages.Written{})
			if got := r.register(0).Checkpoint; got != 5 {
				t.Errorf("got checkpoint %d, want 5", got)
			}
		})
	}
}

// A flush whose outcome is unknown is tried again, whether it was done or not.
func TestPartitionFlushUnknown(t *testing.T) {
	for name, do := range map[string]storagetest.Effect{"done": storagetest.UnknownDone(), "not done": storagetest.UnknownNotDone()} {
		t.Run(name, func(t *testing.T) {
			r := readyRig(t, setup{})
			r.store.Plant(storagetest.Fault{Op: storagetest.OpFlush, Do: do, Times: 2})
			r.commit(1)
			r.fake.Advance(time.Second)
			r.await(0, messages.StateAlarming)
			r.fake.Advance(time.Second)
			r.await(0, messages.StateAlarming)
			r.fake.Advance(time.Second)
			r.await(0, messages.StateNormal)
			if got := r.register(0).Checkpoint; got != 2 {
				t.Errorf("got checkpoint %d, want 2", got)
			}
		})
	}
}

// What needs repair fails this partition, naming the place; others go on.
func TestPartitionFlushBreaksThePartition(t *testing.T) {
	for name, c := range map[string]struct {
		err   error
		place messages.PLogOffset
	}{
		"closed":   {storage.ErrClosed, 0},
		"conflict": {&storage.ConflictError{Place: storage.PlaceWLog, PLogOffset: 2, Workspace: 0, WLogOffset: 2}, 2},
		"damaged":  {&storage.DamagedError{Where: "log", PLogOffset: 1, Cause: errors.New("bad sum")}, 1},
		"fenced":   {messages.ErrFenced, 0},
	} {
		t.Run(name, func(t *testing.T) {
			r := readyRig(t, setup{partitions: 2})
			r.commit(0)
			r.commit(0)
			open := r.start(0)
			waiting := make(chan error, 1)
			go func() {
				_, err := r.sequencers[0].Start(r.ctx, shop, 0)
				waiting <- err
			}()
			r.queued(1)
			r.store.Plant(storagetest.Fault{Op: storagetest.OpFlush, Do: storagetest.Fail(c.err), Times: 1})
			r.fake.Advance(time.Second)
			s := r.await(0, messages.StateFailed)
			var place *messages.PartitionError
			if !errors.As(s.Err, &place) || place.PLogOffset != c.place || !errors.Is(s.Err, c.err) {
				t.Errorf("got %v, want offset %d", s.Err, c.place)
			}
			wants(t, "who waited", next(t, waiting), messages.ErrPartitionFailed)
			wants(t, "next", r.askNext(open), messages.ErrPartitionFailed)
			wants(t, "cancel", open.Cancel(r.ctx), messages.ErrPartitionFailed)
			_, err := r.sequencers[0].Start(r.ctx, shop, 0)
			wants(t, "start", err, messages.ErrPartitionFailed)
			if n := r.commit(1); n != 1 {
				t.Errorf("the other partition: got number %d", n)
			}
			if s := r.stop(0); s.Clean {
				t.Error("a failed partition stopped cleanly")
			}
			r.again() // as after a repair
			r.ready()
			if n := r.commit(0); n != 3 {
				t.Errorf("got number %d, want 3", n)
			}
		})
	}
}

// Numbers that differ from the log make the partition read the log again, and the
// third time in a row fail.
func TestPartitionFlushDiverges(t *testing.T) {
	for name, err := range map[string]error{
		"numbers":    &storage.NumbersError{Workspace: 1, Seq: invoices, Got: 1, Want: 2},
		"checkpoint": storage.ErrCheckpoint,
	} {
		for times := 1; times <= 3; times++ {
			t.Run(fmt.Sprint(name, times), func(t *testing.T) {
				r := readyRig(t, setup{})
				r.commit(1)
				r.store.Plant(storagetest.Fault{Op: storagetest.OpFlush, Do: storagetest.Fail(err), Times: times})
				for range min(times, 2) {
					r.fake.Advance(time.Second)
					r.await(0, messages.StateInitializing)
					r.await(0, messages.StateNormal)
				}
				r.fake.Advance(time.Second)
				if times == 3 {
					s := r.await(0, messages.StateFailed)
					wants(t, "status", s.Err, err)
					return
				}
				r.handled(times+1, &messages.Written{})
				if n := r.commit(1); n != 2 {
					t.Errorf("got number %d, want 2", n)
				}
			})
		}
	}
}

// A transaction that is open when the flush diverges is fenced.
func TestPartitionFlushDivergesUnderAnOpenTransaction(t *testing.T) {
	r := readyRig(t, setup{})
	r.commit(1)
	tx := r.start(1)
	r.store.Plant(storagetest.Fault{Op: storagetest.OpFlush, Do: storagetest.Fail(storage.ErrCheckpoint), Times: 1})
	r.fake.Advance(time.Second)
	r.await(0, messages.StateInitializing)
	r.await(0, messages.StateNormal)
	wants(t, "commit", tx.Commit(r.ctx, nil), messages.ErrFenced)
	if n := r.commit(1); n != 2 {
		t.Errorf("got number %d, want 2", n)
	}
}

// A stop whose last flush fails: retried up to the limit, given up at once if it
// cannot succeed.
func TestPartitionStopWhileFlushingFails(t *testing.T) {
	for name, c := range map[string]struct {
		err   error
		waits bool
	}{
		"for now":   {errors.New("injected"), true},
		"for good":  {storage.ErrClosed, false},
		"diverging": {storage.ErrCheckpoint, false},
	} {
		t.Run(name, func(t *testing.T) {
			r := readyRig(t, setup{})
			r.commit(1)
			r.store.Plant(storagetest.Fault{Op: storagetest.OpFlush, Do: storagetest.Fail(c.err)})
			stopped := make(chan messages.Stopped, 1)
			go func() { stopped <- r.stop(0) }()
			r.handled(1, &messages.Written{})
			if c.waits {
				r.fake.Advance(messages.Settings{}.WithDefaults().StopLimit)
			}
			if s := next(t, stopped); s.Clean {
				t.Error("the stop was clean")
			}
			wants(t, "status", r.partitions[0].Status().Err, c.err)
			r.store.Heal()
			r.again()
			r.ready()
			if n := r.commit(1); n != 2 {
				t.Errorf("got number %d, want 2", n)
			}
		})
	}
}

// The last flush fails once and then succeeds: the stop is clean.
func TestPartitionStopRetriesTheLastFlush(t *testing.T) {
	r := readyRig(t, setup{})
	r.commit(1)
	r.store.Plant(storagetest.Fault{Op: storagetest.OpFlush, Do: storagetest.Fail(errors.New("injected")), Times: 1})
	stopped := make(chan messages.Stopped, 1)
	go func() { stopped <- r.stop(0) }()
	r.handled(1, &messages.Written{})
	r.fake.Advance(time.Second)
	if s := next(t, stopped); !s.Clean {
		t.Error("the stop was not clean")
	}
}
