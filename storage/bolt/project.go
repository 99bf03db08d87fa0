package bolt

import (
	"cmp"
	"errors"
	"slices"

	"go.etcd.io/bbolt"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage"
	"github.com/partita-go/partita/storage/bolt/internal/boltfile"
	"github.com/partita-go/partita/storage/bolt/internal/dedup"
	"github.com/partita-go/partita/storage/bolt/internal/format"
	"github.com/partita-go/partita/storage/bolt/internal/statedb"
)

// projection is what one transaction of state.db writes for a group of flushes of
// different partitions, ordered by key: it is touched leaves that cost.
type projection struct {
	s     *Store
	group []*flushRequest

	wlog    []indexPut
	records []recordPut
	ids     []idPut
	// witness is the newest event that was read.
	witness format.Witness
	// arena holds the encoded rows until the commit.
	arena boltfile.ByteArena
}

// indexPut is an event on its way into an index.
type indexPut struct {
	r *flushRequest
	e *entry
	o messages.PLogOffset
}

// recordPut is a row on its way.
type recordPut struct {
	indexPut
	key   format.RecordKey
	value []byte
	// isNew says that the event creates the record.
	isNew bool
	// place is that of its workspace, write its own among all writes, in the order of the log
	// and of the event.
	place, write uint32
}

func compareNumbers(a, b numberPut) int {
	return cmp.Or(cmp.Compare(a.ws, b.ws), cmp.Compare(a.seq, b.seq))
}

// compareWLog orders by key, and what should not be there, two entries of one key, by
// time: the first one stays.
func compareWLog(a, b indexPut) int {
	return cmp.Or(cmp.Compare(a.e.ws, b.e.ws), cmp.Compare(a.e.wlog, b.e.wlog), cmp.Compare(a.e.lsn, b.e.lsn))
}

// compareRecords orders by key, and the writes of one record by time: an event may write a
// record several times, too.
func compareRecords(a, b recordPut) int {
	return cmp.Or(cmp.Compare(a.key.Workspace, b.key.Workspace), cmp.Compare(a.key.ID.Seq, b.key.ID.Seq),
		cmp.Compare(a.key.ID.Number, b.key.ID.Number), cmp.Compare(a.write, b.write))
}

// project writes the projections of a group of flushes, their numbers and their
// checkpoints, in one transaction. A flush that is refused alone has its refusal
// set. An error is the transaction's, and the whole group's. After success the
// checkpoints are published and the tails trimmed.
func (s *Store) project(group []*flushRequest) error {
	p := &projection{s: s, group: group}
	if err := p.collect(); err != nil {
		return err
	}
	slices.SortFunc(p.group, func(a, b *flushRequest) int { return cmp.Compare(a.partition.id, b.partition.id) })
	var projected messages.LSN
	err := s.state.Update(func(tx *bbolt.Tx) (err error) {
		projected, err = p.write(tx)
		return err
	})
	if errors.Is(err, errNothing) {
		return nil
	}
	if err != nil {
		return err
	}
	s.projected, s.witness = projected, p.witness
	s.counts.flushes.Add(1)
	for _, r := range p.group {
		if r.refusal == nil {
			p.advance(r)
		}
	}
	return nil
}

// advance publishes a new checkpoint and trims the tail: state.db has the events
// by now, so at no time are they in neither.
func (p *projection) advance(r *flushRequest) {
	part := r.partition
	part.mu.Lock()
	part.checkpoint = r.to
	for _, e := range r.conflicts {
		part.addConflict(e)
	}
	part.mu.Unlock()
	for o := r.from; o < r.to; {
		part.mu.Lock()
		end := part.tail.stepEnd(o, r.to)
		freed := part.tail.drop(end)
		part.mu.Unlock()
		p.s.tails.count(-int(end-o), tailSize{}.minus(freed))
		o = end
	}
}

// write checks each flush against what is stored, then puts what was accepted. It
// returns how far the log is projected then.
func (p *projection) write(tx *bbolt.Tx) (messages.LSN, error) {
	p.checkIDs(tx)
	accepted := 0
	for _, r := range p.group {
		if r.refusal == nil {
			r.refusal = cmp.Or(r.settleNumbers(tx), p.checkPLog(tx, r))
		}
		if r.refusal == nil {
			accepted++
		}
	}
	if accepted == 0 {
		return 0, errNothing
	}
	for _, put := range []func(*bbolt.Tx) error{p.putPLog, p.putWLog, p.putRecords, p.putNumbers, p.putCheckpoints, p.putConflicts, p.putIDs, p.putWitness} {
		if err := put(tx); err != nil {
			return 0, err
		}
	}
	projected := p.lowWater()
	return projected, putProjected(tx, projected)
}

