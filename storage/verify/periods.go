package verify

import (
	"maps"
	"slices"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage"
)

// period is where a sequence that restarts stands in one period of a workspace.
type period struct {
	workspace messages.WSID
	messages.SequencePeriod
	// last is the last number given out, projected that as of the checkpoint, 0 if there is none.
	last, projected messages.Number
	// kind is the index of the workspace's kind, and found says that it is in the projections: for files.
	kind  uint16
	found bool
}

// restarting returns a sequence if it restarts, else nil.
func (k *kind) restarting(id messages.SeqID) *messages.Sequence {
	if !k.restarts {
		return nil
	}
	if i := k.index(id); i > 0 && k.sequences[i].Restarts() {
		return &k.sequences[i]
	}
	return nil
}

// said is what an event says of a sequence in a period.
type said struct {
	messages.SequenceNumber
	def *messages.Sequence
	// brought says that the number was brought along, moved that it was not given, but moved to.
	brought, moved bool
}

// eachOfPeriod calls fn for all that an event says of sequences that restart.
func (k *kind) eachOfPeriod(e *messages.Event, fn func(said)) {
	if !k.restarts {
		return
	}
	for i, n := range e.Numbers {
		if def := k.restarting(n.Seq); def != nil {
			fn(said{SequenceNumber: n, def: def, brought: i < int(e.Brought)})
		}
	}
	for _, n := range e.Moves {
		if def := k.restarting(n.Seq); def != nil {
			fn(said{SequenceNumber: n, def: def, moved: true})
		}
	}
}

// take checks a number against the one before it in the period, and takes it over.
func (p *period) take(r *run, e *messages.Event, n said, isProjected bool) {
	if n.moved {
		r.checkMove(e, n.def, n.SequenceNumber, &p.last)
	} else {
		r.checkNext(e, n.def, n.SequenceNumber, &p.last, func() bool { return n.brought })
	}
	if isProjected {
		p.projected = p.last
	}
}

// checkClosed makes sure that the first period that is not closed is one, and that the newest one is not closed. More
// cannot be said: how many are kept may have been changed, and what was closed once stays so.
func (r *run) checkClosed(where place, k *kind, closed, newest messages.SequencePeriod) {
	i := k.index(closed.Seq)
	switch {
	case i < 0 || !k.sequences[i].Restarts():
		r.fault(CheckNumbers, where, "workspace %d: periods before %v are closed, but %v never restarts", where.workspace, closed.Period, closed)
	case k.sequences[i].Restart.PeriodOf(closed.Period) != closed.Period:
		r.fault(CheckNumbers, where, "workspace %d: %v is the first that is not closed, want the first day of a period", where.workspace, closed)
	case closed.Compare(newest) > 0:
		r.fault(CheckNumbers, where, "workspace %d: %v is the first that is not closed, but the newest is %v", where.workspace, closed, newest)
	}
}

// isClosed reports whether a period is closed.
func isClosed(closed []messages.SequencePeriod, p messages.SequencePeriod) bool {
	return slices.ContainsFunc(closed, func(c messages.SequencePeriod) bool { return c.Seq == p.Seq && p.Period < c.Period })
}

// projectedPeriods returns the last numbers of a workspace's periods as of the checkpoint, in order.
func (w *workspace) projectedPeriods() (numbers []messages.SequenceNumber) {
	for _, at := range slices.SortedFunc(maps.Keys(w.periods), messages.SequencePeriod.Compare) {
		if p := w.periods[at]; p.projected != 0 {
			numbers = append(numbers, messages.SequenceNumber{Seq: at.Seq, Period: at.Period, Number: p.projected})
		}
	}
	return numbers
}

// openPeriods checks which periods of a workspace are closed, and returns the numbers of the others.
func (r *run) openPeriods(w *workspace, got *storage.WorkspaceNumbers) []messages.SequenceNumber {
	all := w.projectedPeriods()
	for _, closed := range got.Closed {
		newest := messages.SequencePeriod{Seq: closed.Seq}
		for _, n := range all {
			if n.Seq == closed.Seq {
				newest.Period = n.Period
			}
		}
		r.checkClosed(w.place(), w.kind, closed, newest)
	}
	return slices.DeleteFunc(all, func(n messages.SequenceNumber) bool { return isClosed(got.Closed, n.SequencePeriod()) })
}
