package bolt

import (
	"cmp"
	"errors"
	"slices"

	"go.etcd.io/bbolt"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage"
	"github.com/partita-go/partita/storage/bolt/internal/dedup"
	"github.com/partita-go/partita/storage/bolt/internal/format"
	"github.com/partita-go/partita/storage/bolt/internal/logdb"
	"github.com/partita-go/partita/storage/bolt/internal/numbers"
	"github.com/partita-go/partita/storage/bolt/internal/schema"
	"github.com/partita-go/partita/storage/bolt/internal/statedb"
	"github.com/partita-go/partita/storage/bolt/internal/tail"
)

// projection is what a group of flushes of different partitions writes to state.db. It is ordered by workspace: it is
// touched leaves that cost. What bbolt has in memory of a transaction is bounded, so it takes as many transactions as it
// needs, by ranges of workspaces. Each says in the partitions' checkpoints how far it came; the last one moves them. So
// what lies beyond a checkpoint is known to be the log's, and a flush that ends early is finished by the next one, or by
// the next open.
type projection struct {
	s     *Store
	group []*flushRequest
	*flushTables
	// witness is the newest event that was read.
	witness format.Witness

	// value reads the log while a range is written.
	value func(messages.LSN) []byte
	// kind has the sequences of the workspace that was looked at last.
	kind []messages.Sequence
	// swept is how many of the events that come next were looked through for rows to be read back.
	swept int
	// passed is how many workspaces whose numbers were kept have had their turn.
	passed int
}

// project writes the projections of a group of flushes, their numbers and their checkpoints. A flush that is refused
// alone has its refusal set. An error is the whole group's. After success the checkpoints are published and the tails
// trimmed.
func (s *Store) project(group []*flushRequest) error {
	p := &projection{s: s, group: group, flushTables: &s.tables}
	defer p.reset(s.shares.tables)
	slices.SortFunc(p.group, func(a, b *flushRequest) int { return cmp.Compare(a.partition.id, b.partition.id) })
	if err := s.log.AwaitOwn(p.lastLSN()); err != nil {
		return err
	}
	p.readLast()
	p.collect()
	err := s.state.View(p.check)
	if err == nil && p.accepted() > 0 {
		err = p.write()
	}
	for _, r := range p.group {
		switch {
		case r.refusal == nil && err == nil:
			p.advance(r)
		case r.committed:
			p.leave(r, cmp.Or(r.refusal, err))
		}
	}
	return err
}

// lastLSN is that of the newest event to be projected.
func (p *projection) lastLSN() (lsn messages.LSN) {
	for _, r := range p.group {
		lsn = max(lsn, r.entries[len(r.entries)-1].LSN)
	}
	return lsn
}

// accepted counts the flushes that are not refused.
func (p *projection) accepted() (n int) {
	for _, r := range p.group {
		if r.refusal == nil {
			n++
		}
	}
	return n
}

// readLast reads the last event of each flush, which its checkpoint names. The newest one is the witness.
func (p *projection) readLast() {
	for _, r := range p.group {
		e := &r.entries[len(r.entries)-1]
		o := r.to - 1
		err := p.s.log.Events([]messages.LSN{e.LSN}, func(v *format.EventView) error {
			err := v.Belongs(r.partition.id, o)
			if err == nil && (v.Workspace != e.Workspace || v.WLogOffset != e.WLog) {
				err = format.ErrMisplaced
			}
			if err != nil {
				return format.DamagedEvent(e.LSN, r.partition.id, o, err)
			}
			if v.LSN > p.witness.LSN {
				p.witness = format.Witness{LSN: v.LSN, CRC: v.CRC}
			}
			return nil
		})
		if damage, ok := errors.AsType[*storage.DamagedError](err); ok {
			damage.Partition, damage.PLogOffset = r.partition.id, o
		}
		r.refusal = err
	}
}

// check refuses the flushes that contradict what is stored.
func (p *projection) check(tx *bbolt.Tx) error {
	p.checkIDs(tx)
	p.checkNumbers(tx)
	for _, r := range p.group {
		if r.refusal == nil {
			r.refusal = p.checkPLog(tx, r)
		}
	}
	return nil
}

// checkNumbers compares the numbers that the callers gave with what the log says: see [numbers.Given]. A flush that
// differs is refused, with a [*storage.NumbersError] or damage.
func (p *projection) checkNumbers(tx *bbolt.Tx) {
	for i, events := 0, p.events; len(events) > 0; i++ {
		p.s.yield(i)
		n := workspaceEvents(events)
		r := events[0].r
		if !r.derive && r.refusal == nil {
			ws, last := events[0].ws, p.numbers(events[:n])
			var isNew bool
			isNew, r.refusal = r.given.CheckWorkspace(tx, ws, last)
			p.keep(ws, last, isNew)
		}
		events = events[n:]
	}
	for _, r := range p.group {
		if !r.derive && r.refusal == nil {
			r.refusal = r.given.CheckRest(tx)
		}
	}
}

