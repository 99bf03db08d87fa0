package sequencer

import (
	"fmt"
	"slices"

	"github.com/partita-go/partita/calendar"
	"github.com/partita-go/partita/ids"
	"github.com/partita-go/partita/messages"
)

// batch is a run of Appends that is written together: it is formed when its turn
// has come, and is then in the appender's hands. No transaction is open meanwhile,
// so that the numbers in it are the only ones that are reserved.
type batch struct {
	attempt
	// request is in the appender's hands if underWay. It and what it refers to are
	// used again once that has answered.
	request  *messages.WriteEvents
	underWay bool

	// reserved are the numbers of the workspaces in it, in the order in which they
	// came; their backing array is numbers.
	reserved []reserved
	numbers  []messages.Number
	dates    []calendar.Date
	// records are those of the events.
	records []messages.Record
	// before is where a workspace's numbers are kept while they are changed.
	before lasts
	// ids are the deduplication ids in it.
	ids map[appendID]int
	// bytes and keys are what it will take at most, in flight and unflushed.
	bytes, keys int
}

// attempt is to write Appends at certain places of the log.
type attempt struct {
	epoch messages.Epoch
	// first is the offset of the first event.
	first   messages.PLogOffset
	events  []messages.Event
	members []member
}

// member is an Append that was judged, in the order in which they waited.
type member struct {
	waiting
	fate fate
	// at is the index of its first event, or, of one that follows, of the member
	// that it follows.
	at      int
	numbers []messages.SequenceNumber
	// err is why it is refused.
	err error
	// duplicate is where its deduplication id stands in the log, search is for what
	// stands there.
	duplicate messages.WLogOffset
	search    uint64
}

// fate is what becomes of a member if the attempt succeeds, or because it did not.
type fate uint8

const (
	// writes: its events become durable.
	writes fate = iota
	// follows: a member that writes has its deduplication id.
	follows
	// rests: it is refused because of what members before it write.
	rests
	// refused: the attempt has failed because of it.
	refused
	// repeats: likewise, since the log has its deduplication id.
	repeats
)

// reserved are the numbers of a workspace with those of the batch.
type reserved struct {
	Reservation
	ws *workspace
}

// appendID names an append.
type appendID struct {
	workspace messages.WSID
	id        messages.DedupID
}

func (m *member) appendID() appendID { return appendID{m.append.Workspace, m.append.DedupID} }

// formBatch judges and numbers the Appends at the head of the queue, and hands over
// what there is to write.
func (c *Core) formBatch() {
	b := &c.batch
	b.begin(c.epoch, c.durable+1)
	if c.clockErr == nil {
		c.lastTime = max(c.lastTime, c.now)
	}
	again := c.redo.left > 0
	for c.queue.len() > 0 && c.roomFor(c.queue.first()) {
		c.judge(c.queue.pop())
		if !again {
			continue
		}
		if c.redo.left--; c.redo.left == 0 {
			break
		}
	}
	if len(b.events) == 0 {
		c.redo.endIfDone()
		return
	}
	b.underWay = true
	*b.request = messages.WriteEvents{Generation: c.generation, Epoch: c.epoch, Events: b.events}
	c.out.Appender = b.request
}

// roomFor reports whether a request can join the batch. What may pass a limit is
// the first Append only, which is judged by what is known.
func (c *Core) roomFor(w *waiting) bool {
	b, s := &c.batch, &c.settings
	n := len(b.events)
	switch {
	case w.append == nil:
		return false
	case n == 0:
		return true
	case c.redo.single, c.redo.most > 0 && len(b.members) >= c.redo.most:
		return false
	}
	return n+len(w.append.Drafts) <= s.BatchEvents && b.bytes+w.bytes <= s.InFlightBytes &&
		c.unflushedEvents()+n < s.BusyEvents && c.unflushedKeys()+b.keys < s.BusyLimit
}

// begin makes the batch empty.
func (b *batch) begin(epoch messages.Epoch, first messages.PLogOffset) {
	if b.request == nil {
		b.request = new(messages.WriteEvents)
	}
	b.epoch, b.first = epoch, first
	b.bytes, b.keys = 0, 0
}

// judge decides what becomes of an Append whose turn has come: it is numbered and
// joins the batch, or waits for what becomes of a member of the batch, or is
// refused.
func (c *Core) judge(w waiting) {
	b := &c.batch
	if err := c.grantable(w.append.Deadline); err != nil {
		c.refuseWaiter(&w, err)
		return
	}
	if leader, ok := b.leader(w.append); ok {
		b.join(member{waiting: w, fate: follows, at: leader})
		return
	}
	if w.otherwise != nil {
		c.search(&w, 0, w.otherwise)
		return
	}
	at := len(b.events)
	numbers, err := c.number(&w)
	switch {
	case err == nil:
		b.bytes += w.bytes
		b.join(member{waiting: w, fate: writes, at: at, numbers: numbers})
	case w.ws.reserved > 0:
		b.join(member{waiting: w, fate: rests, err: err})
	default:
		c.refuseUnlessRepeated(&w, err)
	}
}

