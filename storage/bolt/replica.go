package bolt

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage"
	"github.com/partita-go/partita/storage/bolt/internal/format"
	"github.com/partita-go/partita/storage/bolt/internal/keeper"
	"github.com/partita-go/partita/storage/bolt/internal/logdb"
	"github.com/partita-go/partita/storage/bolt/internal/queue"
	"github.com/partita-go/partita/storage/bolt/internal/tail"
	"github.com/partita-go/partita/storage/bolt/internal/verifier"
	"github.com/partita-go/partita/storage/replog"
)

// replica is the store as a replicated log sees it: what the log has accepted comes in here, and nowhere else. It
// implements [replog.Replica].
type replica struct {
	s   *Store
	log replog.Log
	// at is where the log stands with the last entry that was applied. Only Apply moves it.
	at replog.Position
	// head is that of the last entry that is published. It is read before anything is judged: if the judgement rests on
	// less than what the log has accepted, the log refuses what was judged.
	head atomic.Uint64
	view format.EventView
	// reads let those who read together ask once whether this node leads.
	reads verifier.Verifier
	// taken has room for one: it says that the log has grown.
	taken chan struct{}
	// flushing is held by who flushes without a caller.
	flushing sync.Mutex
	// left is what the tails took behind the last of those flushes.
	left tail.Totals
	// followed is closed when nothing is flushed any more without a caller.
	followed chan struct{}
}

// start begins to take what the log has and the store has not. A store that is no replica has nothing to take.
func (r *replica) start() error {
	if r == nil {
		return nil
	}
	// What log.db has and subscriptions.db has not is brought again.
	r.at = r.s.log.Kept
	r.head.Store(r.s.log.Position.Head)
	// A backup has one, too, of which log.db does not know.
	if _, err := r.s.files.Directory.Stat(format.IDsFileName); err == nil {
		r.s.log.NoteIDs()
	}
	err := r.mayStart()
	if err == nil {
		err = r.s.subscriptions.Replicate(proposer{r})
	}
	if err == nil {
		err = r.log.Start(r.at, r)
	}
	if err != nil {
		close(r.followed)
		return fmt.Errorf("replicated log: %w", err)
	}
	go r.follow()
	return nil
}

// mayStart refuses a log.wal that had to stay: its events are no entries.
func (r *replica) mayStart() error {
	if _, values := r.s.log.Pending(); len(values) > 0 {
		return fmt.Errorf("%w: %s has no room for what %s has", storage.ErrFull, format.LogFileName, format.WALFileName)
	}
	return nil
}

// end lets nothing in any more.
func (r *replica) end() error {
	err := r.log.Close()
	<-r.followed
	return err
}

// propose writes what was accepted behind a head. When it returns without an error, that is published.
func (r *replica) propose(head uint64, e *format.Entry) error {
	err := r.s.log.Room(messages.LSN(r.s.lastLSN.Load()), e.Values)
	if taken := r.s.log.Taken(); taken != head {
		// If its place is not free, others have it: that is no damage. The log would refuse it, too.
		return fmt.Errorf("%w: it is at head %d, judged by %d", replog.ErrMoved, taken, head)
	}
	if err != nil {
		return err
	}
	return r.log.Append(context.Background(), head, e.Encode())
}

// proposer is the replica as the keeper of its subscriptions sees it: it implements [keeper.Replica].
type proposer struct{ *replica }

// Verify asks whether this node leads.
func (p proposer) Verify(ctx context.Context) error { return p.reads.Verify(ctx, p.log) }

// Propose hands changes to the committer, and waits for the outcome.
func (p proposer) Propose(changes keeper.Proposed) error {
	r := &writeRequest{Ticket: queue.NewTicket(), proposed: &changes}
	return queue.HandOver(context.Background(), p.s.writes, r, &r.Ticket, p.s.closing, p.s.committed)
}

// nextGenerator lets the committer number a generator, and the log have that.
func (r *replica) nextGenerator(ctx context.Context, launch uint32) (uint32, error) {
	// Who does not lead may lack what was numbered, and would use numbers up in vain.
	if err := r.reads.Verify(ctx, r.log); err != nil {
		return 0, err
	}
	w := &writeRequest{Ticket: queue.NewTicket(), generator: &format.Generator{Launch: launch}}
	if err := queue.HandOver(ctx, r.s.writes, w, &w.Ticket, r.s.closing, r.s.committed); err != nil {
		return 0, err
	}
	return w.generator.Number, nil
}

