package sequencer

import (
	"errors"
	"math"
	"reflect"
	"slices"

	"github.com/partita-go/partita/calendar"
	"github.com/partita-go/partita/messages"
)

// checkReply compares a reply with what the log says it must be.
func (w *world) checkReply(c *call) {
	switch r := c.reply.(type) {
	case *messages.Started:
		w.checkStarted(c.owner, r)
	case *messages.Given:
		w.checkGiven(c, r)
	case *messages.Raised:
		w.checkRaised(c)
	case *messages.Flushed:
		if !c.owner.cancelled && !w.inLog(c.owner.token) {
			w.t.Fatalf("%v: flushed, but its event is not in the log", c.owner.token)
		}
		w.endOf(c.owner)
	case *messages.Cancelled:
		c.owner.cancelled = true
		w.endOf(c.owner)
	case *messages.Actualizing:
		w.endOf(c.owner)
	case *messages.Refused:
		w.checkRefused(c, r.Err)
	}
}

func (w *world) endOf(o *owner) {
	if w.open == o {
		w.open = nil
	}
}

// checkStarted: one transaction at a time, under the store's epoch, at the ends of
// both logs, at a time that does not fall.
func (w *world) checkStarted(o *owner, s *messages.Started) {
	if w.open != nil {
		w.t.Fatalf("%v is granted while %v is open", s.Token, w.open.token)
	}
	last := messages.PLogOffset(len(w.log))
	truth := w.truth[o.ws]
	switch {
	case s.Token.Partition != testPartition || s.Token.Epoch != w.epoch && !w.usurped || s.Token.PLogOffset != last+1:
		w.t.Fatalf("granted %v, want epoch %d, offset %d", s.Token, w.epoch, last+1)
	case truth.kind != 0 && truth.kind != o.kind:
		w.t.Fatalf("granted kind %d to workspace %d of kind %d", o.kind, o.ws, truth.kind)
	case s.WLogOffset != messages.WLogOffset(truth.last(messages.SeqWLogOffset)+1):
		w.t.Fatalf("workspace %d: granted WLog offset %d, want %d", o.ws, s.WLogOffset, truth.last(messages.SeqWLogOffset)+1)
	case s.RegisteredAt < w.now || last > 0 && s.RegisteredAt < w.log[last-1].RegisteredAt:
		w.t.Fatalf("granted time %v, now it is %v", s.RegisteredAt, w.now)
	case w.core.unflushedKeys() >= w.core.settings.BusyLimit || w.core.unflushedEvents() >= w.core.settings.BusyEvents:
		w.t.Fatalf("granted with %d keys and %d events unflushed", w.core.unflushedKeys(), w.core.unflushedEvents())
	}
	m := o.start.message.(*messages.Start)
	if m.Deadline != 0 && m.Deadline < w.now {
		w.t.Fatalf("granted after the deadline")
	}
	o.granted, o.token, o.wlogOffset, o.registeredAt = true, s.Token, s.WLogOffset, s.RegisteredAt
	w.open = o
	w.checkStartedNumbers(o, m, s)
}

// checkStartedNumbers: an owner that asked for them gets the numbers that the log
// says, in order of the kind's sequences.
func (w *world) checkStartedNumbers(o *owner, m *messages.Start, s *messages.Started) {
	if !m.WithNumbers {
		if s.Last != nil || s.Periods != nil {
			w.t.Fatalf("%v: numbers that nobody asked for: %v of %v", s.Token, s.Last, s.Periods)
		}
		return
	}
	if o.kind != kindTill && s.Periods != nil {
		w.t.Fatalf("%v: periods of sequences that have none: %v", s.Token, s.Periods)
	}
	r, err := NewKinds(w.config.Descriptor).Reserve(o.ws, o.kind, s)
	if err != nil {
		w.t.Fatalf("%v: %v", s.Token, err)
	}
	for i := range r.kind.sequences {
		seq := r.kind.sequences[i].ID
		want := w.lastOf(o, seq)
		if seq == messages.SeqWLogOffset {
			want++
		}
		if s.Last[i] != want {
			w.t.Fatalf("%v: sequence %d: the last number is said to be %d, want %d", s.Token, seq, s.Last[i], want)
		}
		if s.Periods != nil && s.Periods[i] != w.periodFor(o, seq) {
			w.t.Fatalf("%v: sequence %d: the period is said to be %v, want %v", s.Token, seq, s.Periods[i], w.periodFor(o, seq))
		}
	}
	o.counts = &r
}

// periodFor is the period of a transaction's numbers.
func (w *world) periodFor(o *owner, seq messages.SeqID) calendar.Date {
	return w.periodAt(o.ws, o.kind, seq, o.date, o.registeredAt)
}

