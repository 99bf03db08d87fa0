package linear

import (
	"math"
	"testing"

	"github.com/anishathalye/porcupine"

	"github.com/partita-go/partita/messages"
)

// script builds a history by hand: each operation has its place in time.
type script struct{ all []porcupine.Operation }

func (s *script) op(from, to int64, o operation, a answer) *script {
	s.all = append(s.all, porcupine.Operation{ClientId: len(s.all), Input: o, Output: &a, Call: from, Return: to})
	return s
}

// invoice is a write of one event with one invoice, in workspace 0.
func invoice(body string) *write {
	return &write{how: "Append", drafts: []draft{{body: body, invoices: 1}}}
}

func named(body string, id byte) *write {
	w := invoice(body)
	w.id[0] = id
	return w
}

func expecting(body string, o messages.WLogOffset) *write {
	w := invoice(body)
	w.expected = &o
	return w
}

func at(plog, wlog uint64, invoice messages.Number) answer {
	return answer{
		plog: messages.PLogOffset(plog), wlog: messages.WLogOffset(wlog), at: messages.Timestamp(plog),
		numbers: []messages.SequenceNumber{{Seq: seqInvoice, Number: invoice}},
	}
}

func repeated(a answer) answer {
	a.repeated = true
	return a
}

// updating is a write of one event with one invoice that updates another one.
func updating(body string, n messages.Number) *write {
	w := invoice(body)
	w.drafts[0].update = n
	return w
}

// logOf is what a reader sees of a log of such events.
func logOf(bodies ...string) answer {
	var a answer
	for i, body := range bodies {
		a.count++
		n := []messages.SequenceNumber{{Seq: seqInvoice, Number: messages.Number(i + 1)}}
		a.sum = chain(a.sum, eventSum(0, messages.WLogOffset(i+1), body, n))
	}
	return a
}

const open = math.MaxInt64

