package sequencer

import (
	"errors"
	"testing"
	"time"

	"github.com/partita-go/partita/messages"
)

// The rows of section 10 of the design that the core can be free of. The others are
// the store's (one transaction for insert-if-absent; recovery overwrites nothing) or
// the actors' (leaked goroutines).

// "a low id in an event (a singleton's) lowers the counter: numbers given out twice |
// merge by maximum, ignore values below the initial value"
func TestFault_LowIDLowersTheCounter(t *testing.T) {
	for name, again := range map[string]func(w *world){
		"cached": func(*world) {},
		"all in the tail": func(w *world) {
			w.seqData, w.checkpoint = make(map[messages.WSID]storedNumbers), 1
			w.crash()
			w.settle()
		},
		"replayed": func(w *world) { w.crash(); w.settle() },
		"stored":   func(w *world) { w.advance(time.Second); w.crash(); w.settle() },
	} {
		t.Run(name, func(t *testing.T) {
			w := up(t, messages.Settings{})
			first := w.event(1, kindWide, messages.SeqCRecordID, messages.SeqCRecordID, messages.SeqCRecordID)
			w.advance(time.Second)
			o := w.begun(1, kindWide)
			w.raise(o, messages.SeqCRecordID, 65536)
			w.raise(o, messages.SeqCRecordID, first[0])
			if got := w.given(w.next(o, messages.SeqCRecordID)); got != first[2]+1 {
				t.Fatalf("got %d after %d", got, first[2])
			}
			w.commit(o)
			again(w)
			if got := w.event(1, kindWide, messages.SeqCRecordID); got[0] != first[2]+2 {
				t.Fatalf("got %d after %d", got[0], first[2]+1)
			}
			w.finish()
		})
	}
}

// "the checkpoint is stored before the numbers of its last event: lost after a crash |
// values and checkpoint in one transaction"
func TestFault_CheckpointBeforeNumbers(t *testing.T) {
	w := up(t, messages.Settings{FlushThreshold: 1, FlushInterval: never})
	for range 10 {
		w.event2(1)
		w.work(flusherLeaf)
		// The store checks that numbers and checkpoint belong together; the crash comes
		// before the core knows.
		w.crash()
		w.settle()
		w.event(1, kindWide, seqPlain)
	}
	w.finish()
}

// "a fresh partition starts at offset 0, and its first event is never seen again |
// first offset is 1, from storage too"
func TestFault_FirstOffsetIsOne(t *testing.T) {
	w := up(t, messages.Settings{FlushInterval: never})
	if got := w.core.Status().Checkpoint; got != 1 {
		t.Fatalf("got checkpoint %d", got)
	}
	w.event(1, kindWide, seqPlain)
	if w.log[0].PLogOffset != 1 || w.log[0].WLogOffset != 1 {
		t.Fatalf("got %+v", w.log[0])
	}
	w.crash()
	w.settle()
	if got := w.event(1, kindWide, seqPlain); got[0] != 2 || w.core.Status().Replayed != 1 {
		t.Fatalf("got %v, replayed %d", got, w.core.Status().Replayed)
	}
	w.finish()
}

// "the checkpoint is one too low after a flush | exactly the next offset to replay"
func TestFault_CheckpointIsTheNextOffset(t *testing.T) {
	w := up(t, messages.Settings{})
	for i := range messages.PLogOffset(5) {
		w.event(1, kindWide)
		w.advance(time.Second)
		if s := w.core.Status(); w.checkpoint != i+2 || w.core.checkpoint != i+2 || s.Checkpoint > i+2 {
			t.Fatalf("after event %d: got %d, the core says %d", i+1, w.checkpoint, w.core.checkpoint)
		}
		w.crash()
		w.settle()
		if n := w.core.Status().Replayed; n != 0 {
			t.Fatalf("replayed %d events", n)
		}
	}
	w.finish()
}

