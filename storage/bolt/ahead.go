package bolt

import (
	"fmt"

	"go.etcd.io/bbolt"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage"
	"github.com/partita-go/partita/storage/bolt/internal/dedup"
	"github.com/partita-go/partita/storage/bolt/internal/format"
	"github.com/partita-go/partita/storage/bolt/internal/statedb"
	"github.com/partita-go/partita/storage/bolt/internal/tail"
)

// lookAhead looks at state.db for a request, in the caller's goroutine: many look
// while one commits. What it finds out holds as long as the partition's checkpoint is
// what it was before: an event before the checkpoint was in state.db by then, and one
// behind it is in the tail. If anything is amiss, the committer looks again and says
// so.
func (s *Store) lookAhead(r *writeRequest) {
	r.listLookups(s.files.ID)
	checks := s.schema.Trust < messages.TrustAll && len(r.events) > 0
	if !checks && len(r.lookups) == 0 {
		return
	}
	checkpoint, covered := r.coveredAt(s.schema.Trust)
	if checks && !covered {
		// What it meets is told by the committer, who looks again.
		_ = s.checkAhead(r)
	}
	if len(r.lookups) > 0 && r.lookups.FindStored(s.known, s.state, s.log) == nil {
		r.lookedUpAt = checkpoint
	}
}

