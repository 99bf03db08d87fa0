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
	b := r.beforehand(s.schema.trust)
	if checks && (b.covered || s.checkAhead(r, &b) == nil) {
		r.checkedAt = b.checkpoint
	}
	if len(r.lookups) > 0 && s.findStored(r.lookups) == nil {
		r.lookedUpAt = b.checkpoint
	}
}

// beforehand is what is known of a request without state.db.
type beforehand struct {
	checkpoint messages.PLogOffset
	// known says for each event whether its workspace is known: to the tail, or from
	// an event before it.
	known []bool
	// covered says that there is nothing to look for.
	covered bool
}

func (r *writeRequest) beforehand(trust messages.TrustLevel) beforehand {
	known := make([]bool, len(r.events))
	var before map[messages.WSID]int
	if len(r.events) > 1 {
		before = make(map[messages.WSID]int, len(r.events))
	}
	p := r.partition
	p.mu.RLock()
	defer p.mu.RUnlock()
	covered := p.ends.plogFree
	for i := range r.events {
		n := &r.events[i]
		count := before[n.ws]
		if before != nil {
			before[n.ws]++
		}
		// An entry before the checkpoint is about to be trimmed: when the committer comes,
		// it may be gone, and the checkpoint be the same.
		o, ok := p.tail.last[n.ws]
		known[i] = count > 0 || ok && o >= p.checkpoint
		covered = covered && p.ends.covers(n, known[i], count, trust)
	}
	return beforehand{checkpoint: p.checkpoint, known: known, covered: covered}
}

// checkAhead looks into state.db, and remembers where the keys end there.
func (s *Store) checkAhead(r *writeRequest, b *beforehand) error {
	var l learned
	err := s.state.view(func(tx *bbolt.Tx) error {
		if err := s.checkState(tx, r, r.events[len(r.events)-1].offset, b.known); err != nil {
			return err
		}
		l = learnAll(tx, r, s.schema.trust)
		return nil
	})
	if err != nil {
		return err
	}
	p := r.partition
	p.mu.Lock()
	defer p.mu.Unlock()
	p.remember(l, b.checkpoint, max(endsInAll/len(s.partitions), 64))
	return nil
}