// "stop hangs while flushing fails; actualize waits for a flush that cannot succeed |
// both end in bounded time; data stays right"
func TestFault_FlushThatCannotSucceed(t *testing.T) {
	t.Run("stop", func(t *testing.T) {
		w := up(t, messages.Settings{StopLimit: 2 * time.Second})
		w.event(1, kindWide, seqPlain)
		w.flushMode = flushFails
		s := w.stop()
		w.advance(2 * time.Second)
		w.mustStop(s, false)
		w.finish()
	})
	t.Run("actualize", func(t *testing.T) {
		w := up(t, messages.Settings{FlushThreshold: 1})
		w.event2(1)
		o := w.request(messages.Start{Workspace: 1, Kind: kindWide})
		w.actualize(o)
		// The flush never answers.
		w.settleBut(flusherLeaf)
		w.mustBe(messages.StateNormal)
		w.finish()
	})
}

// "a transaction starts on half-replayed state during shutdown | refused"
func TestFault_StartDuringShutdown(t *testing.T) {
	w := up(t, messages.Settings{FlushInterval: never})
	w.event(1, kindWide)
	o := w.begun(1, kindWide)
	w.actualize(o)
	s := w.stop()
	w.mustBusy(w.request(messages.Start{Workspace: 1, Kind: kindWide}).start, messages.BusyStopping)
	w.settle()
	w.mustStop(s, true)
	w.mustRefuse(w.request(messages.Start{Workspace: 1, Kind: kindWide}).start, messages.ErrStopped)
	w.finish()
}

// "stop and actualize race: leaked flusher, data race | one mailbox; goleak at the end
// of every test"
func TestFault_StopAndActualize(t *testing.T) {
	for name, race := range map[string]func(w *world, o *owner){
		"stop first":      func(w *world, o *owner) { w.stop(); w.actualize(o) },
		"actualize first": func(w *world, o *owner) { w.actualize(o); w.stop() },
	} {
		t.Run(name, func(t *testing.T) {
			w := up(t, messages.Settings{FlushThreshold: 1})
			w.event2(1)
			o := w.request(messages.Start{Workspace: 1, Kind: kindWide})
			w.write(o)
			race(w, o)
			w.settle()
			if !w.stopped || len(w.unanswered) > 0 {
				t.Fatalf("stopped %v, not answered: %v", w.stopped, w.unansweredList())
			}
			w.finish()
		})
	}
}

// "no checkpoint during a long catch-up under the key threshold | checkpoints by count
// and time"
func TestFault_NoCheckpointDuringCatchUp(t *testing.T) {
	w := up(t, messages.Settings{FlushInterval: never})
	for range 60 {
		w.event(1, kindWide)
	}
	w.piece = 1
	w.crash()
	for w.core.state == messages.StateInitializing {
		w.now += 100_000
		w.fire()
		for i := range w.leaves {
			w.work(i)
			w.deliver(i)
		}
	}
	if n := len(w.flushes); n < 4 {
		t.Fatalf("got %d checkpoints in 6 s", n)
	}
	w.finish()
}

// "catch-up waits 5 ms per 500 keys: 22 s for 1M events in 10k workspaces, a plain scan
// takes 0.17 s | credit, no sleeping: at most 3 times the plain scan"
func TestFault_CatchUpWaits(t *testing.T) {
	w := up(t, messages.Settings{FlushInterval: never, BusyEvents: 1 << 20, BusyLimit: 1 << 20, FlushThreshold: 1 << 20})
	for i := range 2000 {
		w.event(messages.WSID(2*(i%500)+1), kindWide)
	}
	w.config.Settings = messages.Settings{BusyLimit: 600}.WithDefaults()
	w.crash()
	before := w.now
	w.settle()
	w.mustBe(messages.StateNormal)
	if w.now != before || w.core.replay.events != 2000 {
		t.Fatalf("time passed: %d us, replayed %d", w.now-before, w.core.replay.events)
	}
	w.finish()
}

// "one flush per command when commands come more than 20 us apart | threshold or
// interval, nothing else"
func TestFault_FlushPerCommand(t *testing.T) {
	w := up(t, messages.Settings{})
	for range 100 {
		w.event(1, kindWide, seqPlain)
		w.advance(time.Millisecond)
	}
	if n := len(w.flushes); n != 0 {
		t.Fatalf("got %d flushes in 100 ms", n)
	}
	w.finish()
}

