package sequencer

import (
	"testing"
	"time"

	"github.com/partita-go/partita/messages"
)

// never is an interval that no test waits for.
const never = time.Hour

func TestFlushByTimer(t *testing.T) {
	w := up(t, messages.Settings{FlushInterval: 100 * time.Millisecond})
	w.event(1, kindWide, seqPlain)
	w.advance(60 * time.Millisecond)
	w.event(3, kindWide, seqPlain)
	w.advance(39 * time.Millisecond)
	if len(w.flushes) != 0 {
		t.Fatal("flushed before the interval had passed")
	}
	w.advance(time.Millisecond)
	if len(w.flushes) != 1 || w.checkpoint != 3 {
		t.Fatalf("got %d flushes, checkpoint %d, want one, 3", len(w.flushes), w.checkpoint)
	}
	w.advance(never)
	if len(w.flushes) != 1 || len(w.timers) != 0 {
		t.Fatalf("an idle partition goes on: %d flushes, timers %v", len(w.flushes), w.timers)
	}
	w.finish()
}

// TestFlushOfTheOffsetAlone: an event without numbers of its own is flushed too.
func TestFlushOfTheOffsetAlone(t *testing.T) {
	w := up(t, messages.Settings{})
	for range 3 {
		w.event(1, kindBare)
	}
	w.advance(500 * time.Millisecond)
	if w.checkpoint != 4 || w.seqData[1].numbers[messages.SeqWLogOffset] != 3 {
		t.Fatalf("got checkpoint %d, SeqData %v", w.checkpoint, w.seqData)
	}
	w.finish()
}

func TestFlushBySize(t *testing.T) {
	w := up(t, messages.Settings{FlushThreshold: 6, FlushInterval: never})
	// A new workspace changes its kind, its WLog offset and one sequence: 3 keys.
	w.event(1, kindWide, seqPlain)
	w.event(1, kindWide, seqPlain)
	w.event(1, kindWide, seqPlain)
	w.settle()
	if len(w.flushes) != 0 {
		t.Fatal("flushed below the threshold: the same keys were counted again")
	}
	w.event(3, kindWide, seqPlain)
	w.settle()
	if len(w.flushes) != 1 || w.checkpoint != 5 {
		t.Fatalf("got %d flushes, checkpoint %d, want one, 5", len(w.flushes), w.checkpoint)
	}
	w.finish()
}

// TestFlushByEvents: many events of few workspaces reach the limit of events
// without reaching the threshold of keys.
func TestFlushByEvents(t *testing.T) {
	w := up(t, messages.Settings{FlushInterval: never, BusyEvents: 10})
	for range 5 {
		w.event(1, kindWide)
	}
	w.settle()
	if w.checkpoint != 6 {
		t.Fatalf("got checkpoint %d, want 6", w.checkpoint)
	}
	w.finish()
}

// TestOneFlushTakesAll: while one flush is under way, the next gathers all.
func TestOneFlushTakesAll(t *testing.T) {
	w := up(t, messages.Settings{FlushThreshold: 1, FlushInterval: never})
	events := []messages.WSID{1, 3, 5, 7}
	for _, ws := range events {
		w.event2(ws)
	}
	if jobs := w.leaves[flusherLeaf].jobs; len(jobs) != 1 {
		t.Fatalf("got %d flushes under way, want 1", len(jobs))
	}
	w.settle()
	if len(w.flushes) != 2 || w.flushes[0].Checkpoint != 2 || w.flushes[1].Checkpoint != 5 {
		t.Fatalf("got %d flushes: %+v", len(w.flushes), w.flushes)
	}
	w.finish()
}

func TestFlushPermanentlyFails(t *testing.T) {
	down := func(t *testing.T) *world {
		w := up(t, messages.Settings{FlushThreshold: 3, BusyLimit: 9, StopLimit: time.Second})
		w.flushMode = flushFails
		for _, ws := range []messages.WSID{1, 3, 5} {
			w.event(ws, kindWide, seqPlain)
			w.settle()
			w.mustBe(messages.StateAlarming)
		}
		return w
	}
	t.Run("busy, then on again", func(t *testing.T) {
		w := down(t)
		w.mustBusy(w.request(messages.Start{Workspace: 1, Kind: kindWide}).start, messages.BusyUnflushed)
		w.advance(time.Minute)
		w.mustBusy(w.request(messages.Start{Workspace: 1, Kind: kindWide}).start, messages.BusyUnflushed)
		if s := w.core.Status(); s.Err == nil || s.FlushFailures < 100 {
			t.Fatalf("status: %+v", s)
		}
		w.flushMode = flushWorks
		w.advance(time.Second)
		w.mustBe(messages.StateNormal)
		if got := w.event(1, kindWide, seqPlain); got[0] != 2 {
			t.Fatalf("got %v, want 2", got)
		}
		w.finish()
	})
	t.Run("stop gives up", func(t *testing.T) {
		w := down(t)
		s := w.stop()
		w.advance(999 * time.Millisecond)
		if w.stopped {
			t.Fatal("gave up too early")
		}
		w.advance(time.Millisecond)
		w.mustStop(s, false)
		w.finish()
	})
	t.Run("stop succeeds", func(t *testing.T) {
		w := down(t)
		s := w.stop()
		w.advance(500 * time.Millisecond)
		w.flushMode = flushWorks
		w.advance(500 * time.Millisecond)
		w.mustStop(s, true)
		w.finish()
	})
}