// write writes the ranges of workspaces, one transaction each.
func (p *projection) write() error {
	for events := p.events; ; {
		if p.swept == 0 {
			p.sweep(events)
		}
		n, last := min(p.s.shares.nextRange(events), p.swept), false
		projected := messages.LSN(0)
		p.arena.Reset()
		err := p.s.state.Update(func(tx *bbolt.Tx) (err error) {
			if n, err = p.apply(tx, events[:n]); err != nil {
				return err
			}
			last = n == len(events)
			if err := putAll(tx, p.putProgress, p.putConflicts, p.putWitness); err != nil || !last {
				return err
			}
			projected = p.lowWater()
			return putAll(tx, p.putPLog, p.putCheckpoints, p.putIDs, func(tx *bbolt.Tx) error { return putProjected(tx, projected) })
		})
		if err != nil {
			return err
		}
		for _, r := range p.group {
			r.committed, r.durable = r.begun, r.through
		}
		p.s.witness = p.witness
		if last {
			p.s.projected = projected
			p.s.meter.Flushes.Add(1)
		}
		if last || p.accepted() == 0 {
			return nil
		}
		events, p.swept = events[n:], p.swept-n
	}
}

// apply writes what events change of their workspaces, and returns how many it took. Damage refuses the rest of a flush.
func (p *projection) apply(tx *bbolt.Tx, events []flushEvent) (n int, err error) {
	err = p.s.log.Read(func(log *logdb.Reader) error {
		p.value = func(lsn messages.LSN) (value []byte) {
			// What cannot be read is not there: whoever needs it is told.
			_ = p.s.log.File.Guard(func() error { value = log.Value(lsn); return nil })
			return value
		}
		return p.s.state.Guard(func() (err error) {
			n, err = p.applyAll(statedb.NewWriter(tx, &p.arena, p.value), events)
			return err
		})
	})
	return n, err
}

// applyAll ends early where workspaces have had more older periods to be closed than a transaction has room for: nobody
// knows how many there are before they are read.
func (p *projection) applyAll(w *statedb.Writer, events []flushEvent) (done int, err error) {
	for i := 0; done < len(events) && w.Gathered < p.s.shares.rangeBytes; i++ {
		p.s.yield(i)
		of := events[done:]
		of = of[:workspaceEvents(of)]
		r := of[0].r
		if r.refusal == nil {
			err := p.applyWorkspace(w, of)
			if _, damaged := errors.AsType[*storage.DamagedError](err); damaged {
				r.refusal = err
			} else if err != nil {
				return done, err
			} else {
				r.begun, r.through = true, of[0].ws
			}
		}
		done += len(of)
	}
	return done, nil
}

// applyWorkspace writes what its events change of a workspace. One whose place in its log is taken leaves it as it is,
// and the workspace errs from now on; so does one that would overwrite a foreign record with the record's sequence.
func (p *projection) applyWorkspace(w *statedb.Writer, events []flushEvent) error {
	kept := p.keptOfNext(events[0].ws)
	if kept != nil && kept.isNew {
		w.Begin(events[0].ws) // nobody has written there since
	} else if err := w.Load(events[0].ws); err != nil {
		return err
	}
	h := &w.Head
	for i := range events {
		f, e := &events[i], events[i].entry()
		switch {
		case e.WLog != h.Last+1 || e.LSN <= h.LastLSN():
			f.r.conflicts = append(f.r.conflicts, newConflict(storage.PlaceWLog, f))
		case h.Last == 0:
			h.Kind = e.Kind
			fallthrough
		default:
			h.Last, h.LSNs = e.WLog, append(h.LSNs, e.LSN)
		}
		h.Zones = f.mergeZone(h.Zones)
	}
	if err := p.applyRecords(w, events); err != nil {
		return err
	}
	if err := p.applyNumbers(w, p.numbersAgain(events, kept)); err != nil {
		return err
	}
	return w.Store()
}

// applyNumbers merges last numbers of a workspace into its head.
func (p *projection) applyNumbers(w *statedb.Writer, last numbers.Last) error {
	for len(last) > 0 {
		n := 1
		switch first := last[0]; {
		case first.Seq == format.KindSeq || first.Seq == messages.SeqWLogOffset:
		case first.Period != 0:
			n = last.OfSequence()
			if err := w.RaisePeriods(first.Seq, &schema.Sequence(p.kind, first.Seq).Restart, last[:n]); err != nil {
				return err
			}
		default:
			s := w.Head.Sequence(first.Seq)
			s.Number = max(s.Number, first.Number)
		}
		last = last[n:]
	}
	return nil
}

