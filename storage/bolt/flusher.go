package bolt

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime"
	"time"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage"
	"github.com/partita-go/partita/storage/bolt/internal/numbers"
	"github.com/partita-go/partita/storage/bolt/internal/queue"
	"github.com/partita-go/partita/storage/bolt/internal/tail"
)

// flushRequest is a flush on its way to state.db. It shares nothing with its
// caller, who may be gone before it is served.
type flushRequest struct {
	queue.Ticket
	partition *partition
	epoch     messages.Epoch
	// from and to are the old and the new checkpoint.
	from, to messages.PLogOffset
	// given are the caller's numbers and kinds.
	given numbers.Given
	// rows is how much data the records have at most that it writes.
	rows int64
	// derive says that there is no caller: the numbers are the log's, unchecked.
	derive bool

	// entries, with numbers, records, ids and zones, are a copy of the tail between the two.
	entries []tail.Entry
	numbers []messages.SequenceNumber
	records []tail.Record
	ids     []tail.IDRef
	zones   []tail.Zone
	// begun says that workspaces of the partition are written, those up to through; committed, that those up to durable
	// are on the disk.
	begun, committed bool
	through, durable messages.WSID
	// conflicts were met on the way and will last.
	conflicts []*storage.ConflictError
	// refusal is why this flush alone is refused, nil if it is not.
	refusal error
}

// Flush implements [storage.Projections].
func (s *Store) Flush(ctx context.Context, f storage.Flush) error {
	if err := s.mayWrite(ctx); err != nil {
		return err
	}
	p, err := s.partition(f.Partition)
	if err != nil {
		return err
	}
	r := &flushRequest{Ticket: queue.NewTicket(), partition: p, epoch: f.Epoch, from: f.Expected, to: f.Checkpoint, given: numbers.Give(&f)}
	return queue.HandOver(ctx, s.flushes, r, &r.Ticket, s.closing, s.flushed)
}

// flusher is the only writer of state.db. It takes every flush that waits, accepts
// or refuses each one alone, and writes the accepted ones together, in as few transactions as memory allows.
type flusher struct {
	s *Store
	// held was taken off the queue and must wait for the next group.
	held []*flushRequest
	pace queue.Pace
}

func newFlusher(s *Store) *flusher { return &flusher{s: s} }

func (f *flusher) run() {
	defer close(f.s.flushed)
	for {
		if len(f.held) > 0 {
			r := f.held[0]
			f.held = f.held[1:]
			if !f.serve(r) {
				return
			}
			continue
		}
		select {
		case r := <-f.s.flushes:
			if !f.serve(r) {
				return
			}
		case <-f.s.closing:
			select {
			case r := <-f.s.flushes:
				f.held = append(f.held, r)
			default:
				return
			}
		}
	}
}

// serve writes a flush, and those that wait behind it, together. It
// returns false when the store must not be written any more.
func (f *flusher) serve(first *flushRequest) bool {
	f.rest()
	if err := f.s.finishFlushes(); err != nil {
		if first.Claim() {
			first.Reply(err)
		}
		return f.mayGoOn(err)
	}
	group := f.gather(first)
	if len(group) == 0 {
		return true
	}
	err := f.pace.Run(func() error { return f.s.project(group) })
	if err == nil {
		f.s.meter.Flush(flushedBy(group), f.pace.Took)
	}
	goOn := f.mayGoOn(err)
	for _, r := range group {
		r.partition.endFlush()
		r.Reply(cmp.Or(r.refusal, err))
	}
	return goOn
}

// flushedBy returns how many events a group has flushed.
func flushedBy(group []*flushRequest) (events uint64) {
	for _, r := range group {
		if r.refusal == nil {
			events += uint64(r.to - r.from)
		}
	}
	return events
}

// mayGoOn reports whether the store may be written after an error. If nobody knows what is on the disk, it closes.
func (f *flusher) mayGoOn(err error) bool {
	unknown := errors.Is(err, messages.ErrOutcomeUnknown)
	if unknown {
		f.s.closeBy(err)
	}
	return !unknown
}

// gather accepts as many flushes as may be written together. Two of one partition
// never share one: the second continues where the first ends.
func (f *flusher) gather(first *flushRequest) []*flushRequest {
	var group []*flushRequest
	events, rows := 0, int64(0)
	taken := make(map[*partition]bool)
	var later []*flushRequest
	for r := first; r != nil; r = f.next() {
		full := events >= f.s.shares.flushEvents || rows >= f.s.shares.tail
		if full || taken[r.partition] {
			later = append(later, r)
			if full {
				break
			}
			continue
		}
		if !r.Claim() {
			continue
		}
		if done, err := f.begin(r); done {
			r.Reply(err)
			continue
		}
		taken[r.partition] = true
		group = append(group, r)
		events += len(r.entries)
		rows += r.rows
	}
	f.held = append(later, f.held...)
	return group
}

// rest returns a request for what is left of a flush of the partition, nil if there is none, or its events are not in the
// tail.
func (p *partition) rest() *flushRequest {
	p.mu.RLock()
	defer p.mu.RUnlock()
	u := p.unfinished
	if u == nil || p.failed != nil || p.tail.End() < u.to {
		return nil
	}
	r := &flushRequest{partition: p, from: p.checkpoint, to: u.to, derive: true}
	r.begun, r.through = true, u.through
	r.committed, r.durable = true, u.through
	return r
}