// lastOf is what the sequence of an open transaction stands at.
func (w *world) lastOf(o *owner, seq messages.SeqID) messages.Number {
	last := w.truth[o.ws].numbers[messages.SequencePeriod{Seq: seq, Period: w.periodFor(o, seq)}]
	for _, n := range o.numbers {
		if n.Seq == seq {
			last = max(last, n.Number)
		}
	}
	for _, id := range o.explicit {
		if id.Seq == seq && id.Number >= w.kinds()[o.kind][seq].Initial {
			last = max(last, id.Number)
		}
	}
	return last
}

// checkGiven: a number is the initial one or one more than the last, and so are those that follow it.
func (w *world) checkGiven(c *call, g *messages.Given) {
	o, m := c.owner, c.message.(*messages.Next)
	seq, count := m.Seq, max(1, messages.Number(m.Count))
	def, ok := w.kinds()[o.kind][seq]
	if w.open != o || !ok || seq == messages.SeqWLogOffset {
		w.t.Fatalf("%v: gave a number of sequence %d", o.token, seq)
	}
	last := w.lastOf(o, seq)
	if want := max(last+1, def.Initial); g.Number != want || w.left(o, seq) < count || g.Period != w.periodFor(o, seq) {
		w.t.Fatalf("workspace %d, sequence %d: gave %d from %d of %v after %d, want from %d of %v",
			o.ws, seq, count, g.Number, g.Period, last, want, w.periodFor(o, seq))
	}
	for i := range count {
		o.numbers = append(o.numbers, messages.SequenceNumber{Seq: seq, Period: g.Period, Number: g.Number + i})
	}
}

// left is how many numbers a sequence of an open transaction still has.
func (w *world) left(o *owner, seq messages.SeqID) messages.Number {
	return maxOf(seq) - max(w.lastOf(o, seq), w.kinds()[o.kind][seq].Initial-1)
}

// maxOf states anew where sequences end.
func maxOf(seq messages.SeqID) messages.Number {
	switch {
	case seq == messages.SeqOWRecordID:
		return 322685000131072 - 1
	case seq == seqNarrow:
		return 100
	case seq == seqRound:
		return 4
	case seq < messages.FirstApplicationSeq:
		return math.MaxUint64
	}
	return math.MaxInt64
}

// mostTaken is the largest number that a sequence can be moved to.
func mostTaken(seq messages.SeqID) messages.Number {
	if seq < messages.FirstApplicationSeq {
		return maxOf(seq) - 1<<32
	}
	return maxOf(seq)
}

func (w *world) checkRaised(c *call) {
	id := c.message.(*messages.Raise).ID
	def, ok := w.kinds()[c.owner.kind][id.Seq]
	if w.open != c.owner || !ok || id.Seq == messages.SeqWLogOffset || def.Restarts() || id.Number > def.MaxExplicit() {
		w.t.Fatalf("%v: raised to %v", c.owner.token, id)
	}
	c.owner.explicit = append(c.owner.explicit, id)
}

// checkRefused checks the refusals that say something about the log.
func (w *world) checkRefused(c *call, err error) {
	if err == nil {
		w.t.Fatalf("%T is refused without an error", c.message)
	}
	o := c.owner
	switch m := c.message.(type) {
	case *messages.Start:
		if errors.Is(err, messages.ErrKindMismatch) && (w.truth[o.ws].kind == 0 || w.truth[o.ws].kind == o.kind) {
			w.t.Fatalf("workspace %d of kind %d: %v", o.ws, w.truth[o.ws].kind, err)
		}
		w.checkDateRefused(o.ws, o.kind, []calendar.Date{m.Date}, err)
	case *messages.Next:
		if errors.Is(err, messages.ErrOverflow) && w.left(o, m.Seq) >= max(1, messages.Number(m.Count)) {
			w.t.Fatalf("workspace %d, sequence %d: %v after %d", o.ws, m.Seq, err, w.lastOf(o, m.Seq))
		}
	case *messages.Flush:
		w.checkFlushRefused(o, err)
	}
}

// checkFlushRefused: Fenced means that the event is not there and never will be. Of
// an event that may be there nothing else may be said than that it is unknown.
func (w *world) checkFlushRefused(o *owner, err error) {
	if o == nil || !o.granted || o.cancelled {
		return
	}
	switch {
	case errors.Is(err, messages.ErrFenced):
		if w.inLog(o.token) || o.token.Epoch >= w.epoch {
			w.t.Fatalf("%v: %v, but in the log: %v, epoch %d", o.token, err, w.inLog(o.token), w.epoch)
		}
	case errors.Is(err, messages.ErrOutcomeUnknown), errors.Is(err, messages.ErrStopped),
		errors.Is(err, messages.ErrPartitionFailed), errors.Is(err, messages.ErrBusy):
	case errors.Is(err, messages.ErrCounted) && w.miscounted:
	default:
		w.t.Fatalf("%v: a Flush is refused with %v", o.token, err)
	}
}

