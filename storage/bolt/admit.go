package bolt

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"go.etcd.io/bbolt"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage"
	"github.com/partita-go/partita/storage/bolt/internal/format"
)

// staging is what the requests accepted for one commit will have changed. It lies
// over the published state: a request is checked against both, in the same
// goroutine that writes, so no check can be outrun.
type staging struct {
	s          *Store
	registers  map[messages.PartitionID]stagedRegister
	workspaces map[messages.WSID]int // places in ends
	ends       []stagedEnds
	ids        map[format.DedupKey]messages.WLogOffset
	events     int64
	bytes      int64
	// accepted are the requests accepted so far.
	accepted []*writeRequest
	// records are all that they write, once somebody needs to know.
	records map[format.RecordKey]struct{}

	// known says what is known of each event of the request in hand, but not whether its
	// keys are free; checkpoint is where the tail begins, covered says that all its keys are
	// known to be free in state.db.
	known      []foreknown
	checkpoint messages.PLogOffset
	covered    bool
	// What the request in hand has changed so far, to be undone if it is refused.
	undoWorkspaces []undoWorkspace
	undoRecords    []format.RecordKey
	undoIDs        []format.DedupKey
}

// stagedRegister is where a partition will stand.
type stagedRegister struct {
	epoch  messages.Epoch
	last   messages.PLogOffset
	lastAt messages.Timestamp
	// tail is how many events the tail will have, rows how much data their records.
	tail int
	rows int64
}

// stagedEnds is where the keys of a workspace will end.
type stagedEnds struct {
	workspaceEnds
	// known says that the workspace's last event is known, remembered that the ends are.
	known, remembered bool
}

// undoWorkspace is what was staged of a workspace before an event.
type undoWorkspace struct {
	place int
	wlog  messages.WLogOffset
	kind  messages.WSKind
	known bool
}

func newStaging(s *Store) *staging {
	return &staging{
		s:          s,
		registers:  make(map[messages.PartitionID]stagedRegister),
		workspaces: make(map[messages.WSID]int),
		ids:        make(map[format.DedupKey]messages.WLogOffset),
	}
}

func (g *staging) reset() {
	clear(g.registers)
	clear(g.workspaces)
	g.ends = g.ends[:0]
	clear(g.ids)
	clear(g.accepted)
	g.accepted = g.accepted[:0]
	g.records = nil
	g.events, g.bytes = 0, 0
}

// admit stages a request, or returns why it is refused and leaves no trace of it.
func (g *staging) admit(r *writeRequest) error {
	g.undoWorkspaces, g.undoRecords, g.undoIDs = g.undoWorkspaces[:0], g.undoRecords[:0], g.undoIDs[:0]
	reg, err := g.checkMemory(r)
	if err == nil && g.s.schema.Trust < messages.TrustAll && !g.covered && r.checkedAt != g.checkpoint {
		// The tail was looked at first: what has left it since is in state.db before
		// this transaction begins.
		err = g.s.state.View(func(tx *bbolt.Tx) error { return g.s.checkState(tx, r, reg.last, g.known, nil) })
	}
	// An append that is repeated may meet the records of the first: what its caller
	// must be told is that it is a duplicate.
	if len(r.lookups) > 0 && (err == nil || errors.Is(err, storage.ErrConflict)) {
		err = cmp.Or(g.checkIDs(r), err)
	}
	if err != nil {
		g.undo()
		return err
	}
	g.registers[r.partition.id] = reg
	g.accepted = append(g.accepted, r)
	g.events += int64(len(r.events))
	g.bytes += r.size.Bytes
	return nil
}

// undo takes back what the request in hand has staged. The ends of records stay
// where they are: too high an end makes nobody but the next one look.
func (g *staging) undo() {
	for _, u := range slices.Backward(g.undoWorkspaces) {
		e := &g.ends[u.place]
		e.wlog, e.kind, e.known = u.wlog, u.kind, u.known
	}
	for _, k := range g.undoRecords {
		delete(g.records, k)
	}
	for _, k := range g.undoIDs {
		delete(g.ids, k)
	}
}

