package bolt

import (
	"cmp"
	"context"
	"errors"

	"go.etcd.io/bbolt"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage"
	"github.com/partita-go/partita/storage/bolt/internal/dedup"
	"github.com/partita-go/partita/storage/bolt/internal/files"
	"github.com/partita-go/partita/storage/bolt/internal/format"
	"github.com/partita-go/partita/storage/bolt/internal/logdb"
)

// Find implements [storage.Reader].
func (s *Store) Find(ctx context.Context, ws messages.WSID, id messages.DedupID) (messages.WLogOffset, error) {
	if err := s.enter(ctx); err != nil {
		return 0, err
	}
	if id.IsZero() {
		return 0, nil
	}
	key := format.DedupKey{Workspace: ws, ID: id}
	// First the tail's view, then state.db's.
	found, failed := s.partitionOf(ws).findID(key)
	if found != 0 {
		return found, nil
	}
	lookup := dedupLookups{{key: key}}
	if err := lookup.findStored(s.files); err != nil {
		return 0, err
	}
	if lookup[0].found == 0 {
		return 0, failed
	}
	return lookup[0].found, nil
}

// findID looks an id up in the tail. It returns 0 if it is not there, and why the
// partition has failed: what is behind the tail is not known then.
func (p *partition) findID(k format.DedupKey) (messages.WLogOffset, error) {
	p.mu.RLock()
	defer p.mu.RUnlock()
	return p.tail.findID(k), p.failed
}

// dedupLookup is an id that is looked up.
type dedupLookup struct {
	key format.DedupKey
	// found is the offset of the event that has it, 0 if none is known yet.
	found messages.WLogOffset
	// damage is why nobody can know whether an event in state.db has it.
	damage error
	// candidates are the entries of the log that may have it, in their order.
	candidates []messages.LSN
}

// dedupLookups are those of a request.
type dedupLookups []dedupLookup

// findStored looks the ids that were not found yet up in state.db, and in the log
// which of the events found there have them. Damage is the own of each lookup that
// meets it; the first of it is returned.
func (lookups dedupLookups) findStored(f *files.Set) error {
	for next := 0; next < len(lookups); next++ {
		// A page that bbolt cannot read ends the view, but not the other lookups.
		err := lookups.findCandidates(f, &next)
		if err == nil {
			break
		}
		if !errors.Is(err, storage.ErrDamaged) {
			return err
		}
		lookups[next].damage = err
	}
	var first error
	for i := range lookups {
		l := &lookups[i]
		if l.found != 0 {
			continue
		}
		if l.damage == nil {
			l.damage = l.confirm(f.Log)
		}
		if l.damage != nil && !errors.Is(l.damage, storage.ErrDamaged) {
			return l.damage
		}
		first = cmp.Or(first, l.damage)
	}
	return first
}

// findCandidates looks ids up in state.db from the next one on, and leaves next
// where it ended.
func (lookups dedupLookups) findCandidates(f *files.Set, next *int) error {
	return f.State.View(func(tx *bbolt.Tx) error {
		r, err := dedup.NewReader(tx)
		if err != nil {
			return err
		}
		for ; *next < len(lookups); *next++ {
			if l := &lookups[*next]; l.found == 0 {
				l.candidates, l.damage = r.Candidates(l.candidates[:0], l.key.Hash(f.ID))
			}
		}
		return nil
	})
}

// confirm reads the candidates: other ids may have the same hash.
func (l *dedupLookup) confirm(log *logdb.Log) error {
	return log.Events(l.candidates, func(v *format.EventView) error {
		if l.found == 0 && v.Workspace == l.key.Workspace && v.DedupID == l.key.ID {
			l.found = v.WLogOffset
		}
		return nil
	})
}
