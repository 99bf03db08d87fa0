package bolt

import (
	"context"
	"errors"
	"reflect"
	"sync"
	"testing"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage"
)

// since returns what there is behind the first seen events, which must be some.
func (s *Store) since(t testing.TB, seen int) []messages.Event {
	t.Helper()
	events, err := s.Since(t.Context(), uint64(seen))
	if err != nil || len(events) == 0 || len(events) > maxReadChunk {
		t.Fatalf("behind %d: got %d events and %v", seen, len(events), err)
	}
	return events
}

// allSince returns everything behind the first seen events.
func (s *Store) allSince(t testing.TB, seen int) (all []messages.Event) {
	t.Helper()
	for seen+len(all) < int(s.lastLSN.Load()) {
		all = append(all, s.since(t, seen+len(all))...)
	}
	return all
}

// isLog fails the test unless events are those of the log behind the first seen ones.
func (s *Store) isLog(t testing.TB, seen int, events []messages.Event) {
	t.Helper()
	want := collectEvents(t, s.Log(t.Context(), messages.LSN(seen)+1))
	if len(events) > len(want) || !reflect.DeepEqual(events, want[:len(events)]) {
		t.Fatalf("behind %d: got %d events that are not those of the log, which has %d", seen, len(events), len(want))
	}
}

// TestSince: wherever a reader stands, it gets what follows: where others are, where nobody has
// been yet, and where all others have passed.
func TestSince(t *testing.T) {
	s := open(t, t.TempDir(), testDescriptor(2, messages.TrustNone), Options{})
	a, b := takeOver(t, s, 0), takeOver(t, s, 1)
	if events, err := s.Since(t.Context(), 0); len(events) != 0 || err != nil {
		t.Fatalf("an empty log: got %d events and %v", len(events), err)
	}
	total := 0
	for _, n := range []int{1, 3, 600, 1, 40, 1500, 7, 512, 513, 2} {
		before := total
		a.appendMany((n+1)/2, 2, 4)
		b.appendMany(n/2, 1, 3)
		total += n
		for _, seen := range []int{before, before, total - 1, before + n/2, before - 1, 0, total - 2, before / 2, before} {
			if seen = max(seen, 0); seen < total {
				s.isLog(t, seen, s.allSince(t, seen))
			}
		}
		if events, err := s.Since(t.Context(), uint64(total)); len(events) != 0 || err != nil {
			t.Fatalf("the end: got %d events and %v", len(events), err)
		}
	}
}

// TestSinceIsShared: an event is read once for all who follow, also for those who are a little
// late, and those who are later do not take it from them.
func TestSinceIsShared(t *testing.T) {
	s := open(t, t.TempDir(), testDescriptor(1, messages.TrustNone), Options{})
	w := takeOver(t, s, 0)
	var before []messages.Event
	for seen := 0; seen < 3*maxReadChunk; seen += 100 {
		w.appendMany(100, 2)
		first := s.since(t, seen)
		s.allSince(t, seen)
		// Who appends to what it has got does not write into what others get.
		_ = append(before, messages.Event{})
		s.isLog(t, seen, s.allSince(t, seen))
		before = first
		if seen > maxReadChunk {
			s.since(t, 0)
		}
		late := s.since(t, max(seen-maxReadChunk/2, 0))
		again := s.since(t, seen)
		if &first[0] != &again[0] {
			t.Fatalf("behind %d: it was read twice", seen)
		}
		if &late[0] != &s.since(t, max(seen-maxReadChunk/2, 0))[0] {
			t.Fatalf("behind %d: a late reader reads for itself", seen)
		}
	}
}