// checkMemory checks a request against what is staged and against the partition.
// It returns the register as the request will leave it.
func (g *staging) checkMemory(r *writeRequest) (stagedRegister, error) {
	p := r.partition
	p.mu.RLock()
	defer p.mu.RUnlock()
	if p.failed != nil {
		return stagedRegister{}, p.failed
	}
	g.checkpoint, g.covered = p.checkpoint, p.ends.plogFree && len(r.events) > 0
	reg, staged := g.registers[p.id]
	if !staged {
		reg = stagedRegister{epoch: p.epoch, last: p.last, lastAt: p.lastAt, tail: p.tail.Len(), rows: p.tail.Size.Rows}
	}
	if r.takeEpoch {
		reg.epoch++
		r.epoch = reg.epoch
		return reg, nil
	}
	if r.epoch != reg.epoch || r.epoch == 0 {
		return reg, fmt.Errorf("%w: partition %d: got epoch %d, want %d", messages.ErrFenced, p.id, r.epoch, reg.epoch)
	}
	if err := g.checkRoom(r, &reg); err != nil {
		return reg, err
	}
	g.known = g.known[:0]
	for i := range r.events {
		if err := g.checkEvent(r, i, &reg); err != nil {
			return reg, err
		}
	}
	reg.tail += len(r.events)
	reg.rows += r.size.Rows
	return reg, nil
}

// checkRoom refuses what the tail has no room for. An empty tail has room for any
// batch.
func (g *staging) checkRoom(r *writeRequest, reg *stagedRegister) error {
	o, room := &g.s.options, g.s.shares.tail
	if reg.tail > 0 && reg.tail+len(r.events) > o.TailEvents {
		return fmt.Errorf("%w: partition %d: %d events are not flushed yet, the limit is %d", storage.ErrTailFull, r.partition.id, reg.tail, o.TailEvents)
	}
	if n := g.s.tails.Bytes.Load() + g.bytes; n > 0 && n+r.size.Bytes > room {
		return fmt.Errorf("%w: %d bytes are not flushed yet, the limit is %d", storage.ErrTailFull, n, room)
	}
	if rows := r.size.Rows; reg.rows > 0 && rows > 0 && reg.rows+rows > room {
		return fmt.Errorf("%w: partition %d: %d bytes of records are not flushed yet, the limit is %d", storage.ErrTailFull, r.partition.id, reg.rows, room)
	}
	return nil
}

// checkEvent checks an event against the tail and what is remembered, and stages it.
func (g *staging) checkEvent(r *writeRequest, at int, reg *stagedRegister) error {
	p, n := r.partition, &r.events[at]
	switch {
	case n.offset != reg.last+1:
		return fmt.Errorf("%w: partition %d: got offset %d, want %d", storage.ErrOutOfOrder, p.id, n.offset, reg.last+1)
	case n.at < reg.lastAt:
		return fmt.Errorf("%w: partition %d, offset %d: got %v, want at least %v", storage.ErrTimeFell, p.id, n.offset, n.at, reg.lastAt)
	}
	if err := p.conflictWith(n.ws, n.numbers, n.records); err != nil {
		return err
	}
	e, err := g.checkWorkspace(p, n)
	if err != nil {
		return err
	}
	g.covered = g.covered && e.remembered
	if g.s.schema.Trust == messages.TrustNone {
		if err := g.checkRecords(r, at, e); err != nil {
			return err
		}
	}
	reg.last, reg.lastAt = n.offset, n.at
	return nil
}

// checkWorkspace makes sure that the event continues its workspace's log and kind,
// as far as they are known.
func (g *staging) checkWorkspace(p *partition, n *newEvent) (*stagedEnds, error) {
	place := g.stage(p, n)
	e := &g.ends[place]
	if e.known && n.wlog != e.wlog+1 {
		return nil, fmt.Errorf("%w: partition %d, offset %d: workspace %d: got offset %d, want %d",
			storage.ErrOutOfOrder, p.id, n.offset, n.ws, n.wlog, e.wlog+1)
	}
	if e.known && e.wlog > 0 && n.wsKind != e.kind {
		return nil, kindMismatch(p.id, n, e.kind)
	}
	known := nothingKnown
	if e.known {
		known = lastKnown
	}
	g.known = append(g.known, known)
	g.undoWorkspaces = append(g.undoWorkspaces, undoWorkspace{place: place, wlog: e.wlog, kind: e.kind, known: e.known})
	e.wlog, e.kind, e.known = n.wlog, n.wsKind, true
	return e, nil
}

