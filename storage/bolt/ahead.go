package bolt

import (
	"go.etcd.io/bbolt"

	"github.com/partita-go/partita/messages"
)

// lookAhead looks at state.db for a request, in the caller's goroutine: many look
// while one commits. What it finds out holds as long as the partition's checkpoint is
// what it was before: an event before the checkpoint was in state.db by then, and one
// behind it is in the tail. If anything is amiss, the committer looks again and says
// so.
func (s *Store) lookAhead(r *writeRequest) {
	for i := range r.events {
		if n := &r.events[i]; n.hasID() {
			r.lookups = append(r.lookups, dedupLookup{key: dedupKey{ws: n.ws, id: n.dedup}})
		}
	}
	checks := s.schema.trust < messages.TrustAll && len(r.events) > 0
	if !checks && len(r.lookups) == 0 {
		return
	}
	checkpoint, covered := r.coveredAt(s.schema.trust)
	if checks && !covered {
		// What it meets is told by the committer, who looks again.
		_ = s.checkAhead(r)
	}
	if len(r.lookups) > 0 && s.findStored(r.lookups) == nil {
		r.lookedUpAt = checkpoint
	}
}

// coveredAt returns the partition's checkpoint, and whether a request needs no look
// into state.db as far as is remembered.
func (r *writeRequest) coveredAt(trust messages.TrustLevel) (messages.PLogOffset, bool) {
	p := r.partition
	p.mu.RLock()
	defer p.mu.RUnlock()
	covered := p.ends.plogFree
	for i := 0; covered && i < len(r.events); i++ {
		covered = p.ends.covers(&r.events[i], trust)
	}
	return p.checkpoint, covered
}

// beforehand returns the partition's checkpoint, and for each event whether its
// workspace is known: to the tail, or from an event before it.
func (r *writeRequest) beforehand() (messages.PLogOffset, []bool) {
	known := make([]bool, len(r.events))
	before := make(map[messages.WSID]bool, len(r.events))
	p := r.partition
	p.mu.RLock()
	defer p.mu.RUnlock()
	for i := range r.events {
		ws := r.events[i].ws
		// An entry before the checkpoint is about to be trimmed: when the committer comes,
		// it may be gone, and the checkpoint be the same.
		o, ok := p.tail.last[ws]
		known[i] = before[ws] || ok && o >= p.checkpoint
		before[ws] = true
	}
	return p.checkpoint, known
}

// checkAhead looks into state.db, and remembers where the keys end there.
func (s *Store) checkAhead(r *writeRequest) error {
	checkpoint, known := r.beforehand()
	var l learned
	err := s.state.view(func(tx *bbolt.Tx) error {
		if err := s.checkState(tx, r, r.events[len(r.events)-1].offset, known); err != nil {
			return err
		}
		l = learnAll(tx, r, s.schema.trust)
		return nil
	})
	if err != nil {
		return err
	}
	r.checkedAt = checkpoint
	p := r.partition
	p.mu.Lock()
	defer p.mu.Unlock()
	p.remember(l, checkpoint, max(endsInAll/len(s.partitions), 64))
	return nil
}
