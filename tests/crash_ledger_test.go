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
	"github.com/partita-go/partita/tests/internal/delivered"
)

// ledger is what children have promised.
type ledger struct {
	acked   map[position]*acked
	refused map[string]bool
	phases  []string
	// flushing, delivering, storing and holding count what is under way.
	flushing, delivering, storing, holding int
	trouble                                []string
	// open are the appends that were begun and not answered, by their first body;
	// named are the answered ones that have a deduplication id.
	open  map[string]*begun
	named []answered
	// asked counts the appends that were repeated after a child's death.
	asked int
	// book is what was delivered to subscriptions, subscribed are those that were made, and
	// copied is how many copies were made by all calls that have returned.
	book       *delivered.Book
	subscribed map[string]bool
	copied     uint64
	readers    *readersTally
	// generator is the last number of a generator of ids.
	generator uint32
}

// position is an event's place.
type position struct {
	partition messages.PartitionID
	offset    messages.PLogOffset
}

func newLedger() *ledger {
	return &ledger{
		acked: make(map[position]*acked), refused: make(map[string]bool), open: make(map[string]*begun),
		book: delivered.NewBook(), subscribed: make(map[string]bool), readers: &readersTally{},
	}
}

// clone returns a ledger of its own with the same promises. Both count together.
func (l *ledger) clone() *ledger {
	return &ledger{
		acked: maps.Clone(l.acked), refused: maps.Clone(l.refused), phases: slices.Clone(l.phases), trouble: slices.Clone(l.trouble), flushing: l.flushing, asked: l.asked,
		open: maps.Clone(l.open), named: slices.Clone(l.named), delivering: l.delivering, storing: l.storing, holding: l.holding,
		book: l.book.Clone(), subscribed: maps.Clone(l.subscribed), copied: l.copied, readers: l.readers,
		generator: l.generator,
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
		l.enter(e.Phase)
	case e.underWay():
		l.flushing += e.Flushing
		l.delivering += e.Delivering
		l.storing += e.Storing
		l.holding += e.Holding
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
	case e.Generator != 0:
		l.numbered(e.Generator)
	default:
		l.subscription(e)
	}
}

// enter notes a phase. A child that opens the store is another one.
func (l *ledger) enter(phase string) {
	if phase == "opening" {
		l.flushing, l.delivering, l.storing, l.holding = 0, 0, 0, 0
		if len(l.phases) > 0 && l.phases[len(l.phases)-1] != "stopped" {
			l.book.Crashed()
		}
	}
	l.phases = append(l.phases, phase)
}

// numbered notes the number of a generator, which must be a new one.
func (l *ledger) numbered(generator uint32) {
	if generator <= l.generator {
		l.trouble = append(l.trouble, fmt.Sprintf("got generator %d after %d", generator, l.generator))
	}
	l.generator = generator
}

// subscription notes what is about subscriptions.
func (l *ledger) subscription(e entry) {
	switch {
	case e.Subscribed != "":
		l.subscribed[e.Subscribed] = true
	case e.Called != nil:
		if e.Called.Subscription == copies {
			l.copied = max(l.copied, e.Called.First+e.Called.Handled-1)
		}
		events, repeated := l.book.Events, l.book.Repeated
		if err := l.book.Called(*e.Called); err != nil {
			l.trouble = append(l.trouble, err.Error())
		}
		l.readers.events += l.book.Events - events
		l.readers.repeated += l.book.Repeated - repeated
	case e.Changed != nil:
		l.book.Changed(*e.Changed)
		switch e.Changed.Step {
		case delivered.Paused:
			l.readers.paused++
		case delivered.Moved:
			l.readers.rewound++
		case delivered.Moving, delivered.Resuming:
		}
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
	l.compareReaders(t, store, false)
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
		slices.Equal(e.Numbers, a.Numbers) && e.Brought == a.Brought && slices.Equal(e.Moves, a.Moves) && string(e.Body) == a.Body && len(e.Records) == len(a.Records)
	for i := 0; same && i < len(a.Records); i++ {
		same = e.Records[i].ID == a.Records[i] && bytes.Equal(e.Records[i].Data, e.Body)
	}
	if !same {
		t.Errorf("got %+v, acknowledged was %+v", *e, *a)
	}
}
