package sequencer

import (
	"testing"
	"time"

	"github.com/partita-go/partita/messages"
)

func TestStopIdle(t *testing.T) {
	w := up(t, messages.Settings{})
	w.mustStop(w.stop(), true)
	w.mustBe(messages.StateTerminated)
	if !w.core.Status().Clean {
		t.Fatal("the status does not say that the stop was clean")
	}
	w.finish()
}

// TestStopFlushes: after a clean stop the next start replays nothing.
func TestStopFlushes(t *testing.T) {
	w := up(t, messages.Settings{FlushInterval: never})
	for range 5 {
		w.event(1, kindWide, seqPlain)
	}
	s := w.stop()
	w.settle()
	w.mustStop(s, true)
	w.crash()
	w.settle()
	if st := w.core.Status(); st.Replayed != 0 || st.State != messages.StateNormal {
		t.Fatalf("status: %+v", st)
	}
	if got := w.event(1, kindWide, seqPlain); got[0] != 6 {
		t.Fatalf("got %v, want 6", got)
	}
	w.finish()
}

// TestStopWhileFlushing: what came while a flush was under way is flushed too.
func TestStopWhileFlushing(t *testing.T) {
	w := up(t, messages.Settings{FlushThreshold: 1})
	w.event2(1)
	w.event2(1)
	s := w.stop()
	w.settle()
	w.mustStop(s, true)
	if len(w.flushes) != 2 {
		t.Fatalf("got %d flushes, want 2", len(w.flushes))
	}
	w.finish()
}

// TestStopWaitsForTheTransaction, which goes on as if nothing had happened.
func TestStopWaitsForTheTransaction(t *testing.T) {
	for name, end := range map[string]func(w *world, o *owner){
		"flush":  func(w *world, o *owner) { w.commit(o) },
		"cancel": func(w *world, o *owner) { w.cancel(o) },
	} {
		t.Run(name, func(t *testing.T) {
			w := up(t, messages.Settings{})
			o := w.begun(1, kindWide)
			first, second := w.stop(), w.stop()
			w.settle()
			if first.reply != nil {
				t.Fatal("stopped while a transaction is open")
			}
			w.given(w.next(o, seqPlain))
			w.raise(o, seqFrom, 500)
			end(w, o)
			w.settle()
			w.mustStop(first, true)
			w.mustStop(second, true)
			w.mustStop(w.stop(), true)
			w.finish()
		})
	}
}

// TestStopAbandons: a transaction whose end nobody tells makes the stop unclean, and
// the next core reads the log.
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
			w.mustStop(s, false)
			w.crash()
			w.settle()
			if got := w.event(1, kindWide, seqPlain); got[0] != 3 {
				t.Fatalf("got %v, want 3", got)
			}
			w.finish()
		})
	}
}

// TestStopLimit: it ends also when the flusher hangs.
func TestStopLimit(t *testing.T) {
	w := up(t, messages.Settings{StopLimit: time.Second})
	w.event(1, kindWide)
	s := w.stop()
	w.now += 1_000_000
	for !w.stopped && w.fire() {
		w.settleBut(flusherLeaf)
	}
	w.mustStop(s, false)
	w.finish()
}

// TestStopAnswersThoseWhoWait: for a load, for their turn, for the log.
func TestStopAnswersThoseWhoWait(t *testing.T) {
	w := up(t, messages.Settings{})
	w.event(1, kindWide)
	before := w.begun(1, kindWide)
	w.commit(before)
	w.event(1, kindWide)
	late := w.flush(before)
	loading := w.request(messages.Start{Workspace: 3, Kind: kindWide})
	o := w.request(messages.Start{Workspace: 1, Kind: kindWide})
	turn := w.request(messages.Start{Workspace: 1, Kind: kindWide})
	s := w.stop()
	w.mustBusy(loading.start, messages.BusyStopping)
	w.mustBusy(turn.start, messages.BusyStopping)
	w.mustBusy(w.request(messages.Start{Workspace: 1, Kind: kindWide}).start, messages.BusyStopping)
	w.cancel(o)
	w.work(flusherLeaf)
	w.deliver(flusherLeaf)
	w.mustStop(s, true)
	w.mustRefuse(late, messages.ErrOutcomeUnknown)
	w.mustRefuse(w.request(messages.Start{Workspace: 1, Kind: kindWide}).start, messages.ErrStopped)
	w.finish()
}

// TestStopWithoutHope: the last flush cannot succeed.
func TestStopWithoutHope(t *testing.T) {
	for name, fault := range map[string]func(w *world){
		"diverged": func(w *world) { w.diverge = true },
		"broken":   func(w *world) { w.breakFlush = true },
	} {
		t.Run(name, func(t *testing.T) {
			w := up(t, messages.Settings{})
			w.event(1, kindWide)
			fault(w)
			s := w.stop()
			w.settle()
			w.mustStop(s, false)
			w.finish()
		})
	}
}

// TestStopOfWhatIsHalfKnown: a core that has not read all of the log, or has failed,
// stops at once and writes nothing.
func TestStopOfWhatIsHalfKnown(t *testing.T) {
	base := func(t *testing.T) *world {
		w := up(t, messages.Settings{FlushInterval: never})
		for range 4 {
			w.event(1, kindWide, seqPlain)
		}
		w.piece = 1
		return w
	}
	for name, prepare := range map[string]func(w *world){
		"epoch not taken yet": func(w *world) { w.crash() },
		"actualizing anew":    func(w *world) { w.actualize(w.begun(1, kindWide)) },
		"half replayed": func(w *world) {
			w.crash()
			for range 3 {
				w.work(actualizerLeaf)
				w.deliver(actualizerLeaf)
			}
		},
		"failed in the middle of an event": func(w *world) {
			w.damage = func(e *messages.Numbering) {
				if e.PLogOffset == 3 {
					e.Numbers = append(e.Numbers, messages.SequenceNumber{Seq: 99, Number: 1})
				}
			}
			w.crash()
			w.settle()
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := base(t)
			prepare(w)
			s := w.stop()
			w.mustStop(s, false)
			if jobs := w.leaves[flusherLeaf].jobs; len(jobs) != 0 {
				t.Fatalf("flushes what it does not know: %+v", jobs[0])
			}
			w.finish()
		})
	}
}

func TestAbortAnswersEverybody(t *testing.T) {
	w := up(t, messages.Settings{})
	w.event(1, kindWide)
	before := w.begun(1, kindWide)
	w.commit(before)
	w.event(1, kindWide)
	w.flush(before)
	w.request(messages.Start{Workspace: 3, Kind: kindWide})
	w.begun(1, kindWide)
	w.request(messages.Start{Workspace: 1, Kind: kindWide})
	w.flush(before)
	w.restart() // checks that nobody is left
	w.settle()
	o := w.begun(1, kindWide)
	w.stop()
	w.restart()
	w.mustRefuse(w.flushSettled(o), messages.ErrFenced)
	w.finish()
}
