package bolt

import (
	"cmp"
	"errors"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage"
)

func (n *newEvent) hasID() bool { return !n.dedup.IsZero() }

// checkIDs makes sure that the log has none of the request's deduplication ids, and
// stages them. Otherwise it returns a [*storage.DuplicateError] with all that the
// log, the requests accepted before, or the request itself have already, or a
// [*storage.LookupError] with all of which nobody can know.
func (g *staging) checkIDs(r *writeRequest) error {
	if checkpoint := r.lookUpInTail(); checkpoint != r.lookedUpAt {
		// The tail was looked at first: what has left it since is in state.db before
		// this lookup begins.
		if err := g.s.findStored(r.lookups); err != nil && !errors.Is(err, storage.ErrDamaged) {
			return err
		}
	}
	var duplicates []storage.Duplicate
	lost := storage.LookupError{Partition: r.partition.id}
	next := 0
	for i := range r.events {
		n := &r.events[i]
		if !n.hasID() {
			continue
		}
		l := &r.lookups[next]
		next++
		if l.found == 0 {
			l.found = g.ids[l.key]
		}
		if l.found != 0 {
			duplicates = append(duplicates, storage.Duplicate{PLogOffset: n.offset, Workspace: n.ws, ID: n.dedup, First: l.found})
			continue
		}
		if l.damage != nil {
			lost.PLogOffsets = append(lost.PLogOffsets, n.offset)
			lost.Cause = cmp.Or(lost.Cause, l.damage)
			continue
		}
		g.ids[l.key] = n.wlog
		g.undoIDs = append(g.undoIDs, l.key)
	}
	if len(duplicates) > 0 {
		return &storage.DuplicateError{Partition: r.partition.id, Duplicates: duplicates}
	}
	if len(lost.PLogOffsets) > 0 {
		return &lost
	}
	return nil
}

// lookUpInTail looks for the request's ids in the tail, and returns the checkpoint
// that the tail begins at.
func (r *writeRequest) lookUpInTail() messages.PLogOffset {
	r.partition.mu.RLock()
	defer r.partition.mu.RUnlock()
	for i := range r.lookups {
		if l := &r.lookups[i]; l.found == 0 {
			l.found = r.partition.tail.findID(l.key)
		}
	}
	return r.partition.checkpoint
}