// checkPLog makes sure that the flush's entries in the partition's log are free. If
// one is not, the partition has failed. At trust level 2 only what was recovered
// is checked.
func (p *projection) checkPLog(tx *bbolt.Tx, r *flushRequest) error {
	c := tx.Bucket(format.BucketPLog).Cursor()
	for from := r.from; from < r.to; {
		taken, ok := statedb.FirstPLogKey(c, r.partition.id, from)
		if !ok || taken >= r.to {
			return nil
		}
		e := &r.entries[taken-r.from]
		if e.recovered || p.s.schema.Trust < messages.TrustAll {
			conflict := newConflict(storage.PlacePLog, indexPut{r: r, e: e, o: taken})
			r.partition.fail(conflict)
			p.s.board.RingAll()
			return conflict
		}
		from = taken + 1
	}
	return nil
}

func newConflict(place storage.Place, at indexPut) *storage.ConflictError {
	return &storage.ConflictError{
		Place: place, Partition: at.r.partition.id, PLogOffset: at.o, LSN: at.e.lsn,
		Workspace: at.e.ws, WLogOffset: at.e.wlog,
	}
}

func (p *projection) putPLog(tx *bbolt.Tx) error {
	b := tx.Bucket(format.BucketPLog)
	b.FillPercent = boltfile.StateFill
	var key [format.PLogKeyLen]byte
	put := 0
	for _, r := range p.group {
		if r.refusal != nil {
			continue
		}
		for i := range r.entries {
			p.yield(put)
			put++
			k := format.AppendPLogKey(key[:0], r.partition.id, r.from+messages.PLogOffset(i))
			if err := b.Put(k, p.arena.LSN(r.entries[i].lsn)); err != nil {
				return err
			}
		}
	}
	return nil
}

// putWLog puts the entries of the workspaces' logs. One that is taken stays as it
// is, and the workspace errs from now on.
func (p *projection) putWLog(tx *bbolt.Tx) error {
	b := tx.Bucket(format.BucketWLog)
	b.FillPercent = boltfile.StateFill
	keys := boltfile.NewFreeKeys(b)
	var key [format.WLogKeyLen]byte
	for i, w := range p.wlog {
		p.yield(i)
		if w.r.refusal != nil {
			continue
		}
		k := format.AppendWLogKey(key[:0], w.e.ws, w.e.wlog)
		if (w.e.recovered || p.s.schema.Trust < messages.TrustAll) && !keys.Free(k) {
			if lsn, ok := format.ParseLSN(b.Get(k)); !ok || lsn != w.e.lsn {
				w.r.conflicts = append(w.r.conflicts, newConflict(storage.PlaceWLog, w))
				continue
			}
		}
		if err := b.Put(k, p.arena.LSN(w.e.lsn)); err != nil {
			return err
		}
	}
	return nil
}

// putRecords puts the last row of each record that the flushes write. One that
// would overwrite something foreign stays as it is, and its sequence of the
// workspace errs from now on.
func (p *projection) putRecords(tx *bbolt.Tx) error {
	b := tx.Bucket(format.BucketRecords)
	b.FillPercent = boltfile.StateFill
	keys := boltfile.NewFreeKeys(b)
	var key [format.RecordKeyLen]byte
	for i, first := 0, 0; first < len(p.records); i++ {
		p.yield(i)
		end := first + 1
		for end < len(p.records) && p.records[end].key == p.records[first].key {
			end++
		}
		writes := p.records[first:end]
		first = end
		if writes[0].r.refusal != nil {
			continue
		}
		k := format.AppendRecordKey(key[:0], writes[0].key)
		if p.overwritesForeign(b, keys, k, writes) {
			conflict := newConflict(storage.PlaceRecord, writes[0].indexPut)
			conflict.Record = writes[0].key.ID
			writes[0].r.conflicts = append(writes[0].r.conflicts, conflict)
			continue
		}
		if err := b.Put(k, writes[len(writes)-1].value); err != nil {
			return err
		}
	}
	return nil
}

// overwritesForeign reports whether a record's key is taken by what its writes must
// not overwrite. At trust level 0 a new record's key must be free. What was
// recovered overwrites only what the log itself has written, at every level.
func (p *projection) overwritesForeign(b *bbolt.Bucket, keys *boltfile.FreeKeys, k []byte, writes []recordPut) bool {
	isNew, recovered := false, false
	for i := range writes {
		isNew = isNew || writes[i].isNew
		recovered = recovered || writes[i].e.recovered
	}
	strict := isNew && p.s.schema.Trust == messages.TrustNone
	if !strict && !recovered || keys.Free(k) {
		return false
	}
	return strict || !p.ownRow(writes[0].key, b.Get(k), writes[0].r, isNew)
}

// ownRow reports whether a stored row was written by an event of the partition
// before the flush. thorough asks the log.
func (p *projection) ownRow(k format.RecordKey, value []byte, r *flushRequest, thorough bool) bool {
	stored, err := format.DecodeRow(k, value)
	if err != nil || stored.Partition != r.partition.id || stored.Offset >= r.from {
		return false
	}
	if !thorough {
		return true
	}
	own := false
	err = p.s.log.Events([]messages.LSN{stored.LSN}, func(v *format.EventView) error {
		own = v.Partition == stored.Partition && v.PLogOffset == stored.Offset && v.Workspace == k.Workspace &&
			slices.ContainsFunc(v.Records, func(rec messages.Record) bool { return rec.ID == k.ID })
		return nil
	})
	return err == nil && own
}

