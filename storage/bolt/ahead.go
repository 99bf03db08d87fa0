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
	checkpoint, known := r.beforehand()
	if checks && s.state.view(func(tx *bbolt.Tx) error {
		return s.checkState(tx, r, r.events[len(r.events)-1].offset, known)
	}) == nil {
		r.checkedAt = checkpoint
	}
	if len(r.lookups) > 0 && s.findStored(r.lookups) == nil {
		r.lookedUpAt = checkpoint
	}
}

// beforehand returns the partition's checkpoint, and for each event whether its
// workspace is known without state.db: to the tail, or from an event before it.
func (r *writeRequest) beforehand() (checkpoint messages.PLogOffset, known []bool) {
	known = make([]bool, len(r.events))
	var seen map[messages.WSID]struct{}
	if len(r.events) > 1 {
		seen = make(map[messages.WSID]struct{}, len(r.events))
	}
	p := r.partition
	p.mu.RLock()
	defer p.mu.RUnlock()
	for i := range r.events {
		ws := r.events[i].ws
		if _, known[i] = seen[ws]; known[i] {
			continue
		}
		if seen != nil {
			seen[ws] = struct{}{}
		}
		_, e := p.tail.lastOf(ws)
		known[i] = e != nil
	}
	return p.checkpoint, known
}
