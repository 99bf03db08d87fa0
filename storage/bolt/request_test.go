package bolt

import (
	"bytes"
	"slices"
	"testing"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage/bolt/internal/expect"
	"github.com/partita-go/partita/storage/bolt/internal/format"
	"github.com/partita-go/partita/storage/bolt/internal/tail"
)

// What a batch has is copied together, and each event has its own part, however large it is and whether or not its value
// gets longer than expected.
func TestCopiesOfABatch(t *testing.T) {
	var events []messages.Event
	for i, size := range []int{0, 100, valuesTogether / 2, 1000, 2 * valuesTogether, 10, valuesTogether / 2, valuesTogether / 2, 7} {
		e := benchEvent(0, 1, messages.PLogOffset(i+1), messages.WSID(i), 1)
		e.Body = bytes.Repeat([]byte{byte(i)}, size)
		if i%2 == 1 { // many scattered numbers take more than is reckoned with
			for n := range messages.Number(500) {
				e.Numbers = append(e.Numbers, messages.SequenceNumber{Seq: testSeq, Number: 1<<60 + 2*n})
			}
		}
		if i%3 == 1 {
			e.Records = append(e.Records, messages.Record{ID: messages.RecordID{Seq: testSeq, Number: 2000}, New: true})
			e.Moves = []messages.SequenceNumber{{Seq: testSeq, Number: 3000}}
		}
		events = append(events, e)
	}
	c := newBatchCopies(events)
	got := make([]newEvent, len(events))
	for i := range events {
		e := &events[i]
		got[i] = newEvent{numbers: c.numbersOf(e), records: c.recordsOf(e), value: c.valueOf(e)}
	}
	for i := range got {
		n, e := &got[i], &events[i]
		expect.Equal(t, string(format.EncodeEvent(e)), string(n.value))
		want := append(messages.AppendExplicit(slices.Clone(e.Numbers), e.Numbers, e.Records), e.Moves...)
		expect.Equal(t, want, n.numbers)
		expect.Equal(t, tail.RecordsOf(nil, e.Records), n.records)
		// Whoever appends to one does not write into the next one.
		expect.Equal(t, len(n.value), cap(n.value))
		expect.Equal(t, len(n.numbers), cap(n.numbers))
		expect.Equal(t, len(n.records), cap(n.records))
	}
}

// Values share little memory: it stays as long as one of them does.
func TestValuesShareLittleMemory(t *testing.T) {
	var events []messages.Event
	for i := range 1000 {
		events = append(events, benchEvent(0, 1, messages.PLogOffset(i+1), 1, messages.WLogOffset(i+1)))
	}
	c := newBatchCopies(events)
	for i := range events {
		c.valueOf(&events[i])
		expect.Equal(t, true, cap(c.values) <= valuesTogether)
	}
}

// Small values between large ones share memory as if those were not there.
func TestSmallValuesAmongLarge(t *testing.T) {
	var events []messages.Event
	for i := range 100 {
		e := benchEvent(0, 1, messages.PLogOffset(i+1), 1, messages.WLogOffset(i+1))
		if i%2 == 1 {
			e.Body = make([]byte, valuesTogether-1000)
		}
		events = append(events, e)
	}
	c := newBatchCopies(events)
	taken, small := 0, 0
	var piece *byte
	for i := range events {
		value := c.valueOf(&events[i])
		if i%2 == 0 {
			small += len(value)
		}
		if first := &c.values[:1][0]; first != piece {
			piece = first
			taken += cap(c.values)
		}
	}
	if taken > 2*small {
		t.Errorf("small values of %d bytes took %d", small, taken)
	}
}
