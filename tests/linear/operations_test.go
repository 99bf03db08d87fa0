package linear

import (
	"fmt"
	"slices"
	"strings"

	"github.com/partita-go/partita/messages"
)

// outcome is how an operation ended.
type outcome int

const (
	done outcome = iota
	// unknown: the client cannot tell whether it happened.
	unknown
	// unexpected: the workspace's log was not where it was expected to be.
	unexpected
	// mismatched: the deduplication id was another append's.
	mismatched
	// ahead: an invoice was to be updated whose number was not given out.
	ahead
)

// answer is what a client was told. Operations use what they need of it.
type answer struct {
	outcome  outcome
	plog     messages.PLogOffset
	wlog     messages.WLogOffset
	at       messages.Timestamp
	numbers  []messages.SequenceNumber
	repeated bool
	// last is the last invoice number, of a write that was ahead.
	last messages.Number
	// count and sum are of a log that was read, row and there of a record.
	count uint64
	sum   uint64
	row   string
	there bool
}

// draft is an event to be.
type draft struct {
	body              string
	invoices, receipt int
	// update is an invoice whose row becomes the body, 0 for none.
	update messages.Number
}

// write appends events, in whichever way a client can.
type write struct {
	how       string
	workspace messages.WSID
	id        messages.DedupID
	expected  *messages.WLogOffset
	drafts    []draft
}

func (w *write) partition() messages.PartitionID {
	return messages.PartitionOf(w.workspace, partitions)
}

// step: a write that nobody knows of happens if it can.
func (w *write) step(s *state, a *answer) (bool, *state) {
	ws := s.of(w.workspace)
	if was, named := ws.ids[w.id]; named {
		same := was.first == w.drafts[0].body
		switch a.outcome {
		case unknown:
			return true, s
		case mismatched:
			return !same, s
		case done:
			return same && a.repeated && was.answer.agrees(a), s
		case unexpected, ahead:
			return false, s
		}
	}
	if w.expected != nil && *w.expected != ws.events {
		return a.outcome == unknown || a.outcome == unexpected && a.wlog == ws.events, s
	}
	if a.outcome == unexpected || a.outcome == mismatched {
		return false, s
	}
	return w.happen(s, a)
}

func (w *write) happen(s *state, a *answer) (bool, *state) {
	ws := s.of(w.workspace).clone()
	right := answer{outcome: done, plog: s.events + 1, wlog: ws.events + 1, at: a.at}
	next := *s
	for _, d := range w.drafts {
		numbers := d.numbers(ws)
		if last := ws.last[seqInvoice]; d.update > last {
			return a.outcome == unknown || a.outcome == ahead && a.last == last, s
		}
		if d.update > 0 {
			ws.rows[d.update] = d.body
		}
		right.numbers = append(right.numbers, numbers...)
		ws.events++
		event := eventSum(w.workspace, ws.events, d.body, numbers)
		ws.sum = chain(ws.sum, event)
		next.events++
		next.sum = chain(next.sum, event)
	}
	if a.outcome == ahead {
		return false, s
	}
	if w.id != (messages.DedupID{}) {
		ws.ids[w.id] = written{w.drafts[0].body, right}
	}
	if a.outcome == done {
		if a.repeated || !right.agrees(a) || a.at < s.at {
			return false, s
		}
		next.at = a.at
	}
	return true, next.with(w.workspace, ws)
}

// numbers are those that the draft is given; the first invoice's row is the body.
func (d *draft) numbers(ws *workspace) []messages.SequenceNumber {
	var all []messages.SequenceNumber
	for i := range d.invoices {
		n := ws.next(seqInvoice)
		if i == 0 {
			ws.rows[n.Number] = d.body
		}
		all = append(all, n)
	}
	for range d.receipt {
		all = append(all, ws.next(seqReceipt))
	}
	return all
}

