package verify

import (
	"context"
	"math"
	"slices"

	"github.com/partita-go/partita/messages"
)

// kind is a workspace kind with its sequences, ordered by id; the WLog offset is
// the first.
type kind struct {
	id        messages.WSKind
	sequences []messages.Sequence
}

func newKind(k messages.Kind) *kind { return &kind{id: k.ID, sequences: k.All()} }

// index returns a sequence's place, or -1.
func (k *kind) index(id messages.SeqID) int {
	return slices.IndexFunc(k.sequences, func(s messages.Sequence) bool { return s.ID == id })
}

// workspace is what the pass over the partition's log knows of a workspace. Its
// size does not depend on the length of the log.
type workspace struct {
	partition messages.PartitionID
	id        messages.WSID
	kind      *kind

	// events counts its events, sum stands for what they are.
	events uint64
	sum    uint64
	// last are the last numbers given out, in the order of the kind's sequences.
	last []messages.Number
	// projected is last as of the checkpoint, nil if no event is before it.
	projected []messages.Number
}

func newWorkspace(p messages.PartitionID, id messages.WSID, k *kind) *workspace {
	return &workspace{partition: p, id: id, kind: k, last: make([]messages.Number, len(k.sequences))}
}

func (w *workspace) place() place { return place{partition: w.partition, workspace: w.id} }

// add checks the event's numbers against those before it and takes them over.
func (w *workspace) add(r *run, e *messages.Event, n *messages.Numbering, isProjected bool) {
	w.events++
	w.sum = r.sum(w.sum, e)
	if want := messages.WLogOffset(w.last[0] + 1); e.WLogOffset != want {
		r.fault(CheckWLog, placeOf(e), "workspace %d: offset is %d, want %d", w.id, e.WLogOffset, want)
	}
	w.last[0] = max(w.last[0], messages.Number(e.WLogOffset))
	r.report.Numbers++

	given, explicit := n.Numbers[:len(e.Numbers)], n.Numbers[len(e.Numbers):]
	for _, g := range given {
		w.give(r, e, g, explicit)
	}
	for _, x := range explicit {
		w.bring(r, e, x)
	}
	if isProjected {
		w.projected = append(w.projected[:0], w.last...)
	}
}

// give checks a number given out: it is one above the last, or above an explicit
// id that the same event brought along before the number was asked for.
func (w *workspace) give(r *run, e *messages.Event, n messages.SequenceNumber, explicit []messages.SequenceNumber) {
	r.report.Numbers++
	i := w.kind.index(n.Seq)
	if i <= 0 {
		r.fault(CheckEvent, placeOf(e), "workspace %d: number %d of sequence %d, which kind %d does not have", w.id, n.Number, n.Seq, w.kind.id)
		return
	}
	def := &w.kind.sequences[i]
	if n.Number > def.Max() {
		r.fault(CheckSequence, placeOf(e), "workspace %d, sequence %d: number is %d, want at most %d", w.id, n.Seq, n.Number, def.Max())
	}
	want := def.Initial
	if w.last[i] >= def.Initial && w.last[i] < math.MaxUint64 {
		want = w.last[i] + 1
	}
	raised := n.Number > want && slices.Contains(explicit, messages.SequenceNumber{Seq: n.Seq, Number: n.Number - 1})
	if n.Number != want && !raised {
		r.fault(CheckSequence, placeOf(e), "workspace %d, sequence %d: number is %d, want %d", w.id, n.Seq, n.Number, want)
	}
	w.raise(i, n.Number)
}

// bring checks an explicit id of a new record; the sequence goes on above it.
func (w *workspace) bring(r *run, e *messages.Event, n messages.SequenceNumber) {
	i := w.kind.index(n.Seq)
	if i <= 0 {
		r.fault(CheckEvent, placeOf(e), "workspace %d: record of sequence %d, which kind %d does not have", w.id, n.Seq, w.kind.id)
		return
	}
	if limit := w.kind.sequences[i].MaxExplicit(); n.Number > limit {
		r.fault(CheckEvent, placeOf(e), "workspace %d, sequence %d: explicit id is %d, want at most %d", w.id, n.Seq, n.Number, limit)
	}
	w.raise(i, n.Number)
}

// raise merges by maximum; what is below the initial value is no number of the
// sequence.
func (w *workspace) raise(i int, n messages.Number) {
	if n >= w.kind.sequences[i].Initial {
		w.last[i] = max(w.last[i], n)
	}
}

// checkNumbers compares the stored numbers with those as of the checkpoint.
func (r *run) checkNumbers(ctx context.Context, w *workspace) error {
	got, err := r.store.Numbers(ctx, w.id)
	if err != nil {
		return r.readFault(w.place(), "numbers", err)
	}
	wantKind := messages.WSKind(0)
	if w.projected != nil {
		wantKind = w.kind.id
	}
	if got.Kind != wantKind {
		r.fault(CheckNumbers, w.place(), "workspace %d: stored kind is %d, want %d", w.id, got.Kind, wantKind)
	}
	var want []messages.SequenceNumber
	for i, n := range w.projected {
		if n != 0 {
			want = append(want, messages.SequenceNumber{Seq: w.kind.sequences[i].ID, Number: n})
		}
	}
	if !slices.Equal(got.Numbers, want) {
		r.fault(CheckNumbers, w.place(), "workspace %d: stored numbers are %v, want %v (sequence, last number)", w.id, got.Numbers, want)
	}
	return nil
}
