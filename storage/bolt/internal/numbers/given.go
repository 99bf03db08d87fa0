// Package numbers has the last numbers that events say, and compares those that flushes give with them.
package numbers

import (
	"cmp"
	"slices"

	"go.etcd.io/bbolt"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage"
	"github.com/partita-go/partita/storage/bolt/internal/boltfile"
	"github.com/partita-go/partita/storage/bolt/internal/format"
	"github.com/partita-go/partita/storage/bolt/internal/statedb"
)

// Put is a last number of a sequence, in its period if it restarts; for format.KindSeq, a workspace's kind.
type Put struct {
	Workspace messages.WSID
	messages.SequenceNumber
}

func compare(a, b Put) int {
	return cmp.Or(cmp.Compare(a.Workspace, b.Workspace), a.ComparePlace(b.SequenceNumber))
}

// OfKind is a workspace's kind among its numbers.
func OfKind(kind messages.WSKind) messages.SequenceNumber {
	return messages.SequenceNumber{Seq: format.KindSeq, Number: messages.Number(kind)}
}

// Given are the numbers and kinds that whoever flushes gives. What was given must be what the log says: each key that
// changes, with the new value. A key that does not change may be given, with the stored value or with the largest that
// these events say.
type Given struct {
	partition  messages.PartitionID
	checkpoint messages.PLogOffset
	// Puts are ordered by key.
	Puts []Put
	// checked is how many of them were compared.
	checked int
	// head is the one that was read last.
	head format.Head
}

// Give copies the numbers of a flush of a partition up to a checkpoint.
func Give(f *storage.Flush) Given {
	n := 0
	for i := range f.Numbers {
		n += 1 + len(f.Numbers[i].Numbers)
	}
	puts := make([]Put, 0, n)
	for i := range f.Numbers {
		w := &f.Numbers[i]
		if w.Kind != 0 {
			puts = append(puts, Put{w.Workspace, OfKind(w.Kind)})
		}
		for _, n := range w.Numbers {
			puts = append(puts, Put{w.Workspace, n})
		}
	}
	slices.SortFunc(puts, compare)
	return Given{partition: f.Partition, checkpoint: f.Checkpoint, Puts: puts}
}

// CheckWorkspace compares what was given of a workspace with what its events say, and what was given before it with what
// is stored. New says that it has seen on the way that nothing is stored of the workspace.
func (g *Given) CheckWorkspace(tx *bbolt.Tx, ws messages.WSID, derived Last) (isNew bool, err error) {
	for _, d := range derived {
		n := Put{ws, d}
		at := g.checked
		for at < len(g.Puts) && compare(g.Puts[at], n) < 0 {
			at++
		}
		if err := g.checkUnchanged(tx, at); err != nil {
			return false, err
		}
		got := messages.Number(0)
		if at < len(g.Puts) && compare(g.Puts[at], n) == 0 {
			got = g.Puts[at].Number
			g.checked++
		}
		// What the events say is right whatever is stored: mostly nobody needs to look.
		if got == n.Number && n.Seq != format.KindSeq {
			continue
		}
		stored, closed, err := g.storedNumber(tx, n)
		if err != nil {
			return false, err
		}
		isNew = g.head.IsZero()
		if want := n.merged(stored); !closed && !n.agrees(got, stored, want) {
			n.Number = got
			return false, g.error(n, want)
		}
	}
	return isNew, nil
}

// CheckRest makes sure that the numbers given that no event says are the stored ones.
func (g *Given) CheckRest(tx *bbolt.Tx) error { return g.checkUnchanged(tx, len(g.Puts)) }

// checkUnchanged makes sure that the numbers given up to one are the stored ones.
func (g *Given) checkUnchanged(tx *bbolt.Tx, to int) error {
	for ; g.checked < to; g.checked++ {
		n := g.Puts[g.checked]
		stored, closed, err := g.storedNumber(tx, n)
		if err != nil {
			return err
		}
		if stored != n.Number && !closed {
			return g.error(n, stored)
		}
	}
	return nil
}

// merged is what will be stored: the larger number; a kind once and for all.
func (n Put) merged(stored messages.Number) messages.Number {
	if n.Seq == format.KindSeq && stored != 0 {
		return stored
	}
	return max(stored, n.Number)
}

// agrees reports whether what was given, 0 if nothing, is right for a number that
// the log derives.
func (n Put) agrees(got, stored, want messages.Number) bool {
	switch {
	case got == want:
		return true
	case want != stored:
		return false
	}
	return got == 0 || got == n.Number && n.Seq != format.KindSeq
}

// storedNumber returns the number that is stored, 0 if there is none, and whether its period is closed: then there is
// none to compare with.
func (g *Given) storedNumber(tx *bbolt.Tx, n Put) (stored messages.Number, closed bool, err error) {
	if err := statedb.ReadHead(tx, n.Workspace, &g.head); err != nil {
		return 0, false, err
	}
	stored, err = statedb.NumberIn(tx, n.Workspace, &g.head, n.SequencePeriod())
	return stored, n.Period < g.head.ClosedBelow(n.Seq), err
}

func (g *Given) error(got Put, want messages.Number) error {
	return &storage.NumbersError{
		Partition: g.partition, Workspace: got.Workspace, Seq: got.Seq, Period: got.Period, Got: got.Number, Want: want, Checkpoint: g.checkpoint,
	}
}

// CheckRepeated makes sure that a flush that has happened gave what is stored.
func (g *Given) CheckRepeated(state *boltfile.File) error {
	return state.View(func(tx *bbolt.Tx) error {
		for _, n := range g.Puts {
			stored, closed, err := g.storedNumber(tx, n)
			if err != nil {
				return err
			}
			if n.Number > stored && !closed || n.Seq == format.KindSeq && n.Number != stored {
				return g.error(n, stored)
			}
		}
		return nil
	})
}