// agrees reports whether two answers say the same of where a write stands. Nobody
// told the time of a write whose outcome was unknown.
func (a *answer) agrees(b *answer) bool {
	return a.plog == b.plog && a.wlog == b.wlog && (a.at == b.at || a.at == 0) && slices.Equal(a.numbers, b.numbers)
}

func (w *write) describe(a *answer) string {
	var text strings.Builder
	fmt.Fprintf(&text, "%s(%d", w.how, w.workspace)
	if w.id != (messages.DedupID{}) {
		fmt.Fprintf(&text, ", id %s", w.id.String()[24:])
	}
	if w.expected != nil {
		fmt.Fprintf(&text, ", expected %d", *w.expected)
	}
	for _, d := range w.drafts {
		text.WriteString(", " + d.body)
		if d.update > 0 {
			fmt.Fprintf(&text, " of %d", d.update)
		}
	}
	text.WriteString(") = ")
	switch a.outcome {
	case done:
		fmt.Fprintf(&text, "%d/%d %v", a.plog, a.wlog, a.numbers)
		if a.repeated {
			text.WriteString(" repeated")
		}
	case unknown:
		text.WriteString("unknown")
	case unexpected:
		fmt.Fprintf(&text, "is at %d", a.wlog)
	case mismatched:
		text.WriteString("mismatch")
	case ahead:
		fmt.Fprintf(&text, "last is %d", a.last)
	}
	return text.String()
}

// readPLog reads the partition's whole log.
type readPLog struct{ of messages.PartitionID }

func (r readPLog) partition() messages.PartitionID { return r.of }

func (readPLog) step(s *state, a *answer) (bool, *state) {
	return a.count == uint64(s.events) && a.sum == s.sum, s
}

func (r readPLog) describe(a *answer) string {
	return fmt.Sprintf("PLog(%d) = %d events, digest %x", r.of, a.count, a.sum)
}

// readWLog reads a workspace's whole log.
type readWLog struct{ of messages.WSID }

func (r readWLog) partition() messages.PartitionID { return messages.PartitionOf(r.of, partitions) }

func (r readWLog) step(s *state, a *answer) (bool, *state) {
	ws := s.of(r.of)
	return a.count == uint64(ws.events) && a.sum == ws.sum, s
}

func (r readWLog) describe(a *answer) string {
	return fmt.Sprintf("WLog(%d) = %d events, digest %x", r.of, a.count, a.sum)
}

// readRegister asks where the partition's log ends.
type readRegister struct{ of messages.PartitionID }

func (r readRegister) partition() messages.PartitionID { return r.of }

func (readRegister) step(s *state, a *answer) (bool, *state) { return a.plog == s.events, s }

func (r readRegister) describe(a *answer) string {
	return fmt.Sprintf("Register(%d) = %d", r.of, a.plog)
}

// readRow reads the record of an invoice.
type readRow struct {
	workspace messages.WSID
	number    messages.Number
}

func (r readRow) partition() messages.PartitionID {
	return messages.PartitionOf(r.workspace, partitions)
}

func (r readRow) step(s *state, a *answer) (bool, *state) {
	row, there := s.of(r.workspace).rows[r.number]
	return a.there == there && a.row == row, s
}

func (r readRow) describe(a *answer) string {
	return fmt.Sprintf("Records(%d, %d) = %v %s", r.workspace, r.number, a.there, a.row)
}

// find asks where the event with a deduplication id stands.
type find struct {
	workspace messages.WSID
	id        messages.DedupID
}

func (f find) partition() messages.PartitionID { return messages.PartitionOf(f.workspace, partitions) }

func (f find) step(s *state, a *answer) (bool, *state) {
	return a.wlog == s.of(f.workspace).ids[f.id].answer.wlog, s
}

func (f find) describe(a *answer) string {
	return fmt.Sprintf("Find(%d, %s) = %d", f.workspace, f.id.String()[24:], a.wlog)
}
