package sequencer

import (
	"testing"
	"time"

	"github.com/partita-go/partita/messages"
)

// TestStopThatEndsAtOnceArmsNoTimer: of a partition that has nothing to wait for.
func TestStopThatEndsAtOnceArmsNoTimer(t *testing.T) {
	w := newWorld(t, messages.Settings{})
	w.begin()
	s := w.stop()
	w.mustStop(s, false)
	for _, alarm := range w.timers {
		if alarm.timer == messages.TimerStop {
			t.Error("got the timer of the stop, want none")
		}
	}
}

// TestStopSaysWhyItGaveUp also when it has ended.
func TestStopSaysWhyItGaveUp(t *testing.T) {
	w := up(t, messages.Settings{FlushInterval: never})
	w.event(1, kindWide)
	w.breakFlush = true
	s := w.stop()
	w.settle()
	w.mustStop(s, false)
	if err := w.core.Status().Err; err == nil || err.Error() != "damaged" {
		t.Errorf("got %v, want why the last flush failed", err)
	}
}

// TestStopLimitEndsTheTransaction, whose owner is watched no longer.
func TestStopLimitEndsTheTransaction(t *testing.T) {
	w := up(t, messages.Settings{StopLimit: time.Second, TransactionLimit: time.Hour})
	o := w.request(messages.Start{Workspace: 1, Kind: kindWide, WatchOwner: true})
	w.settle()
	if !o.granted || w.watched == nil {
		t.Fatalf("granted %v, watched %v", o.granted, w.watched)
	}
	s := w.stop()
	w.advance(time.Second)
	w.mustStop(s, false)
	if w.watched != nil {
		t.Error("the owner is watched still")
	}
}
