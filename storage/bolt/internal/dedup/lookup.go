package dedup

import (
	"cmp"
	"errors"

	"go.etcd.io/bbolt"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage"
	"github.com/partita-go/partita/storage/bolt/internal/boltfile"
	"github.com/partita-go/partita/storage/bolt/internal/format"
	"github.com/partita-go/partita/storage/bolt/internal/logdb"
)

// Lookup is an id that is looked up: in the tail by the store, which sets Found, and behind it here.
type Lookup struct {
	Key format.DedupKey
	// Found is the offset of the event that has it, 0 if none is known yet.
	Found messages.WLogOffset
	// Damage is why nobody can know whether an event in state.db has it.
	Damage error
	// candidates are the entries of the log that may have it, in their order.
	candidates []messages.LSN
}

// Lookups are those of a request, or of a reader.
type Lookups []Lookup

// FindStored looks the ids that were not found yet up in state.db, and in the log
// which of the events found there have them. Damage is the own of each lookup that
// meets it; the first of it is returned.
func (lookups Lookups) FindStored(id format.StoreID, state *boltfile.File, log *logdb.Log) error {
	for next := 0; next < len(lookups); next++ {
		// A page that bbolt cannot read ends the view, but not the other lookups.
		err := lookups.findCandidates(id, state, &next)
		if err == nil {
			break
		}
		if !errors.Is(err, storage.ErrDamaged) {
			return err
		}
		lookups[next].Damage = err
	}
	var first error
	for i := range lookups {
		l := &lookups[i]
		if l.Found != 0 {
			continue
		}
		if l.Damage == nil {
			l.Damage = l.confirm(log)
		}
		if l.Damage != nil && !errors.Is(l.Damage, storage.ErrDamaged) {
			return l.Damage
		}
		first = cmp.Or(first, l.Damage)
	}
	return first
}

// findCandidates looks ids up in state.db from the next one on, and leaves next
// where it ended.
func (lookups Lookups) findCandidates(id format.StoreID, state *boltfile.File, next *int) error {
	return state.View(func(tx *bbolt.Tx) error {
		r, err := NewReader(tx)
		if err != nil {
			return err
		}
		for ; *next < len(lookups); *next++ {
			if l := &lookups[*next]; l.Found == 0 {
				l.candidates, l.Damage = r.Candidates(l.candidates[:0], l.Key.Hash(id))
			}
		}
		return nil
	})
}

// confirm reads the candidates: other ids may have the same hash.
func (l *Lookup) confirm(log *logdb.Log) error {
	return log.Events(l.candidates, func(v *format.EventView) error {
		if l.Found == 0 && v.Workspace == l.Key.Workspace && v.DedupID == l.Key.ID {
			l.Found = v.WLogOffset
		}
		return nil
	})
}
