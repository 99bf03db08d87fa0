package bolt

import (
	"context"
	"fmt"
	"slices"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage"
	"github.com/partita-go/partita/storage/bolt/internal/dedup"
	"github.com/partita-go/partita/storage/bolt/internal/format"
	"github.com/partita-go/partita/storage/bolt/internal/keeper"
	"github.com/partita-go/partita/storage/bolt/internal/queue"
	"github.com/partita-go/partita/storage/bolt/internal/schema"
	"github.com/partita-go/partita/storage/bolt/internal/tail"
)

// writeRequest is a batch or, without events, a new epoch to be taken. A replica has others, too, of no partition: its log
// is for them as well. It shares nothing with its caller, who may be gone before it is served.
type writeRequest struct {
	queue.Ticket
	partition *partition
	epoch     messages.Epoch
	takeEpoch bool
	events    []newEvent
	// proposed are changes of subscriptions; nil if there are none.
	proposed *keeper.Proposed
	// generator is to be numbered; nil if there is none.
	generator *format.Generator
	// unseen says that another replica's partition has accepted it, and this one's has failed: its log only grows.
	unseen bool
	// size is what the events will take in the tail.
	size tail.Size
	// lookups are the deduplication ids of the events that have one, in their order, as
	// looked up in state.db when the checkpoint was lookedUpAt, 0 if they were not.
	lookups    dedup.Lookups
	lookedUpAt messages.PLogOffset
	// checkedAt is the checkpoint at which a look into state.db has shown that it has
	// room for the events, 0 if nobody has looked or it has none.
	checkedAt messages.PLogOffset
}

// newEvent is an event on its way to the log.
type newEvent struct {
	ws     messages.WSID
	wsKind messages.WSKind
	offset messages.PLogOffset
	wlog   messages.WLogOffset
	at     messages.Timestamp
	// numbers are the numbers given out, the explicit ids of new records, and the moves.
	numbers []messages.SequenceNumber
	records []tail.Record
	dedup   messages.DedupID
	zone    string
	// value is encoded but for the LSN, which the committer knows.
	value []byte
}

func (n *newEvent) hasID() bool { return !n.dedup.IsZero() }

// Append implements [storage.Log]. An empty batch only asks whether its epoch is
// the current one.
func (s *Store) Append(ctx context.Context, b storage.Batch) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	r, err := s.request(&b)
	if err != nil {
		return err
	}
	r.Ticket = queue.NewTicket()
	s.lookAhead(r)
	return queue.HandOver(ctx, s.writes, r, &r.Ticket, s.closing, s.committed)
}

// request checks and encodes a batch.
func (s *Store) request(b *storage.Batch) (*writeRequest, error) {
	if err := s.checkOpen(); err != nil {
		return nil, err
	}
	if s.options.ReadOnly {
		return nil, ErrReadOnly
	}
	p, err := s.partition(b.Partition)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", storage.ErrInvalidEvent, err)
	}
	r, copies := newRequest(b.Events)
	r.partition, r.epoch = p, b.Epoch
	c := batchCheck{Batch: b}
	for i := range b.Events {
		n := &r.events[i]
		if err := n.prepare(s.schema, i, &c, &copies); err != nil {
			return nil, err
		}
		r.size.Add(tail.SizeOf(len(n.numbers), n.records, n.hasID()))
		r.size.Add(tail.SizeOfZone(n.zone))
	}
	return r, schema.CheckTogether(b.Events)
}

// prepare checks what can be known of an event alone, and encodes it. This is the
// caller's goroutine: many prepare while one commits.
func (n *newEvent) prepare(in *schema.Schema, at int, b *batchCheck, to *batchCopies) error {
	e := &b.Events[at]
	switch {
	case e.Partition != b.Partition:
		return schema.Invalid(e, "got partition %d in a batch of partition %d", e.Partition, b.Partition)
	case e.Epoch != b.Epoch:
		return schema.Invalid(e, "got epoch %d in a batch of epoch %d", e.Epoch, b.Epoch)
	}
	n.numbers = to.numbersOf(e)
	given := func(n messages.SequenceNumber) bool { return b.gave(at, n) }
	if err := in.CheckEvent(e, n.numbers, given); err != nil {
		return err
	}
	if size := format.SizeHint(e); size > format.MaxEventSize {
		return schema.Invalid(e, "too large: got about %d bytes, want at most %d", size, format.MaxEventSize)
	}
	n.ws, n.wsKind, n.offset, n.wlog, n.at = e.Workspace, e.WorkspaceKind, e.PLogOffset, e.WLogOffset, e.RegisteredAt
	n.dedup, n.zone = e.DedupID, e.Zone
	n.records, n.value = to.recordsOf(e), to.valueOf(e)
	return nil
}

// valuesTogether is how many bytes of values share one piece of memory at most. It lives until the last of them is in
// log.db. Those of more than valueAlone bytes have one of their own: among small ones they would end pieces that are empty.
const (
	valuesTogether = 64 << 10
	valueAlone     = 16 << 10
)

// batchCopies is where the copies of what a batch has lie together.
type batchCopies struct {
	numbers []messages.SequenceNumber
	records []tail.Record
	values  []byte
	// left is about how many bytes the values take that are still to come and share memory.
	left int
}

// smallRequest is the request of one event as most have it, in one piece of memory.
type smallRequest struct {
	writeRequest
	event   [1]newEvent
	numbers [4]messages.SequenceNumber
	records [4]tail.Record
}

// newRequest returns a request with room for its events, and for what they have.
func newRequest(events []messages.Event) (*writeRequest, batchCopies) {
	if len(events) != 1 {
		return &writeRequest{events: make([]newEvent, len(events))}, newBatchCopies(events)
	}
	r := new(smallRequest)
	r.events = r.event[:]
	copies := batchCopies{numbers: r.numbers[:0], records: r.records[:0]}
	copies.makeRoom(events)
	return &r.writeRequest, copies
}

