package sequencer

import (
	"errors"

	"github.com/partita-go/partita/calendar"
	"github.com/partita-go/partita/messages"
)

// owner is somebody with a sequencing transaction, or who wants one.
type owner struct {
	start *call
	ws    messages.WSID
	kind  messages.WSKind
	date  calendar.Date
	zone  string

	granted      bool
	token        messages.Token
	wlogOffset   messages.WLogOffset
	registeredAt messages.Timestamp
	numbers      []messages.SequenceNumber
	explicit     []messages.RecordID
	// counts is the reservation of an owner that counts itself.
	counts *Reservation
	// wrote says that the event was written by now, cancelled that it never will be.
	wrote, cancelled, flushed bool
	// waited says for what its Start had to wait.
	waited string
}

// request sends a Start.
func (w *world) request(m messages.Start) *owner {
	o := &owner{ws: m.Workspace, kind: m.Kind, date: m.Date, zone: m.Zone}
	w.lastCall++
	o.start = &call{id: w.lastCall, message: &m, owner: o}
	w.unanswered[o.start] = true
	w.step(o.start, &m)
	if w.unanswered[o.start] {
		o.waited = "granted after waiting"
		if w.core.loads[m.Workspace] != nil {
			o.waited = "granted after a load"
		}
		if l := w.core.loads[m.Workspace]; l != nil && len(l.periods) > 0 {
			o.waited = "granted after a load on demand"
		}
	}
	return o
}

// begun starts a transaction and lets the leaves work until it is granted.
func (w *world) begun(ws messages.WSID, kind messages.WSKind) *owner {
	w.t.Helper()
	o := w.request(messages.Start{Workspace: ws, Kind: kind})
	w.settle()
	if !o.granted {
		w.t.Fatalf("workspace %d, kind %d: Start was not granted: %v", ws, kind, refusalOf(o.start))
	}
	return o
}

// next takes a number.
func (w *world) next(o *owner, seq messages.SeqID) *call {
	return w.nextRange(o, messages.Wanted{Seq: seq})
}

// nextRange takes numbers that follow each other.
func (w *world) nextRange(o *owner, wanted messages.Wanted) *call {
	m := &messages.Next{Token: o.token, Seq: wanted.Seq, Count: wanted.Count}
	if !w.countsItself(o) {
		return w.ask(o, m)
	}
	n, err := o.counts.Next(wanted)
	return w.counted(o, m, &messages.Given{Number: n.Number, Period: n.Period}, err)
}

// countsItself reports whether the owner of the open transaction needs not ask.
func (w *world) countsItself(o *owner) bool { return o.counts != nil && w.open == o }

// counted answers a request that the owner has not sent.
func (w *world) counted(o *owner, m messages.PartitionMessage, reply any, err error) *call {
	if err != nil {
		reply = &messages.Refused{Err: err}
	}
	w.lastCall++
	c := &call{id: w.lastCall, message: m, owner: o}
	w.unanswered[c] = true
	w.hit("counted by the owner")
	w.answer(Reply{To: c, Message: reply})
	return c
}

// raise announces an explicit id.
func (w *world) raise(o *owner, seq messages.SeqID, n messages.Number) *call {
	m := &messages.Raise{Token: o.token, ID: messages.RecordID{Seq: seq, Number: n}}
	if !w.countsItself(o) {
		return w.ask(o, m)
	}
	return w.counted(o, m, &messages.Raised{}, o.counts.Raise(m.ID))
}

// write writes the owner's event and reports whether the store took it.
func (w *world) write(o *owner) bool {
	e := messages.Event{
		Kind: messages.EventBusiness, Epoch: o.token.Epoch, Partition: testPartition, PLogOffset: o.token.PLogOffset,
		Workspace: o.ws, WorkspaceKind: o.kind, WLogOffset: o.wlogOffset, RegisteredAt: o.registeredAt,
		Date: o.date, Zone: o.zone, Numbers: o.numbers,
	}
	for _, id := range o.explicit {
		e.Records = append(e.Records, messages.Record{ID: id, New: true})
	}
	o.wrote = o.wrote || w.appendEvent(e)
	return o.wrote
}