// checkOneFlush: one flush is under way at a time.
func (w *world) checkOneFlush(f *messages.WriteProjections) {
	for _, job := range w.leaves[flusherLeaf].jobs {
		if job.(*messages.WriteProjections).Generation == f.Generation {
			w.t.Fatalf("a second flush is under way")
		}
	}
}

// checkOneBatch: one batch is under way at a time, and no transaction is open.
func (w *world) checkOneBatch(m *messages.WriteEvents) {
	for _, job := range w.leaves[appenderLeaf].jobs {
		if job.(*writing).was.Generation == m.Generation {
			w.t.Fatalf("a second batch is under way")
		}
	}
	if m.Generation != w.core.generation || m.Epoch != w.core.epoch {
		w.t.Fatalf("a batch of generation %d, epoch %d", m.Generation, m.Epoch)
	}
	if n := len(m.Events); n == 0 || n > w.core.settings.BatchEvents && n > 1+int(m.Events[0].Together) {
		w.t.Fatalf("got %d events in a batch, want at most %d", n, w.core.settings.BatchEvents)
	}
}

// checkCore checks what must hold inside the core between two steps.
func (w *world) checkCore() {
	c := w.core
	switch {
	case c.queue.len() > 0 && !c.txn.open && !c.batch.underWay && c.state != messages.StateInitializing:
		w.t.Fatalf("a request waits while nothing is under way")
	case len(c.retired) > 0 && len(c.loads) == 0:
		w.t.Fatalf("retired flushes are kept for no load")
	case c.batch.underWay && c.txn.open:
		w.t.Fatalf("a batch is under way while a transaction is open")
	case c.unflushed.keys != keysOf(c.unflushed):
		w.t.Fatalf("unflushed keys: got %d, want %d", c.unflushed.keys, keysOf(c.unflushed))
	}
	w.checkPins()
	if c.state != messages.StateNormal && c.state != messages.StateAlarming || int(c.durable) != len(w.log) {
		return
	}
	for _, id := range c.cache.Keys() {
		ws, _ := c.cache.Peek(id)
		w.checkCached(ws)
	}
	for _, ws := range c.evicted {
		w.checkCached(ws)
	}
	if c.txn.open {
		w.checkCached(c.txn.ws)
	}
}

// waiters returns everybody whom the core holds.
func (c *Core) waiters() (all []waiting) {
	all = append(all, c.queue.items[c.queue.left:]...)
	for _, l := range c.loads {
		all = append(all, l.queue...)
	}
	for _, a := range []*attempt{&c.batch.attempt, &c.doubt.attempt} {
		for i := range a.members {
			all = append(all, a.members[i].waiting)
		}
	}
	for _, s := range c.searches {
		all = append(all, s.appends...)
	}
	return all
}

// checkPins: what is counted by and by is what a count from the beginning says.
func (w *world) checkPins() {
	c, pins, held, starts := w.core, make(map[*workspace]int), inFlight{}, 0
	for _, r := range c.waiters() {
		if r.ws != nil {
			pins[r.ws]++
		}
		if r.append == nil {
			continue
		}
		held.events += len(r.append.Drafts)
		held.bytes += r.bytes
	}
	for _, r := range c.queue.items[c.queue.left:] {
		if r.start != nil {
			starts++
		}
	}
	if c.txn.open {
		pins[c.txn.ws]++
	}
	if held != c.inFlight || starts != c.queue.starts {
		w.t.Fatalf("in flight: got %+v and %d Starts, want %+v and %d", c.inFlight, c.queue.starts, held, starts)
	}
	copies := make(map[messages.WSID]*workspace)
	for _, id := range c.cache.Keys() {
		copies[id], _ = c.cache.Peek(id)
	}
	for id, ws := range c.evicted {
		if copies[id] != nil || ws.pins == 0 {
			w.t.Fatalf("workspace %d is kept beside the cache, with %d pins", id, ws.pins)
		}
		copies[id] = ws
	}
	for ws, n := range pins {
		if ws.pins != n || copies[ws.id] != ws {
			w.t.Fatalf("workspace %d: got %d pins, want %d; it can be found: %v", ws.id, ws.pins, n, copies[ws.id] == ws)
		}
	}
	for id, ws := range copies {
		if ws.pins != pins[ws] || !c.batch.underWay && ws.reserved != 0 {
			w.t.Fatalf("workspace %d: got %d pins, want %d; reserved %d", id, ws.pins, pins[ws], ws.reserved)
		}
	}
}

