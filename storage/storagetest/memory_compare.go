package storagetest

import (
	"cmp"
	"slices"

	"github.com/partita-go/partita/calendar"
	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage"
)

// claim is one value of a Flush: of a workspace's sequence, or its kind.
type claim struct {
	workspace messages.WSID
	// seq is a sequence, or kindClaim, so that claims of a workspace that differ in
	// a number are told by that.
	seq    uint32
	period calendar.Date
	value  uint64
}

// kindClaim stands behind every sequence.
const kindClaim = 1 << 16

// compareNumbers returns a [*storage.NumbersError] for the first difference
// between what the caller claims and what the events change. A wrong kind is
// named as sequence 0.
func (d *disk) compareNumbers(f *storage.Flush, changes map[messages.WSID]*change) error {
	wanted := claimsOf(listChanges(changes))
	got := slices.DeleteFunc(claimsOf(f.Numbers), func(c claim) bool { return d.changesNothing(c, changes[c.workspace]) })
	for i := range max(len(got), len(wanted)) {
		switch {
		case i >= len(got):
			return numbersError(f, wanted[i], 0, wanted[i].value)
		case i >= len(wanted):
			return numbersError(f, got[i], got[i].value, 0)
		case got[i] == wanted[i]:
		case got[i].before(wanted[i]):
			return numbersError(f, got[i], got[i].value, 0)
		case wanted[i].before(got[i]):
			return numbersError(f, wanted[i], 0, wanted[i].value)
		default:
			return numbersError(f, got[i], got[i].value, wanted[i].value)
		}
	}
	return nil
}

func claimsOf(list []storage.WorkspaceNumbers) []claim {
	claims := make([]claim, 0, 4*len(list))
	for _, w := range list {
		for _, n := range w.Numbers {
			claims = append(claims, claim{workspace: w.Workspace, seq: uint32(n.Seq), period: n.Period, value: uint64(n.Number)})
		}
		if w.Kind != 0 {
			claims = append(claims, claim{workspace: w.Workspace, seq: kindClaim, value: uint64(w.Kind)})
		}
	}
	return claims
}

// changesNothing reports whether a claim is about a value that stays as it is,
// and says either that value or the largest that these events say. The latter
// comes from a replay of the tail, which meets low explicit ids without knowing
// the stored number.
func (d *disk) changesNothing(c claim, change *change) bool {
	ws := d.workspaces[c.workspace]
	switch {
	case ws == nil:
		return false
	case c.seq == kindClaim:
		return c.value == uint64(ws.projected)
	}
	at := messages.SequencePeriod{Seq: messages.SeqID(c.seq), Period: c.period}
	if ws.isClosed(at) {
		return true
	}
	stored := numberOf(ws.numbers, at)
	if change == nil {
		return c.value == uint64(stored)
	}
	isSaid := c.value == uint64(numberOf(change.said, at))
	return numberOf(change.after, at) == stored && (c.value == uint64(stored) || isSaid)
}

func (c claim) before(other claim) bool {
	if c.workspace != other.workspace {
		return c.workspace < other.workspace
	}
	return cmp.Or(cmp.Compare(c.seq, other.seq), cmp.Compare(c.period, other.period)) < 0
}

func numbersError(f *storage.Flush, c claim, got, want uint64) error {
	return &storage.NumbersError{
		Partition:  f.Partition,
		Workspace:  c.workspace,
		Seq:        messages.SeqID(c.seq % kindClaim),
		Period:     c.period,
		Got:        messages.Number(got),
		Want:       messages.Number(want),
		Checkpoint: f.Checkpoint,
	}
}