// TestFlushRetriesTheSameBatch: what a flush that may have happened has written is
// written again, before anything newer.
func TestFlushRetriesTheSameBatch(t *testing.T) {
	w := up(t, messages.Settings{FlushThreshold: 1})
	w.flushMode = flushLies
	w.event(1, kindWide, seqPlain)
	w.settle()
	w.event(1, kindWide, seqPlain)
	w.flushMode = flushWorks
	w.advance(time.Second)
	if w.hits["flush repeated"] != 1 || len(w.flushes) != 2 || w.flushes[0].Checkpoint != 2 {
		t.Fatalf("got %d repetitions, flushes %+v", w.hits["flush repeated"], w.flushes)
	}
	w.finish()
}

func TestRetryDelaysGrow(t *testing.T) {
	const largest = 400 * time.Millisecond
	c := New(Config{Descriptor: testDescriptor(), Settings: messages.Settings{RetryDelay: largest}.WithDefaults()})
	distinct := make(map[time.Duration]bool)
	for failures, want := 1, largest/100; failures < 100; failures, want = failures+1, min(2*want, largest) {
		for range 20 {
			got := c.retryDelay(failures)
			if got < want/2 || got > want {
				t.Fatalf("failure %d: got %v, want %v to %v", failures, got, want/2, want)
			}
			distinct[got] = true
		}
	}
	if len(distinct) < 1000 {
		t.Fatalf("the delays have no jitter: %d are distinct", len(distinct))
	}
}

// TestFlushRetryIsDelayed: a flush that fails is not tried again at once.
func TestFlushRetryIsDelayed(t *testing.T) {
	w := up(t, messages.Settings{FlushThreshold: 1})
	w.flushMode = flushFails
	w.event(1, kindWide)
	w.settle()
	if len(w.timers) == 0 || w.core.flight.failures != 1 {
		t.Fatalf("got %d failures, timers %v", w.core.flight.failures, w.timers)
	}
	w.advance(time.Minute)
	// At most all of the delay passes between two tries, at least half of it.
	if n := w.core.flight.failures; n < 120 || n > 260 {
		t.Fatalf("got %d tries in a minute, want 120 to 260", n)
	}
	w.finish()
}

// TestDivergedFlush: the log is the truth, so its tail is replayed; a flush that
// succeeds begins the count anew.
func TestDivergedFlush(t *testing.T) {
	w := up(t, messages.Settings{FlushThreshold: 1})
	for range 2 * maxDivergences {
		w.diverge = true
		w.event(1, kindWide, seqPlain)
		w.settle()
		w.mustBe(messages.StateNormal)
	}
	if s := w.core.Status(); s.Actualizations != 1+2*maxDivergences || s.Checkpoint != 1+2*maxDivergences {
		t.Fatalf("status: %+v", s)
	}
	w.finish()
}

func TestDivergedForEver(t *testing.T) {
	w := up(t, messages.Settings{FlushThreshold: 1})
	w.event2(1)
	for range maxDivergences {
		w.mustBe(messages.StateNormal)
		w.diverge = true
		w.work(flusherLeaf)
		w.deliver(flusherLeaf)
		w.settleBut(flusherLeaf)
	}
	w.mustBe(messages.StateFailed)
	w.finish()
}

// event2 is an event whose flush is left to the test.
func (w *world) event2(ws messages.WSID) {
	w.t.Helper()
	o := w.request(messages.Start{Workspace: ws, Kind: kindWide})
	w.settleBut(flusherLeaf)
	if !o.granted {
		w.t.Fatalf("not granted: %v", refusalOf(o.start))
	}
	w.next(o, seqPlain)
	w.commit(o)
}

// settleBut lets all leaves but one work.
func (w *world) settleBut(idle int) {
	for busy := true; busy; {
		busy = false
		for i := range w.leaves {
			if i != idle && (w.work(i) || w.deliver(i)) {
				busy = true
			}
		}
	}
}
