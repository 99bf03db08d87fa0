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
	// Hash is that of the key.
	Hash uint64
	// Found is the offset of the event that has it, 0 if none is known yet.
	Found messages.WLogOffset
	// Damage is why nobody can know whether an event in state.db has it.
	Damage error
	// candidates are the entries of the log that may have it, in their order.
	candidates []messages.LSN
}

// NewLookup returns a lookup of a key in the store of an id.
func NewLookup(key format.DedupKey, id format.StoreID) Lookup {
	return Lookup{Key: key, Hash: key.Hash(id)}
}

// Lookups are those of a request, or of a reader.
type Lookups []Lookup

// AllAbsent reports whether a filter is sure that state.db has none of the ids.
func (lookups Lookups) AllAbsent(f *Filter) bool {
	for i := range lookups {
		if !f.Absent(lookups[i].Hash) {
			return false
		}
	}
	return true
}

// FindStored looks the ids that were not found yet, and of which a filter is not sure
// that they are not there, up in state.db, and in the log which of the events found
// there have them. Damage is the own of each lookup that meets it; the first of it is
// returned.
func (lookups Lookups) FindStored(f *Filter, state *boltfile.File, log *logdb.Log) error {
	for next := 0; lookups.skip(f, &next); next++ {
		// A page that bbolt cannot read ends the view, but not the other lookups.
		err := lookups.findCandidates(f, state, &next)
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
		if l.Damage == nil && len(l.candidates) > 0 {
			l.Damage = l.confirm(log)
		}
		if l.Damage != nil && !errors.Is(l.Damage, storage.ErrDamaged) {
			return l.Damage
		}
		first = cmp.Or(first, l.Damage)
	}
	return first
}

// skip moves next on to the first id that has to be looked up, and reports whether there is one.
func (lookups Lookups) skip(f *Filter, next *int) bool {
	for ; *next < len(lookups); *next++ {
		l := &lookups[*next]
		if l.candidates, l.Damage = l.candidates[:0], nil; l.Found == 0 && !f.Absent(l.Hash) {
			return true
		}
	}
	return false
}

// findCandidates looks ids up in state.db from the next one on, and leaves next
// where it ended.
func (lookups Lookups) findCandidates(f *Filter, state *boltfile.File, next *int) error {
	return state.View(func(tx *bbolt.Tx) error {
		r, err := NewReader(tx)
		if err != nil {
			return err
		}
		for ; lookups.skip(f, next); *next++ {
			l := &lookups[*next]
			l.candidates, l.Damage = r.Candidates(l.candidates, l.Hash)
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