// leader returns the member of the batch that has an Append's deduplication id.
func (b *batch) leader(m *messages.Append) (int, bool) {
	if m.DedupID.IsZero() {
		return 0, false
	}
	i, ok := b.ids[appendID{m.Workspace, m.DedupID}]
	return i, ok
}

// number reserves what an Append asks for and makes its events. It does nothing
// if it returns an error, which says why the workspace cannot have them.
func (c *Core) number(w *waiting) ([]messages.SequenceNumber, error) {
	b := &c.batch
	if err := c.take(w.ws, w.kind); err != nil {
		return nil, err
	}
	events, records := len(b.events), len(b.records)
	r := b.reserve(w.ws)
	b.before.copyFrom(&r.lasts)
	numbers, err := c.writeDrafts(w, r)
	if err != nil {
		b.takeBack(r, events, records)
		return nil, err
	}
	b.countKeys(r)
	return numbers, nil
}

// reserve returns the numbers of a workspace for the batch to count on.
func (b *batch) reserve(ws *workspace) *reserved {
	if ws.reserved == 0 {
		from := len(b.numbers)
		b.numbers = append(b.numbers, ws.last...)
		r := Reservation{workspace: ws.id, kind: ws.kind, lasts: lasts{
			last: b.numbers[from:len(b.numbers):len(b.numbers)], others: ws.share(), zones: ws.zones,
		}}
		if ws.periods != nil {
			from = len(b.dates)
			b.dates = append(b.dates, ws.periods...)
			r.periods = b.dates[from:len(b.dates):len(b.dates)]
		}
		b.reserved = append(b.reserved, reserved{Reservation: r, ws: ws})
		ws.reserved = len(b.reserved)
	}
	return &b.reserved[ws.reserved-1]
}

// unreserved reports whether nothing was reserved before b.before was noted.
func (b *batch) unreserved(r *reserved) bool {
	return b.before.last[wlogOffset] == r.ws.last[wlogOffset]
}

// takeBack undoes what was reserved since b.before was noted, and drops the events and
// the records from indexes on.
func (b *batch) takeBack(r *reserved, events, records int) {
	clear(b.events[events:])
	clear(b.records[records:])
	b.events, b.records = b.events[:events], b.records[:records]
	r.copyFrom(&b.before)
	if b.unreserved(r) {
		b.numbers, b.dates = b.numbers[:len(b.numbers)-len(r.last)], b.dates[:len(b.dates)-len(r.periods)]
		r.ws.reserved = 0
		*r = reserved{}
		b.reserved = b.reserved[:len(b.reserved)-1]
	}
}

// countKeys adds the keys that have changed since b.before was noted, and not
// before in this batch.
func (b *batch) countKeys(r *reserved) {
	b.keys += r.ws.changedIn(&r.lasts)
	switch {
	case !b.unreserved(r):
		b.keys -= r.ws.changedIn(&b.before)
	case !r.ws.fixed:
		b.keys++
	}
}

// writeDrafts makes the events of an Append.
func (c *Core) writeDrafts(w *waiting, r *reserved) ([]messages.SequenceNumber, error) {
	b, m := &c.batch, w.append
	if got := messages.WLogOffset(r.last[wlogOffset]); m.Expected != nil && *m.Expected != got {
		return nil, &messages.OffsetError{Workspace: m.Workspace, Got: got, Want: *m.Expected}
	}
	at := len(b.events)
	var numbers []messages.SequenceNumber
	if w.numbers > 0 {
		numbers = make([]messages.SequenceNumber, 0, w.numbers)
	}
	r.given = 0
	for i := range m.Drafts {
		var err error
		if numbers, err = c.writeDraft(&m.Drafts[i], m.Trace, r, numbers); err != nil {
			return nil, err
		}
	}
	if err := checkNumbered(m, b.events[at:]); err != nil {
		return nil, err
	}
	b.events[at].DedupID = m.DedupID
	b.events[at].Together = uint32(len(m.Drafts) - 1)
	return numbers, nil
}