// "a limit of 0 hangs for ever; one event can overshoot the limit without bound |
// validated; bounded"
func TestFault_Limits(t *testing.T) {
	if err := (messages.Settings{}).Validate(); !errors.Is(err, messages.ErrSettings) {
		t.Fatalf("limits of 0: got %v", err)
	}
	w := up(t, messages.Settings{FlushThreshold: 1, BusyLimit: 1, BusyEvents: 1, FlushInterval: never})
	for range 20 {
		o := w.request(messages.Start{Workspace: 1, Kind: kindWide})
		waiting := w.request(messages.Start{Workspace: 1, Kind: kindWide})
		w.settleBut(flusherLeaf)
		for range 100 {
			w.given(w.next(o, seqPlain))
			w.given(w.next(o, messages.SeqCRecordID))
		}
		w.commit(o)
		w.mustBusy(waiting.start, messages.BusyUnflushed)
		w.mustMeet(waiting.start, "BusyLimit")
		// One event changes each sequence of its kind at most, and the kind.
		if most := len(w.core.kinds[kindWide].sequences) + 1; w.core.unflushedKeys() > most {
			t.Fatalf("got %d keys, want at most %d", w.core.unflushedKeys(), most)
		}
		w.settle()
	}
	w.finish()
}

// "clean stop drops the pending flush | final flush"
func TestFault_StopDropsTheFlush(t *testing.T) {
	w := up(t, messages.Settings{FlushInterval: never})
	w.event(1, kindWide, seqPlain)
	s := w.stop()
	if s.reply != nil {
		t.Fatal("stopped before the final flush")
	}
	w.settle()
	w.mustStop(s, true)
	if w.checkpoint != 2 {
		t.Fatalf("got checkpoint %d", w.checkpoint)
	}
	w.finish()
}

// "a write error is swallowed and the process dies later | every storage error reaches
// the caller"
func TestFault_ErrorIsSwallowed(t *testing.T) {
	w := up(t, messages.Settings{FlushThreshold: 1})
	w.failLoads = 1
	o := w.request(messages.Start{Workspace: 1, Kind: kindWide})
	w.settle()
	w.mustRefuse(o.start, errDown)
	w.flushMode = flushFails
	w.event(1, kindWide)
	w.settle()
	if s := w.core.Status(); s.State != messages.StateAlarming || !errors.Is(s.Err, errDown) {
		t.Fatalf("status: %+v", s)
	}
	w.failReplays = 1
	w.actualize(w.begun(1, kindWide))
	w.settle()
	if s := w.core.Status(); s.State != messages.StateInitializing || !errors.Is(s.Err, errDown) {
		t.Fatalf("status: %+v", s)
	}
	w.finish()
}

// "one damaged or unprocessable event makes a crash loop, or a full rescan at each
// command | a clear state (failed, naming partition and offset), others go on"
func TestFault_DamagedEvent(t *testing.T) {
	w := up(t, messages.Settings{FlushInterval: never})
	for range 5 {
		w.event(1, kindWide, seqPlain)
	}
	w.damage = func(e *messages.Numbering) {
		if e.PLogOffset == 3 {
			e.WorkspaceKind = 99
		}
	}
	w.crash()
	w.settle()
	w.mustBeFailed(3, messages.ErrBrokenLog)
	for range 10 {
		w.mustRefuse(w.request(messages.Start{Workspace: 1, Kind: kindWide}).start, messages.ErrPartitionFailed)
		w.advance(time.Minute)
	}
	if s := w.core.Status(); s.Actualizations != 1 || len(w.timers) != 0 {
		t.Fatalf("status: %+v, timers %v", s, w.timers)
	}
	w.finish()
}

// "recovery logs every workspace | logs are bounded"
func TestFault_RecoveryIsQuiet(t *testing.T) {
	w := up(t, messages.Settings{FlushInterval: never})
	for i := range 200 {
		w.event(messages.WSID(2*i+1), kindWide)
	}
	w.crash()
	before := w.statuses
	w.settle()
	// It says once how far the replay is: for each piece of the tail but the last one. Nothing is logged for that.
	if n := w.statuses - before; n != 2 {
		t.Fatalf("the status changed %d times for 200 workspaces", n)
	}
	w.finish()
}
