package verify

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

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
	// periods are those of the sequences that restart.
	periods map[messages.SequencePeriod]*period
}

func newWorkspace(p messages.PartitionID, id messages.WSID, k *kind) *workspace {
	return &workspace{partition: p, sequences: sequences{id: id, kind: k, last: make([]messages.Number, len(k.sequences))}}
}

func (w *workspace) place() place { return place{partition: w.partition, workspace: w.id} }

// add takes an event over.
func (w *workspace) add(r *run, e *messages.Event, n *messages.Numbering, isProjected bool) {
	w.events++
	w.sum = r.sum(w.sum, e)
	w.take(r, e, n.Numbers[len(e.Numbers):len(n.Numbers)-len(e.Moves)])
	w.kind.eachOfPeriod(e, func(n said) { w.period(n.SequencePeriod()).take(r, e, n, isProjected) })
	if isProjected {
		w.projected = append(w.projected[:0], w.last...)
	}
}

// period returns where a sequence stands in a period.
func (w *workspace) period(at messages.SequencePeriod) *period {
	p := w.periods[at]
	if p == nil {
		if w.periods == nil {
			w.periods = make(map[messages.SequencePeriod]*period)
		}
		p = &period{workspace: w.id, SequencePeriod: at}
		w.periods[at] = p
	}
	return p
}

// checkNumbers compares the stored numbers with those as of the checkpoint.
func (r *run) checkNumbers(ctx context.Context, w *workspace) error {
	got, err := r.store.Numbers(ctx, w.id, slices.Collect(maps.Keys(w.periods))...)
	if err != nil {
		return r.readFault(w.place(), "numbers", err)
	}
	r.compareNumbers(w.place(), &w.sequences, w.projected, r.openPeriods(w, &got), got)
	return nil
}

// compareNumbers compares a workspace's stored numbers with those as of the
// checkpoint, which are nil if no event is before it, and with those of periods.
func (r *run) compareNumbers(
	where place, s *sequences, projected []messages.Number, periods []messages.SequenceNumber, got storage.WorkspaceNumbers,
) {
	wantKind := messages.WSKind(0)
	if projected != nil {
		wantKind = s.kind.id
	}
	if got.Kind != wantKind {
		r.fault(CheckNumbers, where, "workspace %d: stored kind is %d, want %d", s.id, got.Kind, wantKind)
	}
	r.want = r.want[:0]
	for i, n := range projected {
		if n != 0 {
			r.want = append(r.want, messages.SequenceNumber{Seq: s.kind.sequences[i].ID, Number: n})
		}
	}
	if len(periods) > 0 {
		r.want = append(r.want, periods...)
		slices.SortFunc(r.want, messages.SequenceNumber.ComparePlace)
	}
	if !slices.Equal(got.Numbers, r.want) {
		r.fault(CheckNumbers, where, "workspace %d: stored numbers are %v, want %v (sequence, last number)", s.id, listed(got.Numbers), listed(r.want))
	}
}

// listed are last numbers as a fault lists them.
type listed []messages.SequenceNumber

func (l listed) String() string {
	words := make([]string, len(l))
	for i, n := range l {
		period := ""
		if n.Period != 0 {
			period = n.Period.String() + " "
		}
		words[i] = fmt.Sprintf("{%d %s%d}", n.Seq, period, n.Number)
	}
	return "[" + strings.Join(words, " ") + "]"
}
