package sequencer

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/partita-go/partita/messages"
)

// TestNeedsTime: the end of a transaction begins the interval if nothing else waits to be
// flushed.
func TestNeedsTime(t *testing.T) {
	w := up(t, messages.Settings{})
	o := w.begun(1, kindWide)
	if !w.core.NeedsTime() {
		t.Error("needs no time, though its event begins the interval")
	}
	w.commit(o)
	o = w.begun(1, kindWide)
	if w.core.NeedsTime() {
		t.Error("needs the time, though the interval has begun")
	}
	w.commit(o)
	w.finish()
}

// TestIntervalBeginsDuringAFlush: what becomes durable while a flush is under way waits an interval
// of its own.
func TestIntervalBeginsDuringAFlush(t *testing.T) {
	w := up(t, messages.Settings{FlushInterval: 100 * time.Millisecond})
	w.event(1, kindWide)
	w.now += 100_000
	w.fire()
	w.now += 50_000
	w.event2(1)
	w.now += 10_000
	w.settle()
	if len(w.flushes) != 1 {
		t.Fatalf("got %d flushes, want the first one", len(w.flushes))
	}
	w.advance(89 * time.Millisecond)
	if len(w.flushes) != 1 {
		t.Fatal("flushed before the second interval had passed")
	}
	w.advance(time.Millisecond)
	if len(w.flushes) != 2 {
		t.Fatalf("got %d flushes after the second interval, want two", len(w.flushes))
	}
	w.finish()
}

// TestFlushAtTheThresholdArmsNoTimer: nothing is left to wait for.
func TestFlushAtTheThresholdArmsNoTimer(t *testing.T) {
	w := up(t, messages.Settings{FlushThreshold: 1})
	w.event2(1)
	if slices.ContainsFunc(w.timers, func(t timer) bool { return t.timer == messages.TimerFlush }) {
		t.Errorf("got timers %v, want none for a flush", w.timers)
	}
	w.settle()
	w.finish()
}

// TestFailingFlushIsShown also while the partition stops or catches up.
func TestFailingFlushIsShown(t *testing.T) {
	shown := func(t *testing.T, w *world, state messages.PartitionState) {
		t.Helper()
		if s := w.core.Status(); s.State != state || !errors.Is(s.Err, errDown) {
			t.Errorf("got %v (%v), want %v (%v)", s.State, s.Err, state, errDown)
		}
	}
	t.Run("stopping", func(t *testing.T) {
		w := up(t, messages.Settings{FlushInterval: never})
		w.event(1, kindWide)
		w.flushMode = flushFails
		w.stop()
		w.settle()
		shown(t, w, messages.StateTerminating)
		w.finish()
	})
	t.Run("catching up", func(t *testing.T) {
		w := catchingUp(t, 40, 10, messages.Settings{FlushThreshold: 1, BusyLimit: 20})
		w.flushMode = flushFails
		w.settle()
		shown(t, w, messages.StateInitializing)
		w.finish()
	})
}

// TestDivergedFlushIsShown: the status says why the tail is replayed.
func TestDivergedFlushIsShown(t *testing.T) {
	w := up(t, messages.Settings{FlushThreshold: 1})
	w.diverge = true
	w.event2(1)
	w.work(flusherLeaf)
	w.deliver(flusherLeaf)
	if s := w.core.Status(); s.State != messages.StateInitializing || s.Err == nil {
		t.Errorf("got %v (%v), want %v and why", s.State, s.Err, messages.StateInitializing)
	}
	w.settle()
	w.finish()
}

// TestRetryTimerFiresTwice: a flush that is being tried again is not handed over once more.
func TestRetryTimerFiresTwice(t *testing.T) {
	w := up(t, messages.Settings{FlushThreshold: 1})
	w.flushMode = flushFails
	w.event2(1)
	w.settle()
	for range 2 {
		w.tell(&messages.TimerFired{Timer: messages.TimerFlushRetry})
		if jobs := w.leaves[flusherLeaf].jobs; len(jobs) != 1 {
			t.Fatalf("got %d flushes under way, want one", len(jobs))
		}
	}
}

// TestRetiredKeysCount: what a finished flush holds for loads under way is memory too, which the
// Busy limit bounds.
func TestRetiredKeysCount(t *testing.T) {
	w := up(t, messages.Settings{FlushThreshold: 2})
	w.event(1, kindWide)
	w.request(messages.Start{Workspace: 3, Kind: kindWide})
	w.settleBut(readerLeaf)
	if got := w.core.unflushedKeys(); len(w.flushes) != 1 || got != 2 {
		t.Errorf("got %d keys after %d flushes, want the 2 of one that a load may have missed", got, len(w.flushes))
	}
	w.settle()
	if got := w.core.unflushedKeys(); got != 0 {
		t.Errorf("got %d keys when the load had returned, want none", got)
	}
	w.finish()
}
