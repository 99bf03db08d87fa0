package sequencer

import (
	"errors"
	"strings"
	"testing"

	"github.com/partita-go/partita/messages"
)

// TestFailureEndsTheTransaction: nobody is watched any more, and the request lane is taken, so
// that whoever waits in it is refused.
func TestFailureEndsTheTransaction(t *testing.T) {
	w := up(t, messages.Settings{FlushThreshold: 1})
	w.event2(1)
	o := w.request(messages.Start{Workspace: 1, Kind: kindWide, WatchOwner: true})
	if w.watched != o.start {
		t.Fatal("the owner is not watched")
	}
	w.breakFlush = true
	w.settle()
	w.mustBe(messages.StateFailed)
	if w.watched != nil {
		t.Error("the owner is watched still")
	}
	if !w.core.TakesRequests() {
		t.Error("the request lane is held")
	}
}

// TestFailureAnswersLateFlushes: nobody can ask the log for them.
func TestFailureAnswersLateFlushes(t *testing.T) {
	w := up(t, messages.Settings{FlushThreshold: 1})
	w.event(1, kindWide)
	o := w.begun(1, kindWide)
	w.commit(o)
	w.settle()
	w.event2(1)
	late := w.flush(o)
	w.breakFlush = true
	w.settleBut(readerLeaf)
	w.mustBe(messages.StateFailed)
	w.mustRefuse(late, messages.ErrOutcomeUnknown)
}

// TestActualizationForgetsLoads: whoever waited for one waits for another, and is counted once.
func TestActualizationForgetsLoads(t *testing.T) {
	w := warm(t, messages.Settings{})
	o := w.begun(1, kindWide)
	for range maxAwaiting {
		w.append(w.one(5, kindWide))
	}
	w.actualize(o)
	w.settle()
	if !w.core.TakesRequests() {
		t.Error("takes no requests, though nobody waits")
	}
	w.finish()
}

// TestReserveOfAnUnknownKind, or of another number of sequences.
func TestReserveOfAnUnknownKind(t *testing.T) {
	kinds := NewKinds(testDescriptor())
	for _, kind := range []messages.WSKind{99, kindWide} {
		if _, err := kinds.Reserve(1, kind, &messages.Started{Last: make([]messages.Number, 1)}); !errors.Is(err, messages.ErrUnknownKind) {
			t.Errorf("kind %d: got %v, want %v", kind, err, messages.ErrUnknownKind)
		}
	}
}

// TestTooManyNumbersSaysHowMany were asked for.
func TestTooManyNumbersSaysHowMany(t *testing.T) {
	kinds := NewKinds(testDescriptor())
	r, err := kinds.Reserve(1, kindBare, &messages.Started{Last: make([]messages.Number, len(testDescriptor().Kinds[2].All()))})
	if err != nil {
		t.Fatal(err)
	}
	for range messages.MaxEventNumbers {
		if _, err := r.Next(messages.Wanted{Seq: messages.SeqCRecordID}); err != nil {
			t.Fatal(err)
		}
	}
	_, err = r.Next(messages.Wanted{Seq: messages.SeqCRecordID})
	if !errors.Is(err, messages.ErrTooManyNumbers) || !strings.Contains(err.Error(), "got 131073, want at most 131072") {
		t.Errorf("got %v, want %v with 131073 and 131072", err, messages.ErrTooManyNumbers)
	}
}