func (w *world) flush(o *owner) *call {
	m := &messages.Flush{Token: o.token}
	if o.counts != nil {
		m.Last = o.counts.Last()
	}
	return w.ask(o, m)
}

func (w *world) cancel(o *owner) *call    { return w.ask(o, &messages.Cancel{Token: o.token}) }
func (w *world) actualize(o *owner) *call { return w.ask(o, &messages.Actualize{Token: o.token}) }

// ownerStops lets the watched actor end.
func (w *world) ownerStops(o *owner) {
	w.watched = nil
	w.tell(&messages.OwnerStopped{Token: o.token})
}

// event goes through a whole transaction with one number of each sequence, and
// returns the numbers.
func (w *world) event(ws messages.WSID, kind messages.WSKind, seqs ...messages.SeqID) []messages.Number {
	w.t.Helper()
	o := w.begun(ws, kind)
	numbers := make([]messages.Number, 0, len(seqs))
	for _, seq := range seqs {
		numbers = append(numbers, w.given(w.next(o, seq)))
	}
	w.commit(o)
	return numbers
}

// commit writes the event and flushes.
func (w *world) commit(o *owner) {
	w.t.Helper()
	if !w.write(o) {
		w.t.Fatalf("%v: the store refused the event", o.token)
	}
	if _, ok := w.flush(o).reply.(*messages.Flushed); !ok {
		w.t.Fatalf("%v: not flushed", o.token)
	}
}

// given returns the number that a Next was answered with.
func (w *world) given(c *call) messages.Number {
	w.t.Helper()
	g, ok := c.reply.(*messages.Given)
	if !ok {
		w.t.Fatalf("%+v: got %T (%v), want a number", c.message, c.reply, refusalOf(c))
		return 0
	}
	return g.Number
}

// mustRefuse checks that a request was refused with an error.
func (w *world) mustRefuse(c *call, want error) {
	w.t.Helper()
	if err := refusalOf(c); !errors.Is(err, want) {
		w.t.Fatalf("%T: got %T (%v), want refused: %v", c.message, c.reply, err, want)
	}
}

// mustBusy checks that a request was answered Busy for a reason.
func (w *world) mustBusy(c *call, want messages.BusyReason) {
	w.t.Helper()
	if got := busyReason(c); got != want {
		w.t.Fatalf("%T: got %T (%v), want busy: %v", c.message, c.reply, refusalOf(c), want)
	}
}

// mustMeet checks of which limit a request is told that was answered Busy.
func (w *world) mustMeet(c *call, want string) {
	w.t.Helper()
	if busy, ok := errors.AsType[*messages.BusyError](refusalOf(c)); !ok || busy.Limit != want {
		w.t.Fatalf("%T: got %+v, want limit %s", c.message, refusalOf(c), want)
	}
}

func refusalOf(c *call) error {
	if r, ok := c.reply.(*messages.Refused); ok {
		return r.Err
	}
	return nil
}

// busyReason returns why a request was answered Busy, 0 if it was not.
func busyReason(c *call) messages.BusyReason {
	if busy, ok := errors.AsType[*messages.BusyError](refusalOf(c)); ok {
		return busy.Reason
	}
	return 0
}

// stop asks the core to stop.
func (w *world) stop() *call { return w.ask(nil, &messages.Stop{}) }

// mustStop checks the answer to a Stop.
func (w *world) mustStop(c *call, clean bool) {
	w.t.Helper()
	s, ok := c.reply.(*messages.Stopped)
	if !ok || s.Clean != clean || !w.stopped {
		w.t.Fatalf("stop: got %+v, stopped %v, want clean %v", c.reply, w.stopped, clean)
	}
}

// event2 is an event whose flush is left to the test.
func (w *world) event2(ws messages.WSID) {
	w.t.Helper()
	o := w.request(messages.Start{Workspace: ws, Kind: kindWide})
	w.settleBut(flusherLeaf)
	if !o.granted {
		w.t.Fatalf("not granted: %v", refusalOf(o.start))
	}
	w.next(o, seqPlain)
	w.commit(o)
}
