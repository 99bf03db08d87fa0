package bolt

import (
	"bytes"
	"errors"
	"fmt"
	"slices"

	"go.etcd.io/bbolt"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage"
)

// staging is what the requests accepted for one commit will have changed. It lies
// over the published state: a request is checked against both, in the same
// goroutine that writes, so no check can be outrun.
type staging struct {
	s          *Store
	registers  map[messages.PartitionID]stagedRegister
	workspaces map[messages.WSID]workspaceEnd
	records    map[recordKey]struct{}
	ids        map[dedupKey]messages.WLogOffset
	events     int64
	bytes      int64

	// known says for each event of the request in hand whether the tail knows its
	// workspace, checkpoint where that tail begins.
	known      []bool
	checkpoint messages.PLogOffset
	// What the request in hand has changed so far, to be undone if it is refused.
	undoWorkspaces []undoWorkspace
	undoRecords    []recordKey
	undoIDs        []dedupKey
}

// stagedRegister is where a partition will stand.
type stagedRegister struct {
	epoch  messages.Epoch
	last   messages.PLogOffset
	lastAt messages.Timestamp
	// tail is how many events the tail will have.
	tail int
}

// workspaceEnd is the last event of a workspace as far as the tail knows it.
type workspaceEnd struct {
	wlog messages.WLogOffset
	kind messages.WSKind
}

type undoWorkspace struct {
	ws     messages.WSID
	before workspaceEnd
	had    bool
}

func newStaging(s *Store) *staging {
	return &staging{
		s:          s,
		registers:  make(map[messages.PartitionID]stagedRegister),
		workspaces: make(map[messages.WSID]workspaceEnd),
		records:    make(map[recordKey]struct{}),
		ids:        make(map[dedupKey]messages.WLogOffset),
	}
}

func (g *staging) reset() {
	clear(g.registers)
	clear(g.workspaces)
	clear(g.records)
	clear(g.ids)
	g.events, g.bytes = 0, 0
}

// admit stages a request, or returns why it is refused and leaves no trace of it.
func (g *staging) admit(r *writeRequest) error {
	g.undoWorkspaces, g.undoRecords, g.undoIDs = g.undoWorkspaces[:0], g.undoRecords[:0], g.undoIDs[:0]
	reg, err := g.checkMemory(r)
	if err == nil && g.s.schema.trust < messages.TrustAll && r.checkedAt != g.checkpoint {
		// The tail was looked at first: what has left it since is in state.db before
		// this transaction begins.
		err = g.s.state.view(func(tx *bbolt.Tx) error { return g.s.checkState(tx, r, reg.last, g.known) })
	}
	// An append that is repeated may meet the records of the first: what its caller
	// must be told is that it is a duplicate.
	if len(r.lookups) > 0 && (err == nil || errors.Is(err, storage.ErrConflict)) {
		err = firstError(g.checkIDs(r), err)
	}
	if err != nil {
		g.undo()
		return err
	}
	g.registers[r.partition.id] = reg
	g.events += int64(len(r.events))
	g.bytes += r.bytes
	return nil
}

