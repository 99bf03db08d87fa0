package bolt

import (
	"errors"
	"maps"
	"slices"
	"testing"

	"go.etcd.io/bbolt"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage"
	"github.com/partita-go/partita/storage/bolt/internal/expect"
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
	if err := early.Await(t.Context(), s.committed); !errors.As(err, &conflict) || conflict.Place != storage.PlaceRecord {
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
	if err := r.Await(t.Context(), s.committed); !errors.Is(err, storage.ErrConflict) {
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
	untrimmed.Last = maps.Clone(untrimmed.Last)
	w.flush()
	forgetEnds(s)
	e := w.event(2)
	e.WLogOffset = 7 // the last one is 1
	trimmed := p.tail
	p.tail = untrimmed
	r := requestOf(t, s, &storage.Batch{Partition: 0, Epoch: w.epoch, Events: []messages.Event{e}})
	p.tail = trimmed
	forgetEnds(s) // what the look ahead has found
	s.writes <- r
	if err := r.Await(t.Context(), s.committed); !errors.Is(err, storage.ErrOutOfOrder) {
		t.Errorf("got %v, want out of order", err)
	}
}

// What is remembered when a request is looked at may be forgotten when its turn comes:
// an event is passed over only if nothing about it is left for the committer to find.
func TestLookAheadPassesOverWhatIsRemembered(t *testing.T) {
	for name, c := range map[string]struct {
		change  func(n *newEvent)
		want    foreknown
		refused bool
	}{
		"the next event":                 {func(*newEvent) {}, freeKnown, false},
		"a gap before it":                {func(n *newEvent) { n.wlog++ }, nothingKnown, true},
		"a repeated offset":              {func(n *newEvent) { n.wlog-- }, nothingKnown, true},
		"another kind":                   {func(n *newEvent) { n.wsKind++ }, nothingKnown, true},
		"a record that is there":         {func(n *newEvent) { n.records[0].Number-- }, nothingKnown, true},
		"a record of another sequence":   {func(n *newEvent) { n.records[0].Seq += 100 }, nothingKnown, false},
		"an update of what is not known": {func(n *newEvent) { n.records[0].Seq, n.records[0].IsNew = 100, false }, freeKnown, false},
	} {
		t.Run(name, func(t *testing.T) {
			s := open(t, t.TempDir(), testDescriptor(1, messages.TrustNone), Options{})
			w := takeOver(t, s, 0)
			w.append(2)
			w.flush()
			known := w.event(2)
			w.learn(&known)
			w.next++
			// Nobody has looked at 6.
			r := prepared(t, s, &storage.Batch{Partition: 0, Epoch: w.epoch, Events: []messages.Event{known, w.event(6)}})
			c.change(&r.events[0])
			if _, got := r.beforehand(messages.TrustNone); got[0] != c.want || got[1] != nothingKnown {
				t.Errorf("got %v, want %v and %v", got, c.want, nothingKnown)
			}
			s.lookAhead(r)
			forgetEnds(s)
			s.writes <- r
			if err := r.Await(t.Context(), s.committed); (err != nil) != c.refused {
				t.Errorf("got %v", err)
			}
		})
	}
}

// An event is compared with its own workspace's head, although the one before it in the request, of the same workspace,
// needed none.
func TestLookAheadComparesWithItsOwnHead(t *testing.T) {
	s := open(t, t.TempDir(), testDescriptor(1, messages.TrustNone), Options{})
	w := takeOver(t, s, 0)
	w.append(2)
	w.flush()
	var events []messages.Event
	for _, ws := range []messages.WSID{6, 2, 2} {
		events = append(events, w.event(ws))
		w.learn(&events[len(events)-1])
		w.next++
	}
	r := prepared(t, s, &storage.Batch{Partition: 0, Epoch: w.epoch, Events: events})
	r.events[2].records[0].Number -= 2 // it is there
	if _, known := r.beforehand(messages.TrustNone); !slices.Equal(known, []foreknown{nothingKnown, freeKnown, lastKnown}) {
		t.Fatalf("got %v", known)
	}
	s.lookAhead(r)
	forgetEnds(s)
	s.writes <- r
	if err := r.Await(t.Context(), s.committed); !conflictAt(err, storage.PlaceRecord) {
		t.Errorf("got %v, want a conflict", err)
	}
}

// learnedOf returns what a look into state.db teaches of a request.
func learnedOf(t *testing.T, s *Store, r *writeRequest, known []foreknown) learned {
	t.Helper()
	l := newLearned(r)
	expect.NoError(t, s.state.View(func(tx *bbolt.Tx) error {
		return s.checkState(tx, r, r.events[len(r.events)-1].offset, known, l)
	}))
	return *l
}

// A request is looked at because of one event: the others teach nothing.
func TestLookAheadLearnsWhatIsNotKnown(t *testing.T) {
	s := open(t, t.TempDir(), testDescriptor(1, messages.TrustNone), Options{})
	w := takeOver(t, s, 0)
	w.append(2)
	w.flush()
	w.append(4)
	r := prepared(t, s, &storage.Batch{Partition: 0, Epoch: w.epoch, Events: append(w.following(2, 2), w.event(4), w.event(6))})
	checkpoint, known := r.beforehand(messages.TrustNone)
	if want := []foreknown{freeKnown, freeKnown, freeKnown, nothingKnown}; checkpoint != 2 || !slices.Equal(known, want) {
		t.Errorf("got %v at %d, want %v", known, checkpoint, want)
	}
	if l := learnedOf(t, s, r, known); len(l.of) != 1 || l.of[6] == nil {
		t.Errorf("learned %v, want workspace 6 only", l.of)
	}
	forgetEnds(s)
	if _, known := r.beforehand(messages.TrustNone); !slices.Equal(known, []foreknown{nothingKnown, lastKnown, lastKnown, nothingKnown}) {
		t.Errorf("got %v when all is forgotten", known)
	}
}

// Only the first event of a workspace in a batch was compared with what is stored. A
// batch that is refused for another one teaches nothing wrong.
func TestLookAheadLearnsFromFirstEvents(t *testing.T) {
	s := open(t, t.TempDir(), testDescriptor(1, messages.TrustNone), Options{})
	w := takeOver(t, s, 0)
	w.append(2)
	w.flush()
	events := w.following(2, 2)
	events[1].Records = []messages.Record{{ID: messages.RecordID{Seq: testSeq, Number: 5000}, New: true}}
	r := prepared(t, s, &storage.Batch{Partition: 0, Epoch: w.epoch, Events: events})
	r.events[1].wsKind++
	r.events[1].records[0].Seq++ // its end is not remembered
	_, known := r.beforehand(messages.TrustNone)
	if want := []foreknown{freeKnown, lastKnown}; !slices.Equal(known, want) {
		t.Fatalf("got %v, want %v", known, want)
	}
	if l := learnedOf(t, s, r, known); len(l.of) > 0 {
		t.Errorf("learned %+v", l.of[2])
	}
}