func (p *projection) putNumbers(tx *bbolt.Tx) error {
	b := tx.Bucket(format.BucketNumbers)
	var all []numberPut
	for _, r := range p.group {
		if r.refusal == nil {
			all = append(all, r.derived...)
		}
	}
	slices.SortFunc(all, compareNumbers)
	for i, n := range all {
		p.yield(i)
		if err := b.Put(statedb.NumberEntry(n.ws, n.seq, n.number)); err != nil {
			return err
		}
	}
	return nil
}

func (p *projection) putCheckpoints(tx *bbolt.Tx) error {
	b := tx.Bucket(format.BucketCheckpoints)
	for _, r := range p.group {
		if r.refusal != nil {
			continue
		}
		last := r.entries[len(r.entries)-1]
		key := format.AppendPartitionKey(make([]byte, 0, format.PartitionKeyLen), r.partition.id)
		c := format.Checkpoint{Next: r.to, LSN: last.lsn, RegisteredAt: last.at, Epoch: last.epoch}
		if err := b.Put(key, c.Encode(key)); err != nil {
			return err
		}
	}
	return nil
}

func (p *projection) putConflicts(tx *bbolt.Tx) error {
	b := tx.Bucket(format.BucketConflicts)
	for _, r := range p.group {
		if r.refusal != nil {
			continue
		}
		for _, e := range r.conflicts {
			key := format.ConflictKeyOf(e).Append(make([]byte, 0, format.ConflictKeyLen))
			if b.Get(key) != nil {
				continue
			}
			if err := b.Put(key, format.EncodeConflict(key, e)); err != nil {
				return err
			}
		}
	}
	return nil
}

// lowWater returns the LSN before which every event will be in state.db after this
// transaction. A partition without a tail does not hold it back, however long ago
// its last event was. The end of the log is taken first: an event up to it is in
// its partition's tail, or in state.db.
func (p *projection) lowWater() messages.LSN {
	low := messages.LSN(p.s.lastLSN.Load()) + 1
	flushed := make(map[messages.PartitionID]messages.PLogOffset, len(p.group))
	for _, r := range p.group {
		if r.refusal == nil {
			flushed[r.partition.id] = r.to
		}
	}
	for i := range p.s.partitions {
		part := &p.s.partitions[i]
		part.mu.RLock()
		checkpoint, ok := flushed[part.id]
		if !ok {
			checkpoint = part.checkpoint
		}
		if lsn := part.replayFrom(checkpoint); lsn != 0 {
			low = min(low, lsn)
		}
		part.mu.RUnlock()
	}
	if p.s.hold != 0 {
		low = min(low, p.s.hold)
	}
	return max(low, p.s.projected)
}

func putProjected(tx *bbolt.Tx, lsn messages.LSN) error {
	return tx.Bucket(format.BucketHeader).Put(format.KeyProjected, format.SealedUint(nil, format.BucketHeader, format.KeyProjected, uint64(lsn)))
}

// putWitness stores the newest event that was read, unless an earlier flush has read a
// newer one. What is stored is not looked at: that a bit of it has flipped keeps nobody from
// flushing.
func (p *projection) putWitness(tx *bbolt.Tx) error {
	if p.witness.LSN <= p.s.witness.LSN {
		p.witness = p.s.witness
	}
	return tx.Bucket(format.BucketHeader).Put(format.KeyWitness, p.witness.Encode())
}

// idPut is an event with a deduplication id on its way into the projection.
type idPut struct {
	r     *flushRequest
	entry dedup.Entry
}

// checkIDs refuses the flushes with ids if the list of runs is damaged. The others do
// not need it.
func (p *projection) checkIDs(tx *bbolt.Tx) {
	if len(p.ids) == 0 {
		return
	}
	_, err := dedup.LoadRuns(tx)
	for _, put := range p.ids {
		put.r.refusal = cmp.Or(put.r.refusal, err)
	}
}

func (p *projection) putIDs(tx *bbolt.Tx) error {
	entries := make([]dedup.Entry, 0, len(p.ids))
	for _, put := range p.ids {
		if put.r.refusal == nil {
			entries = append(entries, put.entry)
		}
	}
	return p.putEntries(tx, entries)
}

// putEntries adds the entries of the flushes, and notes which merges are stuck.
func (p *projection) putEntries(tx *bbolt.Tx, entries []dedup.Entry) error {
	if len(entries) == 0 {
		return nil
	}
	s := p.s
	stuck, err := dedup.Put(tx, &p.arena, entries, s.stuck)
	if err != nil {
		return err
	}
	tx.OnCommit(func() {
		s.stuck = stuck
		s.counts.stuckMerges.Store(int64(len(stuck)))
	})
	return nil
}
