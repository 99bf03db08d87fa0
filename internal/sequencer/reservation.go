package sequencer

import (
	"fmt"

	"github.com/partita-go/partita/calendar"
	"github.com/partita-go/partita/messages"
)

// Kinds are an application's workspace kinds, prepared for counting. They are
// safe for concurrent use.
type Kinds struct {
	byID map[messages.WSKind]*kindDef
	// widest is the largest number of numbers that a workspace has in the cache.
	widest int
}

// NewKinds prepares the kinds of a descriptor, which must be valid.
func NewKinds(d messages.Descriptor) *Kinds {
	k := &Kinds{byID: make(map[messages.WSKind]*kindDef, len(d.Kinds)), widest: 1}
	for _, kind := range d.Kinds {
		def := newKindDef(kind)
		k.byID[kind.ID] = def
		k.widest = max(k.widest, def.numbers)
	}
	return k
}

// Reservation counts the numbers of one open transaction: while it is open, its
// workspace's sequences are its own. The partition counts with one, and so does an
// owner whose [messages.Start] asked for the numbers. It is not safe for
// concurrent use.
type Reservation struct {
	workspace messages.WSID
	kind      *kindDef
	// lasts are the workspace's last numbers with those reserved. The periods are those that an event is given
	// numbers of.
	lasts
	given int
}

// Reserve returns an owner's reservation, which takes over the numbers that started brought
// along.
func (k *Kinds) Reserve(ws messages.WSID, kind messages.WSKind, started *messages.Started) (Reservation, error) {
	def := k.byID[kind]
	if def == nil || len(started.Last) != len(def.sequences) || def.restarts != nil && len(started.Periods) != len(def.sequences) {
		return Reservation{}, fmt.Errorf("%w: workspace %d: got %d numbers and %d periods of kind %d",
			messages.ErrUnknownKind, ws, len(started.Last), len(started.Periods), kind)
	}
	return Reservation{workspace: ws, kind: def, lasts: lasts{last: started.Last, periods: started.Periods}}, nil
}

// Last returns the last numbers, in order of the kind's sequences. The caller must
// not change them.
func (r *Reservation) Last() []messages.Number { return r.last }

// Next reserves the next numbers of a sequence, all that are wanted or none, and returns the
// first one. It returns ErrUnknownSequence, an [*messages.OverflowError] or
// ErrTooManyNumbers, and has consumed nothing then.
func (r *Reservation) Next(w messages.Wanted) (messages.SequenceNumber, error) {
	i := r.kind.index(w.Seq)
	if i <= wlogOffset {
		return messages.SequenceNumber{}, fmt.Errorf("%w: workspace %d, kind %d: got sequence %d", messages.ErrUnknownSequence, r.workspace, r.kind.id, w.Seq)
	}
	n := w.Numbers()
	if n > messages.MaxEventNumbers-r.given {
		return messages.SequenceNumber{}, fmt.Errorf("%w: got %d, want at most %d", messages.ErrTooManyNumbers, int64(r.given)+int64(n), messages.MaxEventNumbers)
	}
	last, def := r.last[i], &r.kind.sequences[i]
	// A stored value below the initial one is as good as none.
	before := max(last, def.Initial-1)
	if largest := def.Max(); before > largest || messages.Number(n) > largest-before {
		return messages.SequenceNumber{}, overflow(r.workspace, def, r.periodOf(i), largest, last, n)
	}
	r.last[i] = before + messages.Number(n)
	r.given += n
	return messages.SequenceNumber{Seq: w.Seq, Period: r.periodOf(i), Number: before + 1}, nil
}

func overflow(ws messages.WSID, def *messages.Sequence, period calendar.Date, largest, last messages.Number, wanted int) error {
	return &messages.OverflowError{Workspace: ws, Seq: def.ID, Name: def.Name, Period: period, Last: last, Largest: largest, Wanted: wanted}
}

// Raise lifts a sequence to an explicit id of a new record. It returns
// ErrUnknownSequence or ErrExplicitID, and has changed nothing then.
func (r *Reservation) Raise(id messages.RecordID) error {
	i, ok := r.kind.ofRecords(id.Seq)
	if !ok {
		return fmt.Errorf("%w: workspace %d, kind %d: explicit id %v", messages.ErrUnknownSequence, r.workspace, r.kind.id, id)
	}
	def := &r.kind.sequences[i]
	if limit := def.MaxExplicit(); id.Number > limit {
		return fmt.Errorf("%w: workspace %d: got %v, want at most %d", messages.ErrExplicitID, r.workspace, id, limit)
	}
	if id.Number >= def.Initial {
		r.last[i] = max(r.last[i], id.Number)
	}
	return nil
}

// Covers returns a [*messages.RecordAheadError] if a record of an event whose numbers and
// new records have been counted is ahead of its sequence, which only one that is updated
// can be, or ErrUnknownSequence.
func (r *Reservation) Covers(records []messages.Record) error {
	for i := range records {
		if err := r.reaches(records[i].ID); err != nil {
			return err
		}
	}
	return nil
}

// reaches returns why a record cannot be written. An id below the initial value is no
// number of the sequence: it will never be given out.
func (r *Reservation) reaches(id messages.RecordID) error {
	i, ok := r.kind.ofRecords(id.Seq)
	if !ok {
		return fmt.Errorf("%w: workspace %d, kind %d: id %v", messages.ErrUnknownSequence, r.workspace, r.kind.id, id)
	}
	if id.Number > r.last[i] && id.Number >= r.kind.sequences[i].Initial {
		return &messages.RecordAheadError{Workspace: r.workspace, ID: id, Last: r.last[i]}
	}
	return nil
}

// settle takes over what the owner has counted itself. Nil means that it asked the
// partition for every number.
func (r *Reservation) settle(counted []messages.Number) error {
	if counted == nil {
		return nil
	}
	if len(counted) != len(r.last) || counted[wlogOffset] != r.last[wlogOffset] {
		return fmt.Errorf("%w: workspace %d, kind %d: got %v", messages.ErrCounted, r.workspace, r.kind.id, counted)
	}
	for i, n := range counted {
		def := &r.kind.sequences[i]
		if n < r.last[i] || n > def.Max() {
			return fmt.Errorf("%w: workspace %d, sequence %d: got %d, want at least %d and at most %d",
				messages.ErrCounted, r.workspace, def.ID, n, r.last[i], def.Max())
		}
	}
	copy(r.last, counted)
	return nil
}
