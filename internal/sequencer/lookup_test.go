package sequencer

import (
	"testing"
	"time"

	"github.com/partita-go/partita/messages"
)

// TestLookupOrder puts the last numbers of a workspace into one place after the
// other. Each place alone must do, without or with a load of what is stored. What
// the open transaction holds: TestEvictedWhileOpen; retired flushes: TestStaleLoad.
func TestLookupOrder(t *testing.T) {
	tests := []struct {
		name string
		// place brings two events of workspace 1 to where they are looked up.
		place func(w *world)
		loads bool
	}{
		{"cache", func(w *world) { w.event2(1) }, false},
		{"unflushed", func(w *world) { w.event2(1); w.evict() }, false},
		{"in flight", func(w *world) { w.event2(1); w.fill(); w.evict() }, false},
		{"unflushed, first event stored", func(w *world) { w.flushed(1); w.event2(1); w.evict() }, true},
		{"in flight, first event stored", func(w *world) { w.flushed(1); w.event2(1); w.fill(); w.evict() }, true},
		{"in flight and unflushed", func(w *world) { w.event2(1); w.fill(); w.event2(1); w.evict() }, false},
		{"stored", func(w *world) { w.flushed(1); w.evict() }, true},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			w := newWorld(t, messages.Settings{FlushThreshold: 12, FlushInterval: never})
			w.config.CacheNumbers = 1
			w.begin()
			w.settle()
			w.event2(1)
			test.place(w)
			before := w.core.lastLoad
			o := w.request(messages.Start{Workspace: 1, Kind: kindWide})
			if got := w.core.lastLoad > before; got != test.loads {
				t.Fatalf("loaded: got %v, want %v", got, test.loads)
			}
			w.settleBut(flusherLeaf)
			for w.open != o {
				w.cancel(w.open)
			}
			// What is given is checked against the log.
			w.given(w.next(o, seqPlain))
			w.commit(o)
			w.finish()
		})
	}
}

// evict lets another workspace push everybody else out of the cache.
func (w *world) evict() {
	o := w.request(messages.Start{Workspace: 999, Kind: kindBare})
	w.settleBut(flusherLeaf)
	w.cancel(o)
}

// fill reaches the threshold with events of other workspaces, so that a flush is
// under way.
func (w *world) fill() {
	for ws := messages.WSID(101); w.core.flight.pending == nil; ws += 2 {
		w.event2(ws)
	}
}

// flushed lets everything be flushed.
func (w *world) flushed(ws messages.WSID) {
	w.event2(ws)
	w.fill()
	w.advance(never)
	w.settle()
}

// TestStaleLoad: a load that has read before a flush was written comes back after
// that has completed. The flushed numbers must still be found.
func TestStaleLoad(t *testing.T) {
	w := newWorld(t, messages.Settings{FlushThreshold: 1, FlushInterval: never})
	w.config.CacheNumbers = 1
	w.begin()
	w.settle()
	w.event2(1)
	w.settle()
	w.event2(1)
	w.evict()
	// The second event is in flight; the load reads what is stored before.
	o := w.request(messages.Start{Workspace: 1, Kind: kindWide})
	w.work(readerLeaf)
	w.work(flusherLeaf)
	w.deliver(flusherLeaf)
	if w.core.flight.pending != nil || len(w.core.retired) != 1 {
		t.Fatalf("want the flush completed and kept for the load: %+v", w.core.retired)
	}
	w.deliver(readerLeaf)
	if len(w.core.retired) != 0 {
		t.Fatal("the flush is kept for no load")
	}
	if got := w.given(w.next(o, seqPlain)); got != 3 {
		t.Fatalf("got number %d, want 3", got)
	}
	w.commit(o)
	w.finish()
}

