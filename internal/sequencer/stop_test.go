package sequencer

import (
	"testing"
	"time"

	"github.com/partita-go/partita/messages"
)

// TestStopAbandons: of a transaction whose end nobody tells the stop learns from the log
// whether it was written, under a new epoch.
func TestStopAbandons(t *testing.T) {
	for name, abandon := range map[string]func(w *world, o *owner){
		"actualize":     func(w *world, o *owner) { w.actualize(o) },
		"owner stopped": func(w *world, o *owner) { w.ownerStops(o) },
		"limit":         func(w *world, _ *owner) { w.advance(time.Second) },
	} {
		t.Run(name, func(t *testing.T) {
			w := up(t, messages.Settings{TransactionLimit: time.Second})
			w.event(1, kindWide, seqPlain)
			o := w.request(messages.Start{Workspace: 1, Kind: kindWide, WatchOwner: true})
			s := w.stop()
			w.given(w.next(o, seqPlain))
			w.write(o)
			abandon(w, o)
			w.settle()
			w.mustStop(s, true)
			w.crash()
			w.settle()
			if st := w.core.Status(); st.Replayed != 0 {
				t.Fatalf("replayed %d events after a clean stop", st.Replayed)
			}
			if got := w.event(1, kindWide, seqPlain); got[0] != 3 {
				t.Fatalf("got %v, want 3", got)
			}
			w.finish()
		})
	}
}

// TestStopWithoutHope: the last flush cannot succeed.
func TestStopWithoutHope(t *testing.T) {
	for name, test := range map[string]struct {
		fault func(w *world)
		clean bool
	}{
		"diverged once": {func(w *world) { w.diverge = true }, true},
		"broken":        {func(w *world) { w.breakFlush = true }, false},
	} {
		t.Run(name, func(t *testing.T) {
			w := up(t, messages.Settings{})
			w.event(1, kindWide)
			test.fault(w)
			s := w.stop()
			w.settle()
			w.mustStop(s, test.clean)
			w.finish()
		})
	}
}

// TestStopWhileDiverging: flush after flush is refused, whatever is replayed.
func TestStopWhileDiverging(t *testing.T) {
	w := up(t, messages.Settings{FlushInterval: never})
	w.event(1, kindWide)
	s := w.stop()
	for range maxDivergences {
		w.diverge = true
		w.settleBut(flusherLeaf)
		w.mustWait(s)
		w.work(flusherLeaf)
		w.deliver(flusherLeaf)
	}
	w.mustStop(s, false)
	w.finish()
}

// TestStopOfWhatIsHalfKnown: a core that has not read all of the log goes on with it and
// flushes, one that has failed writes nothing.
func TestStopOfWhatIsHalfKnown(t *testing.T) {
	base := func(t *testing.T) *world {
		w := up(t, messages.Settings{FlushInterval: never})
		for range 4 {
			w.event(1, kindWide, seqPlain)
		}
		w.piece = 1
		return w
	}
	for name, test := range map[string]struct {
		prepare func(w *world)
		clean   bool
	}{
		"epoch not taken yet": {func(w *world) { w.crash() }, true},
		"actualizing anew":    {func(w *world) { w.actualize(w.begun(1, kindWide)) }, true},
		"half replayed": {func(w *world) {
			w.crash()
			for range 3 {
				w.work(actualizerLeaf)
				w.deliver(actualizerLeaf)
			}
		}, true},
		"tries again": {func(w *world) {
			w.crash()
			w.failReplays = 1
			w.work(actualizerLeaf)
			w.deliver(actualizerLeaf)
		}, true},
		"log is broken": {func(w *world) {
			w.crash()
			w.breakReplay = true
		}, false},
		"failed in the middle of an event": {func(w *world) {
			w.damage = func(e *messages.Numbering) {
				if e.PLogOffset == 3 {
					e.Numbers = append(e.Numbers, messages.SequenceNumber{Seq: 99, Number: 1})
				}
			}
			w.crash()
			w.settle()
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			w := base(t)
			test.prepare(w)
			s, again := w.stop(), w.stop()
			if st := w.core.Status().State; st != messages.StateTerminating && st != messages.StateTerminated {
				t.Fatalf("the status is %v", st)
			}
			w.settle()
			w.advance(5 * time.Second)
			w.mustStop(s, test.clean)
			w.mustStop(again, test.clean)
			if flushed := w.checkpoint == messages.PLogOffset(len(w.log))+1; flushed != test.clean {
				t.Fatalf("flushed %v, clean %v", flushed, test.clean)
			}
			w.finish()
		})
	}
}

// TestStopLimitWhileActualizing: a replay that hangs, or fails again and again, is given up,
// and what is half known is not flushed.
func TestStopLimitWhileActualizing(t *testing.T) {
	for name, hang := range map[string]func(w *world){
		"hangs": func(*world) {},
		"fails": func(w *world) {
			w.failReplays = 1000
			w.settle()
		},
		"half replayed": func(w *world) {
			for range 3 {
				w.work(actualizerLeaf)
				w.deliver(actualizerLeaf)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := up(t, messages.Settings{FlushInterval: never, StopLimit: time.Second})
			for range 4 {
				w.event(1, kindWide, seqPlain)
			}
			w.piece = 1
			w.crash()
			s := w.stop()
			hang(w)
			w.mustWait(s)
			w.now += 1_000_000
			for !w.stopped && w.fire() {
				w.settleBut(actualizerLeaf)
			}
			w.mustStop(s, false)
			if jobs := w.leaves[flusherLeaf].jobs; len(jobs) != 0 {
				t.Fatalf("flushes what it does not know: %+v", jobs[0])
			}
			w.finish()
		})
	}
}

// TestStopElsewhere: a replay that fails since another node owns the log is given up, whether the stop comes before or after.
func TestStopElsewhere(t *testing.T) {
	for name, stopFirst := range map[string]bool{"before": true, "after": false} {
		t.Run(name, func(t *testing.T) {
			w := up(t, messages.Settings{FlushInterval: never, StopLimit: time.Hour})
			w.event(1, kindWide, seqPlain)
			w.crash()
			w.failReplays, w.elsewhere = 1000, true
			var s *call
			if stopFirst {
				s = w.stop()
				w.settle()
			} else {
				w.settle()
				s = w.stop()
			}
			w.mustStop(s, false)
			if w.failReplays != 999 {
				t.Errorf("got %d tries, want 1", 1000-w.failReplays)
			}
			w.finish()
		})
	}
}

// TestStopThatEndsAtOnceArmsNoTimer: of a partition that has nothing to wait for.
func TestStopThatEndsAtOnceArmsNoTimer(t *testing.T) {
	w := up(t, messages.Settings{})
	w.breakFlush = true
	w.event2(1)
	w.advance(time.Second)
	w.mustBe(messages.StateFailed)
	s := w.stop()
	w.mustStop(s, false)
	for _, alarm := range w.timers {
		if alarm.timer == messages.TimerStop {
			t.Error("got the timer of the stop, want none")
		}
	}
}
