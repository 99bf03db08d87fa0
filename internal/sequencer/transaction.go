package sequencer

import (
	"fmt"
	"slices"

	"github.com/partita-go/partita/messages"
)

// transaction is the one that is open. Nothing in it is durable: cancelling it
// means forgetting it.
type transaction struct {
	open    bool
	token   messages.Token
	owner   Requester
	watched bool
	since   messages.Timestamp
	ws      *workspace
	// The backing array of its last numbers is used again.
	Reservation
}

// start handles a Start whose turn has come.
func (c *Core) start(from Requester, m *messages.Start) {
	kind := c.kinds[m.Kind]
	if err := c.startable(m, kind); err != nil {
		c.refuse(from, err)
		return
	}
	w := waiting{from: from, start: m}
	if c.loads[m.Workspace] == nil {
		w.ws = c.lookup(m.Workspace, kind)
	}
	switch {
	case w.ws == nil:
		c.awaitLoad(w)
	case c.txn.open || len(c.ready) > 0:
		c.ready = append(c.ready, w)
	default:
		c.grant(w)
	}
}

// startable returns why a Start is refused whatever its workspace's numbers are.
func (c *Core) startable(m *messages.Start, kind *kindDef) error {
	if got := messages.PartitionOf(m.Workspace, c.partitions); got != c.partition {
		return fmt.Errorf("%w: workspace %d: got partition %d, want %d", messages.ErrWrongPartition, m.Workspace, c.partition, got)
	}
	if kind == nil {
		return fmt.Errorf("%w: workspace %d: got kind %d", messages.ErrUnknownKind, m.Workspace, m.Kind)
	}
	return c.grantable(m)
}

// grantable returns why a Start is refused now. It is asked again when a Start
// that had to wait comes to its turn, so that only one event can pass the limit.
func (c *Core) grantable(m *messages.Start) error {
	if m.Deadline != 0 && c.now > m.Deadline {
		return fmt.Errorf("%w: deadline %v, now %v", messages.ErrDeadlineExceeded, m.Deadline, c.now)
	}
	if c.unflushedKeys() >= c.settings.BusyLimit || c.unflushedEvents() >= c.settings.BusyEvents {
		return &messages.BusyError{Reason: messages.BusyUnflushed, RetryAfter: c.settings.FlushInterval}
	}
	return nil
}

// grantReady opens a transaction for the first Start that still can have one.
func (c *Core) grantReady() {
	for !c.txn.open && len(c.ready) > 0 {
		w := c.ready[0]
		c.ready[0] = waiting{}
		c.ready = c.ready[1:]
		if err := c.grantable(w.start); err != nil {
			c.refuse(w.from, err)
			continue
		}
		c.grant(w)
	}
}

// grant opens the transaction, unless the workspace cannot have one.
func (c *Core) grant(w waiting) {
	ws, m := w.ws, w.start
	if ws.kind.id != m.Kind {
		if ws.fixed {
			c.refuse(w.from, fmt.Errorf("%w: workspace %d: got kind %d, want %d", messages.ErrKindMismatch, ws.id, m.Kind, ws.kind.id))
			return
		}
		ws.become(c.kinds[m.Kind])
	}
	if ws.last[wlogOffset] >= ws.kind.sequences[wlogOffset].Max() {
		c.refuse(w.from, overflow(ws.id, &ws.kind.sequences[wlogOffset]))
		return
	}
	c.serial++
	c.lastTime = max(c.lastTime, c.now)
	c.txn = transaction{
		open: true,
		token: messages.Token{
			Partition: c.partition, Epoch: c.epoch, PLogOffset: c.durable + 1, Serial: c.serial,
		},
		owner: w.from,
		since: c.now,
		ws:    ws,
		Reservation: Reservation{
			workspace: ws.id, kind: ws.kind, last: append(c.txn.last[:0], ws.last...),
		},
	}
	c.txn.last[wlogOffset]++
	if m.WatchOwner && w.from != nil {
		c.txn.watched = true
		c.out.Watch = w.from
	}
	c.arm(messages.TimerTransaction, c.settings.TransactionLimit)
	c.step = (*Core).stepOpen
	started := &messages.Started{
		Token:        c.txn.token,
		WLogOffset:   messages.WLogOffset(c.txn.last[wlogOffset]),
		RegisteredAt: c.lastTime,
	}
	if m.WithNumbers {
		started.Last = slices.Clone(c.txn.last)
	}
	c.reply(w.from, started)
}

