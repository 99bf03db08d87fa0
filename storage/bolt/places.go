package bolt

import (
	"cmp"
	"slices"

	"github.com/partita-go/partita/messages"
)

// places are the workspaces of some events by their ids, and what is known of each. What
// belongs to one is put there at once, so that only the few things of one workspace are
// left to be sorted by comparing them.
type places struct {
	workspaces []messages.WSID
	numbers    []lastNumbers
	// of has the workspace's index for each event.
	of []uint32
}

// lastNumbers are the last numbers of a workspace's sequences, ordered by sequence.
type lastNumbers []messages.SequenceNumber

// raise merges by maximum.
func (l *lastNumbers) raise(seq messages.SeqID, n messages.Number) {
	i, found := slices.BinarySearchFunc(*l, seq, func(have messages.SequenceNumber, seq messages.SeqID) int {
		return cmp.Compare(have.Seq, seq)
	})
	if !found {
		*l = slices.Insert(*l, i, messages.SequenceNumber{Seq: seq})
	}
	(*l)[i].Number = max((*l)[i].Number, n)
}

// placesOf finds the workspaces of events.
func placesOf(events []indexPut) places {
	type eventOf struct {
		ws messages.WSID
		i  int
	}
	byID := make([]eventOf, 0, len(events))
	for i := range events {
		byID = append(byID, eventOf{events[i].e.ws, i})
	}
	slices.SortFunc(byID, func(a, b eventOf) int { return cmp.Compare(a.ws, b.ws) })
	p := places{of: make([]uint32, len(events))}
	for i, e := range byID {
		if i == 0 || e.ws != byID[i-1].ws {
			p.workspaces = append(p.workspaces, e.ws)
		}
		p.of[e.i] = uint32(len(p.workspaces) - 1)
	}
	p.numbers = make([]lastNumbers, p.n())
	return p
}

func (p *places) n() int { return len(p.workspaces) }

// inPlaces returns items ordered by the place of each, and in one place by comparison, which must
// tell any two of them apart.
func inPlaces[T any](items []T, placeOf func(i int) uint32, places int, compare func(a, b T) int) []T {
	next := make([]int, places+1)
	for i := range items {
		next[placeOf(i)+1]++
	}
	for place := range places {
		next[place+1] += next[place]
	}
	ordered := make([]T, len(items))
	for i := range items {
		place := placeOf(i)
		ordered[next[place]] = items[i]
		next[place]++
	}
	start := 0
	for _, end := range next[:places] {
		slices.SortFunc(ordered[start:end], compare)
		start = end
	}
	return ordered
}
