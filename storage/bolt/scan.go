package bolt

import (
	"context"
	"fmt"
	"sort"
	"time"

	"go.etcd.io/bbolt"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage"
	"github.com/partita-go/partita/storage/bolt/internal/format"
	"github.com/partita-go/partita/storage/bolt/internal/statedb"
	"github.com/partita-go/partita/storage/bolt/internal/tail"
)

// scan reads the log at open, once, from the first entry that a partition needs to
// the end.
//
// An entry that is damaged or missing belongs to a partition that nothing tells
// directly. If a later event shows a hole in its partition's log, the entry was
// there: that partition has failed. As long as holes do not account for all such
// entries, each partition without an event behind the last of them may have lost
// its own last event, and would give its numbers again: it has failed, too. The
// others have proven that they miss nothing.
type scan struct {
	op        *opening
	next, end messages.LSN
	// projecting says that tails go to state.db instead of staying in memory.
	projecting bool

	view    format.EventView
	records []tail.Record

	losses []loss
	// lost counts the entries in losses, found those that holes account for.
	lost, found uint64

	reported time.Time
	started  messages.LSN
}

// loss is a run of entries of the log that cannot be read.
type loss struct {
	lsn, count messages.LSN
	cause      error
}

// fillTails reads into the tails what the projections have not. If state.db must
// be rebuilt or lags too far behind, tails go into it, piece by piece.
func (op *opening) fillTails(ctx context.Context) error {
	sc := &scan{op: op, next: op.projected, started: op.projected, end: op.files.End, projecting: op.files.StateIsNew && op.files.End > 0}
	for sc.next <= sc.end {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := op.log.File.View(sc.chunk); err != nil {
			return err
		}
		op.lastLSN.Store(uint64(sc.next - 1))
		if sc.projecting && op.mustProject() {
			if err := op.projectTails(); err != nil {
				return err
			}
		}
		sc.report(sc.next > sc.end)
	}
	op.lastLSN.Store(uint64(op.files.End))
	if sc.projecting {
		if err := op.projectTails(); err != nil {
			return err
		}
	}
	return sc.failSuspects()
}

// scanChunk is how many entries are read in one transaction.
const scanChunk = 1024

// chunk reads some entries in one transaction.
func (sc *scan) chunk(tx *bbolt.Tx) error {
	c := tx.Bucket(format.BucketLog).Cursor()
	k, v := c.Seek(format.AppendLSNKey(nil, sc.next))
	rows := sc.op.tails.Rows.Load()
	for range scanChunk {
		if k == nil {
			sc.rest()
			return nil
		}
		lsn, ok := format.ParseLSN(k)
		if !ok {
			return &storage.DamagedError{Where: sc.op.log.File.PlaceOf(format.BucketLog, "key %x", k), Cause: format.ErrLayout}
		}
		if lsn > sc.next {
			sc.lose(sc.next, lsn-sc.next, format.ErrMissing)
		}
		sc.read(lsn, v)
		if sc.projecting && sc.op.tails.Rows.Load()-rows >= sc.op.shares.tail/pieceOfTail {
			return nil // so many events may have more records than there is memory
		}
		k, v = c.Next()
	}
	return nil
}

// rest reads what is behind log.db's end.
func (sc *scan) rest() {
	first, values := sc.op.log.Pending()
	for i, v := range values {
		if lsn := first + messages.LSN(i); lsn >= sc.next {
			sc.read(lsn, v)
		}
	}
	if sc.next <= sc.end {
		sc.lose(sc.next, sc.end+1-sc.next, format.ErrMissing)
		sc.next = sc.end + 1
	}
}

func (sc *scan) read(lsn messages.LSN, v []byte) {
	if err := sc.take(lsn, v); err != nil {
		sc.lose(lsn, 1, err)
	}
	sc.next = lsn + 1
	sc.op.meter.Scanned.Add(1)
}

func (sc *scan) lose(lsn, count messages.LSN, cause error) {
	sc.losses = append(sc.losses, loss{lsn: lsn, count: count, cause: cause})
	sc.lost += uint64(count)
	sc.op.holdAt(lsn)
}

