package bolt

import (
	"errors"
	"maps"
	"testing"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage"
)

// A record that came, and left the tail, between the look ahead and the append is in
// the way all the same.
func TestConflictFlushedSinceTheLookAhead(t *testing.T) {
	s := open(t, t.TempDir(), testDescriptor(1, messages.TrustNone), Options{})
	w := takeOver(t, s, 0)
	first := w.event(2)
	b := storage.Batch{Partition: 0, Epoch: w.epoch, Events: []messages.Event{first}}
	early := requestOf(t, s, &b)
	if err := w.try(first); err != nil {
		t.Fatal(err)
	}
	w.flush()
	late := w.event(2)
	early.events[0].offset, early.events[0].wlog, early.events[0].at = late.PLogOffset, late.WLogOffset, late.RegisteredAt
	s.writes <- early
	var conflict *storage.ConflictError
	if err := early.await(t.Context(), s.committed); !errors.As(err, &conflict) || conflict.Place != storage.PlaceRecord {
		t.Fatalf("got %v, want a conflict of a record", err)
	}
}

// The committer does not look again at what was looked at under the same checkpoint,
// and does at what could not be seen then.
func TestStateIsLookedAtAhead(t *testing.T) {
	s := open(t, t.TempDir(), testDescriptor(1, messages.TrustNone), Options{})
	w := takeOver(t, s, 0)
	w.append(2, 4)
	w.flush()
	workspaces := []messages.WSID{2, 4, 2, 6}
	events := make([]messages.Event, 0, len(workspaces))
	for _, ws := range workspaces {
		e := w.event(ws)
		w.learn(&e)
		w.next++
		events = append(events, e)
	}
	b := storage.Batch{Partition: 0, Epoch: w.epoch, Events: events}
	if r := requestOf(t, s, &b); r.checkedAt != 3 {
		t.Errorf("looked at checkpoint %d, want 3", r.checkedAt)
	}
	b.Events[0].Records = first(t, s, 2).Records // taken
	r := requestOf(t, s, &b)
	if r.checkedAt != 0 {
		t.Errorf("looked at checkpoint %d, want none: a key is taken", r.checkedAt)
	}
	s.writes <- r
	if err := r.await(t.Context(), s.committed); !errors.Is(err, storage.ErrConflict) {
		t.Errorf("got %v, want a conflict", err)
	}
}

func first(t *testing.T, s *Store, ws messages.WSID) messages.Event {
	t.Helper()
	for e, err := range s.WLog(t.Context(), ws, 1) {
		if err != nil {
			t.Fatal(err)
		}
		return e
	}
	t.Fatalf("workspace %d has no event", ws)
	return messages.Event{}
}

// The look ahead comes while the tail is trimmed, the append after it: what only an
// entry said that is gone since is looked for in state.db.
func TestLookAheadWhileTrimming(t *testing.T) {
	s := open(t, t.TempDir(), testDescriptor(1, messages.TrustNone), Options{})
	w := takeOver(t, s, 0)
	w.append(2, 4)
	p := &s.partitions[0]
	untrimmed := p.tail
	untrimmed.last, untrimmed.written = maps.Clone(untrimmed.last), maps.Clone(untrimmed.written)
	w.flush()
	forgetEnds(s)
	e := w.event(2)
	e.WLogOffset = 7 // the last one is 1
	trimmed := p.tail
	p.tail = untrimmed
	r := requestOf(t, s, &storage.Batch{Partition: 0, Epoch: w.epoch, Events: []messages.Event{e}})
	p.tail = trimmed
	s.writes <- r
	if err := r.await(t.Context(), s.committed); !errors.Is(err, storage.ErrOutOfOrder) {
		t.Errorf("got %v, want out of order", err)
	}
}
