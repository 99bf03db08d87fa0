package verify

import (
	"math"
	"slices"

	"github.com/partita-go/partita/messages"
)

// kind is a workspace kind with its sequences, ordered by id; the WLog offset is
// the first.
type kind struct {
	id        messages.WSKind
	sequences []messages.Sequence
	// restarts says that some of them do.
	restarts bool
}

func newKind(k messages.Kind) *kind {
	all := k.All()
	return &kind{id: k.ID, sequences: all, restarts: slices.ContainsFunc(all, func(s messages.Sequence) bool { return s.Restarts() })}
}

// index returns a sequence's place, or -1.
func (k *kind) index(id messages.SeqID) int {
	return slices.IndexFunc(k.sequences, func(s messages.Sequence) bool { return s.ID == id })
}

// sequences are where the sequences of a workspace stand.
type sequences struct {
	id   messages.WSID
	kind *kind
	// last are the last numbers given out, in the order of the kind's sequences. Of those that restart
	// each period has its own: see period.
	last []messages.Number
}

// take checks an event's numbers against those before it and takes them over.
// explicit are the ids of new records that the event was not given.
func (s *sequences) take(r *run, e *messages.Event, explicit []messages.SequenceNumber) {
	if want := messages.WLogOffset(s.last[0] + 1); e.WLogOffset != want {
		r.fault(CheckWLog, placeOf(e), "workspace %d: offset is %d, want %d", s.id, e.WLogOffset, want)
	}
	s.last[0] = max(s.last[0], messages.Number(e.WLogOffset))
	var brought messages.NumberSet
	for i, n := range e.Numbers {
		before := messages.SequenceNumber{Seq: n.Seq, Number: n.Number - 1}
		s.give(r, e, n, func() bool { return i < int(e.Brought) || brought.Has(explicit, before) })
	}
	for _, n := range explicit {
		s.bring(r, e, n)
	}
	for _, n := range e.Moves {
		s.move(r, e, n)
	}
}

// give checks a number given out: it is one above the last, or above an explicit
// id that the same event brought along before the number was asked for, or was itself brought along,
// as raised reports.
func (s *sequences) give(r *run, e *messages.Event, n messages.SequenceNumber, raised func() bool) {
	i := s.kind.index(n.Seq)
	if i <= 0 {
		r.fault(CheckEvent, placeOf(e), "workspace %d: number %d of sequence %d, which kind %d does not have", s.id, n.Number, n.Seq, s.kind.id)
		return
	}
	if def := &s.kind.sequences[i]; !def.Restarts() {
		r.checkNext(e, def, n, &s.last[i], raised)
	}
}

// checkNext checks a number given out against the last one of its sequence, in its period, and takes it over.
func (r *run) checkNext(e *messages.Event, def *messages.Sequence, n messages.SequenceNumber, last *messages.Number, raised func() bool) {
	if err := def.CheckPeriod(e.Date, n.Period); err != nil {
		r.fault(CheckEvent, placeOf(e), "workspace %d: %v", e.Workspace, err)
	}
	if n.Number > def.Max() {
		r.fault(CheckSequence, placeOf(e), "workspace %d, %v: number is %d, want at most %d", e.Workspace, n.SequencePeriod(), n.Number, def.Max())
	}
	want := def.Initial
	if *last >= def.Initial && *last < math.MaxUint64 {
		want = *last + 1
	}
	if n.Number != want && (n.Number < want || !raised()) {
		r.fault(CheckSequence, placeOf(e), "workspace %d, %v: number is %d, want %d", e.Workspace, n.SequencePeriod(), n.Number, want)
	}
	raise(last, def, n.Number)
}

// move checks to where a sequence that never restarts was moved, which is forward.
func (s *sequences) move(r *run, e *messages.Event, n messages.SequenceNumber) {
	i := s.kind.index(n.Seq)
	if i <= 0 {
		r.fault(CheckEvent, placeOf(e), "workspace %d: move of sequence %d, which kind %d does not have", s.id, n.Seq, s.kind.id)
		return
	}
	if def := &s.kind.sequences[i]; !def.Restarts() {
		r.checkMove(e, def, n, &s.last[i])
	}
}

// checkMove checks to where a sequence was moved against its last number, in its period, and takes it over.
func (r *run) checkMove(e *messages.Event, def *messages.Sequence, n messages.SequenceNumber, last *messages.Number) {
	if err := def.CheckPeriod(e.Date, n.Period); err != nil {
		r.fault(CheckEvent, placeOf(e), "workspace %d: move: %v", e.Workspace, err)
	}
	if n.Number <= max(*last, def.Initial-1) || n.Number > def.Max() {
		r.fault(CheckSequence, placeOf(e), "workspace %d, %v: moved to %d, want more than %d and at most %d",
			e.Workspace, n.SequencePeriod(), n.Number, max(*last, def.Initial-1), def.Max())
	}
	raise(last, def, n.Number)
}

// bring checks an explicit id of a new record; the sequence goes on above it.
func (s *sequences) bring(r *run, e *messages.Event, n messages.SequenceNumber) {
	i := s.kind.index(n.Seq)
	if i <= 0 {
		r.fault(CheckEvent, placeOf(e), "workspace %d: record of sequence %d, which kind %d does not have", s.id, n.Seq, s.kind.id)
		return
	}
	if s.kind.sequences[i].Restarts() {
		r.fault(CheckEvent, placeOf(e), "workspace %d: record %v of a sequence that restarts", s.id, n.Record())
	}
	if limit := s.kind.sequences[i].MaxExplicit(); n.Number > max(limit, s.last[i]) {
		r.fault(CheckEvent, placeOf(e), "workspace %d, sequence %d: explicit id is %d, want at most %d", s.id, n.Seq, n.Number, limit)
	}
	raise(&s.last[i], &s.kind.sequences[i], n.Number)
}

// raise merges by maximum; what is below the initial value is no number of the
// sequence.
func raise(last *messages.Number, def *messages.Sequence, n messages.Number) {
	if n >= def.Initial {
		*last = max(*last, n)
	}
}
