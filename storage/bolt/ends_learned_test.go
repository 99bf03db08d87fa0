package bolt

import (
	"slices"
	"testing"

	"github.com/partita-go/partita/messages"
)

// endOfOne is what a look into state.db has shown of one workspace with one sequence.
func endOfOne(ws messages.WSID) learned {
	return learned{of: map[messages.WSID]*workspaceEnds{
		ws: {wlog: 1, kind: testKind, records: []messages.SequenceNumber{{Seq: testSeq, Number: 1000}}},
	}}
}

// What is not in use is forgotten when a generation of others has been learned; what is
// appended to stays.
func TestEndsAge(t *testing.T) {
	var p partition
	remember := func(workspaces ...messages.WSID) {
		for _, ws := range workspaces {
			p.remember(endOfOne(ws), 0, 8) // two workspaces with two ends each, twice
		}
	}
	remembers := func(want ...messages.WSID) {
		t.Helper()
		var got []messages.WSID
		for ws := range messages.WSID(10) {
			if e := p.ends.find(ws); e.known() {
				got = append(got, ws)
				if e.size() != 2 {
					t.Errorf("workspace %d: got ends %v, want one", ws, e.appendTo(nil))
				}
			}
		}
		if !slices.Equal(got, want) {
			t.Fatalf("got workspaces %v, want %v", got, want)
		}
	}
	remember(1, 2)
	remembers(1, 2)
	remember(3, 4)
	remembers(1, 2, 3, 4)
	p.ends.raise(&newEvent{ws: 1, wlog: 7, wsKind: testKind})
	if e := p.ends.find(1); e.wlog != 7 || p.ends.young.size() != 6 || len(p.ends.old.places) != 1 {
		t.Errorf("got %+v, %d young ends and %d old workspaces, want offset 7, 6 and 1", e, p.ends.young.size(), len(p.ends.old.places))
	}
	remember(5)
	remembers(1, 3, 4, 5)
	remember(4, 6)
	remembers(4, 5, 6)
}

// Where records are not checked, their ends are not looked for.
func TestEndsOfRecordsAreNotLearned(t *testing.T) {
	for _, trust := range allLevels {
		s := open(t, t.TempDir(), testDescriptor(1, trust), Options{})
		w := takeOver(t, s, 0)
		w.append(1)
		p := &s.partitions[0]
		p.mu.RLock()
		var got int
		if e := p.ends.find(1); e.known() {
			got = e.size() - 1
		}
		p.mu.RUnlock()
		if want := map[messages.TrustLevel]int{messages.TrustNone: 2}[trust]; got != want {
			t.Errorf("trust level %d: got the ends of %d sequences, want %d", trust, got, want)
		}
	}
}