// listLookups lists the deduplication ids, unless that has been done.
func (r *writeRequest) listLookups(id format.StoreID) {
	if len(r.lookups) > 0 {
		return
	}
	for i := range r.events {
		if n := &r.events[i]; n.hasID() {
			if r.lookups == nil {
				r.lookups = make(dedup.Lookups, 0, len(r.events)-i)
			}
			r.lookups = append(r.lookups, dedup.NewLookup(format.DedupKey{Workspace: n.ws, ID: n.dedup}, id))
		}
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
	var before map[messages.WSID]bool // of more events than are looked through
	if len(r.events) > fewEvents {
		before = make(map[messages.WSID]bool, len(r.events))
	}
	p := r.partition
	p.mu.RLock()
	defer p.mu.RUnlock()
	for i := range r.events {
		n := &r.events[i]
		// An entry before the checkpoint is about to be trimmed: when the committer comes,
		// it may be gone, and the checkpoint be the same.
		if o, ok := p.tail.Last[n.ws]; ok && o >= p.checkpoint || before[n.ws] || before == nil && anyOf(r.events[:i], n.ws) {
			known[i] = lastKnown
		}
		// What is remembered now may be forgotten by then too.
		if p.ends.covers(n, trust) && (known[i] == lastKnown || p.ends.find(n.ws).isContinuedBy(n)) {
			known[i] = freeKnown
		}
		if before != nil {
			before[n.ws] = true
		}
	}
	return p.checkpoint, known
}

// fewEvents is how many events are looked through rather than put into a map.
const fewEvents = 16

// anyOf reports whether one of the events is of a workspace.
func anyOf(events []newEvent, ws messages.WSID) bool {
	for i := range events {
		if events[i].ws == ws {
			return true
		}
	}
	return false
}

// checkAhead looks into state.db, and remembers where the keys end there.
func (s *Store) checkAhead(r *writeRequest) error {
	checkpoint, known := r.beforehand(s.schema.Trust)
	l := newLearned(r)
	err := s.state.View(func(tx *bbolt.Tx) error { return s.checkState(tx, r, r.events[len(r.events)-1].offset, known, l) })
	if err != nil {
		return err
	}
	r.checkedAt = checkpoint
	p := r.partition
	p.mu.Lock()
	defer p.mu.Unlock()
	p.remember(*l, checkpoint, s.endsOfPartition())
	return nil
}

// endsOfPartition is how many ends of keys a partition remembers in a generation.
func (s *Store) endsOfPartition() int { return max(s.shares.ends/len(s.partitions), 64) }

// checkState makes sure that the keys a request needs are free in state.db. last is
// where the partition's log will end. What it meets goes into learned, unless that is nil.
func (s *Store) checkState(tx *bbolt.Tx, r *writeRequest, last messages.PLogOffset, known []foreknown, l *learned) error {
	if err := checkPLogFree(tx, r, last, l); err != nil {
		return err
	}
	var h format.Head
	var of *messages.WSID // whose head it is
	for i := range r.events {
		n := &r.events[i]
		if known[i] == freeKnown {
			l.pass(n.ws)
			continue
		}
		if of == nil || *of != n.ws {
			if err := statedb.ReadHead(tx, n.ws, &h); err != nil {
				return err
			}
			of = &n.ws
		}
		if err := n.checkHead(r.partition.id, &h, known[i] == lastKnown, messages.LSN(s.lastLSN.Load())); err != nil {
			return err
		}
		if s.schema.Trust == messages.TrustNone {
			if err := n.checkRecords(tx, r.partition.id, &h); err != nil {
				return err
			}
		}
		l.learn(n, &h, s.schema.Trust)
	}
	return nil
}

// checkRecords makes sure that the event's new records are not there.
func (n *newEvent) checkRecords(tx *bbolt.Tx, p messages.PartitionID, h *format.Head) error {
	for _, rec := range n.records {
		if !rec.IsNew {
			continue
		}
		lsn, err := statedb.Written(tx, h, format.RecordKey{Workspace: n.ws, ID: rec.ID()})
		if err != nil {
			return err
		}
		if lsn != 0 {
			return n.recordConflict(p, rec)
		}
	}
	return nil
}

// checkPLogFree makes sure that the request's entries in the partition's log, or
// the next one if it takes an epoch, are free.
func checkPLogFree(tx *bbolt.Tx, r *writeRequest, last messages.PLogOffset, l *learned) error {
	if !r.takeEpoch && len(r.events) == 0 {
		return nil
	}
	p := r.partition
	conflict := storage.ConflictError{Place: storage.PlacePLog, Partition: p.id}
	first := last + 1
	if r.takeEpoch {
		last++
	} else {
		first = r.events[0].offset
		conflict.Workspace, conflict.WLogOffset = r.events[0].ws, r.events[0].wlog
	}
	taken, ok := statedb.TakenPLog(tx, p.id, first)
	l.learnPLog(!ok)
	if !ok || taken > last {
		return nil
	}
	conflict.PLogOffset = taken
	return &conflict
}

// checkHead makes sure that the event's place in its workspace's log is free, and that no entry before it leads behind the
// end of the store's log; unless the tail knew the workspace, that its predecessor is there, and that it is of the kind
// that the first one fixed.
func (n *newEvent) checkHead(p messages.PartitionID, h *format.Head, known bool, end messages.LSN) error {
	switch {
	case h.Last >= n.wlog || h.LastLSN() > end:
		return &storage.ConflictError{
			Place: storage.PlaceWLog, Partition: p, PLogOffset: n.offset, Workspace: n.ws, WLogOffset: min(n.wlog, h.Last),
		}
	case known:
	case h.Last+1 != n.wlog:
		return fmt.Errorf("%w: partition %d, offset %d: workspace %d: got offset %d, and %d is not there",
			storage.ErrOutOfOrder, p, n.offset, n.ws, n.wlog, n.wlog-1)
	case h.Kind != 0 && h.Kind != n.wsKind:
		return kindMismatch(p, n, h.Kind)
	}
	return nil
}

func kindMismatch(p messages.PartitionID, n *newEvent, want messages.WSKind) error {
	return &storage.InvalidEventError{
		Partition: p, PLogOffset: n.offset,
		Cause: fmt.Errorf("workspace %d: got kind %d, want %d: %w", n.ws, n.wsKind, want, messages.ErrKindMismatch),
	}
}

func (n *newEvent) recordConflict(p messages.PartitionID, r tail.Record) error {
	return &storage.ConflictError{
		Place: storage.PlaceRecord, Partition: p, PLogOffset: n.offset,
		Workspace: n.ws, WLogOffset: n.wlog, Record: r.ID(),
	}
}
