package bolt

import (
	"go.etcd.io/bbolt"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage/bolt/internal/format"
)

// lookAhead looks at state.db for a request, in the caller's goroutine: many look
// while one commits. What it finds out holds as long as the partition's checkpoint is
// what it was before: an event before the checkpoint was in state.db by then, and one
// behind it is in the tail. If anything is amiss, the committer looks again and says
// so.
func (s *Store) lookAhead(r *writeRequest) {
	for i := range r.events {
		if n := &r.events[i]; n.hasID() {
			r.lookups = append(r.lookups, dedupLookup{key: format.DedupKey{Workspace: n.ws, ID: n.dedup}})
		}
	}
	checks := s.schema.Trust < messages.TrustAll && len(r.events) > 0
	if !checks && len(r.lookups) == 0 {
		return
	}
	checkpoint, covered := r.coveredAt(s.schema.Trust)
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

// foreknown is what is known of an event without state.db.
type foreknown uint8

const (
	nothingKnown foreknown = iota
	// lastKnown: the last event of its workspace.
	lastKnown
	// freeKnown: that it continues its workspace's log, and that its keys are free.
	freeKnown
)

// beforehand returns the partition's checkpoint, and what is known of each event.
func (r *writeRequest) beforehand(trust messages.TrustLevel) (messages.PLogOffset, []foreknown) {
	known := make([]foreknown, len(r.events))
	before := make(map[messages.WSID]bool, len(r.events))
	p := r.partition
	p.mu.RLock()
	defer p.mu.RUnlock()
	for i := range r.events {
		n := &r.events[i]
		// An entry before the checkpoint is about to be trimmed: when the committer comes,
		// it may be gone, and the checkpoint be the same.
		if o, ok := p.tail.last[n.ws]; before[n.ws] || ok && o >= p.checkpoint {
			known[i] = lastKnown
		}
		// What is remembered now may be forgotten by then too.
		if p.ends.covers(n, trust) && (known[i] == lastKnown || p.ends.find(n.ws).isContinuedBy(n)) {
			known[i] = freeKnown
		}
		before[n.ws] = true
	}
	return p.checkpoint, known
}

// checkAhead looks into state.db, and remembers where the keys end there.
func (s *Store) checkAhead(r *writeRequest) error {
	checkpoint, known := r.beforehand(s.schema.Trust)
	var l learned
	err := s.state.View(func(tx *bbolt.Tx) error {
		if err := s.checkState(tx, r, r.events[len(r.events)-1].offset, known); err != nil {
			return err
		}
		l = learnAll(tx, r, known, s.schema.Trust)
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