// recordWrite is a record that an event writes.
type recordWrite struct {
	f   *flushEvent
	rec tail.Record
	// row is where its data is, as in flushEvent.
	row uint32
}

// compare orders the writes of one workspace by record, and those of one record as they are in the log.
func (w *recordWrite) compare(b *recordWrite) int {
	if n := cmp.Or(cmp.Compare(w.rec.Seq, b.rec.Seq), cmp.Compare(w.rec.Number, b.rec.Number)); n != 0 {
		return n
	}
	return cmp.Or(cmp.Compare(w.f.lsn, b.f.lsn), cmp.Compare(w.row, b.row), cmp.Compare(w.rec.Size, b.rec.Size))
}

// applyRecords points to the records that events of one workspace have written, in the order of their numbers: pointers
// are ordered, and one between others moves those behind it.
func (p *projection) applyRecords(w *statedb.Writer, events []flushEvent) error {
	p.collectWrites(events)
	w.Partition = events[0].r.partition.id
	for i := range p.writes {
		write := &p.writes[i]
		f, rec := write.f, write.rec
		foreign, err := p.overwritesForeign(w, f, rec)
		if err != nil {
			return err
		}
		if foreign {
			conflict := newConflict(storage.PlaceRecord, f)
			conflict.Record = rec.ID()
			f.r.conflicts = append(f.r.conflicts, conflict)
			continue
		}
		w.Head.Sequence(rec.Seq).Point(rec.Number, f.lsn)
		p.addRead(write)
	}
	w.Rows = p.read
	return nil
}

// collectWrites makes the writes of one workspace, in order.
func (p *projection) collectWrites(events []flushEvent) {
	p.writes, p.read = p.writes[:0], p.read[:0]
	for i := range events {
		f := &events[i]
		row := f.rows
		for _, rec := range f.recordsOf() {
			p.writes = append(p.writes, recordWrite{f, rec, row})
			if row != 0 {
				row += rec.Size
			}
		}
	}
	slices.SortFunc(p.writes, func(a, b recordWrite) int { return a.compare(&b) })
}

// addRead adds the row of a write, if it was read. The last write of a record counts.
func (p *projection) addRead(write *recordWrite) {
	if write.row == 0 {
		return
	}
	rec, at := write.rec, write.row-1
	row := format.Row{Number: rec.Number, Offset: write.f.offset(), LSN: write.f.lsn, Data: p.rows[at : at+rec.Size]}
	if last := len(p.read) - 1; last >= 0 && p.read[last].Seq == rec.Seq && p.read[last].Number == rec.Number {
		p.read = p.read[:last]
	}
	p.read = append(p.read, statedb.ReadRow{Seq: rec.Seq, Row: row})
}

// overwritesForeign reports whether a record is there that an event must not overwrite. At trust level 0 a new record
// must not be there. What was recovered overwrites only what the log itself has written, at every level.
func (p *projection) overwritesForeign(w *statedb.Writer, f *flushEvent, rec tail.Record) (bool, error) {
	strict := rec.IsNew && p.s.schema.Trust == messages.TrustNone
	if !strict && !f.entry().Recovered {
		return false, nil
	}
	lsn, err := w.Written(rec.ID())
	if lsn == 0 || lsn == f.lsn || err != nil { // an event may write a record several times
		return false, err
	}
	return strict || !p.wrote(lsn, f, rec.ID()), nil
}

// wrote reports whether an event of the log that is before another one of its workspace wrote a record.
func (p *projection) wrote(lsn messages.LSN, before *flushEvent, id messages.RecordID) bool {
	var v format.EventView
	value := p.value(lsn)
	return value != nil && v.Decode(lsn, value) == nil && v.Workspace == before.ws && v.PLogOffset < before.offset() &&
		slices.ContainsFunc(v.Records, func(rec messages.Record) bool { return rec.ID == id })
}

func putAll(tx *bbolt.Tx, puts ...func(*bbolt.Tx) error) error {
	for _, put := range puts {
		if err := put(tx); err != nil {
			return err
		}
	}
	return nil
}

// leave notes what is left of a flush that ends before its checkpoint is moved.
func (p *projection) leave(r *flushRequest, cause error) {
	part := r.partition
	part.mu.Lock()
	defer part.mu.Unlock()
	part.unfinished = &unfinished{to: r.to, through: r.durable, cause: cause}
	for _, e := range r.conflicts {
		part.addConflict(e)
	}
	p.s.unfinished = true
}

