package sim

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage"
)

// request is what a client wants to be written, once or never, however often it asks.
type request struct {
	id        int
	name      string
	workspace messages.WSID
	kind      messages.WSKind
	drafts    []messages.Draft
	dedup     messages.DedupID
	expected  *messages.WLogOffset
	// command says that it goes through a command processor; handler is what happens
	// there.
	command bool
	handler handling
	// derived says that a subscription's handler asks for it.
	derived bool

	// begun and ended are when it was first sent and first acknowledged.
	begun, ended int
	// doubts are the answers that leave it open whether it was written.
	doubts int
	fresh  int
	at     *place
}

// place is where a request's events stand.
type place struct {
	plog     messages.PLogOffset
	wlog     messages.WLogOffset
	at       messages.Timestamp
	numbers  []messages.SequenceNumber
	repeated bool
}

func placeOf(a *messages.Appended) *place {
	if a == nil {
		return nil
	}
	return &place{plog: a.PLogOffset, wlog: a.WLogOffset, at: a.RegisteredAt, numbers: a.Numbers, repeated: a.Repeated}
}

// ledger is the model: what was asked for and what was answered.
type ledger struct {
	s        *sim
	requests []*request
	// now counts what has happened to requests, so that it can be said what was before
	// what.
	now   int
	known map[messages.WSID]messages.WLogOffset
	acks  int
}

func (l *ledger) request(name string, ws messages.WSID, kind messages.WSKind) *request {
	r := &request{id: len(l.requests), name: name, workspace: ws, kind: kind}
	l.requests = append(l.requests, r)
	return r
}

func (l *ledger) lastKnown(ws messages.WSID) int { return int(l.known[ws]) }

// sent notes that a request is sent, maybe again.
func (l *ledger) sent(r *request, format string, args ...any) {
	l.now++
	if r.begun == 0 {
		r.begun = l.now
	}
	l.s.transactions++
	l.s.notef("%s sends request %d (workspace %d, kind %d, %d events): %s", r.name, r.id, r.workspace, r.kind, len(r.drafts), fmt.Sprintf(format, args...))
}

// acknowledged checks at once that what is acknowledged is there.
func (l *ledger) acknowledged(r *request, at *place) {
	l.s.notef("request %d is acknowledged: %+v", r.id, *at)
	l.now++
	l.acks++
	if r.at != nil && (r.at.plog != at.plog || r.at.wlog != at.wlog) {
		l.s.failf("request %d: acknowledged at %d, and before at %d", r.id, at.plog, r.at.plog)
	}
	if !at.repeated {
		r.fresh++
	}
	if r.fresh > 1 {
		l.s.failf("request %d: acknowledged twice as not repeated", r.id)
	}
	if r.at == nil {
		r.at, r.ended = at, l.now
	}
	if r.expected != nil && at.wlog != *r.expected+1 {
		l.s.failf("request %d: acknowledged at WLog offset %d, expected the last to be %d", r.id, at.wlog, *r.expected)
	}
	l.known[r.workspace] = max(l.known[r.workspace], at.wlog+messages.WLogOffset(len(r.drafts)-1))
	l.compare(r, at, l.read(r, at.plog))
}

// refused checks at once that nothing is there of what is refused.
func (l *ledger) refused(r *request, err error) {
	l.s.notef("request %d is refused: %v", r.id, err)
	l.s.checkRefusal(r, err)
	if wrong, ok := errors.AsType[*messages.OffsetError](err); ok {
		if last := l.wlogEnd(r.workspace); wrong.Got == wrong.Want || wrong.Got > last {
			l.s.failf("request %d: refused since the last WLog offset was %d, expected %d, is %d", r.id, wrong.Got, wrong.Want, last)
		}
	}
	if ahead, ok := errors.AsType[*messages.RecordAheadError](err); ok && !l.wasAhead(r, ahead) {
		l.s.failf("request %d: %v, the last number is %d", r.id, err, l.lastNumber(r.workspace, messages.SequencePeriod{Seq: ahead.ID.Seq}))
	}
	l.checkRules(r, err)
	if errors.Is(err, messages.ErrDedupMismatch) && !l.hasIDOfOther(r) {
		l.s.failf("request %d: refused since its id was used for something else, but it was not", r.id)
	}
	if r.at == nil && r.doubts == 0 && l.present(r) {
		l.s.failf("request %d: refused with %q, but it is in the log", r.id, err)
	}
}

func (l *ledger) unknown(r *request, err error) {
	l.s.notef("request %d: outcome unknown: %v", r.id, err)
	r.doubts++
}

// read returns the events from an offset on, as many as the request has.
func (l *ledger) read(r *request, from messages.PLogOffset) []messages.Event {
	var events []messages.Event
	for e, err := range l.s.disk.PLog(context.Background(), l.s.partitionOf(r.workspace), from) {
		if err != nil {
			l.s.failf("read the log: %v", err)
		}
		if events = append(events, e); len(events) == len(r.drafts) {
			break
		}
	}
	return events
}

