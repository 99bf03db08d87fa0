package numbers

import (
	"slices"

	"github.com/partita-go/partita/messages"
)

// Last are the last numbers of a workspace's sequences, ordered by sequence and period.
type Last []messages.SequenceNumber

// Raise merges by maximum. It looks at place at first, and returns where the number stands: mostly several of a sequence
// follow each other.
func (l *Last) Raise(n messages.SequenceNumber, at int) int {
	if at >= len(*l) || (*l)[at].Seq != n.Seq || (*l)[at].Period != n.Period {
		var found bool
		if at, found = slices.BinarySearchFunc(*l, n, messages.SequenceNumber.ComparePlace); !found {
			*l = slices.Insert(*l, at, n)
		}
	}
	(*l)[at].Number = max((*l)[at].Number, n.Number)
	return at
}

// OfSequence returns how many of the numbers are of the first one's sequence.
func (l Last) OfSequence() int {
	n := 1
	for n < len(l) && l[n].Seq == l[0].Seq {
		n++
	}
	return n
}
