package sequencer

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/partita-go/partita/messages"
)

// checkTaken returns why numbers that a draft brings along, or moves sequences to, are refused whatever the last
// numbers are.
func (k *kindDef) checkTaken(d *messages.Draft, taken []messages.SequenceNumber) error {
	for _, n := range taken {
		i := k.index(n.Seq)
		if i <= wlogOffset {
			return fmt.Errorf("%w: kind %d: got sequence %d", messages.ErrUnknownSequence, k.id, n.Seq)
		}
		def := &k.sequences[i]
		if def.Restarts() && n.Period == 0 && d.Date != 0 {
			continue // it is of the business date's period
		}
		if err := def.CheckPeriod(d.Date, n.Period); err != nil {
			return fmt.Errorf("%w: %v: %w", messages.ErrDraft, n, err)
		}
	}
	return nil
}

// eachTaken calls fn for each sequence that a draft brings a number of, or moves, with the date of its period.
func (k *kindDef) eachTaken(d *messages.Draft, fn dated) {
	for _, taken := range [...][]messages.SequenceNumber{d.Brought, d.Moves} {
		for _, n := range taken {
			fn(k.index(n.Seq), cmp.Or(n.Period, d.Date))
		}
	}
}

// bring reserves the numbers that a draft brings along.
func (c *Core) bring(r *reserved, d *messages.Draft, numbers []messages.SequenceNumber) ([]messages.SequenceNumber, error) {
	if len(d.Brought) == 0 {
		return numbers, nil
	}
	return c.takeOver(r, d, d.Brought, (*Reservation).Bring, numbers)
}

// move moves sequences, and returns to which numbers, with their periods.
func (c *Core) move(r *reserved, d *messages.Draft) ([]messages.SequenceNumber, error) {
	if len(d.Moves) == 0 {
		return nil, nil
	}
	return c.takeOver(r, d, d.Moves, (*Reservation).Move, make([]messages.SequenceNumber, 0, len(d.Moves)))
}

func (c *Core) takeOver(
	r *reserved, d *messages.Draft, taken []messages.SequenceNumber,
	take func(*Reservation, messages.SequenceNumber) (messages.SequenceNumber, error), dst []messages.SequenceNumber,
) ([]messages.SequenceNumber, error) {
	for _, n := range taken {
		if r.kind.restarts != nil {
			if err := c.turnSequence(&r.Reservation, r.ws, r.kind.index(n.Seq), cmp.Or(n.Period, d.Date)); err != nil {
				return nil, err
			}
		}
		n, err := take(&r.Reservation, n)
		if err != nil {
			return nil, err
		}
		dst = append(dst, n)
	}
	return dst, nil
}

// Bring reserves a number of an old system, which the event has instead of a new one, and returns it with its
// period. It returns the errors of [Reservation.Move], or ErrTooManyNumbers, and has consumed nothing then.
func (r *Reservation) Bring(n messages.SequenceNumber) (messages.SequenceNumber, error) {
	if r.given >= messages.MaxEventNumbers {
		return n, fmt.Errorf("%w: got %d, want at most %d", messages.ErrTooManyNumbers, r.given+1, messages.MaxEventNumbers)
	}
	n, err := r.Move(n)
	if err == nil {
		r.given++
	}
	return n, err
}

// Move makes a number the last one of its sequence, and returns it with its period: that in which the reservation
// counts, which may be named. It returns ErrUnknownSequence, ErrDraft for another period, a
// [*messages.BackwardError] or an [*messages.OverflowError], and has changed nothing then.
func (r *Reservation) Move(n messages.SequenceNumber) (messages.SequenceNumber, error) {
	i := r.kind.index(n.Seq)
	if i <= wlogOffset {
		return n, fmt.Errorf("%w: workspace %d, kind %d: got sequence %d", messages.ErrUnknownSequence, r.workspace, r.kind.id, n.Seq)
	}
	def, period := &r.kind.sequences[i], r.periodOf(i)
	if n.Period != 0 && n.Period != period {
		return n, fmt.Errorf("%w: workspace %d: got %v, want its period to be %v", messages.ErrDraft, r.workspace, n, period)
	}
	n.Period = period
	// A stored value below the initial one is as good as none.
	before := max(r.last[i], def.Initial-1)
	switch {
	case n.Number <= before:
		return n, &messages.BackwardError{Workspace: r.workspace, Seq: def.ID, Name: def.Name, Period: period, Last: before, Wanted: n.Number}
	case n.Number > def.MaxTaken():
		return n, overflow(r.workspace, def, period, def.MaxTaken(), r.last[i], int(min(n.Number-before, math.MaxInt)))
	}
	r.last[i] = n.Number
	return n, nil
}

// takesOver reports whether a draft brings a number of a sequence along, or moves it.
func takesOver(d *messages.Draft, seq messages.SeqID) bool {
	of := func(n messages.SequenceNumber) bool { return n.Seq == seq }
	return slices.ContainsFunc(d.Brought, of) || slices.ContainsFunc(d.Moves, of)
}

// sameTaken reports whether what a draft brings along, or moves, would stand in an event of the draft's date like this.
func sameTaken(drafted, taken []messages.SequenceNumber) bool {
	return slices.EqualFunc(drafted, taken, func(d, e messages.SequenceNumber) bool {
		return d.Seq == e.Seq && d.Number == e.Number && (d.Period == 0 || d.Period == e.Period)
	})
}