// checkCached: what the core believes to be the last numbers is what the log says.
func (w *world) checkCached(ws *workspace) {
	truth := w.truth[ws.id]
	if ws.fixed != (truth.kind != 0) || ws.fixed && ws.kind.id != truth.kind {
		w.t.Fatalf("workspace %d: kind %d, fixed %v, want %d", ws.id, ws.kind.id, ws.fixed, truth.kind)
	}
	for i, got := range ws.last {
		p := messages.SequencePeriod{Seq: ws.kind.ids[i], Period: ws.periodOf(i)}
		if want := truth.numbers[p]; got != want {
			w.t.Fatalf("workspace %d, %v: got last number %d, want %d", ws.id, p, got, want)
		}
	}
	w.checkKnown(ws)
	w.checkNearlyUsed(ws)
	w.hitKnown(ws)
}

// checkNearlyUsed: what the status says of a workspace's sequences that end soon is said once, is so, and of a period
// that is not closed.
func (w *world) checkNearlyUsed(ws *workspace) {
	used := w.core.Status().NearlyUsed
	for i, n := range used {
		if n.Workspace != ws.id {
			continue
		}
		truth := w.truth[ws.id]
		p := messages.SequencePeriod{Seq: n.Seq, Period: n.Period}
		def := w.kinds()[truth.kind][n.Seq]
		if truth.numbers[p] != n.Last || !def.NearlyUsed(n.Last) || n.Period < truth.closed[n.Seq] || slices.ContainsFunc(used[:i], n.SameSequence) {
			w.t.Fatalf("nearly used: got %+v, the last number is %d, closed below %v", n, truth.numbers[p], truth.closed[n.Seq])
		}
	}
}

func keysOf(p *pending) (keys int) {
	for _, d := range p.workspaces {
		if d.first {
			keys++
		}
		for _, n := range d.last {
			if n != 0 {
				keys++
			}
		}
		keys += len(d.others)
	}
	return keys
}

// verify checks the invariants of the log and of SeqData.
func (w *world) verify() {
	w.t.Helper()
	var epoch messages.Epoch
	for i := range w.log {
		e := &w.log[i]
		if e.PLogOffset != messages.PLogOffset(i)+1 || e.Epoch < epoch {
			w.t.Fatalf("event %d: offset %d, epoch %d after %d", i+1, e.PLogOffset, e.Epoch, epoch)
		}
		epoch = e.Epoch
	}
	if want := lastsOf(w.log[:w.checkpoint-1], w.kinds()); !reflect.DeepEqual(w.seqData, want) {
		w.t.Fatalf("SeqData at %d: got %v, want %v", w.checkpoint, w.seqData, want)
	}
	w.verifyPeriods()
	w.verifyAppends()
}

// finish lets everything end and checks what must hold then: everybody is
// answered, everything durable is stored, nothing runs any more.
func (w *world) finish() {
	w.t.Helper()
	w.heal()
	w.settle()
	if w.core.Status().State == messages.StateTerminating {
		w.quiesce()
	}
	if w.stopped || w.usurped || w.core.Status().State == messages.StateFailed {
		w.restart()
	}
	w.endAll()
	w.mustBe(messages.StateNormal)
	w.mustBeIdle()
	s := w.stop()
	w.quiesce()
	w.mustStop(s, true)
	w.verify()
	if len(w.unanswered) > 0 {
		w.t.Fatalf("%d requests were never answered: %v", len(w.unanswered), w.unansweredList())
	}
}

// heal makes the store work again.
func (w *world) heal() {
	w.flushMode, w.diverge, w.breakFlush, w.breakReplay = flushWorks, false, false, false
	w.failLoads, w.failReplays, w.failFind, w.failSearches = 0, 0, 0, 0
	w.writeFault = writeWorks
	clear(w.taken)
	clear(w.astray)
	w.damage = nil
}

// endAll ends the open transactions one after the other until there is none.
func (w *world) endAll() {
	for w.settle(); w.open != nil; w.settle() {
		if w.open.wrote {
			w.flush(w.open)
		} else {
			w.cancel(w.open)
		}
	}
	w.quiesce()
}

// mustBeIdle checks that a core with nothing to do does nothing.
func (w *world) mustBeIdle() {
	w.t.Helper()
	switch {
	case len(w.timers) > 0:
		w.t.Fatalf("idle, but timers run: %v", w.timers)
	case w.permitted:
		w.t.Fatalf("idle, but others may wait for the permit to replay")
	case len(w.unanswered) > 0:
		w.t.Fatalf("idle, but not answered: %v", w.unansweredList())
	case w.checkpoint != messages.PLogOffset(len(w.log))+1 || w.core.checkpoint != w.checkpoint:
		w.t.Fatalf("idle, but the checkpoint is %d (core: %d) and the log has %d events", w.checkpoint, w.core.checkpoint, len(w.log))
	case len(w.core.loads)+len(w.core.retired)+len(w.core.late)+len(w.core.waiters())+len(w.core.evicted) > 0 || w.core.unflushedKeys() > 0:
		w.t.Fatalf("idle, but something is kept")
	}
	w.verify()
}