// TestRetiredUntilTheOldestLoad: each finished flush stays until the loads that were
// begun before its completion have returned, and no longer.
func TestRetiredUntilTheOldestLoad(t *testing.T) {
	w := newWorld(t, messages.Settings{FlushThreshold: 1, FlushInterval: never})
	w.config.CacheNumbers = 1
	w.begin()
	w.settle()
	want := func(retired int) {
		t.Helper()
		if got := len(w.core.retired); got != retired {
			t.Fatalf("got %d flushes kept, want %d", got, retired)
		}
	}
	begun := w.begun(1, kindWide)
	first := w.request(messages.Start{Workspace: 3, Kind: kindWide})
	w.work(readerLeaf)
	w.commit(begun)
	second := w.request(messages.Start{Workspace: 5, Kind: kindWide})
	w.work(readerLeaf)
	w.work(flusherLeaf)
	w.deliver(flusherLeaf)
	want(1)
	third := w.request(messages.Start{Workspace: 7, Kind: kindWide})
	w.deliver(readerLeaf)
	want(1)
	w.deliver(readerLeaf)
	want(0)
	for _, o := range []*owner{first, second} {
		w.cancel(o)
	}
	w.settle()
	w.cancel(third)
	w.finish()
}

func TestTinyCache(t *testing.T) {
	w := newWorld(t, messages.Settings{FlushThreshold: 7})
	w.config.CacheNumbers = 1
	w.begin()
	w.settle()
	for i := range 200 {
		w.event(messages.WSID(2*(i%17)+1), kindWide, seqPlain, messages.SeqCRecordID)
		if n := w.core.cache.Len(); n > 1 {
			t.Fatalf("got %d workspaces in the cache, want 1", n)
		}
	}
	w.finish()
}

// TestEvictedWhileOpen: the cache drops the workspace of the open transaction. There
// must never be two copies of its numbers.
func TestEvictedWhileOpen(t *testing.T) {
	w := newWorld(t, messages.Settings{FlushInterval: never})
	w.config.CacheNumbers = 1
	w.begin()
	w.settle()
	o := w.begun(1, kindWide)
	w.request(messages.Start{Workspace: 3, Kind: kindWide})
	w.settle()
	before := w.core.lastLoad
	again := w.request(messages.Start{Workspace: 1, Kind: kindWide})
	if w.core.cache.Contains(1) || w.core.lastLoad != before {
		t.Fatal("want the workspace out of the cache, and found in the open transaction")
	}
	w.given(w.next(o, seqPlain))
	w.commit(o)
	w.commit(w.open)
	w.commit(again)
	if again.wlogOffset != 2 {
		t.Fatalf("got WLog offset %d, want 2", again.wlogOffset)
	}
	w.finish()
}

// TestKindChosenAnew: two wait for the same workspace without events. What the first
// is granted under and gives back must not stay with the second.
func TestKindChosenAnew(t *testing.T) {
	w := up(t, messages.Settings{})
	first := w.request(messages.Start{Workspace: 1, Kind: kindWide})
	second := w.request(messages.Start{Workspace: 1, Kind: kindOther})
	third := w.request(messages.Start{Workspace: 1, Kind: kindWide})
	w.settle()
	w.cancel(first)
	if got := w.given(w.next(second, seqPlain)); got != 10 {
		t.Fatalf("got %d, want kind %d's initial value 10", got, kindOther)
	}
	w.commit(second)
	w.mustRefuse(third.start, messages.ErrKindMismatch)
	w.finish()
}

func TestStoredContradictsLog(t *testing.T) {
	tests := []struct {
		name   string
		stored lasts
	}{
		{"WLog offset above the log", lasts{kindWide, map[messages.SeqID]messages.Number{messages.SeqWLogOffset: 3, seqPlain: 1}}},
		{"another kind", lasts{kindOther, map[messages.SeqID]messages.Number{messages.SeqWLogOffset: 1, seqPlain: 10}}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			w := newWorld(t, messages.Settings{FlushThreshold: 12, FlushInterval: never})
			w.config.CacheNumbers = 1
			w.begin()
			w.settle()
			w.flushed(1)
			w.event2(1)
			w.evict()
			right := w.seqData[1]
			w.seqData[1] = test.stored
			o := w.request(messages.Start{Workspace: 1, Kind: kindWide})
			w.settleBut(flusherLeaf)
			w.mustRefuse(o.start, messages.ErrStoredNumber)
			// Others do not suffer, and it goes on when it is repaired.
			w.event2(3)
			w.seqData[1] = right
			w.event(1, kindWide, seqPlain)
			w.finish()
		})
	}
}

