package bolt

import (
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/partita-go/partita/messages"
)

// TestPlacesSort puts the events of some workspaces where a sort of all of them does.
func TestPlacesSort(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(0, 60).Draw(t, "events")
		events := make([]indexPut, 0, n)
		for lsn := range n {
			events = append(events, indexPut{e: &entry{
				lsn: messages.LSN(lsn), ws: messages.WSID(rapid.IntRange(1, 9).Draw(t, "workspace")),
				wlog: messages.WLogOffset(rapid.IntRange(1, 4).Draw(t, "offset")),
			}})
		}
		p := placesOf(events)
		if p.n() != len(p.numbers) || !slices.IsSorted(p.workspaces) {
			t.Errorf("got workspaces %v and numbers of %d", p.workspaces, len(p.numbers))
		}
		for i := range events {
			if got := p.workspaces[p.of[i]]; got != events[i].e.ws {
				t.Errorf("event %d: got workspace %d, want %d", i, got, events[i].e.ws)
			}
		}
		got := inPlaces(events, func(i int) uint32 { return p.of[i] }, p.n(), compareWLog)
		if want := slices.SortedFunc(slices.Values(events), compareWLog); !slices.Equal(got, want) {
			t.Errorf("got %v, want %v", got, want)
		}
	})
}

// TestLastNumbers keeps the largest number of each sequence, and the sequences in order.
func TestLastNumbers(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var l lastNumbers
		want := make(map[messages.SeqID]messages.Number)
		for range rapid.IntRange(0, 40).Draw(t, "numbers") {
			seq := messages.SeqID(rapid.IntRange(1, 9).Draw(t, "sequence"))
			n := messages.Number(rapid.IntRange(1, 99).Draw(t, "number"))
			l.raise(seq, n)
			want[seq] = max(want[seq], n)
		}
		got := make(map[messages.SeqID]messages.Number)
		for _, n := range l {
			got[n.Seq] = n.Number
		}
		sorted := slices.IsSortedFunc(l, func(a, b messages.SequenceNumber) int { return int(a.Seq) - int(b.Seq) })
		if !maps.Equal(got, want) || len(l) != len(want) || !sorted {
			t.Errorf("got %v, want %v", l, want)
		}
	})
}
