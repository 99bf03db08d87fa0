package storagetest

import (
	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage"
)

// claim is one value of a Flush: of a workspace's sequence, or its kind.
type claim struct {
	workspace messages.WSID
	// seq is a sequence, or kindClaim, so that claims of a workspace that differ in
	// a number are told by that.
	seq   uint32
	value uint64
}

// kindClaim stands behind every sequence.
const kindClaim = 1 << 16

// compareNumbers returns a [*storage.NumbersError] for the first difference. A
// wrong kind is named as sequence 0.
func compareNumbers(f *storage.Flush, want []storage.WorkspaceNumbers) error {
	got, wanted := claimsOf(f.Numbers), claimsOf(want)
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
			claims = append(claims, claim{workspace: w.Workspace, seq: uint32(n.Seq), value: uint64(n.Number)})
		}
		claims = append(claims, claim{workspace: w.Workspace, seq: kindClaim, value: uint64(w.Kind)})
	}
	return claims
}

func (c claim) before(other claim) bool {
	if c.workspace != other.workspace {
		return c.workspace < other.workspace
	}
	return c.seq < other.seq
}

func numbersError(f *storage.Flush, c claim, got, want uint64) error {
	return &storage.NumbersError{
		Partition:  f.Partition,
		Workspace:  c.workspace,
		Seq:        messages.SeqID(c.seq % kindClaim),
		Got:        messages.Number(got),
		Want:       messages.Number(want),
		Checkpoint: f.Checkpoint,
	}
}
