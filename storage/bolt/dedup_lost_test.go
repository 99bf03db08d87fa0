package bolt

import (
	"errors"
	"reflect"
	"testing"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage"
	"github.com/partita-go/partita/storage/bolt/internal/dedup"
	"github.com/partita-go/partita/storage/bolt/internal/format"
)

// batchOf makes the next events of a workspace, with these ids and without records.
func (w *writer) batchOf(ws messages.WSID, ids ...messages.DedupID) []messages.Event {
	events := make([]messages.Event, len(ids))
	for i, id := range ids {
		e := w.named(ws, id)
		e.PLogOffset += messages.PLogOffset(i)
		e.WLogOffset += messages.WLogOffset(i)
		e.Numbers, e.Records = nil, nil
		events[i] = e
	}
	return events
}

// mustLose appends what must be refused since the ids of the events named cannot be
// looked up.
func (w *writer) mustLose(events []messages.Event, want ...messages.PLogOffset) {
	w.t.Helper()
	err := w.try(events...)
	got, ok := errors.AsType[*storage.LookupError](err)
	if !ok || !errors.Is(err, storage.ErrDamaged) || got.Partition != w.id || !reflect.DeepEqual(got.PLogOffsets, want) {
		w.t.Fatalf("got %v, want offsets %v", err, want)
	}
}

// Of a batch, exactly the events are named whose ids cannot be looked up.
func TestLostIDsAreNamed(t *testing.T) {
	none, first := messages.DedupID{}, messages.DedupID{1}
	damages := map[string]func(t *testing.T, s *Store) (restore func()){
		"slot": func(t *testing.T, s *Store) func() {
			key := dedup.AppendKey(nil, 1, dedup.LastHash)
			value := get(t, s.state, format.BucketDedup, key)
			value[len(value)-1] ^= 1
			put(t, s.state, format.BucketDedup, key, value)
			return func() {
				value[len(value)-1] ^= 1
				put(t, s.state, format.BucketDedup, key, value)
			}
		},
		"event": func(t *testing.T, s *Store) func() {
			damageLog(t, s, 1)
			return func() { damageLog(t, s, 1) }
		},
	}
	for name, damage := range damages {
		t.Run(name, func(t *testing.T) {
			s := open(t, t.TempDir(), testDescriptor(1, messages.TrustNone), Options{})
			s.known = nil // as if it had met the damage
			w := takeOver(t, s, 0)
			w.appendNamed(3, first)
			w.flush()
			key := format.DedupKey{Workspace: 3, ID: first}
			half := key.Hash(s.files.ID) >> 63
			good := idsInHalf(s, 3, 1-half, 3)
			restore := damage(t, s)
			w.mustLose(w.batchOf(3, good[0], none, first, good[1]), 4)
			w.mustLose(w.batchOf(3, first), 2)
			// The first of two is no proof that the second is a repetition.
			w.mustLose(w.batchOf(3, first, first), 2, 3)
			if name == "slot" {
				other := idsInHalf(s, 3, half, 1)[0]
				w.mustLose(w.batchOf(3, first, good[0], other), 2, 4)
			}
			if err := w.try(w.batchOf(3, good[0], none, good[1])...); err != nil {
				t.Fatal(err)
			}
			// What is known for sure is said first.
			err := w.try(w.batchOf(3, first, good[1])...)
			if d, ok := errors.AsType[*storage.DuplicateError](err); !ok || len(d.Duplicates) != 1 || d.Duplicates[0].PLogOffset != 6 {
				t.Fatalf("got %v", err)
			}
			restore()
			if err := w.try(w.batchOf(3, first)...); !errors.Is(err, storage.ErrDuplicate) {
				t.Fatalf("got %v", err)
			}
			w.appendNamed(3, good[2])
		})
	}
}

// The list of runs is damaged: no id can be looked up, appends without one go on.
func TestLostRunsAreNamed(t *testing.T) {
	s := open(t, t.TempDir(), testDescriptor(1, messages.TrustNone), Options{})
	s.known = nil // as if it had met the damage
	w := takeOver(t, s, 0)
	w.appendNamed(3, messages.DedupID{1})
	w.flush()
	list := get(t, s.state, format.BucketHeader, format.KeyDedup)
	list[0] ^= 1
	put(t, s.state, format.BucketHeader, format.KeyDedup, list)
	w.mustLose(w.batchOf(3, messages.DedupID{2}, messages.DedupID{}, messages.DedupID{3}), 2, 4)
	w.append(3)
}

// Two events are damaged, and a third is whole.
func TestLostEventsAreNamed(t *testing.T) {
	s := open(t, t.TempDir(), testDescriptor(1, messages.TrustNone), Options{})
	w := takeOver(t, s, 0)
	ids := []messages.DedupID{{1}, {2}, {3}}
	w.appendNamed(3, ids...)
	w.flush()
	damageLog(t, s, 1, 2)
	w.mustLose(w.batchOf(3, ids[0], messages.DedupID{4}, ids[1]), 4, 6)
	err := w.try(w.batchOf(3, ids...)...)
	if d, ok := errors.AsType[*storage.DuplicateError](err); !ok || len(d.Duplicates) != 1 || d.Duplicates[0].First != 3 {
		t.Fatalf("got %v", err)
	}
}
