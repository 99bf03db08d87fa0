package bolt

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"go.etcd.io/bbolt"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage"
)

// stateFill leaves some room in pages: keys are ascending within a partition, a
// workspace or a sequence, not within the bucket.
const stateFill = 0.9

// projection is what one transaction of state.db writes for a group of flushes of
// different partitions, ordered by key: it is touched leaves that cost.
type projection struct {
	s     *Store
	group []*flushRequest

	wlog    []indexPut
	records []recordPut
	ids     []idPut
	// witness is the newest event that was read.
	witness witness
	// arena holds the encoded rows until the commit.
	arena byteArena
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
	key   recordKey
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
	return cmp.Or(cmp.Compare(a.key.ws, b.key.ws), cmp.Compare(a.key.id.Seq, b.key.id.Seq),
		cmp.Compare(a.key.id.Number, b.key.id.Number), cmp.Compare(a.write, b.write))
}

// errNothingAccepted ends a transaction in which no flush is left.
var errNothingAccepted = errors.New("nothing to write")

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
	err := s.state.update(func(tx *bbolt.Tx) (err error) {
		projected, err = p.write(tx)
		return err
	})
	if errors.Is(err, errNothingAccepted) {
		return nil
	}
	if err != nil {
		return err
	}
	s.projected, s.witness = projected, p.witness
	s.counts.flushes.Add(1)
	for _, r := range p.group {
		if r.refusal == nil {
			s.advance(r)
		}
	}
	return nil
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
		return 0, errNothingAccepted
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
	c := tx.Bucket(bucketPLog).Cursor()
	for from := r.from; from < r.to; {
		taken, ok := firstPLogKey(c, r.partition.id, from)
		if !ok || taken >= r.to {
			return nil
		}
		e := &r.entries[taken-r.from]
		if e.recovered || p.s.schema.trust < messages.TrustAll {
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
	b := tx.Bucket(bucketPLog)
	b.FillPercent = stateFill
	var key [plogKeyLen]byte
	put := 0
	for _, r := range p.group {
		if r.refusal != nil {
			continue
		}
		for i := range r.entries {
			p.s.yield(put)
			put++
			k := appendPLogKey(key[:0], r.partition.id, r.from+messages.PLogOffset(i))
			if err := b.Put(k, p.arena.lsn(r.entries[i].lsn)); err != nil {
				return err
			}
		}
	}
	return nil
}

// putWLog puts the entries of the workspaces' logs. One that is taken stays as it
// is, and the workspace errs from now on.
func (p *projection) putWLog(tx *bbolt.Tx) error {
	b := tx.Bucket(bucketWLog)
	b.FillPercent = stateFill
	keys := newFreeKeys(b)
	var key [wlogKeyLen]byte
	for i, w := range p.wlog {
		p.s.yield(i)
		if w.r.refusal != nil {
			continue
		}
		k := appendWLogKey(key[:0], w.e.ws, w.e.wlog)
		if (w.e.recovered || p.s.schema.trust < messages.TrustAll) && !keys.free(k) {
			if lsn, ok := parseLSN(b.Get(k)); !ok || lsn != w.e.lsn {
				w.r.conflicts = append(w.r.conflicts, newConflict(storage.PlaceWLog, w))
				continue
			}
		}
		if err := b.Put(k, p.arena.lsn(w.e.lsn)); err != nil {
			return err
		}
	}
	return nil
}

// putRecords puts the last row of each record that the flushes write. One that
// would overwrite something foreign stays as it is, and its sequence of the
// workspace errs from now on.
func (p *projection) putRecords(tx *bbolt.Tx) error {
	b := tx.Bucket(bucketRecords)
	b.FillPercent = stateFill
	keys := newFreeKeys(b)
	var key [recordKeyLen]byte
	for i, first := 0, 0; first < len(p.records); i++ {
		p.s.yield(i)
		end := first + 1
		for end < len(p.records) && p.records[end].key == p.records[first].key {
			end++
		}
		writes := p.records[first:end]
		first = end
		if writes[0].r.refusal != nil {
			continue
		}
		k := appendRecordKey(key[:0], writes[0].key)
		if p.overwritesForeign(b, keys, k, writes) {
			conflict := newConflict(storage.PlaceRecord, writes[0].indexPut)
			conflict.Record = writes[0].key.id
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
func (p *projection) overwritesForeign(b *bbolt.Bucket, keys *freeKeys, k []byte, writes []recordPut) bool {
	isNew, recovered := false, false
	for i := range writes {
		isNew = isNew || writes[i].isNew
		recovered = recovered || writes[i].e.recovered
	}
	strict := isNew && p.s.schema.trust == messages.TrustNone
	if !strict && !recovered || keys.free(k) {
		return false
	}
	return strict || !p.s.ownRow(writes[0].key, b.Get(k), writes[0].r, isNew)
}

// ownRow reports whether a stored row was written by an event of the partition
// before the flush. thorough asks the log.
func (s *Store) ownRow(k recordKey, value []byte, r *flushRequest, thorough bool) bool {
	stored, err := decodeRow(k, value)
	if err != nil || stored.partition != r.partition.id || stored.offset >= r.from {
		return false
	}
	if !thorough {
		return true
	}
	own := false
	err = s.scanLog([]messages.LSN{stored.lsn}, func(v *eventView) error {
		own = v.partition == stored.partition && v.offset == stored.offset && v.ws == k.ws &&
			slices.ContainsFunc(v.records, func(rec messages.Record) bool { return rec.ID == k.id })
		return nil
	})
	return err == nil && own
}

func (p *projection) putNumbers(tx *bbolt.Tx) error {
	b := tx.Bucket(bucketNumbers)
	var all []numberPut
	for _, r := range p.group {
		if r.refusal == nil {
			all = append(all, r.derived...)
		}
	}
	slices.SortFunc(all, compareNumbers)
	for i, n := range all {
		p.s.yield(i)
		if err := b.Put(numberEntry(n)); err != nil {
			return err
		}
	}
	return nil
}

func (p *projection) putCheckpoints(tx *bbolt.Tx) error {
	b := tx.Bucket(bucketCheckpoints)
	for _, r := range p.group {
		if r.refusal != nil {
			continue
		}
		last := r.entries[len(r.entries)-1]
		key := appendPartitionKey(make([]byte, 0, partitionKeyLen), r.partition.id)
		c := checkpoint{next: r.to, lsn: last.lsn, at: last.at, epoch: last.epoch}
		if err := b.Put(key, c.encode(key)); err != nil {
			return err
		}
	}
	return nil
}

func (p *projection) putConflicts(tx *bbolt.Tx) error {
	b := tx.Bucket(bucketConflicts)
	for _, r := range p.group {
		if r.refusal != nil {
			continue
		}
		for _, e := range r.conflicts {
			key := conflictKeyOf(e).append(make([]byte, 0, conflictKeyLen))
			if b.Get(key) != nil {
				continue
			}
			if err := b.Put(key, encodeConflict(key, e)); err != nil {
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
	return tx.Bucket(bucketHeader).Put(keyProjected, sealedUint(nil, bucketHeader, keyProjected, uint64(lsn)))
}

// arenaChunk is how much memory an arena takes at a time, in bytes.
const arenaChunk = 1 << 20

// byteArena gives out memory that lives as long as a transaction: bbolt keeps
// values by reference until the commit.
type byteArena struct{ free []byte }

// reserve returns an empty slice with room for n bytes.
func (a *byteArena) reserve(n int) []byte {
	if cap(a.free)-len(a.free) < n {
		a.free = make([]byte, 0, max(arenaChunk, n))
	}
	start := len(a.free)
	a.free = a.free[:start+n]
	return a.free[start : start : start+n]
}

func (a *byteArena) lsn(lsn messages.LSN) []byte {
	return appendLSNKey(a.reserve(indexedLSNLen), lsn)
}

// damagedEvent names a damaged entry of the log.
func damagedEvent(lsn messages.LSN, p messages.PartitionID, o messages.PLogOffset, cause error) *storage.DamagedError {
	return &storage.DamagedError{Where: logPlace(lsn), Partition: p, PLogOffset: o, Cause: cause}
}

func logPlace(lsn messages.LSN) string { return placeOf(bucketLog, "LSN %d", lsn) }

// belongs returns nil if the event is the one that the index says.
func (v *eventView) belongs(p messages.PartitionID, o messages.PLogOffset) error {
	if v.partition != p || v.offset != o {
		return fmt.Errorf("%w: it is partition %d, offset %d", errMisplaced, v.partition, v.offset)
	}
	return nil
}
