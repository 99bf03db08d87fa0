package bolt

import (
	"slices"
	"testing"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage/bolt/internal/expect"
	"github.com/partita-go/partita/storage/bolt/internal/format"
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

func recordKey(ws messages.WSID, n messages.Number) format.RecordKey {
	return format.RecordKey{Workspace: ws, ID: messages.RecordID{Seq: testSeq, Number: n}}
}

// A record is found in a workspace with many as in one with few, whatever comes and goes meanwhile.
func TestTailFindsRecords(t *testing.T) {
	var l tail
	l.restart(1)
	push := func(ws messages.WSID, n messages.Number) {
		l.push(entry{ws: ws}, messages.DedupID{}, nil, []recordRef{{number: n, seq: testSeq}, {number: n + 1, seq: testSeq}})
	}
	check := func(what string) {
		t.Helper()
		for ws := range messages.WSID(3) {
			want := make(map[messages.Number]messages.PLogOffset)
			for o, e := l.lastOf(ws); e != nil; o, e = l.previous(o, e) {
				for i := e.records; i < l.recordsEnd(o); i++ {
					if n := l.records.At(i).number; want[n] == 0 {
						want[n] = o
					}
				}
			}
			for n := range messages.Number(1002) {
				if got, ok := l.writerOf(recordKey(ws, n)); got != want[n] || ok != (want[n] != 0) {
					t.Fatalf("%s: workspace %d, record %d: got offset %d, %v, want %d", what, ws, n, got, ok, want[n])
				}
			}
		}
	}
	check("nothing")
	for i := range messages.Number(1000) {
		push(messages.WSID(i%10/9), i) // workspace 1 has few, 2 none
	}
	check("no index yet")
	for i := range messages.Number(500) {
		push(0, 500-i)
	}
	check("an index that grows")
	l.drop(100)
	check("an index that shrinks")
	if l.index.of == nil {
		t.Error("got no index, want one as long as it is used")
	}
	l.drop(101)
	l.drop(102)
	if l.index.of != nil {
		t.Error("got an index that nobody uses")
	}
	check("an index that is made anew")
	l.drop(l.end())
	check("all is gone")
	push(0, 1)
	check("one again")
}
