package bolt

import (
	"context"

	"go.etcd.io/bbolt"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage"
	"github.com/partita-go/partita/storage/bolt/internal/boltfile"
	"github.com/partita-go/partita/storage/bolt/internal/format"
	"github.com/partita-go/partita/storage/bolt/internal/statedb"
)

// settleNumbers merges what the log says with what is stored, by maximum, and
// leaves in derived only what changes. What the caller gave must be the same: each
// key that changes, with the new value. A key that does not change may be given,
// with the stored value or with the largest that these events say. An error is a
// [*storage.NumbersError] or damage.
func (r *flushRequest) settleNumbers(tx *bbolt.Tx) error {
	b := tx.Bucket(format.BucketNumbers)
	given := r.given
	changed := r.derived[:0]
	for _, n := range r.derived {
		for len(given) > 0 && compareNumbers(given[0], n) < 0 {
			if err := r.checkUnchanged(b, given[0]); err != nil {
				return err
			}
			given = given[1:]
		}
		stored, err := statedb.Number(b, n.ws, n.seq)
		if err != nil {
			return err
		}
		want := n.merged(stored)
		got := messages.Number(0)
		if len(given) > 0 && compareNumbers(given[0], n) == 0 {
			got, given = given[0].number, given[1:]
		}
		if !r.derive && !n.agrees(got, stored, want) {
			return r.numbersError(numberPut{n.ws, n.seq, got}, want)
		}
		if want != stored {
			changed = append(changed, numberPut{n.ws, n.seq, want})
		}
	}
	for _, n := range given {
		if err := r.checkUnchanged(b, n); err != nil {
			return err
		}
	}
	r.derived = changed
	return nil
}

// merged is what will be stored: the larger number; a kind once and for all.
func (n numberPut) merged(stored messages.Number) messages.Number {
	if n.seq == format.KindSeq && stored != 0 {
		return stored
	}
	return max(stored, n.number)
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
	return got == 0 || got == n.number && n.seq != format.KindSeq
}

// checkUnchanged makes sure that a number given is the stored one.
func (r *flushRequest) checkUnchanged(b *bbolt.Bucket, n numberPut) error {
	stored, err := statedb.Number(b, n.ws, n.seq)
	if err != nil || stored == n.number {
		return err
	}
	return r.numbersError(n, stored)
}

func (r *flushRequest) numbersError(got numberPut, want messages.Number) error {
	return &storage.NumbersError{
		Partition: r.partition.id, Workspace: got.ws, Seq: got.seq, Got: got.number, Want: want, Checkpoint: r.to,
	}
}

// checkRepeated makes sure that a flush that has happened gave what is stored.
func (r *flushRequest) checkRepeated(state *boltfile.File) error {
	return state.View(func(tx *bbolt.Tx) error {
		b := tx.Bucket(format.BucketNumbers)
		for _, n := range r.given {
			stored, err := statedb.Number(b, n.ws, n.seq)
			if err != nil {
				return err
			}
			if n.number > stored || n.seq == format.KindSeq && n.number != stored {
				return r.numbersError(n, stored)
			}
		}
		return nil
	})
}

// Numbers implements [storage.Projections].
func (s *Store) Numbers(ctx context.Context, ws messages.WSID) (storage.WorkspaceNumbers, error) {
	if err := s.enter(ctx); err != nil {
		return storage.WorkspaceNumbers{}, err
	}
	return statedb.Numbers(s.state, ws)
}
