package tests

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"testing"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage"
)

// ledger is what children have promised.
type ledger struct {
	acked   map[position]*acked
	refused map[string]bool
	phases  []string
	// flushing counts the flushes that are under way.
	flushing int
	trouble  []string
	// open are the appends that were begun and not answered, by their first body;
	// named are the answered ones that have a deduplication id.
	open  map[string]*begun
	named []answered
	// asked counts the appends that were repeated after a child's death.
	asked int
}

// position is an event's place.
type position struct {
	partition messages.PartitionID
	offset    messages.PLogOffset
}

func newLedger() *ledger {
	return &ledger{acked: make(map[position]*acked), refused: make(map[string]bool), open: make(map[string]*begun)}
}

// clone returns a ledger of its own with the same promises.
func (l *ledger) clone() *ledger {
	return &ledger{
		acked: maps.Clone(l.acked), refused: maps.Clone(l.refused), phases: slices.Clone(l.phases), trouble: slices.Clone(l.trouble), flushing: l.flushing, asked: l.asked,
		open: maps.Clone(l.open), named: slices.Clone(l.named),
	}
}

// read takes a line of the journal.
func (l *ledger) read(line []byte) entry {
	var e entry
	if err := json.Unmarshal(line, &e); err != nil {
		l.trouble = append(l.trouble, fmt.Sprintf("line %q: %v", line, err))
	}
	l.write(e)
	return e
}

// write takes an entry of the journal.
func (l *ledger) write(e entry) {
	switch {
	case e.Phase != "":
		l.phases = append(l.phases, e.Phase)
		if e.Phase == "opening" { // another child
			l.flushing = 0
		}
	case e.Flushing != 0:
		l.flushing += e.Flushing
	case len(e.Refused) > 0:
		delete(l.open, e.Refused[0])
		for _, body := range e.Refused {
			l.refused[body] = true
		}
	case e.Trouble != "":
		l.trouble = append(l.trouble, e.Trouble)
	case e.Acked != nil:
		l.acknowledge(e.Acked)
	case e.Begun != nil:
		l.open[e.Begun.Bodies[0]] = e.Begun
	case len(e.Appended) > 0:
		l.appended(e.Appended)
	}
}

// acknowledge notes what was promised. Two acknowledgements of one place are
// trouble.
func (l *ledger) acknowledge(a *acked) {
	at := position{a.Partition, a.PLogOffset}
	if twice := l.acked[at]; twice != nil {
		l.trouble = append(l.trouble, fmt.Sprintf("acknowledged twice: %+v and %+v", *twice, *a))
	}
	l.acked[at] = a
}

// appended notes the answer to an append: the first one counts, and what is
// repeated must say the same.
func (l *ledger) appended(all []*acked) {
	body := all[0].Body
	b := l.open[body]
	delete(l.open, body)
	if b == nil {
		for _, a := range all {
			if was := l.acked[position{a.Partition, a.PLogOffset}]; was == nil || !reflect.DeepEqual(was, a) {
				l.trouble = append(l.trouble, fmt.Sprintf("%s: a repetition was told %+v, the first was %+v", body, *a, was))
			}
		}
		return
	}
	for _, a := range all {
		l.acknowledge(a)
	}
	if b.ID != (messages.DedupID{}) {
		l.named = append(l.named, answered{b, all})
	}
}

// compare checks that a store has everything that was acknowledged, as it was
// acknowledged, nothing that was refused, nothing twice, and of each append whose
// outcome is unknown all or nothing.
func (l *ledger) compare(t testing.TB, store storage.Store) {
	t.Helper()
	found := 0
	places := make(map[string]place)
	for p := range messages.PartitionID(store.Descriptor().Partitions) {
		for e, err := range store.PLog(limit(t), p, 1) {
			check(t, err)
			body := string(e.Body)
			if l.refused[body] {
				t.Errorf("partition %d, offset %d: %s was refused", p, e.PLogOffset, body)
			}
			at := place{position{p, e.PLogOffset}, e.Workspace, e.WLogOffset}
			// The events of a synthetic history all have the same body.
			if was, twice := places[body]; twice && e.Body[0] != 0 {
				t.Errorf("%s is there twice: %+v and %+v", body, was, at)
			}
			places[body] = at
			if a := l.acked[at.position]; a != nil {
				found++
				a.compare(t, &e)
			}
		}
	}
	if found != len(l.acked) {
		t.Errorf("got %d acknowledged events, want %d", found, len(l.acked))
	}
	for _, b := range l.open {
		b.whole(t, places)
	}
	for _, trouble := range l.trouble {
		t.Errorf("child: %s", trouble)
	}
}

// place is where an event stands in both logs.
type place struct {
	position
	workspace messages.WSID
	wlog      messages.WLogOffset
}

// whole checks that the events of an append are all there, one behind the other in
// both logs, or that none is.
func (b *begun) whole(t testing.TB, places map[string]place) {
	t.Helper()
	first, there := places[b.Bodies[0]]
	for i, body := range b.Bodies {
		want := first
		want.offset += messages.PLogOffset(i)
		want.wlog += messages.WLogOffset(i)
		if at, ok := places[body]; ok != there || ok && at != want {
			t.Errorf("event %d of %d of an append: got %v at %+v, the first: %v at %+v", i+1, len(b.Bodies), ok, at, there, first)
		}
	}
}

func (a *acked) compare(t testing.TB, e *messages.Event) {
	t.Helper()
	same := e.Workspace == a.Workspace && e.WLogOffset == a.WLogOffset && e.RegisteredAt == a.At &&
		slices.Equal(e.Numbers, a.Numbers) && string(e.Body) == a.Body && len(e.Records) == len(a.Records)
	for i := 0; same && i < len(a.Records); i++ {
		same = e.Records[i].ID == a.Records[i] && bytes.Equal(e.Records[i].Data, e.Body)
	}
	if !same {
		t.Errorf("got %+v, acknowledged was %+v", *e, *a)
	}
}
