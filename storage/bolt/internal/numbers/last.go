package numbers

import (
	"slices"

	"github.com/partita-go/partita/messages"
)

// Last are the last numbers of a workspace's sequences, ordered by sequence and period.
type Last []messages.SequenceNumber

// Raise merges by maximum.
func (l *Last) Raise(n messages.SequenceNumber) {
	i, found := slices.BinarySearchFunc(*l, n, messages.SequenceNumber.ComparePlace)
	if !found {
		*l = slices.Insert(*l, i, n)
	}
	(*l)[i].Number = max((*l)[i].Number, n.Number)
}

// OfSequence returns how many of the numbers are of the first one's sequence.
func (l Last) OfSequence() int {
	n := 1
	for n < len(l) && l[n].Seq == l[0].Seq {
		n++
	}
	return n
}
