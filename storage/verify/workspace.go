package verify

import (
	"context"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage"
)

// workspace is what the pass over the partition's log knows of a workspace. Its
// size does not depend on the length of the log.
type workspace struct {
	partition messages.PartitionID
	sequences

	// events counts its events, sum stands for what they are.
	events uint64
	sum    uint64
	// projected is last as of the checkpoint, nil if no event is before it.
	projected []messages.Number
}

func newWorkspace(p messages.PartitionID, id messages.WSID, k *kind) *workspace {
	return &workspace{partition: p, sequences: sequences{id: id, kind: k, last: make([]messages.Number, len(k.sequences))}}
}

func (w *workspace) place() place { return place{partition: w.partition, workspace: w.id} }

// add takes an event over.
func (w *workspace) add(r *run, e *messages.Event, n *messages.Numbering, isProjected bool) {
	w.events++
	w.sum = r.sum(w.sum, e)
	w.take(r, e, n.Numbers[len(e.Numbers):])
	if isProjected {
		w.projected = append(w.projected[:0], w.last...)
	}
}

// checkNumbers compares the stored numbers with those as of the checkpoint.
func (r *run) checkNumbers(ctx context.Context, w *workspace) error {
	got, err := r.store.Numbers(ctx, w.id)
	if err != nil {
		return r.readFault(w.place(), "numbers", err)
	}
	r.compareNumbers(w.place(), &w.sequences, w.projected, got)
	return nil
}

// compareNumbers compares a workspace's stored numbers with those as of the
// checkpoint, which are nil if no event is before it.
func (r *run) compareNumbers(where place, s *sequences, projected []messages.Number, got storage.WorkspaceNumbers) {
	wantKind := messages.WSKind(0)
	if projected != nil {
		wantKind = s.kind.id
	}
	if got.Kind != wantKind {
		r.fault(CheckNumbers, where, "workspace %d: stored kind is %d, want %d", s.id, got.Kind, wantKind)
	}
	next := 0
	for i, n := range projected {
		if n == 0 {
			continue
		}
		if next == len(got.Numbers) || got.Numbers[next] != (messages.SequenceNumber{Seq: s.kind.sequences[i].ID, Number: n}) {
			next = -1
			break
		}
		next++
	}
	if next == len(got.Numbers) {
		return
	}
	var want []messages.SequenceNumber
	for i, n := range projected {
		if n != 0 {
			want = append(want, messages.SequenceNumber{Seq: s.kind.sequences[i].ID, Number: n})
		}
	}
	r.fault(CheckNumbers, where, "workspace %d: stored numbers are %v, want %v (sequence, last number)", s.id, got.Numbers, want)
}
