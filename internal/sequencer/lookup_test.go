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

func TestStoredContradictsLog(t *testing.T) {
	tests := []struct {
		name   string
		stored storedNumbers
	}{
		{"WLog offset above the log", storedOf(kindWide, map[messages.SeqID]messages.Number{messages.SeqWLogOffset: 3, seqPlain: 1})},
		{"another kind", storedOf(kindOther, map[messages.SeqID]messages.Number{messages.SeqWLogOffset: 1, seqPlain: 10})},
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
		stored storedNumbers
		want   error
	}{
		"kind":     {storedOf(9, map[messages.SeqID]messages.Number{messages.SeqWLogOffset: 1}), messages.ErrUnknownKind},
		"sequence": {storedOf(kindWide, map[messages.SeqID]messages.Number{messages.SeqWLogOffset: 1, 99: 1}), messages.ErrUnknownSequence},
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
