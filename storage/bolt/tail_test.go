package bolt

import (
	"slices"
	"testing"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage/bolt/internal/expect"
)

// TestTailBytes: whatever an event has more takes more.
func TestTailBytes(t *testing.T) {
	for _, more := range []int64{
		tailBytes(1, 0, false) - tailBytes(0, 0, false), tailBytes(3, 2, false) - tailBytes(3, 1, false), tailBytes(2, 2, true) - tailBytes(2, 2, false),
		tailBytes(0, 0, false),
	} {
		if more < 16 {
			t.Errorf("got %d bytes, want those of a number, a record, an id or an entry", more)
		}
	}
}

// A tail that is never empty keeps nothing of what has left it.
func TestTailLetsGo(t *testing.T) {
	s := open(t, t.TempDir(), testDescriptor(1, messages.TrustNone), Options{})
	w := takeOver(t, s, 0)
	w.append(1, 2)
	f := w.pending()
	w.append(1)
	expect.NoError(t, s.Flush(t.Context(), f))
	tail := &s.partitions[0].tail
	expect.Equal(t, []int{1, 2, 2}, []int{tail.len(), tail.numbers.Len(), tail.records.Len()})
	rows := int64(0)
	for i := tail.records.First; i < tail.records.End; i++ {
		rows += int64(tail.records.At(i).size)
	}
	if rows == 0 || tail.size.rows != rows || s.tails.rows.Load() != rows {
		t.Errorf("got %d bytes of records, %d in all tails, want %d", tail.size.rows, s.tails.rows.Load(), rows)
	}
}

// A step takes as many entries as it may, or records: whoever appends waits for one of them.
func TestStepsAreShort(t *testing.T) {
	for name, test := range map[string]struct {
		entries, records int
		want             []messages.PLogOffset
	}{
		"small":     {3000, 2, []messages.PLogOffset{1025, 2049, 3001}},
		"wide":      {10, 3000, []messages.PLogOffset{3, 5, 7, 9, 11}},
		"very wide": {3, 2 * trimRecords, []messages.PLogOffset{2, 3, 4}},
	} {
		t.Run(name, func(t *testing.T) {
			var l tail
			l.restart(1)
			for i := range test.entries {
				l.push(entry{ws: messages.WSID(i), lsn: messages.LSN(i + 1)}, messages.DedupID{}, nil, make([]recordRef, test.records))
			}
			var got []messages.PLogOffset
			to := l.end()
			for o := l.first(); o < to; {
				o = l.stepEnd(o, to)
				l.drop(o)
				got = append(got, o)
			}
			if !slices.Equal(got, test.want) || l.len() != 0 || l.size != (tailSize{}) {
				t.Errorf("got steps to %v, %d entries and %d bytes left, want %v", got, l.len(), l.size.bytes, test.want)
			}
		})
	}
}
