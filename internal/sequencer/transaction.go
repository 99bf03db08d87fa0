package sequencer

import (
	"fmt"
	"slices"
	"time"

	"github.com/partita-go/partita/calendar"
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

// start takes a Start.
func (c *Core) start(from Requester, m *messages.Start) {
	kind, err := c.kindFor(m.Workspace, m.Kind)
	if err == nil {
		err = checkDate(m.Date)
	}
	if err == nil && m.Zone != "" {
		err = checkZone(m.Zone)
	}
	if err == nil {
		err = checkTrace(m.Trace)
	}
	if err == nil {
		err = c.grantable(m.Deadline)
	}
	if err != nil {
		c.refuse(from, err)
		return
	}
	c.admit(waiting{from: from, start: m, kind: kind})
}

// kindFor returns the definition of a kind, unless no request of this workspace and
// kind can be for this partition.
func (c *Core) kindFor(ws messages.WSID, id messages.WSKind) (*kindDef, error) {
	if got := messages.PartitionOf(ws, c.partitions); got != c.partition {
		return nil, fmt.Errorf("%w: workspace %d: got partition %d, want %d", messages.ErrWrongPartition, ws, c.partition, got)
	}
	kind := c.kinds[id]
	if kind == nil {
		return nil, fmt.Errorf("%w: workspace %d: got kind %d", messages.ErrUnknownKind, ws, id)
	}
	return kind, nil
}

// inTime returns an error if a request's deadline has passed, or if nobody knows the time.
func (c *Core) inTime(deadline messages.Timestamp) error {
	if c.clockErr != nil {
		return c.clockErr
	}
	if deadline != 0 && c.now > deadline {
		return fmt.Errorf("%w: deadline %v, now %v", messages.ErrDeadlineExceeded, deadline, c.now)
	}
	return nil
}

// grantable returns why a request is refused now. It is asked again when one that
// had to wait comes to its turn, so that only one event can pass the limit.
func (c *Core) grantable(deadline messages.Timestamp) error {
	if err := c.inTime(deadline); err != nil {
		return err
	}
	if c.overLimit() {
		return c.busyUnflushed()
	}
	return nil
}

// overLimit reports whether too much is unflushed.
func (c *Core) overLimit() bool {
	return c.unflushedKeys() >= c.settings.BusyLimit || c.unflushedEvents() >= c.settings.BusyEvents
}

// Busy says for the how manieth time the partition is busy since too much is unflushed: from the first request that it
// has refused because of it until a flush has made room; 0 if it is not. Events and keys are unflushed.
func (c *Core) Busy() (times uint64, events, keys int) {
	if !c.clogged {
		return 0, 0, 0
	}
	return c.clogs, c.unflushedEvents(), c.unflushedKeys()
}

// leastBusy is the shortest hint: a flush may end at any time, but whoever asks again and again slows it down.
const leastBusy = 10 * time.Millisecond

// busyUnflushed hints at the end of the flush under way, or of the one that begins now: it takes about as long as the
// last one.
func (c *Core) busyUnflushed() error {
	if !c.clogged {
		c.clogged = true
		c.clogs++
	}
	since := c.now
	if c.flight.pending != nil {
		since = c.flight.since
	}
	wait := min(max(c.remaining(since, c.flushTook), leastBusy), c.settings.FlushInterval)
	if c.flight.failures > 0 {
		wait = c.settings.FlushInterval // nobody knows when one succeeds
	}
	return &messages.BusyError{Reason: messages.BusyUnflushed, RetryAfter: wait, Limit: c.metLimit()}
}

// metLimit returns which setting it is because of that too much is unflushed. If none of the partition's, it is the store
// that takes no more.
func (c *Core) metLimit() string {
	switch {
	case c.unflushedKeys() >= c.settings.BusyLimit:
		return "BusyLimit"
	case c.unflushedEvents() >= c.settings.BusyEvents:
		return "BusyEvents"
	}
	return "Memory"
}

// serveQueue opens a transaction for the Start at the head of the queue, or forms a
// batch of the Appends there; those that cannot have one are refused.
func (c *Core) serveQueue() {
	if c.state != messages.StateNormal && c.state != messages.StateAlarming {
		return
	}
	for !c.txn.open && !c.batch.underWay && c.queue.len() > 0 {
		if c.queue.first().append != nil {
			c.formBatch()
			continue
		}
		w := c.queue.pop()
		if err := c.grant(&w); err != nil {
			c.refuseWaiter(&w, err)
		}
	}
}

// grant opens the transaction, unless the workspace cannot have one. The
// transaction takes over the pin.
func (c *Core) grant(w *waiting) error {
	ws, m := w.ws, w.start
	if err := c.grantable(m.Deadline); err != nil {
		return err
	}
	if err := c.take(ws, w.kind); err != nil {
		return err
	}
	if wlog := &ws.kind.sequences[wlogOffset]; ws.last[wlogOffset] >= wlog.Max() {
		return overflow(ws.id, wlog, 0, wlog.Max(), ws.last[wlogOffset], 1)
	}
	c.lastTime = max(c.lastTime, c.now)
	reservation := Reservation{workspace: ws.id, kind: ws.kind, lasts: c.txn.lasts}
	reservation.copyFrom(&ws.lasts)
	if err := c.turnAll(&reservation, ws, m.Date); err != nil {
		return err
	}
	if m.Zone != "" {
		if err := reservation.setZone(m.Zone, c.lastTime); err != nil {
			return err
		}
	}
	c.serial++
	c.txn = transaction{
		open: true,
		token: messages.Token{
			Partition: c.partition, Epoch: c.epoch, PLogOffset: c.durable + 1, Serial: c.serial, Trace: m.Trace, Secret: c.secret(),
		},
		owner:       w.from,
		since:       c.now,
		ws:          ws,
		Reservation: reservation,
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
		started.Last, started.Periods = slices.Clone(c.txn.last), append([]calendar.Date(nil), c.txn.periods...)
	}
	c.reply(w.from, started)
	return nil
}

// next gives the next numbers of a sequence.
func (c *Core) next(from Requester, m *messages.Next) {
	if !c.owns(m.Token) {
		c.refuseToken(from, m.Token)
		return
	}
	n, err := c.txn.Next(messages.Wanted{Seq: m.Seq, Count: m.Count})
	if err != nil {
		c.refuse(from, err)
		return
	}
	c.reply(from, &messages.Given{Number: n.Number, Period: n.Period})
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

// commit makes the event durable.
func (c *Core) commit() {
	c.commitNumbers(c.txn.ws, &c.txn.lasts)
	c.durable++
	c.lastFlushed = c.txn.token
}

// commitNumbers moves reserved numbers to the cache and to what is unflushed. The
// events that they were reserved for become durable next.
func (c *Core) commitNumbers(ws *workspace, reserved *lasts) {
	if c.waitingEvents() == 0 {
		c.unflushedSince = c.now
	}
	d := ws.deltaIn(c.unflushed)
	if !ws.fixed {
		ws.fixed = true
		c.unflushed.markFirst(d)
	}
	others := reserved.others
	if ws.sharesOthers(reserved) {
		others = nil // nothing was reserved there
	}
	// In order, and the last ones last: a period that they close is compared before it is.
	for _, o := range others {
		c.commitNumber(ws, d, ws.kind.index(o.Seq), o.Period, o.Number)
	}
	for i, n := range reserved.last {
		c.commitNumber(ws, d, i, reserved.periodOf(i), n)
	}
	if reserved.zones != ws.zones {
		ws.zones = reserved.zones
		d.changes = append(d.changes, ws.zones.last)
	}
	c.forgetOld(ws)
	c.forgetClosed(ws)
}

// commitNumber makes a number that may have changed unflushed.
func (c *Core) commitNumber(ws *workspace, d *delta, i int, period calendar.Date, n messages.Number) {
	if ws.raise(i, period, n) {
		c.unflushed.raise(d, i, period, n)
		c.noticeUse(ws, i, period, n)
		return
	}
	// A replay may have said less than the last number, which it does not know.
	if pending, _ := d.in(ws.kind, i, period); pending != 0 {
		c.unflushed.raise(d, i, period, n)
	}
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
// Only a new epoch makes sure of it, also for a partition that stops.
func (c *Core) abandonTransaction() { c.becomeActualizing() }

// endTransaction forgets the open transaction, if any.
func (c *Core) endTransaction() {
	if !c.txn.open {
		return
	}
	if c.txn.watched {
		c.out.Unwatch = c.txn.owner
	}
	c.unpin(c.txn.ws)
	c.txn = transaction{Reservation: Reservation{lasts: c.txn.lasts}}
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