// TestModel gives the model histories that are right and histories that are not,
// one for each way to be wrong: a check that lets everything pass checks nothing.
func TestModel(t *testing.T) {
	for name, tt := range map[string]struct {
		want bool
		all  *script
	}{
		"one behind the other":         {true, new(script).op(1, 2, invoice("a"), at(1, 1, 1)).op(3, 4, invoice("b"), at(2, 2, 2))},
		"at the same time, either way": {true, new(script).op(1, 4, invoice("a"), at(2, 2, 2)).op(2, 3, invoice("b"), at(1, 1, 1))},
		"offsets swapped":              {false, new(script).op(1, 2, invoice("a"), at(2, 2, 2)).op(3, 4, invoice("b"), at(1, 1, 1))},
		"an offset left out":           {false, new(script).op(1, 2, invoice("a"), at(2, 1, 1))},
		"an offset twice":              {false, new(script).op(1, 4, invoice("a"), at(1, 1, 1)).op(2, 3, invoice("b"), at(1, 2, 2))},
		"a number left out":            {false, new(script).op(1, 2, invoice("a"), at(1, 1, 2))},
		"a number twice":               {false, new(script).op(1, 4, invoice("a"), at(1, 1, 1)).op(2, 3, invoice("b"), at(2, 2, 1))},
		"time falls": {false, new(script).op(1, 2, invoice("a"), answer{plog: 1, wlog: 1, at: 9, numbers: at(1, 1, 1).numbers}).
			op(3, 4, invoice("b"), at(2, 2, 2))},

		"read behind":               {true, new(script).op(1, 2, invoice("a"), at(1, 1, 1)).op(3, 4, readPLog{0}, logOf("a"))},
		"read at the same time":     {true, new(script).op(1, 4, invoice("a"), at(1, 1, 1)).op(2, 3, readPLog{0}, logOf())},
		"stale read":                {false, new(script).op(1, 2, invoice("a"), at(1, 1, 1)).op(3, 4, readPLog{0}, logOf())},
		"stale read of a workspace": {false, new(script).op(1, 2, invoice("a"), at(1, 1, 1)).op(3, 4, readWLog{0}, logOf())},
		"read before the call":      {false, new(script).op(1, 2, readPLog{0}, logOf("a")).op(3, 4, invoice("a"), at(1, 1, 1))},
		"reads go back": {false, new(script).op(1, 9, invoice("a"), at(1, 1, 1)).
			op(2, 3, readPLog{0}, logOf("a")).op(4, 5, readPLog{0}, logOf())},
		"another body":       {false, new(script).op(1, 2, invoice("a"), at(1, 1, 1)).op(3, 4, readPLog{0}, logOf("b"))},
		"stale register":     {false, new(script).op(1, 2, invoice("a"), at(1, 1, 1)).op(3, 4, readRegister{0}, answer{})},
		"a row":              {true, new(script).op(1, 2, invoice("a"), at(1, 1, 1)).op(3, 4, readRow{0, 1}, answer{there: true, row: "a"})},
		"a row is missing":   {false, new(script).op(1, 2, invoice("a"), at(1, 1, 1)).op(3, 4, readRow{0, 1}, answer{})},
		"a row of another":   {false, new(script).op(1, 2, invoice("a"), at(1, 1, 1)).op(3, 4, readRow{0, 1}, answer{there: true, row: "b"})},
		"other partition":    {true, new(script).op(1, 2, invoice("a"), at(1, 1, 1)).op(3, 4, readPLog{1}, logOf())},
		"an id is not found": {false, new(script).op(1, 2, named("a", 1), at(1, 1, 1)).op(3, 4, find{0, messages.DedupID{1}}, answer{})},

		"repeated":      {true, new(script).op(1, 2, named("a", 1), at(1, 1, 1)).op(3, 4, named("a", 1), repeated(at(1, 1, 1)))},
		"written twice": {false, new(script).op(1, 2, named("a", 1), at(1, 1, 1)).op(3, 4, named("a", 1), at(2, 2, 2))},
		"another's answer": {false, new(script).op(1, 2, named("a", 1), at(1, 1, 1)).op(3, 4, named("b", 2), at(2, 2, 2)).
			op(5, 6, named("b", 2), repeated(at(1, 1, 1)))},
		"repeated of nothing":   {false, new(script).op(1, 2, named("a", 1), repeated(at(1, 1, 1)))},
		"mismatch":              {true, new(script).op(1, 2, named("a", 1), at(1, 1, 1)).op(3, 4, named("b", 1), answer{outcome: mismatched})},
		"mismatch with itself":  {false, new(script).op(1, 2, named("a", 1), at(1, 1, 1)).op(3, 4, named("a", 1), answer{outcome: mismatched})},
		"mismatch with nothing": {false, new(script).op(1, 2, named("a", 1), answer{outcome: mismatched})},
		"other drafts taken for a repetition": {false, new(script).op(1, 2, named("a", 1), at(1, 1, 1)).
			op(3, 4, named("b", 1), repeated(at(1, 1, 1)))},

		"as expected":          {true, new(script).op(1, 2, expecting("a", 0), at(1, 1, 1))},
		"not as expected":      {true, new(script).op(1, 2, expecting("a", 3), answer{outcome: unexpected})},
		"written all the same": {false, new(script).op(1, 2, expecting("a", 3), at(1, 1, 1))},
		"refused without need": {false, new(script).op(1, 2, expecting("a", 0), answer{outcome: unexpected})},
		"wrong offset told":    {false, new(script).op(1, 2, expecting("a", 3), answer{outcome: unexpected, wlog: 1})},

		"updated": {true, new(script).op(1, 2, invoice("a"), at(1, 1, 1)).op(3, 4, updating("b", 1), at(2, 2, 2)).
			op(5, 6, readRow{0, 1}, answer{there: true, row: "b"})},
		"updated, and not seen": {false, new(script).op(1, 2, invoice("a"), at(1, 1, 1)).op(3, 4, updating("b", 1), at(2, 2, 2)).
			op(5, 6, readRow{0, 1}, answer{there: true, row: "a"})},
		"ahead":                   {true, new(script).op(1, 2, updating("a", 2), answer{outcome: ahead, last: 1}).op(3, 4, invoice("b"), at(1, 1, 1))},
		"not ahead":               {false, new(script).op(1, 2, updating("a", 1), answer{outcome: ahead, last: 1})},
		"ahead of nothing":        {false, new(script).op(1, 2, invoice("a"), answer{outcome: ahead})},
		"ahead of another number": {false, new(script).op(1, 2, updating("a", 3), answer{outcome: ahead, last: 2})},
		"ahead, and written":      {false, new(script).op(1, 2, updating("a", 2), at(1, 1, 1))},
		"ahead, and a number used": {false, new(script).op(1, 2, updating("a", 2), answer{outcome: ahead, last: 1}).
			op(3, 4, invoice("b"), at(1, 1, 2))},
		"ahead, then repeated": {false, new(script).op(1, 2, named("a", 1), at(1, 1, 1)).op(3, 4, named("a", 1), answer{outcome: ahead, last: 1})},

		"unknown, seen late": {true, new(script).op(1, open, invoice("a"), answer{outcome: unknown}).
			op(2, 3, readPLog{0}, logOf()).op(4, 5, readPLog{0}, logOf("a"))},
		"unknown, and vanished": {false, new(script).op(1, open, invoice("a"), answer{outcome: unknown}).
			op(2, 3, readPLog{0}, logOf("a")).op(4, 5, readPLog{0}, logOf())},
		"unknown, then repeated": {true, new(script).op(1, open, named("a", 1), answer{outcome: unknown}).
			op(2, 3, named("a", 1), repeated(at(1, 1, 1)))},
		"unknown, then written": {true, new(script).op(1, open, named("a", 1), answer{outcome: unknown}).
			op(2, 3, named("a", 1), at(1, 1, 1)).op(4, 5, readPLog{0}, logOf("a"))},
		"unknown, and half of it": {false, new(script).op(1, open, &write{drafts: []draft{
			{body: "a", invoices: 1}, {body: "b", invoices: 1}}}, answer{outcome: unknown}).
			op(2, 3, readPLog{0}, logOf("a"))},
		"refused, and there": {false, new(script).op(2, 3, readPLog{0}, logOf("a"))},
	} {
		if got := porcupine.CheckOperations(model(), tt.all.all); got != tt.want {
			t.Errorf("%s: got linearizable: %v, want %v", name, got, tt.want)
		}
	}
}