// holdAt makes the next open begin at an LSN at the latest.
func (op *opening) holdAt(lsn messages.LSN) {
	if op.hold == 0 || lsn < op.hold {
		op.hold = lsn
	}
}

// take adds an entry to its partition's tail. An error says that the entry cannot
// be read, so that its partition is unknown.
func (sc *scan) take(lsn messages.LSN, value []byte) error {
	v := &sc.view
	if err := v.Decode(lsn, value); err != nil {
		return err
	}
	op := sc.op
	if uint64(v.Partition) >= uint64(len(op.partitions)) || messages.PartitionOf(v.Workspace, op.schema.Partitions) != v.Partition {
		return fmt.Errorf("%w: workspace %d in partition %d", format.ErrLayout, v.Workspace, v.Partition)
	}
	sc.accept(&op.partitions[v.Partition], v)
	return nil
}

// accept adds an event to its partition's tail, unless it is projected already, or
// the partition has failed or does so now.
func (sc *scan) accept(p *partition, v *format.EventView) {
	if p.failed != nil || v.LSN <= p.lastLSN {
		return
	}
	if err := sc.checkNext(p, v); err != nil {
		p.fail(err)
		sc.op.holdAt(v.LSN)
		return
	}
	sc.push(p, v)
}

// checkNext makes sure that an event continues its partition's log.
func (sc *scan) checkNext(p *partition, v *format.EventView) error {
	want := p.last + 1
	if v.PLogOffset != want {
		return sc.hole(p, v)
	}
	var cause error
	_, known := sc.op.schema.Kinds[v.WorkspaceKind]
	switch {
	case v.Epoch < sc.op.logEpochs[p.id] || v.Epoch > p.epoch:
		cause = fmt.Errorf("got epoch %d after %d, the current one is %d", v.Epoch, sc.op.logEpochs[p.id], p.epoch)
	case v.RegisteredAt < p.lastAt:
		cause = fmt.Errorf("%w: got %v after %v", storage.ErrTimeFell, v.RegisteredAt, p.lastAt)
	case v.WLogOffset == 0:
		cause = format.ErrLayout
	case !known:
		cause = fmt.Errorf("kind %d: %w", v.WorkspaceKind, messages.ErrUnknownKind)
	default:
		return nil
	}
	return format.DamagedEvent(v.LSN, p.id, v.PLogOffset, cause)
}

// hole explains why an event does not continue its partition's log: by an entry
// lost since the partition's last one, if there is any.
func (sc *scan) hole(p *partition, v *format.EventView) error {
	want := p.last + 1
	i := sort.Search(len(sc.losses), func(i int) bool { return sc.losses[i].lsn > p.lastLSN })
	var since uint64
	for _, l := range sc.losses[i:] {
		since += uint64(l.count)
	}
	if missing := uint64(v.PLogOffset - want); v.PLogOffset > want && missing <= since {
		sc.found += missing
		return format.DamagedEvent(sc.losses[i].lsn, p.id, want, sc.losses[i].cause)
	}
	return format.DamagedEvent(v.LSN, p.id, want, fmt.Errorf("%w: the next event has offset %d", format.ErrMissing, v.PLogOffset))
}

func (sc *scan) push(p *partition, v *format.EventView) {
	op := sc.op
	numbers := v.Numbering()
	sc.records = tail.RecordsOf(sc.records[:0], v.Records)
	size := p.tail.Push(tail.Entry{
		LSN: v.LSN, Workspace: v.Workspace, WLog: v.WLogOffset, At: v.RegisteredAt, Epoch: v.Epoch, Kind: v.WorkspaceKind, Recovered: true,
	}, v.DedupID, numbers, sc.records)
	size.Add(p.tail.PushZone(v.Zone))
	p.last, p.lastAt, p.lastLSN = v.PLogOffset, v.RegisteredAt, v.LSN
	op.logEpochs[p.id] = v.Epoch
	op.tails.Count(1, size)
	bytes := max(op.tails.Bytes.Load(), p.tail.Size.Rows)
	over := p.tail.Len() > op.options.TailEvents || bytes > op.shares.tail
	if over && op.tails.Events.Load() > 1 && !op.options.ReadOnly {
		sc.projecting = true
	}
}