func TestStoredUnknown(t *testing.T) {
	for name, test := range map[string]struct {
		stored lasts
		want   error
	}{
		"kind":     {lasts{9, map[messages.SeqID]messages.Number{messages.SeqWLogOffset: 1}}, messages.ErrUnknownKind},
		"sequence": {lasts{kindWide, map[messages.SeqID]messages.Number{messages.SeqWLogOffset: 1, 99: 1}}, messages.ErrUnknownSequence},
	} {
		t.Run(name, func(t *testing.T) {
			w := up(t, messages.Settings{})
			w.seqData[1] = test.stored
			o := w.request(messages.Start{Workspace: 1, Kind: kindWide})
			w.settle()
			w.mustRefuse(o.start, test.want)
		})
	}
}

func TestLoadFails(t *testing.T) {
	w := up(t, messages.Settings{})
	w.failLoads = 1
	first := w.request(messages.Start{Workspace: 1, Kind: kindWide})
	second := w.request(messages.Start{Workspace: 1, Kind: kindWide})
	w.settle()
	w.mustRefuse(first.start, errDown)
	w.mustRefuse(second.start, errDown)
	w.event(1, kindWide)
	w.finish()
}

// TestLoadsAreShared: Starts of one workspace wait for one load in order, others
// pass.
func TestLoadsAreShared(t *testing.T) {
	w := up(t, messages.Settings{})
	w.event(3, kindWide)
	owners := make([]*owner, 5)
	for i := range owners {
		owners[i] = w.request(messages.Start{Workspace: 1, Kind: kindWide})
	}
	if n := len(w.leaves[readerLeaf].jobs); n != 1 {
		t.Fatalf("got %d loads, want 1", n)
	}
	w.event(3, kindWide)
	w.settle()
	for _, o := range owners {
		if w.open != o {
			t.Fatal("granted out of order")
		}
		w.commit(o)
	}
	w.finish()
}

// TestRequestsAreHeld: what waits inside the core is bounded.
func TestRequestsAreHeld(t *testing.T) {
	t.Run("many workspaces", func(t *testing.T) {
		w := up(t, messages.Settings{})
		n := 0
		for ; w.core.TakesRequests() && n < 10*maxLoads; n++ {
			w.request(messages.Start{Workspace: messages.WSID(2*n + 1), Kind: kindWide})
		}
		if n != maxLoads {
			t.Fatalf("got %d, want %d", n, maxLoads)
		}
		w.finish()
	})
	t.Run("one workspace", func(t *testing.T) {
		w := up(t, messages.Settings{})
		n := 0
		for ; w.core.TakesRequests() && n < 10*maxAwaiting; n++ {
			w.request(messages.Start{Workspace: 1, Kind: kindWide})
		}
		if n != maxAwaiting {
			t.Fatalf("got %d, want %d", n, maxAwaiting)
		}
		w.finish()
		if w.core.awaiting != 0 {
			t.Fatalf("still counts %d", w.core.awaiting)
		}
	})
	t.Run("open", func(t *testing.T) {
		w := up(t, messages.Settings{StopLimit: time.Second})
		w.begun(1, kindWide)
		if w.core.TakesRequests() {
			t.Fatal("takes a request while a transaction is open")
		}
		w.stop()
		if !w.core.TakesRequests() {
			t.Fatal("lets requests wait for a refusal")
		}
		w.mustBusy(w.request(messages.Start{Workspace: 3, Kind: kindWide}).start, messages.BusyStopping)
		w.finish()
	})
}