// finishFlushes finishes the flushes that ended when some of their transactions were durable. What is refused of one
// is told to whoever flushes its partition.
func (s *Store) finishFlushes() error {
	if !s.unfinished {
		return nil
	}
	var group []*flushRequest
	for i := range s.partitions {
		if r := s.partitions[i].rest(); r != nil {
			group = append(group, r)
		}
	}
	s.unfinished = len(group) > 0
	if len(group) == 0 {
		return nil
	}
	for _, r := range group {
		r.partition.beginFlush()
		r.takeEntries(&s.tables)
	}
	err := s.project(group)
	for _, r := range group {
		if err == nil && r.refusal == nil {
			r.partition.finished = r.from
		}
		r.partition.endFlush()
	}
	return err
}

// next returns a flush that waits, nil if there is none.
func (f *flusher) next() *flushRequest {
	if len(f.held) > 0 {
		r := f.held[0]
		f.held = f.held[1:]
		return r
	}
	select {
	case r := <-f.s.flushes:
		return r
	default:
		return nil
	}
}

// begin checks a flush against the partition and takes what it needs of the tail.
// done says that there is nothing to write.
func (f *flusher) begin(r *flushRequest) (done bool, err error) {
	p := r.partition
	p.mu.Lock()
	switch {
	case p.failed != nil:
		err = p.failed
	case r.epoch != p.epoch || r.epoch == 0:
		err = fmt.Errorf("%w: partition %d: got epoch %d, want %d", messages.ErrFenced, p.id, r.epoch, p.epoch)
	case r.to < r.from || r.from == 0:
		err = fmt.Errorf("%w: partition %d: got %d after %d", storage.ErrCheckpoint, p.id, r.to, r.from)
	case r.to > p.last+1:
		err = fmt.Errorf("%w: partition %d: got %d, the log ends at %d", storage.ErrCheckpoint, p.id, r.to, p.last)
	case p.unfinished != nil:
		err = p.unfinished.cause
	case p.checkpoint == r.to:
		p.mu.Unlock()
		return true, r.given.CheckRepeated(f.s.state)
	case r.from == p.finished && r.to > p.checkpoint:
		// The caller's last flush was finished without it.
		r.from = p.checkpoint
	case p.checkpoint != r.from:
		err = fmt.Errorf("%w: partition %d: expected %d, is %d", storage.ErrCheckpoint, p.id, r.from, p.checkpoint)
	}
	if err == nil {
		p.flushing = make(chan struct{})
		r.rows = p.tail.Size.Rows
	}
	p.mu.Unlock()
	if err != nil {
		return true, err
	}
	r.takeEntries(&f.s.tables)
	return false, nil
}

// beginFlush lets those wait who take an epoch while a flush is finished.
func (p *partition) beginFlush() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.flushing = make(chan struct{})
}

// endFlush lets those go on who wait for the flush under way.
func (p *partition) endFlush() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.flushing != nil {
		close(p.flushing)
		p.flushing = nil
	}
}

// Every writer writes what waits in one transaction, and what a transaction costs
// hardly depends on how much is in it. So each takes its time, as long as somebody is
// about to join and nobody waits for long.

// A flush rewrites each page of state.db that has a key of it, so that the fewer and
// larger they are the less is written; and between them processors and disk are left
// to appends.
const (
	// paceFactor is how much longer than a transaction the pause after it is.
	paceFactor = 4
	// paceLimit is the longest pause.
	paceLimit = 2 * time.Second
	// paceStep is how often a pause looks whether it should end early. Commits end
	// meanwhile if anybody appends, or the disk is so slow that it had better not wait.
	paceStep = 10 * time.Millisecond
	// A pause ends when what is not flushed takes this part of what it may take, of
	// the events or the records of one partition or of the memory of all,
	pacePart = 2
	// or when one partition has so many events: with several numbers each it is not
	// far from being busy by its default settings.
	paceEvents = 16384
)

// paceYield is how many workspaces a flush writes before it lets others run: about a millisecond.
const paceYield = 256

// yield lets others run now and then, while i counts up, unless the flush is wanted soon. The
// runtime takes the processor from a flush after 10 ms only, and whoever waits for it waits as long
// at every turn.
func (s *Store) yield(i int) {
	if i%paceYield == 0 && !s.pressed() {
		runtime.Gosched()
	}
}

// rest pauses until it is time for the flush after the last one, or nobody appends any more.
func (f *flusher) rest() {
	s := f.s
	end := f.pace.Ended.Add(min(paceLimit, paceFactor*f.pace.Took))
	busy := true
	for left := time.Until(end); left > 0 && busy && !s.pressed(); left = time.Until(end) {
		lsn := s.lastLSN.Load()
		timer := time.NewTimer(min(left, paceStep))
		select {
		case <-timer.C:
		case <-s.closing:
			timer.Stop()
			return
		}
		busy = s.lastLSN.Load() != lsn
	}
}

// pressed reports whether tails are so long that they must be flushed soon.
func (s *Store) pressed() bool {
	return s.tailsExceed(s.shares.tail/pacePart, min(s.options.TailEvents/pacePart, paceEvents))
}

// tailsExceed reports whether all tails together take more than so many bytes, or one has more events or data of records.
func (s *Store) tailsExceed(bytes int64, events int) bool {
	if s.tails.Bytes.Load() > bytes {
		return true
	}
	// No partition has more than all of them.
	if s.tails.Events.Load() <= int64(events) && s.tails.Rows.Load() <= bytes {
		return false
	}
	for i := range s.partitions {
		p := &s.partitions[i]
		p.mu.RLock()
		long := p.failed == nil && (p.tail.Len() > events || p.tail.Size.Rows > bytes)
		p.mu.RUnlock()
		if long {
			return true
		}
	}
	return false
}