// compare fails unless events are those of the request, at the place told.
func (l *ledger) compare(r *request, at *place, events []messages.Event) {
	if len(events) != len(r.drafts) {
		l.s.failf("request %d: acknowledged at %d, but the log has %d of %d events there", r.id, at.plog, len(events), len(r.drafts))
		return
	}
	var numbers []messages.SequenceNumber
	for i := range events {
		e, d := &events[i], &r.drafts[i]
		numbers = append(numbers, e.Numbers...)
		same := bytes.Equal(e.Body, d.Body) && e.Date == d.Date && e.Zone == d.Zone && e.Workspace == r.workspace && e.WorkspaceKind == r.kind &&
			e.PLogOffset == at.plog+messages.PLogOffset(i) && e.WLogOffset == at.wlog+messages.WLogOffset(i) && e.RegisteredAt == at.at
		if !same || !slices.EqualFunc(e.Records, recordsOf(d, numbers), sameRecord) || !l.s.sameTaken(d, e) || !sameSequences(d.Wanted, e.Numbers[e.Brought:]) {
			l.s.failf("request %d: acknowledged at %+v, the log has %+v", r.id, *at, *e)
		}
	}
	if !slices.Equal(numbers, at.numbers) {
		l.s.failf("request %d: acknowledged with numbers %v, the log has %v", r.id, at.numbers, numbers)
	}
	if id := events[0].DedupID; id != r.dedup {
		l.s.failf("request %d: has id %v, the log has %v", r.id, r.dedup, id)
	}
}

func sameRecord(a, b messages.Record) bool {
	return a.ID == b.ID && a.New == b.New && bytes.Equal(a.Data, b.Data)
}

func sameSequences(wanted []messages.Wanted, given []messages.SequenceNumber) bool {
	for _, w := range wanted {
		for range w.Numbers() {
			if len(given) == 0 || given[0].Seq != w.Seq {
				return false
			}
			given = given[1:]
		}
	}
	return len(given) == 0
}

func (l *ledger) wlog(ws messages.WSID, look func(messages.Event) bool) bool {
	for e, err := range l.s.disk.WLog(context.Background(), ws, 0) {
		if err != nil {
			l.s.failf("read the log of workspace %d: %v", ws, err)
		}
		if look(e) {
			return true
		}
	}
	return false
}

func (l *ledger) present(r *request) bool {
	return l.wlog(r.workspace, func(e messages.Event) bool {
		return slices.ContainsFunc(r.drafts, func(d messages.Draft) bool { return bytes.Equal(e.Body, d.Body) })
	})
}

// hasIDOfOther reports whether another request has the id in the log.
func (l *ledger) hasIDOfOther(r *request) bool {
	return l.wlog(r.workspace, func(e messages.Event) bool { return e.DedupID == r.dedup && l.of(&e) != r })
}

// wasAhead reports whether a request updates the record that an error names, under a
// number that was not given out when the request was judged.
func (l *ledger) wasAhead(r *request, e *messages.RecordAheadError) bool {
	wanted := messages.Number(0)
	for i := range r.drafts {
		d := &r.drafts[i]
		for _, w := range d.Wanted {
			if w.Seq == e.ID.Seq {
				wanted += messages.Number(w.Numbers())
			}
		}
		named := func(dr messages.DraftRecord) bool { return !dr.New && dr.ID == e.ID }
		if slices.ContainsFunc(d.Records, named) {
			at := messages.SequencePeriod{Seq: e.ID.Seq}
			start := max(l.lastNumber(r.workspace, at), l.highest(r, at), l.s.sequences[e.ID.Seq].Initial-1)
			return e.Workspace == r.workspace && l.s.isAhead(e.ID, e.Last) && e.Last-min(e.Last, wanted) <= start
		}
	}
	return false
}

// highest is the largest explicit id of a request's new records of a sequence, or number that it takes over: in one
// period, if the sequence restarts.
func (l *ledger) highest(r *request, at messages.SequencePeriod) (n messages.Number) {
	for i := range r.drafts {
		for _, taken := range takenOf(&r.drafts[i]) {
			if taken.Seq == at.Seq && (taken.Period == 0 || taken.Period == at.Period) {
				n = max(n, taken.Number)
			}
		}
		for _, dr := range r.drafts[i].Records {
			if dr.New && dr.ID.Seq == at.Seq {
				n = max(n, dr.ID.Number)
			}
		}
	}
	return n
}

// lastNumber is the largest number that the workspace's log has of a sequence, in one period if that restarts.
func (l *ledger) lastNumber(ws messages.WSID, at messages.SequencePeriod) (last messages.Number) {
	l.wlog(ws, func(e messages.Event) bool {
		for _, n := range e.Numbering().Numbers {
			if n.SequencePeriod() == at {
				last = max(last, n.Number)
			}
		}
		return false
	})
	return last
}

// isAhead reports whether a record's number is still to be given out by its sequence.
func (s *sim) isAhead(id messages.RecordID, last messages.Number) bool {
	return id.Number > last && id.Number >= s.sequences[id.Seq].Initial
}

func (l *ledger) wlogEnd(ws messages.WSID) (last messages.WLogOffset) {
	l.wlog(ws, func(e messages.Event) bool {
		last = e.WLogOffset
		return false
	})
	return last
}

// registers returns where the partitions stand.
func (l *ledger) registers() []storage.Register {
	all := make([]storage.Register, l.s.desc.Partitions)
	for p := range all {
		r, err := l.s.disk.Register(context.Background(), messages.PartitionID(p))
		if err != nil {
			l.s.failf("register of partition %d: %v", p, err)
		}
		all[p] = r
	}
	return all
}
