package actors_test

import (
	"errors"
	"testing"

	"github.com/partita-go/partita/actors"
	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage"
	"github.com/partita-go/partita/storage/storagetest"
)

// TestAppendSubmits: what the store takes at once does not pass the appender, and
// what it does not take does, without being prepared again.
func TestAppendSubmits(t *testing.T) {
	var store storagetest.Submitting
	r := readyRig(t, setup{wrap: func(f *storagetest.Faulty) actors.PartitionStore {
		store = storagetest.NewSubmitting(f)
		return store
	}})
	for i, want := range []int{0, 1, 1, 2} { // every other batch is taken
		r.append(7)
		if got := store.Rests(); got != want {
			t.Errorf("after %d appends: what was left of a batch was done %d times, want %d", i+1, got, want)
		}
		if got := r.spy.count("taken", "appender", &messages.WriteEvents{}); got != want {
			t.Errorf("after %d appends: got %d batches at the appender, want %d", i+1, got, want)
		}
	}
}

// TestAppendSubmittedRefused: a refusal of a submitted batch concerns whom it names.
func TestAppendSubmittedRefused(t *testing.T) {
	r := readyRig(t, setup{})
	r.store.Plant(storagetest.Fault{Op: storagetest.OpAppend, Times: 1, Do: storagetest.Fail(storage.ErrFull)})
	if _, err := r.of(7).Append(r.ctx, to(7), bill("bill")); !errors.Is(err, storage.ErrFull) {
		t.Errorf("got error %v, want %v", err, storage.ErrFull)
	}
	if got := r.append(7); got != 1 {
		t.Errorf("got invoice %d after a refused append, want 1", got)
	}
}

// TestAppendSubmittedOutlivesItsPartition: the answer about a batch that was submitted
// before a restart says nothing to the actor that came after it, which has fenced
// the batch off.
func TestAppendSubmittedOutlivesItsPartition(t *testing.T) {
	r := readyRig(t, setup{})
	gate := r.newGate()
	r.store.Plant(storagetest.Fault{Op: storagetest.OpAppend, Times: 1, Do: storagetest.Hold(gate)})
	first := r.appending(r.ctx, to(7))
	r.arrives(gate)
	r.panicNow()
	if err := <-first; !errors.Is(err, messages.ErrOutcomeUnknown) && !errors.Is(err, messages.ErrInterrupted) {
		t.Errorf("got error %v, want that of an actor that has failed", err)
	}
	r.await(0, messages.StateNormal)
	answers := r.spy.count("handled", "partition", &messages.EventsWritten{})
	gate.Release()
	r.eventually("the late answer is handled", func() bool {
		return r.spy.count("handled", "partition", &messages.EventsWritten{}) == answers+1
	})
	if got := r.append(7); got != 1 {
		t.Errorf("got invoice %d, want 1: the batch before was refused", got)
	}
}