// stage returns the place of an event's workspace among the staged ends.
func (g *staging) stage(p *partition, n *newEvent) int {
	if place, ok := g.workspaces[n.ws]; ok {
		return place
	}
	place := len(g.ends)
	g.workspaces[n.ws] = place
	g.ends = slices.Grow(g.ends, 1)[:place+1]
	e := &g.ends[place]
	*e = stagedEnds{workspaceEnds: workspaceEnds{records: e.records[:0]}}
	if end := p.ends.find(n.ws); end.known() && end.wlog < n.wlog {
		e.wlog, e.kind, e.records, e.whole = end.wlog, end.kind, end.appendTo(e.records), end.whole
		e.known, e.remembered = true, true
	} else if _, last := p.tail.LastOf(n.ws); last != nil {
		e.wlog, e.kind, e.known = last.WLog, last.Kind, true
	}
	return place
}

// checkRecords makes sure that the keys of new records are free in the tail and in
// what is staged. Updates count too: they may be what creates a row.
func (g *staging) checkRecords(r *writeRequest, at int, e *stagedEnds) error {
	p, n := r.partition, &r.events[at]
	for i, rec := range n.records {
		k := format.RecordKey{Workspace: n.ws, ID: rec.ID()}
		if rec.IsNew && (!e.remembered || !e.isBelow(rec)) {
			g.covered = false
			g.listRecords(r, at, i)
			_, staged := g.records[k]
			if _, written := p.tail.WriterOf(k); staged || written {
				return n.recordConflict(p.id, rec)
			}
		}
		e.raise(rec)
		if g.records != nil {
			g.addRecord(k)
		}
	}
	return nil
}

// listRecords lists what was staged before a record of the request in hand, unless
// the list is there. Most commits have no use for it.
func (g *staging) listRecords(r *writeRequest, at, record int) {
	if g.records != nil {
		return
	}
	g.records = make(map[format.RecordKey]struct{})
	for _, a := range g.accepted {
		for i := range a.events {
			for _, rec := range a.events[i].records {
				g.records[format.RecordKey{Workspace: a.events[i].ws, ID: rec.ID()}] = struct{}{}
			}
		}
	}
	for i := range r.events[:at+1] {
		records := r.events[i].records
		if i == at {
			records = records[:record]
		}
		for _, rec := range records {
			g.addRecord(format.RecordKey{Workspace: r.events[i].ws, ID: rec.ID()})
		}
	}
}

// addRecord adds a record of the request in hand to the list.
func (g *staging) addRecord(k format.RecordKey) {
	if _, staged := g.records[k]; !staged {
		g.records[k] = struct{}{}
		g.undoRecords = append(g.undoRecords, k)
	}
}

// checkIDs makes sure that the log has none of the request's deduplication ids, and
// stages them. Otherwise it returns a [*storage.DuplicateError] with all that the
// log, the requests accepted before, or the request itself have already, or a
// [*storage.LookupError] with all of which nobody can know.
func (g *staging) checkIDs(r *writeRequest) error {
	if checkpoint := r.lookUpInTail(); checkpoint != r.lookedUpAt {
		// The tail was looked at first: what has left it since is in state.db before
		// this lookup begins.
		if err := r.lookups.FindStored(g.s.known, g.s.state, g.s.log); err != nil && !errors.Is(err, storage.ErrDamaged) {
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
		if l.Found == 0 {
			l.Found = g.ids[l.Key]
		}
		if l.Found != 0 {
			duplicates = append(duplicates, storage.Duplicate{PLogOffset: n.offset, Workspace: n.ws, ID: n.dedup, First: l.Found})
			continue
		}
		if l.Damage != nil {
			lost.PLogOffsets = append(lost.PLogOffsets, n.offset)
			lost.Cause = cmp.Or(lost.Cause, l.Damage)
			continue
		}
		g.ids[l.Key] = n.wlog
		g.undoIDs = append(g.undoIDs, l.Key)
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
		if l := &r.lookups[i]; l.Found == 0 {
			l.Found = r.partition.tail.FindID(l.Key)
		}
	}
	return r.partition.checkpoint
}
