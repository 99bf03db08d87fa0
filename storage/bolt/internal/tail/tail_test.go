package tail

import (
	"slices"
	"testing"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage/bolt/internal/expect"
	"github.com/partita-go/partita/storage/bolt/internal/format"
)

// seq is a sequence of records.
const seq messages.SeqID = 16

// TestTailBytes: whatever an event has more takes more.
func TestTailBytes(t *testing.T) {
	for _, more := range []int64{
		BytesOf(1, 0, false) - BytesOf(0, 0, false), BytesOf(3, 2, false) - BytesOf(3, 1, false), BytesOf(2, 2, true) - BytesOf(2, 2, false),
		BytesOf(0, 0, false),
	} {
		if more < 16 {
			t.Errorf("got %d bytes, want those of a number, a record, an id or an entry", more)
		}
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
			var l Tail
			l.Restart(1)
			for i := range test.entries {
				l.Push(Entry{Workspace: messages.WSID(i), LSN: messages.LSN(i + 1)}, messages.DedupID{}, nil, make([]Record, test.records))
			}
			var got []messages.PLogOffset
			to := l.End()
			for o := l.First(); o < to; {
				o = l.StepEnd(o, to)
				l.Drop(o)
				got = append(got, o)
			}
			if !slices.Equal(got, test.want) || l.Len() != 0 || l.Size != (Size{}) {
				t.Errorf("got steps to %v, %d entries and %d bytes left, want %v", got, l.Len(), l.Size.Bytes, test.want)
			}
		})
	}
}

func recordKey(ws messages.WSID, n messages.Number) format.RecordKey {
	return format.RecordKey{Workspace: ws, ID: messages.RecordID{Seq: seq, Number: n}}
}