// next gives the next number of a sequence.
func (c *Core) next(from Requester, m *messages.Next) {
	if !c.owns(m.Token) {
		c.refuseToken(from, m.Token)
		return
	}
	n, err := c.txn.Next(m.Seq)
	if err != nil {
		c.refuse(from, err)
		return
	}
	c.reply(from, &messages.Given{Number: n})
}

// raise lifts a sequence to an explicit id of the transaction's event.
func (c *Core) raise(from Requester, m *messages.Raise) {
	if !c.owns(m.Token) {
		c.refuseToken(from, m.Token)
		return
	}
	if err := c.txn.Raise(m.ID); err != nil {
		c.refuse(from, err)
		return
	}
	c.reply(from, &messages.Raised{})
}

// flush ends the transaction: its event is durable, so its numbers become
// unflushed.
func (c *Core) flush(from Requester, m *messages.Flush) {
	if !c.owns(m.Token) {
		c.flushLate(from, m.Token)
		return
	}
	if err := c.txn.settle(m.Last); err != nil {
		c.refuse(from, err)
		return
	}
	c.commit()
	c.endTransaction()
	c.reply(from, &messages.Flushed{})
}

// commit moves the reserved numbers to the cache and to what is unflushed.
func (c *Core) commit() {
	if c.waitingEvents() == 0 {
		c.unflushedSince = c.now
	}
	ws := c.txn.ws
	d := ws.deltaIn(c.unflushed)
	if !ws.fixed {
		ws.fixed = true
		c.unflushed.markFirst(d)
	}
	for i, n := range c.txn.last {
		if n != ws.last[i] {
			ws.last[i] = n
			c.unflushed.raise(d, i, n)
		}
	}
	c.durable++
	c.lastFlushed = c.txn.token
}

// cancel ends the transaction and gives its numbers back.
func (c *Core) cancel(from Requester, m *messages.Cancel) {
	if !c.owns(m.Token) {
		c.refuseToken(from, m.Token)
		return
	}
	c.endTransaction()
	c.reply(from, &messages.Cancelled{})
}

// actualize ends the transaction: what became of its event is for the log to say.
func (c *Core) actualize(from Requester, m *messages.Actualize) {
	if !c.owns(m.Token) {
		c.actualizeAgain(from, m.Token)
		return
	}
	c.reply(from, &messages.Actualizing{})
	c.abandonTransaction()
}

// ownerStopped gives up the transaction of an actor that is gone: it may have
// begun a write.
func (c *Core) ownerStopped(m *messages.OwnerStopped) {
	if c.owns(m.Token) {
		c.txn.watched = false
		c.abandonTransaction()
	}
}

func (c *Core) transactionTimerFired() {
	if !c.txn.open {
		return
	}
	if left := c.remaining(c.txn.since, c.settings.TransactionLimit); left > 0 {
		c.arm(messages.TimerTransaction, left)
		return
	}
	c.abandonTransaction()
}

// abandonTransaction ends a transaction whose event may or may not be written.
// Only a new epoch makes sure of it; a partition that stops leaves that to the
// next start.
func (c *Core) abandonTransaction() {
	if c.state == messages.StateTerminating {
		c.stop.dirty, c.stop.abandoned = true, c.txn.token
		c.endTransaction()
		return
	}
	c.becomeActualizing()
}

// endTransaction forgets the open transaction, if any.
func (c *Core) endTransaction() {
	if !c.txn.open {
		return
	}
	if c.txn.watched {
		c.out.Unwatch = c.txn.owner
	}
	c.txn = transaction{Reservation: Reservation{last: c.txn.last}}
	if c.state != messages.StateTerminating {
		c.becomeIdle()
	}
}

// owns reports whether a token is that of the open transaction.
func (c *Core) owns(t messages.Token) bool {
	return c.txn.open && c.txn.token == t
}

// refuseToken answers a message whose token is not that of the open transaction.
func (c *Core) refuseToken(to Requester, t messages.Token) {
	c.refuse(to, c.tokenError(t))
}

func (c *Core) tokenError(t messages.Token) error {
	if t.Partition == c.partition && (t.Epoch < c.epoch || c.state == messages.StateInitializing) {
		return fmt.Errorf("%w: got %v, the partition has epoch %d", messages.ErrFenced, t, c.epoch)
	}
	return fmt.Errorf("%w: got %v", messages.ErrNoTransaction, t)
}