func (g *staging) undo() {
	for _, u := range slices.Backward(g.undoWorkspaces) {
		if u.had {
			g.workspaces[u.ws] = u.before
		} else {
			delete(g.workspaces, u.ws)
		}
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
	g.checkpoint = p.checkpoint
	reg, staged := g.registers[p.id]
	if !staged {
		reg = stagedRegister{epoch: p.epoch, last: p.last, lastAt: p.lastAt, tail: p.tail.len()}
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
		known, err := g.checkEvent(p, &reg, &r.events[i])
		if err != nil {
			return reg, err
		}
		g.known = append(g.known, known)
	}
	reg.tail += len(r.events)
	return reg, nil
}

// checkRoom refuses what the tail has no room for. An empty tail has room for any
// batch.
func (g *staging) checkRoom(r *writeRequest, reg *stagedRegister) error {
	o := &g.s.options
	if reg.tail > 0 && reg.tail+len(r.events) > o.TailEvents {
		return fmt.Errorf("%w: partition %d: %d events are not flushed yet, the limit is %d", storage.ErrTailFull, r.partition.id, reg.tail, o.TailEvents)
	}
	if n := g.s.tailBytes.Load() + g.bytes; n > 0 && n+r.bytes > o.TailBytes {
		return fmt.Errorf("%w: %d bytes are not flushed yet, the limit is %d", storage.ErrTailFull, n, o.TailBytes)
	}
	return nil
}

// checkEvent checks an event against the tail and stages it. It returns whether
// the event's workspace was known.
func (g *staging) checkEvent(p *partition, reg *stagedRegister, n *newEvent) (known bool, err error) {
	switch {
	case n.offset != reg.last+1:
		return false, fmt.Errorf("%w: partition %d: got offset %d, want %d", storage.ErrOutOfOrder, p.id, n.offset, reg.last+1)
	case n.at < reg.lastAt:
		return false, fmt.Errorf("%w: partition %d, offset %d: got %v, want at least %v", storage.ErrTimeFell, p.id, n.offset, n.at, reg.lastAt)
	}
	if err := p.conflictWith(n.ws, n.numbers, n.records); err != nil {
		return false, err
	}
	known, err = g.checkWorkspace(p, n)
	if err != nil {
		return false, err
	}
	if g.s.schema.trust == messages.TrustNone {
		if err := g.checkNewRecords(p, n); err != nil {
			return false, err
		}
	}
	reg.last, reg.lastAt = n.offset, n.at
	return known, nil
}

// checkWorkspace makes sure that the event continues its workspace's log and kind,
// as far as the tail knows them.
func (g *staging) checkWorkspace(p *partition, n *newEvent) (known bool, err error) {
	end, staged := g.workspaces[n.ws]
	known = staged
	if !staged {
		if _, e := p.tail.lastOf(n.ws); e != nil {
			end, known = workspaceEnd{wlog: e.wlog, kind: e.kind}, true
		}
	}
	if known && n.wlog != end.wlog+1 {
		return known, fmt.Errorf("%w: partition %d, offset %d: workspace %d: got offset %d, want %d",
			storage.ErrOutOfOrder, p.id, n.offset, n.ws, n.wlog, end.wlog+1)
	}
	if known && n.wsKind != end.kind {
		return known, kindMismatch(p.id, n, end.kind)
	}
	g.undoWorkspaces = append(g.undoWorkspaces, undoWorkspace{ws: n.ws, before: end, had: staged})
	g.workspaces[n.ws] = workspaceEnd{wlog: n.wlog, kind: n.wsKind}
	return known, nil
}

// checkNewRecords makes sure that the keys of new records are free in the tail.
// Updates are staged too: they may be what creates a row.
func (g *staging) checkNewRecords(p *partition, n *newEvent) error {
	for _, r := range n.records {
		k := recordKey{ws: n.ws, id: r.id()}
		_, staged := g.records[k]
		if _, written := p.tail.written[k]; r.isNew && (staged || written) {
			return n.recordConflict(p.id, r)
		}
		if !staged {
			g.records[k] = struct{}{}
			g.undoRecords = append(g.undoRecords, k)
		}
	}
	return nil
}

func (n *newEvent) recordConflict(p messages.PartitionID, r recordRef) error {
	return &storage.ConflictError{
		Place: storage.PlaceRecord, Partition: p, PLogOffset: n.offset,
		Workspace: n.ws, WLogOffset: n.wlog, Record: r.id(),
	}
}

// checkState makes sure that the keys a request needs are free in state.db. last is
// where the partition's log will end, known says which workspaces are known without
// state.db.
func (s *Store) checkState(tx *bbolt.Tx, r *writeRequest, last messages.PLogOffset, known []bool) error {
	if err := checkPLogFree(tx, r, last); err != nil {
		return err
	}
	wlog, records := tx.Bucket(bucketWLog).Cursor(), newFreeKeys(tx.Bucket(bucketRecords))
	for i := range r.events {
		n := &r.events[i]
		if err := checkWLogFree(wlog, r.partition.id, n, known[i]); err != nil {
			return err
		}
		if err := checkKind(tx, r.partition.id, n, known[i]); err != nil {
			return err
		}
		if s.schema.trust > messages.TrustNone {
			continue
		}
		for _, rec := range n.records {
			var key [recordKeyLen]byte
			if rec.isNew && !records.free(appendRecordKey(key[:0], recordKey{ws: n.ws, id: rec.id()})) {
				return n.recordConflict(r.partition.id, rec)
			}
		}
	}
	return nil
}

// checkPLogFree makes sure that the request's entries in the partition's log, or
// the next one if it takes an epoch, are free.
func checkPLogFree(tx *bbolt.Tx, r *writeRequest, last messages.PLogOffset) error {
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
	taken, ok := firstPLogKey(tx.Bucket(bucketPLog).Cursor(), p.id, first)
	if !ok || taken > last {
		return nil
	}
	conflict.PLogOffset = taken
	return &conflict
}

// firstPLogKey returns the first entry of a partition's log at or after an offset.
func firstPLogKey(c *bbolt.Cursor, p messages.PartitionID, from messages.PLogOffset) (messages.PLogOffset, bool) {
	var key [plogKeyLen]byte
	k, _ := c.Seek(appendPLogKey(key[:0], p, from))
	if len(k) != plogKeyLen || !bytes.Equal(k[:partitionKeyLen], key[:partitionKeyLen]) {
		return 0, false
	}
	return messages.PLogOffset(be64(k[partitionKeyLen:])), true
}

// checkWLogFree makes sure that the event's entry in its workspace's log is free
// and, unless the tail knew the workspace, that its predecessor is there.
func checkWLogFree(c *bbolt.Cursor, p messages.PartitionID, n *newEvent, known bool) error {
	var buf [wlogKeyLen]byte
	seek := n.wlog
	if !known && seek > 1 {
		seek--
	}
	k, _ := c.Seek(appendWLogKey(buf[:0], n.ws, seek))
	if seek != n.wlog {
		if !bytes.Equal(k, buf[:]) {
			return fmt.Errorf("%w: partition %d, offset %d: workspace %d: got offset %d, and %d is not there",
				storage.ErrOutOfOrder, p, n.offset, n.ws, n.wlog, seek)
		}
		k, _ = c.Next()
	}
	if bytes.Equal(k, appendWLogKey(buf[:0], n.ws, n.wlog)) {
		return &storage.ConflictError{
			Place: storage.PlaceWLog, Partition: p, PLogOffset: n.offset, Workspace: n.ws, WLogOffset: n.wlog,
		}
	}
	return nil
}

// checkKind makes sure that a workspace that the tail did not know is of the kind
// that its first event fixed.
func checkKind(tx *bbolt.Tx, p messages.PartitionID, n *newEvent, known bool) error {
	if known || n.wlog == 1 {
		return nil
	}
	kind, err := storedNumber(tx.Bucket(bucketNumbers), n.ws, kindSeq)
	if err != nil {
		return err
	}
	if kind != 0 && kind != messages.Number(n.wsKind) {
		return kindMismatch(p, n, messages.WSKind(kind))
	}
	return nil
}

func kindMismatch(p messages.PartitionID, n *newEvent, want messages.WSKind) error {
	return fmt.Errorf("%w: partition %d, offset %d: workspace %d: got kind %d, want %d: %w",
		storage.ErrInvalidEvent, p, n.offset, n.ws, n.wsKind, want, messages.ErrKindMismatch)
}