// A record is found in a workspace with many as in one with few, whatever comes and goes meanwhile.
func TestTailFindsRecords(t *testing.T) {
	var l Tail
	l.Restart(1)
	push := func(ws messages.WSID, n messages.Number) {
		l.Push(Entry{Workspace: ws}, messages.DedupID{}, nil, []Record{{Number: n, Seq: seq}, {Number: n + 1, Seq: seq}})
	}
	check := func(what string) {
		t.Helper()
		for ws := range messages.WSID(3) {
			want := make(map[messages.Number]messages.PLogOffset)
			for o, e := l.LastOf(ws); e != nil; o, e = l.Previous(o, e) {
				for i := e.Records; i < l.RecordsEnd(o); i++ {
					if n := l.Records.At(i).Number; want[n] == 0 {
						want[n] = o
					}
				}
			}
			for n := range messages.Number(1002) {
				if got, ok := l.WriterOf(recordKey(ws, n)); got != want[n] || ok != (want[n] != 0) {
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
	l.Drop(100)
	check("an index that shrinks")
	l.Age()
	if l.Drop(101); l.index.get(0) == nil {
		t.Error("got no index, want one as long as it is used")
	}
	if l.Age(); l.index.get(0) != nil {
		t.Error("got an index that nobody uses")
	}
	check("an index that is made anew")
	l.Drop(l.End())
	check("all is gone")
	push(0, 1)
	check("one again")
}

// An index is of one workspace, and takes in no more than what was asked for walks over: whoever appends waits for it.
func TestIndexGrows(t *testing.T) {
	var l Tail
	l.Restart(1)
	const many, few = 3 * recordWalk, 10
	push := func(ws messages.WSID, n messages.Number) {
		l.Push(Entry{Workspace: ws}, messages.DedupID{}, nil, []Record{{Number: n, Seq: seq}})
	}
	for n := range messages.Number(many) {
		push(1, n)
		push(2, n)
	}
	find := func(n messages.Number, want bool, indexed int) {
		t.Helper()
		if o, ok := l.WriterOf(recordKey(1, n)); ok != want || ok && l.Records.At(l.At(o).Records).Number != n {
			t.Errorf("record %d: got offset %d, %v", n, o, ok)
		}
		if got := len(l.index.get(1).of); got != indexed {
			t.Errorf("record %d: got %d records in the index, want %d", n, got, indexed)
		}
	}
	find(many-recordWalk, true, recordWalk)
	find(many-1, true, recordWalk)
	for n := range messages.Number(few) {
		push(1, many+n)
	}
	find(many+few-1, true, recordWalk+few)
	find(few, true, many)
	find(many+few, false, many+few)
	find(0, true, many+few)
	expect.Equal(t, 1, len(l.index.of), "workspaces with an index")
	for o := l.First(); o < l.End()-few; o++ { // nothing more of workspace 2
		l.Drop(o + 1)
	}
	find(many, true, few)
	find(many-1, false, few)
	l.Drop(l.End() - 1)
	push(2, 1)
	if l.Drop(l.End() - 1); len(l.index.of) != 0 {
		t.Error("got an index of a workspace that the tail does not have")
	}
}

// Where there is an index it is asked, and nobody walks first.
func TestIndexComesFirst(t *testing.T) {
	var l Tail
	l.Restart(1)
	for n := range messages.Number(recordWalk) {
		l.Push(Entry{Workspace: 1}, messages.DedupID{}, nil, []Record{{Number: n, Seq: seq}})
	}
	l.WriterOf(recordKey(1, 0))
	const marked = 7
	l.index.get(1).of[recordKey(1, recordWalk-1).ID] = marked
	if o, _ := l.WriterOf(recordKey(1, recordWalk-1)); o != marked {
		t.Errorf("got offset %d, want %d, as the index has it", o, marked)
	}
}

// What the tail knows of records and ids is what its entries say.
func TestTailForgetsWhatItDrops(t *testing.T) {
	var l Tail
	l.Restart(1)
	for i, numbers := range [][]messages.Number{{1, 2}, {2}, {3}} {
		var records []Record
		for _, n := range numbers {
			records = append(records, Record{Number: n, Seq: seq})
		}
		l.Push(Entry{Workspace: 1}, messages.DedupID{byte(i + 1)}, nil, records)
	}
	l.Drop(2)
	for n, want := range []messages.PLogOffset{1: 0, 2: 2, 3: 3} {
		if got, _ := l.WriterOf(recordKey(1, messages.Number(n))); got != want {
			t.Errorf("record %d: got offset %d, want %d", n, got, want)
		}
	}
	if got := l.IDs.Len(); got != 2 {
		t.Errorf("got %d ids, want 2", got)
	}
}

// The end of a sequence is the largest record of all that the workspace has in the
func TestLastNumberLooksAtAllRecords(t *testing.T) {
	for name, events := range map[string][][]Record{
		"last record of the last event":  {{{Number: 5, Seq: seq}}, {{Number: 6, Seq: 17}, {Number: 7, Seq: seq}}},
		"first record of the last event": {{{Number: 5, Seq: seq}}, {{Number: 7, Seq: seq}, {Number: 8, Seq: 17}}},
		"an earlier event":               {{{Number: 7, Seq: seq}}, {{Number: 5, Seq: seq}}, nil},
	} {
		var l Tail
		l.Restart(1)
		for _, records := range events {
			l.Push(Entry{Workspace: 1}, messages.DedupID{}, nil, records)
			l.Push(Entry{Workspace: 2}, messages.DedupID{}, nil, []Record{{Number: 99, Seq: seq}})
		}
		got, ok := l.LastNumber(1, messages.SequenceNumber{Seq: seq, Number: 3})
		if !ok || got != 7 {
			t.Errorf("%s: got %d, %v, want 7", name, got, ok)
		}
	}
}

// Zones of the tail are counted as memory as long as they are there.
func TestTailOfZones(t *testing.T) {
	var l Tail
	l.Restart(1)
	for i := range 5 {
		l.Push(Entry{Workspace: 1}, messages.DedupID{}, nil, nil)
		size := l.PushZone([]string{"UTC", ""}[i%2])
		expect.Equal(t, []int64{zoneBytes, 0}[i%2], size.Bytes)
	}
	expect.Equal(t, 3*zoneBytes+5*BytesOf(0, 0, false), l.Size.Bytes)
	expect.Equal(t, zoneBytes+2*BytesOf(0, 0, false), l.Drop(3).Bytes)
	for o, want := range map[messages.PLogOffset]string{3: "UTC", 4: "", 5: "UTC"} {
		n, _ := l.Numbering(o, nil)
		expect.Equal(t, want, n.Zone)
	}
	l.Drop(6)
	expect.Equal(t, int64(0), l.Size.Bytes)
}
