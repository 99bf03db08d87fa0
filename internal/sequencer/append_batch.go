package sequencer

import "github.com/partita-go/partita/messages"

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
	// before is where a workspace's numbers are kept while they are changed.
	before []messages.Number
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

// redo are the Appends in front of the queue that were in an attempt which was
// refused. They are written before anybody else joins them, so that they get ahead
// whatever comes behind.
type redo struct {
	left int
	// single says that they are written one by one, since nobody knows which of them
	// is refused.
	single bool
	// refusals counts the attempts that were refused; most is how many are tried
	// together, 0 for as many as there is room for.
	refusals, most int
}

// fewRefusals is how many attempts may be refused before fewer are tried together. Each
// names one of those that are refused: if they are many, most of what is done for the
// others is done in vain.
const fewRefusals = 4

// refused notes that an attempt of so many was refused.
func (r *redo) refused(members int) {
	if r.refusals++; r.refusals > fewRefusals {
		r.most = max(1, members/2)
	}
}

// wrote notes that an attempt succeeded: twice as many are tried next.
func (r *redo) wrote() { r.most *= 2 }

// endIfDone forgets how it went once nobody is left.
func (r *redo) endIfDone() {
	if r.left == 0 {
		*r = redo{}
	}
}

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

// end lets go of what the batch holds and keeps the memory, unless it is much more
// than a batch takes now.
func (b *batch) end() {
	b.underWay = false
	b.unreserve()
	if n := len(b.events); cap(b.events) > 8*n+256 {
		b.attempt, b.request.Events = attempt{}, nil
		return
	}
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
	b.reserved, b.numbers = b.reserved[:0], b.numbers[:0]
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
		c.commitNumbers(r.ws, r.last)
	}
	c.durable += messages.PLogOffset(len(c.batch.events))
}