// advance publishes a new checkpoint and trims the tail: state.db has the events
// by now, so at no time are they in neither.
func (p *projection) advance(r *flushRequest) {
	part := r.partition
	part.mu.Lock()
	part.checkpoint, part.unfinished, part.finished = r.to, nil, 0
	part.stored = r.checkpoint()
	part.tail.Age()
	for _, e := range r.conflicts {
		part.addConflict(e)
	}
	part.mu.Unlock()
	for o := r.from; o < r.to; {
		part.mu.Lock()
		end := part.tail.StepEnd(o, r.to)
		freed := part.tail.Drop(end)
		part.mu.Unlock()
		p.s.tails.Count(-int(end-o), tail.Size{}.Minus(freed))
		p.s.yield(0)
		o = end
	}
}

// checkPLog makes sure that the flush's entries in the partition's log are free. If one is not, the partition has failed.
func (p *projection) checkPLog(tx *bbolt.Tx, r *flushRequest) error {
	taken, ok := statedb.TakenPLog(tx, r.partition.id, r.from)
	if !ok || taken >= r.to {
		return nil
	}
	conflict := newConflict(storage.PlacePLog, &flushEvent{r: r, at: uint32(taken - r.from)})
	r.partition.fail(conflict)
	p.s.board.RingAll()
	return conflict
}

func newConflict(place storage.Place, at *flushEvent) *storage.ConflictError {
	e := at.entry()
	return &storage.ConflictError{
		Place: place, Partition: at.r.partition.id, PLogOffset: at.offset(), LSN: e.LSN,
		Workspace: e.Workspace, WLogOffset: e.WLog,
	}
}

func (p *projection) putPLog(tx *bbolt.Tx) error {
	b := tx.Bucket(format.BucketPLog)
	var lsns []messages.LSN
	for _, r := range p.group {
		if r.refusal != nil {
			continue
		}
		lsns = lsns[:0]
		for i := range r.entries {
			lsns = append(lsns, r.entries[i].LSN)
		}
		if err := statedb.PutPLog(b, r.partition.id, r.from, lsns); err != nil {
			return err
		}
	}
	return nil
}

// putProgress says in the checkpoints of the flushes that have written something how far they came.
func (p *projection) putProgress(tx *bbolt.Tx) error {
	for _, r := range p.group {
		if !r.begun {
			continue
		}
		c := r.partition.stored
		c.Target, c.Through = r.to, r.through
		if err := putCheckpoint(tx, r.partition.id, c); err != nil {
			return err
		}
	}
	return nil
}

func putCheckpoint(tx *bbolt.Tx, id messages.PartitionID, c format.Checkpoint) error {
	key := format.AppendPartitionKey(make([]byte, 0, format.PartitionKeyLen), id)
	return tx.Bucket(format.BucketCheckpoints).Put(key, c.Encode(key))
}

// checkpoint is what the flush moves its partition's checkpoint to.
func (r *flushRequest) checkpoint() format.Checkpoint {
	last := &r.entries[len(r.entries)-1]
	return format.Checkpoint{Next: r.to, LSN: last.LSN, RegisteredAt: last.At, Epoch: last.Epoch}
}

func (p *projection) putCheckpoints(tx *bbolt.Tx) error {
	for _, r := range p.group {
		if r.refusal != nil {
			continue
		}
		if err := putCheckpoint(tx, r.partition.id, r.checkpoint()); err != nil {
			return err
		}
	}
	return nil
}

func (p *projection) putConflicts(tx *bbolt.Tx) error {
	b := tx.Bucket(format.BucketConflicts)
	for _, r := range p.group {
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

// checkIDs refuses the flushes with ids if the list of runs is damaged. The others do
// not need it.
func (p *projection) checkIDs(tx *bbolt.Tx) {
	if !slices.ContainsFunc(p.group, func(r *flushRequest) bool { return len(r.ids) > 0 }) {
		return
	}
	_, err := dedup.LoadRuns(tx)
	for _, r := range p.group {
		if err != nil && len(r.ids) > 0 {
			r.refusal = cmp.Or(r.refusal, err)
		}
	}
}

func (p *projection) putIDs(tx *bbolt.Tx) error {
	var entries []dedup.Entry
	for _, r := range p.group {
		if r.refusal != nil {
			continue
		}
		for i := range r.ids {
			id := &r.ids[i]
			entries = append(entries, dedup.Entry{Hash: id.Key.Hash(p.s.files.ID), LSN: r.entries[id.Offset-r.from].LSN})
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
	// They are in order by now, so that lines follow each other.
	s.known.Add(entries)
	tx.OnCommit(func() {
		s.stuck = stuck
		s.meter.StuckMerges.Store(int64(len(stuck)))
	})
	return nil
}
