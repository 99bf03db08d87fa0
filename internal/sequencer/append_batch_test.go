package sequencer

import (
	"slices"
	"testing"

	"github.com/partita-go/partita/messages"
)

// batchOf returns the workspaces of the batch under way, in its order.
func (w *world) batchOf() (all []messages.WSID) {
	if w.core.batch.underWay {
		for i := range w.core.batch.events {
			all = append(all, w.core.batch.events[i].Workspace)
		}
	}
	return all
}

func (w *world) mustBatch(want ...messages.WSID) {
	w.t.Helper()
	if got := w.batchOf(); !slices.Equal(got, want) {
		w.t.Fatalf("batch: got %v, want %v", got, want)
	}
}

// TestEvictedInBatch: with a cache of one, each workspace pushes the others out. A
// workspace in the queue or in the batch keeps its numbers, and there is one copy.
func TestEvictedInBatch(t *testing.T) {
	w := newWorld(t, messages.Settings{FlushInterval: never})
	w.config.CacheNumbers = 1
	w.begin()
	w.settle()
	var calls []*call
	for round := range 4 {
		for ws := messages.WSID(1); ws <= 9; ws += 2 {
			calls = append(calls, w.append(w.one(ws, kindWide, seqPlain)))
		}
		w.settleBut(appenderLeaf)
		if round == 0 && len(w.core.evicted) == 0 {
			t.Fatal("nothing was evicted")
		}
	}
	loads := w.core.lastLoad
	w.settle()
	for _, c := range calls {
		w.mustAppend(c)
	}
	if w.core.lastLoad != loads || len(w.core.evicted) != 0 {
		t.Fatalf("loaded again: %v; kept: %v", w.core.lastLoad != loads, w.core.evicted)
	}
	w.finish()
}

func (w *world) settled(c *call) *call {
	w.settle()
	return c
}

// TestBigBatchIsForgotten: the memory of a batch that was much larger than those
// that came later is not kept.
func TestBigBatchIsForgotten(t *testing.T) {
	w := warm(t, messages.Settings{})
	ms := make([]messages.Append, 500)
	for i := range ms {
		ms[i] = w.one(1, kindWide)
	}
	w.batched(ms...)
	w.write1()
	if cap(w.core.batch.events) < 500 {
		t.Fatal("memory is not used again")
	}
	w.done(w.append(w.one(1, kindWide)))
	if n := cap(w.core.batch.events); n != 0 {
		t.Fatalf("memory for %d events is kept", n)
	}
	w.finish()
}

// TestStrangeAnswers about a batch change nothing.
func TestStrangeAnswers(t *testing.T) {
	w := warm(t, messages.Settings{})
	c := w.append(w.one(1, kindWide))
	g := w.core.generation
	w.tell(&messages.EventsWritten{Generation: g - 1, First: 3})
	w.tell(&messages.EventsWritten{Generation: g, First: 2})
	w.tell(&messages.EventsLoaded{Generation: g, Load: 1})
	w.mustWait(c)
	w.done(c)
	w.tell(&messages.EventsWritten{Generation: g, First: 3})
	w.tell(&messages.EventsWritten{Generation: g, First: 4})
	w.finish()
}