// Apply implements [replog.Replica].
func (r *replica) Apply(at replog.Position, body []byte) error {
	err := r.apply(at, body)
	if err != nil {
		// Whoever leads is another node: a partition that asks what became of its write need not ask here again.
		r.s.breakBy(fmt.Errorf("%w: its replica has stopped: %w", replog.ErrNotOwner, err))
	}
	return err
}

func (r *replica) apply(at replog.Position, body []byte) error {
	content, err := format.DecodeEntry(body)
	if err != nil {
		return r.diverged(at, err)
	}
	if at.Head <= r.s.log.Position.Head { // log.db had it
		return r.takeRest(at, &content)
	}
	if err := r.makeRoom(); err != nil {
		return fmt.Errorf("%s: %w", format.StateFileName, err)
	}
	requests, err := r.requests(&content)
	if err != nil {
		return r.diverged(at, err)
	}
	// First: log.db must know of the changes when it has the entry, and ids.db must have the numbers.
	if err := r.takeRest(at, &content); err != nil {
		return err
	}
	if err := r.s.log.Take(&logdb.Entry{At: at, Entry: content}, r.pending()); err != nil {
		r.s.subscriptions.Drop(at)
		return err
	}
	r.s.publish(requests)
	r.head.Store(at.Head)
	select {
	case r.taken <- struct{}{}:
	default:
	}
	return nil
}

// takeRest takes what an entry says to other files than log.db, and goes on to where it stands. What was numbered is durable
// then: if the node ends before log.db has the entry, it comes again, and raises nothing.
func (r *replica) takeRest(at replog.Position, e *format.Entry) error {
	if len(e.Generators) > 0 {
		if err := r.s.launches.Raise(e.Generators); err != nil {
			return err
		}
	}
	if len(e.Changes) > 0 {
		if err := r.s.subscriptions.Take(r.at, at, e.Changes); err != nil {
			return err
		}
	}
	r.at = at
	return nil
}

// diverged is why the replica stops: it differs, unless a newer program has written what this one does not know.
func (r *replica) diverged(at replog.Position, cause error) error {
	if errors.Is(cause, format.ErrNewer) {
		return fmt.Errorf("%w: head %d: %w", replog.ErrNewer, at.Head, cause)
	}
	return fmt.Errorf("%w: head %d: %w", replog.ErrDiverged, at.Head, cause)
}

// requests are what was accepted, as the committer of the node that wrote it had it: runs of events of one partition, and
// the epochs taken, which are all behind the events of older ones.
func (r *replica) requests(e *format.Entry) (all []*writeRequest, err error) {
	lsn := messages.LSN(r.s.lastLSN.Load())
	ends := make(map[*partition]*partitionEnd)
	for _, value := range e.Values {
		lsn++
		if err := r.view.Decode(lsn, value); err != nil {
			return nil, format.DamagedEvent(lsn, 0, 0, err)
		}
		p, err := r.s.partition(r.view.Partition)
		if err != nil {
			return nil, err
		}
		end := p.end(ends)
		if err := end.follow(&r.view); err != nil {
			return nil, err
		}
		last := len(all) - 1
		if last < 0 || all[last].partition != p || all[last].epoch != r.view.Epoch {
			all = append(all, &writeRequest{partition: p, epoch: r.view.Epoch, unseen: end.failed})
			last++
		}
		all[last].add(&r.view, value)
	}
	for _, taken := range e.Epochs {
		p, err := r.s.partition(taken.Partition)
		if err != nil {
			return nil, err
		}
		all = append(all, &writeRequest{partition: p, epoch: taken.Epoch, takeEpoch: true, unseen: p.end(ends).failed})
	}
	return all, nil
}

// partitionEnd is where the log of a partition ends, in the course of an entry. Only whoever applies entries moves
// that.
type partitionEnd struct {
	last   messages.PLogOffset
	failed bool
}

// end returns where the partition's log ends, as it was found first.
func (p *partition) end(ends map[*partition]*partitionEnd) *partitionEnd {
	if ends[p] == nil {
		p.mu.RLock()
		ends[p] = &partitionEnd{last: p.last, failed: p.failed != nil}
		p.mu.RUnlock()
	}
	return ends[p]
}

// follow makes sure that an event continues the log.
func (e *partitionEnd) follow(v *format.EventView) error {
	if v.PLogOffset != e.last+1 && !e.failed {
		return fmt.Errorf("%w: partition %d: got offset %d, want %d", storage.ErrOutOfOrder, v.Partition, v.PLogOffset, e.last+1)
	}
	e.last = v.PLogOffset
	return nil
}