func newBatchCopies(events []messages.Event) (c batchCopies) {
	c.makeRoom(events)
	return c
}

func (c *batchCopies) makeRoom(events []messages.Event) {
	numbers, records := 0, 0
	for i := range events {
		e := &events[i]
		numbers, records = numbers+len(e.Numbers)+len(e.Moves), records+len(e.Records)
		if size := valueSize(e); size <= valueAlone {
			c.left += size
		}
	}
	c.numbers, c.records = slices.Grow(c.numbers, numbers), slices.Grow(c.records, records)
}

func valueSize(e *messages.Event) int { return format.EventHeaderLen + format.SizeHint(e) }

func (c *batchCopies) numbersOf(e *messages.Event) []messages.SequenceNumber {
	start := len(c.numbers)
	c.numbers = append(messages.AppendExplicit(append(c.numbers, e.Numbers...), e.Numbers, e.Records), e.Moves...)
	return c.numbers[start:len(c.numbers):len(c.numbers)]
}

func (c *batchCopies) recordsOf(e *messages.Event) []tail.Record {
	start := len(c.records)
	c.records = tail.RecordsOf(c.records, e.Records)
	return c.records[start:len(c.records):len(c.records)]
}

func (c *batchCopies) valueOf(e *messages.Event) []byte {
	size := valueSize(e)
	if size > valueAlone {
		return slices.Clip(format.AppendEvent(make([]byte, 0, size), e))
	}
	if cap(c.values)-len(c.values) < size {
		c.values = make([]byte, 0, max(size, min(c.left, valuesTogether)))
	}
	c.left -= size
	start := len(c.values)
	c.values = format.AppendEvent(c.values, e)
	return c.values[start:len(c.values):len(c.values)]
}

// batchCheck is a batch that is being checked.
type batchCheck struct {
	*storage.Batch
	// given are the numbers of its first events, as many as were noted.
	given map[workspaceNumber]struct{}
	noted int
}

type workspaceNumber struct {
	ws messages.WSID
	n  messages.SequenceNumber
}

// gave reports whether an event before one gave its workspace a number: what is created
// under that lifts no sequence. It is asked for what is above the cap, which is rare, so
// that numbers are noted when they are needed, and once.
func (b *batchCheck) gave(at int, n messages.SequenceNumber) bool {
	if b.given == nil {
		b.given = make(map[workspaceNumber]struct{})
	}
	for ; b.noted < at; b.noted++ {
		e := &b.Events[b.noted]
		for _, n := range e.Numbers {
			b.given[workspaceNumber{e.Workspace, n}] = struct{}{}
		}
	}
	_, ok := b.given[workspaceNumber{b.Events[at].Workspace, n}]
	return ok
}

// Submit implements [storage.Submitter]. It takes what can be judged by what is in
// memory: not a batch with a deduplication id that state.db may have, and none of which
// it is not remembered where its keys end in state.db.
func (s *Store) Submit(b storage.Batch, done func(error)) (rest func(context.Context) error) {
	r, err := s.request(&b)
	if err != nil {
		done(err)
		return nil
	}
	r.Then = done
	if !s.needsLookup(r) && s.door.LetIn(s.writes, r) {
		return nil
	}
	return func(ctx context.Context) error { return r.submit(ctx, s) }
}

// needsLookup reports whether somebody must look into state.db for a request, which may
// read the disk. Ids are looked up as of the partition's checkpoint, which is read first.
func (s *Store) needsLookup(r *writeRequest) bool {
	r.listLookups(s.files.ID)
	checks := s.schema.Trust < messages.TrustAll
	if !checks && len(r.lookups) == 0 {
		return false
	}
	checkpoint, covered := r.coveredAt(s.schema.Trust)
	if checks && !covered || !r.lookups.AllAbsent(s.known) {
		return true
	}
	r.lookedUpAt = checkpoint
	return false
}

// submit looks up what must be, and waits for room.
func (r *writeRequest) submit(ctx context.Context, s *Store) error {
	if err := s.enter(ctx); err != nil {
		return err
	}
	s.lookAhead(r)
	return s.door.Wait(ctx, s.writes, r, s.closing)
}

// TakeEpoch implements [storage.Log].
func (s *Store) TakeEpoch(ctx context.Context, id messages.PartitionID) (storage.Register, error) {
	if err := s.mayWrite(ctx); err != nil {
		return storage.Register{}, err
	}
	p, err := s.partition(id)
	if err != nil {
		return storage.Register{}, err
	}
	r := &writeRequest{Ticket: queue.NewTicket(), partition: p, takeEpoch: true}
	if err := queue.HandOver(ctx, s.writes, r, &r.Ticket, s.closing, s.committed); err != nil {
		return storage.Register{}, err
	}
	return p.awaitFlush(ctx, s.checkOpen)
}

// awaitFlush waits for a flush of the partition that began under an older epoch,
// since it may still move the checkpoint. Later ones are refused. checkOpen says whether the store is open by then.
func (p *partition) awaitFlush(ctx context.Context, checkOpen func() error) (storage.Register, error) {
	p.mu.RLock()
	register, failed, flushing := p.register(), p.failed, p.flushing
	p.mu.RUnlock()
	if flushing == nil {
		return register, failed
	}
	select {
	case <-flushing:
	case <-ctx.Done():
		return storage.Register{}, fmt.Errorf("%w: %w", messages.ErrOutcomeUnknown, ctx.Err())
	}
	if err := checkOpen(); err != nil {
		return storage.Register{}, err
	}
	p.mu.RLock()
	defer p.mu.RUnlock()
	return p.register(), p.failed
}