// TestSinceIsBounded: what is kept does not grow with the log or the events.
func TestSinceIsBounded(t *testing.T) {
	s := open(t, t.TempDir(), testDescriptor(1, messages.TrustNone), Options{})
	w := takeOver(t, s, 0)
	kept := func() (events, bytes int) {
		for _, r := range s.recent.load() {
			events += len(r.events)
			for _, e := range r.events {
				bytes += len(e.Body)
			}
		}
		return events, bytes
	}
	for seen := range 20 {
		e := w.event(2)
		e.Body = make([]byte, 300<<10)
		if err := w.try(e); err != nil {
			t.Fatal(err)
		}
		s.since(t, seen)
		if _, bytes := kept(); bytes > 2*(maxReadBytes+len(e.Body)) {
			t.Fatalf("%d bytes are kept after %d events", bytes, seen+1)
		}
	}
	w.appendMany(3000, 2)
	s.isLog(t, 20, s.allSince(t, 20))
	if events, _ := kept(); events > 2*maxReadChunk {
		t.Fatalf("%d events are kept", events)
	}
}

// TestSinceInParallel: many readers beside the writers, each of which gets every event in its
// order, and waits in vain for none.
func TestSinceInParallel(t *testing.T) {
	const total = 3000
	s := open(t, t.TempDir(), testDescriptor(2, messages.TrustNone), Options{})
	var running sync.WaitGroup
	for reader := range 8 {
		running.Go(func() {
			var ends [2]messages.PLogOffset
			for seen := uint64(0); seen < total; {
				if _, err := s.AwaitAny(t.Context(), seen); err != nil {
					t.Error(err)
					return
				}
				events, err := s.Since(t.Context(), seen)
				for i := range events {
					e := &events[i]
					if ends[e.Partition]++; e.PLogOffset != ends[e.Partition] {
						err = errors.Join(err, errMisplaced)
					}
				}
				if err != nil || len(events) == 0 {
					t.Errorf("reader %d behind %d: got %d events and %v", reader, seen, len(events), err)
					return
				}
				seen += uint64(len(events))
			}
		})
	}
	for p := range messages.PartitionID(2) {
		w := takeOver(t, s, p)
		running.Go(func() {
			for i := 0; i < total/2; i += 10 {
				w.appendMany(10, messages.WSID(p), messages.WSID(p)+2)
			}
		})
	}
	running.Wait()
	s.isLog(t, 0, s.allSince(t, 0))
}

// TestSinceFails: what comes before something damaged is given; then the damage is told, to
// each who asks.
func TestSinceFails(t *testing.T) {
	s := open(t, t.TempDir(), testDescriptor(2, messages.TrustNone), Options{})
	w := takeOver(t, s, 0)
	w.append(2, 2, 2, 2, 2)
	damageLog(t, s, 4)
	for range 2 {
		if events := s.since(t, 1); len(events) != 2 {
			t.Fatalf("got %d events, want those before the damage", len(events))
		}
		for _, seen := range []uint64{3, 3} {
			if events, err := s.Since(t.Context(), seen); len(events) != 0 || !errors.Is(err, storage.ErrDamaged) {
				t.Fatalf("got %d events and %v", len(events), err)
			}
		}
		s.isLog(t, 4, s.allSince(t, 4))
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.Since(ctx, 0); !errors.Is(err, context.Canceled) {
		t.Fatalf("got %v", err)
	}
	closeStore(t, s)
	if _, err := s.Since(t.Context(), 0); !errors.Is(err, storage.ErrClosed) {
		t.Fatalf("got %v", err)
	}
}

// TestSinceTellsOfFailures: of a partition that has failed, with the next event of any.
func TestSinceTellsOfFailures(t *testing.T) {
	s := open(t, t.TempDir(), testDescriptor(2, messages.TrustNone), Options{})
	w, other := takeOver(t, s, 0), takeOver(t, s, 1)
	e := w.event(2)
	if err := w.try(e); err != nil {
		t.Fatal(err)
	}
	s.isLog(t, 0, s.since(t, 0))
	plant(t, s, storage.PlacePLog, &e)
	if err := s.Flush(t.Context(), w.pending()); !conflictAt(err, storage.PlacePLog) {
		t.Fatalf("flush: got %v", err)
	}
	other.append(1)
	if events, err := s.Since(t.Context(), 1); len(events) != 0 || !conflictAt(err, storage.PlacePLog) {
		t.Fatalf("got %d events and %v", len(events), err)
	}
}