// writeDraft makes the next event. numbers are those of the message so far.
func (c *Core) writeDraft(
	d *messages.Draft, trace ids.TraceID, r *reserved, numbers []messages.SequenceNumber,
) ([]messages.SequenceNumber, error) {
	wlog := &r.kind.sequences[wlogOffset]
	if r.last[wlogOffset] >= wlog.Max() {
		return nil, overflow(r.workspace, wlog, 0, wlog.Max(), r.last[wlogOffset], 1)
	}
	r.last[wlogOffset]++
	from := len(numbers)
	numbers, err := c.bring(r, d, numbers)
	if err != nil {
		return nil, err
	}
	if err := c.turnTo(&r.Reservation, r.ws, d); err != nil {
		return nil, err
	}
	if d.Zone != "" {
		if err := r.setZone(d.Zone, c.lastTime); err != nil {
			return nil, err
		}
	}
	for _, wanted := range d.Wanted {
		first, err := r.Next(wanted)
		if err != nil {
			return nil, err
		}
		numbers = messages.AppendNumbers(numbers, wanted, first)
	}
	records, err := c.batch.newRecords(r, d, numbers)
	if err != nil {
		return nil, err
	}
	moves, err := c.move(r, d)
	if err != nil {
		return nil, err
	}
	b := &c.batch
	b.events = append(b.events, messages.Event{
		Kind:          messages.EventBusiness,
		Epoch:         b.epoch,
		Partition:     c.partition,
		PLogOffset:    b.first + messages.PLogOffset(len(b.events)),
		Workspace:     r.workspace,
		WorkspaceKind: r.kind.id,
		WLogOffset:    messages.WLogOffset(r.last[wlogOffset]),
		RegisteredAt:  c.lastTime,
		Date:          d.Date,
		Trace:         trace,
		Zone:          d.Zone,
		Numbers:       numbers[from:len(numbers):len(numbers)],
		Brought:       uint32(len(d.Brought)),
		Moves:         moves,
		Body:          d.Body,
		Records:       records,
	})
	return numbers, nil
}

// newRecords returns the rows of a draft, and lifts the sequences of new ones whose ids
// it brings along. No other row may be ahead then. numbers are those of the message so
// far.
func (b *batch) newRecords(r *reserved, d *messages.Draft, numbers []messages.SequenceNumber) ([]messages.Record, error) {
	if len(d.Records) == 0 {
		return nil, nil
	}
	from := len(b.records)
	b.records = slices.Grow(b.records, len(d.Records))
	for i := range d.Records {
		draft := &d.Records[i]
		id := draft.ID
		switch {
		case id == (messages.RecordID{}):
			if n := numbers[draft.Number]; n.Period != 0 {
				return nil, fmt.Errorf("%w: record %d: got number %d of sequence %d, which restarts: it can't be an id",
					messages.ErrDraft, i, n.Number, n.Seq)
			}
			id = numbers[draft.Number].Record()
		case draft.New:
			if err := r.Raise(id); err != nil {
				return nil, err
			}
		}
		b.records = append(b.records, messages.Record{ID: id, New: draft.New, Data: draft.Data})
	}
	records := b.records[from:len(b.records):len(b.records)]
	return records, r.Covers(records)
}

// end lets go of what the batch holds and keeps the memory, unless it is much more
// than a batch takes now.
func (b *batch) end() {
	b.underWay = false
	b.unreserve()
	if n := len(b.events); cap(b.events) > 8*n+256 {
		b.attempt, b.request.Events, b.records = attempt{}, nil, nil
		return
	}
	if n := len(b.records); cap(b.records) > 8*n+256 {
		b.records = nil
	}
	clear(b.records)
	b.records = b.records[:0]
	clear(b.events)
	b.events = b.events[:0]
	clear(b.members)
	b.members = b.members[:0]
}

// unreserve gives the numbers back.
func (b *batch) unreserve() {
	for i := range b.reserved {
		b.reserved[i].ws.reserved = 0
	}
	clear(b.reserved)
	b.reserved, b.numbers, b.dates = b.reserved[:0], b.numbers[:0], b.dates[:0]
	clear(b.ids)
}

// join adds an Append that is judged.
func (b *batch) join(m member) {
	if m.fate == writes && !m.append.DedupID.IsZero() {
		if b.ids == nil {
			b.ids = make(map[appendID]int)
		}
		b.ids[m.appendID()] = len(b.members)
	}
	b.members = append(b.members, m)
}

// commitBatch makes the reserved numbers those of the workspaces.
func (c *Core) commitBatch() {
	for i := range c.batch.reserved {
		r := &c.batch.reserved[i]
		c.commitNumbers(r.ws, &r.lasts)
	}
	c.durable += messages.PLogOffset(len(c.batch.events))
}
