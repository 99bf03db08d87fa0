package bolt

import (
	"context"

	"go.etcd.io/bbolt"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage"
	"github.com/partita-go/partita/storage/bolt/internal/boltfile"
	"github.com/partita-go/partita/storage/bolt/internal/format"
	"github.com/partita-go/partita/storage/bolt/internal/schema"
	"github.com/partita-go/partita/storage/bolt/internal/statedb"
)

// checkNumbers compares the numbers that the callers gave with what the log says. What was given must be the same: each
// key that changes, with the new value. A key that does not change may be given, with the stored value or with the
// largest that these events say. A flush that differs is refused, with a [*storage.NumbersError] or damage.
func (p *projection) checkNumbers(tx *bbolt.Tx) {
	for events := p.events; len(events) > 0; {
		n := workspaceEvents(events)
		r := events[0].r
		if !r.derive && r.refusal == nil {
			r.refusal = r.checkWorkspace(tx, events[0].e.ws, p.numbers(events[:n]))
		}
		events = events[n:]
	}
	for _, r := range p.group {
		if !r.derive && r.refusal == nil {
			r.refusal = r.checkUnchanged(tx, len(r.given))
		}
	}
}

// checkWorkspace compares what was given of a workspace with what its events say, and what was given before it with what
// is stored.
func (r *flushRequest) checkWorkspace(tx *bbolt.Tx, ws messages.WSID, derived lastNumbers) error {
	for _, d := range derived {
		n := numberPut{ws, d}
		at := r.checked
		for at < len(r.given) && compareNumbers(r.given[at], n) < 0 {
			at++
		}
		if err := r.checkUnchanged(tx, at); err != nil {
			return err
		}
		got := messages.Number(0)
		if at < len(r.given) && compareNumbers(r.given[at], n) == 0 {
			got = r.given[at].Number
			r.checked++
		}
		// What the events say is right whatever is stored: mostly nobody needs to look.
		if got == n.Number && n.Seq != format.KindSeq {
			continue
		}
		stored, closed, err := storedNumber(tx, n)
		if err != nil {
			return err
		}
		if want := n.merged(stored); !closed && !n.agrees(got, stored, want) {
			n.Number = got
			return r.numbersError(n, want)
		}
	}
	return nil
}

// checkUnchanged makes sure that the numbers given up to one are the stored ones.
func (r *flushRequest) checkUnchanged(tx *bbolt.Tx, to int) error {
	for ; r.checked < to; r.checked++ {
		n := r.given[r.checked]
		stored, closed, err := storedNumber(tx, n)
		if err != nil {
			return err
		}
		if stored != n.Number && !closed {
			return r.numbersError(n, stored)
		}
	}
	return nil
}

// merged is what will be stored: the larger number; a kind once and for all.
func (n numberPut) merged(stored messages.Number) messages.Number {
	if n.Seq == format.KindSeq && stored != 0 {
		return stored
	}
	return max(stored, n.Number)
}

// agrees reports whether what was given, 0 if nothing, is right for a number that
// the log derives.
func (n numberPut) agrees(got, stored, want messages.Number) bool {
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
func storedNumber(tx *bbolt.Tx, n numberPut) (stored messages.Number, closed bool, err error) {
	var h format.Head
	if err := statedb.ReadHead(tx, n.ws, &h); err != nil {
		return 0, false, err
	}
	stored, err = statedb.NumberIn(tx, n.ws, &h, n.SequencePeriod())
	return stored, n.Period < h.ClosedBelow(n.Seq), err
}

func (r *flushRequest) numbersError(got numberPut, want messages.Number) error {
	return &storage.NumbersError{
		Partition: r.partition.id, Workspace: got.ws, Seq: got.Seq, Period: got.Period, Got: got.Number, Want: want, Checkpoint: r.to,
	}
}

// checkRepeated makes sure that a flush that has happened gave what is stored.
func (r *flushRequest) checkRepeated(state *boltfile.File) error {
	return state.View(func(tx *bbolt.Tx) error {
		for _, n := range r.given {
			stored, closed, err := storedNumber(tx, n)
			if err != nil {
				return err
			}
			if n.Number > stored && !closed || n.Seq == format.KindSeq && n.Number != stored {
				return r.numbersError(n, stored)
			}
		}
		return nil
	})
}

// Numbers implements [storage.Projections].
func (s *Store) Numbers(ctx context.Context, ws messages.WSID, periods ...messages.SequencePeriod) (storage.WorkspaceNumbers, error) {
	if err := s.enter(ctx); err != nil {
		return storage.WorkspaceNumbers{}, err
	}
	return statedb.Numbers(s.state, ws, s.keepsSome, periods...)
}

// keepsSome reports whether a sequence keeps only some of its periods.
func (s *Store) keepsSome(kind messages.WSKind, seq messages.SeqID) bool {
	def := schema.Sequence(s.schema.Kinds[kind], seq)
	return def != nil && def.Restart.Keep > 0
}
