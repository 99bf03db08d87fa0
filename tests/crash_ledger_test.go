package tests

import (
	"bytes"
	"encoding/json"
	"fmt"
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
	trouble []string
}

// position is an event's place.
type position struct {
	partition messages.PartitionID
	offset    messages.PLogOffset
}

func newLedger() *ledger {
	return &ledger{acked: make(map[position]*acked), refused: make(map[string]bool)}
}

// read takes a line of the journal. Two acknowledgements of one place are trouble.
func (l *ledger) read(line []byte) entry {
	var e entry
	if err := json.Unmarshal(line, &e); err != nil {
		l.trouble = append(l.trouble, fmt.Sprintf("line %q: %v", line, err))
	}
	switch {
	case e.Phase != "":
		l.phases = append(l.phases, e.Phase)
	case e.Refused != "":
		l.refused[e.Refused] = true
	case e.Trouble != "":
		l.trouble = append(l.trouble, e.Trouble)
	case e.Acked != nil:
		at := position{e.Acked.Partition, e.Acked.PLogOffset}
		if twice := l.acked[at]; twice != nil {
			l.trouble = append(l.trouble, fmt.Sprintf("acknowledged twice: %+v and %+v", *twice, *e.Acked))
		}
		l.acked[at] = e.Acked
	}
	return e
}

// compare checks that a store has everything that was acknowledged, as it was
// acknowledged, and nothing that was refused.
func (l *ledger) compare(t testing.TB, store storage.Store) {
	t.Helper()
	found := 0
	for p := range messages.PartitionID(store.Descriptor().Partitions) {
		for e, err := range store.PLog(limit(t), p, 1) {
			check(t, err)
			if l.refused[string(e.Body)] {
				t.Errorf("partition %d, offset %d: %s was refused", p, e.PLogOffset, e.Body)
			}
			if a := l.acked[position{p, e.PLogOffset}]; a != nil {
				found++
				a.compare(t, &e)
			}
		}
	}
	if found != len(l.acked) {
		t.Errorf("got %d acknowledged events, want %d", found, len(l.acked))
	}
	for _, trouble := range l.trouble {
		t.Errorf("child: %s", trouble)
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