// failSuspects fails the partitions that may have lost their last event.
func (sc *scan) failSuspects() error {
	if sc.found >= sc.lost {
		return nil
	}
	projected, err := sc.projectedLosses()
	if err != nil || sc.found+projected >= sc.lost {
		return err
	}
	for i := range sc.op.partitions {
		p := &sc.op.partitions[i]
		behind := sort.Search(len(sc.losses), func(i int) bool { return sc.losses[i].lsn > p.lastLSN })
		if behind < len(sc.losses) {
			l := sc.losses[behind]
			p.fail(format.DamagedEvent(l.lsn, p.id, p.last+1, fmt.Errorf("it may be the next event of this partition: %w", l.cause)))
		}
	}
	return nil
}

// projectedLosses counts the lost entries that state.db knows: they were projected
// before they were damaged, so no partition ends at them.
func (sc *scan) projectedLosses() (uint64, error) {
	var n uint64
	err := sc.op.state.View(func(tx *bbolt.Tx) error {
		for _, l := range sc.losses {
			if l.count == 1 && sc.op.isProjected(tx, l.lsn) {
				n++
			}
		}
		return nil
	})
	return n, err
}

// isProjected reports whether an entry of the log is in the projection of some partition's log.
func (op *opening) isProjected(tx *bbolt.Tx, lsn messages.LSN) bool {
	for i := range op.partitions {
		if p := &op.partitions[i]; statedb.HasPLog(tx, p.id, p.checkpoint, lsn) {
			return true
		}
	}
	return false
}

// projectTails writes all tails to state.db and empties them, in as few groups as their
// records allow.
func (op *opening) projectTails() error {
	var group []*flushRequest
	rows := int64(0)
	for i := range op.partitions {
		p := &op.partitions[i]
		if p.failed != nil || p.tail.Len() == 0 {
			continue
		}
		r := p.rest()
		if r == nil {
			if p.unfinished != nil {
				continue // its events are still to be read
			}
			r = &flushRequest{partition: p, from: p.checkpoint, to: p.tail.End(), derive: true}
		}
		rows += p.tail.Size.Rows
		group = append(group, r)
		if rows < op.shares.tail {
			continue
		}
		if err := op.projectGroup(group); err != nil {
			return err
		}
		group, rows = nil, 0
	}
	return op.projectGroup(group)
}

// projectGroup writes some tails together. What a flush at this point refuses fails its
// partition; the others go on.
func (op *opening) projectGroup(group []*flushRequest) error {
	if len(group) == 0 {
		return nil
	}
	events := 0
	for _, r := range group {
		r.takeEntries(&op.tables)
		events += len(r.entries)
	}
	if err := op.project(group); err != nil {
		return err
	}
	for _, r := range group {
		if r.refusal != nil {
			events -= len(r.entries)
			r.partition.fail(r.refusal)
		}
	}
	op.meter.Rebuilt.Add(uint64(events))
	return nil
}

// reportInterval is how often Progress is told, at most.
const reportInterval = 100 * time.Millisecond

func (sc *scan) report(last bool) {
	now := time.Now()
	if !last && now.Sub(sc.reported) < reportInterval {
		return
	}
	sc.reported = now
	phase := PhaseScan
	if sc.projecting {
		phase = PhaseRebuild
	}
	sc.op.options.Progress(Progress{
		Phase: phase, Done: uint64(sc.next - sc.started), Total: uint64(sc.end + 1 - sc.started),
	})
}

// pieceOfTail is which part of the tails' memory is read while Open projects before that is written.
const pieceOfTail = 4

// mustProject reports whether the tails are as long as one group takes where they go into
// state.db while the log is read: as a store in use may have them. With less it takes longer where the
// workspaces come in no order: each event touches pages of its own then, and each group
// writes them anew. The tails of failed partitions stay, and do not count.
func (op *opening) mustProject() bool {
	var size tail.Size
	events := 0
	for i := range op.partitions {
		if p := &op.partitions[i]; p.failed == nil {
			events += p.tail.Len()
			size.Add(p.tail.Size)
		}
	}
	return events >= min(op.shares.flushEvents, op.options.TailEvents) || size.Reaches(op.shares.tail/pieceOfTail)
}