// add adds an event that the log has.
func (r *writeRequest) add(v *format.EventView, value []byte) {
	n := newEvent{
		ws: v.Workspace, wsKind: v.WorkspaceKind, offset: v.PLogOffset, wlog: v.WLogOffset, at: v.RegisteredAt,
		numbers: slices.Clone(v.Numbering()), records: tail.RecordsOf(nil, v.Records), dedup: v.DedupID, zone: v.Zone, value: value,
	}
	r.events = append(r.events, n)
	r.size.Add(tail.SizeOf(len(n.numbers), n.records, n.hasID()))
	r.size.Add(tail.SizeOfZone(n.zone))
}

// followRest is for how long a node that does not lead lets its tails grow: nobody waits for its projections. Tests let
// them grow for ever.
var followRest = time.Second

// follow flushes what the log has brought, as long as this node does not lead: nobody has its partitions then who would.
func (r *replica) follow() {
	defer close(r.followed)
	rest := time.NewTimer(followRest)
	defer rest.Stop()
	for {
		select {
		case <-r.taken:
			if !r.exceeds(2*followPart) || !r.grown() {
				continue
			}
		case <-rest.C:
			rest.Reset(followRest)
		case <-r.s.closing:
			return
		}
		// Why one is refused is told to who flushes as the owner, or by makeRoom.
		_, _ = r.flush()
	}
}

// followPart is the part of what tails may take that those of a node which does not lead do, unless they cannot be flushed, and
// of what log.db may lack. One that catches up fills them as fast as its log brings events, and a flush has the tails a second
// time.
const followPart = 4

// pending is how much may be in memory that log.db has not yet.
func (r *replica) pending() int64 {
	if now, _ := r.log.Leadership(); now.Term != 0 {
		return r.s.log.Memory
	}
	return r.s.log.Memory / followPart
}

// exceeds reports whether the tails take more than a part of what they may.
func (r *replica) exceeds(part int) bool {
	return r.s.tailsExceed(r.s.shares.tail/int64(part), r.s.options.TailEvents/part)
}

// growPart is the part of what tails may take by which they grow before a flush is tried again: one that is refused costs
// as much as another, and so does one that leaves what partitions have that have failed.
const growPart = 16

// grown reports whether the tails take other than what the last flush has left.
func (r *replica) grown() bool {
	by := func(now, left *atomic.Int64, may int64) bool {
		d := now.Load() - left.Load()
		return d < 0 || d > may/growPart
	}
	now, share := &r.s.tails, r.s.shares.tail
	return by(&now.Events, &r.left.Events, int64(r.s.options.TailEvents)) ||
		by(&now.Bytes, &r.left.Bytes, share) || by(&now.Rows, &r.left.Rows, share)
}

// makeRoom flushes if the tails are long: nobody is refused here who could be told to come later. An error is why this replica
// must stop, which would keep more in memory else than it may. Where this node leads, appends are refused.
func (r *replica) makeRoom() error {
	for tries := 0; r.exceeds(1) || r.exceeds(followPart) && r.grown(); tries++ {
		if now, _ := r.log.Leadership(); now.Term != 0 {
			return nil
		}
		some, err := r.flush()
		if !some || !r.exceeds(1) {
			return nil // what is left is of partitions that have failed, and do not grow
		}
		// One that the owner had begun may have come before.
		if err != nil && (!errors.Is(err, storage.ErrCheckpoint) || tries > 3) {
			return err
		}
	}
	return nil
}

// flush flushes all tails under the epochs that are the partitions' before this node begins to lead: whoever takes one
// after that is not disturbed. It returns whether there was something to flush, and why one was refused.
func (r *replica) flush() (some bool, err error) {
	r.flushing.Lock()
	defer r.flushing.Unlock()
	var all []*flushRequest
	for i := range r.s.partitions {
		if f := r.s.partitions[i].derivedFlush(); f != nil {
			all = append(all, f)
		}
	}
	if now, _ := r.log.Leadership(); now.Term != 0 {
		return false, nil
	}
	for _, f := range all { // so that they share transactions
		select {
		case r.s.flushes <- f:
		case <-r.s.closing:
			return false, nil
		}
	}
	for _, f := range all {
		err = cmp.Or(err, f.Await(context.Background(), r.s.flushed))
	}
	r.left.Set(&r.s.tails)
	return len(all) > 0, err
}

// derivedFlush returns a flush of all that the tail has, without a caller, nil if there is nothing.
func (p *partition) derivedFlush() *flushRequest {
	p.mu.RLock()
	defer p.mu.RUnlock()
	if p.failed != nil || p.tail.End() <= p.checkpoint {
		return nil
	}
	return &flushRequest{
		Ticket: queue.NewTicket(), partition: p, epoch: p.epoch, from: p.checkpoint, to: p.tail.End(), derive: true,
	}
}
