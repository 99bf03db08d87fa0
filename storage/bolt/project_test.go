package bolt

import (
	"errors"
	"reflect"
	"testing"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage"
	"github.com/partita-go/partita/storage/bolt/internal/expect"
	"github.com/partita-go/partita/storage/bolt/internal/format"
	"github.com/partita-go/partita/storage/bolt/internal/tail"
)

// A flush that is refused leaves nothing in state.db, also if others share its transaction.
func TestRefusedFlushLeavesNothing(t *testing.T) {
	s := open(t, t.TempDir(), testDescriptor(3, messages.TrustNone), Options{})
	requests := make([]*flushRequest, 3)
	events := make([]messages.Event, 3)
	for id := range requests {
		w := takeOver(t, s, messages.PartitionID(id))
		events[id] = w.event(messages.WSID(id))
		w.append(messages.WSID(id))
		requests[id] = w.flushRequest()
	}
	wrong := requests[1]
	wrong.given.Puts[len(wrong.given.Puts)-1].Number++
	transactions, outcomes := flushTogether(t, s, requests)
	if transactions != 2 || outcomes[0] != nil || outcomes[2] != nil {
		t.Fatalf("got %d transactions, %v, want two that succeed", transactions, outcomes)
	}
	if _, refused := errors.AsType[*storage.NumbersError](outcomes[1]); !refused {
		t.Errorf("got %v for wrong numbers", outcomes[1])
	}
	for id := range events {
		head := get(t, s.state, format.BucketWorkspaces, format.AppendWorkspaceKey(nil, events[id].Workspace))
		list := get(t, s.state, format.BucketPLog, format.AppendPLogKey(nil, messages.PartitionID(id), 1))
		if (head != nil) != (id != 1) || (list != nil) != (id != 1) {
			t.Errorf("partition %d: got head %x, list %x, want them: %v", id, head, list, id != 1)
		}
	}
}

// A foreign entry right behind what is flushed is not in the way yet.
func TestForeignEntryBehindAFlush(t *testing.T) {
	s := open(t, t.TempDir(), testDescriptor(1, messages.TrustNone), Options{})
	w := takeOver(t, s, 0)
	w.append(1, 1)
	e := w.event(1)
	plant(t, s, storage.PlacePLog, &e)
	w.flush()
}

// All conflicts of a flush last, not the first one alone.
func TestConflictsOfAFlushLast(t *testing.T) {
	dir, d := t.TempDir(), testDescriptor(1, messages.TrustNone)
	s := open(t, dir, d, Options{})
	w := takeOver(t, s, 0)
	for _, ws := range []messages.WSID{1, 2, 3} {
		e := w.event(ws)
		w.append(ws)
		plant(t, s, storage.PlaceWLog, &e)
	}
	w.flush()
	closeStore(t, s)
	w.s = open(t, dir, d, Options{})
	w = takeOver(t, w.s, 0)
	for _, ws := range []messages.WSID{1, 2, 3} {
		e := w.following(ws, 1)[0]
		e.WLogOffset = 2
		if err := w.try(e); !conflictAt(err, storage.PlaceWLog) {
			t.Errorf("workspace %d: got %v, want a conflict", ws, err)
		}
	}
}

// A flush that is repeated may give less than what is stored, not more, and no other kind.
func TestRepeatedFlushIsCompared(t *testing.T) {
	s := open(t, t.TempDir(), testDescriptor(1, messages.TrustNone), Options{})
	w := takeOver(t, s, 0)
	w.append(1, 1)
	f := w.pending()
	w.flush()
	for name, tt := range map[string]struct {
		numbers messages.WorkspaceNumbers
		refused bool
	}{
		"the same":     {f.Numbers[0], false},
		"less":         {messages.WorkspaceNumbers{Workspace: 1, Numbers: []messages.SequenceNumber{{Seq: testSeq, Number: 1000}}}, false},
		"more":         {messages.WorkspaceNumbers{Workspace: 1, Numbers: []messages.SequenceNumber{{Seq: testSeq, Number: 1002}}}, true},
		"another kind": {messages.WorkspaceNumbers{Workspace: 1, Kind: testKind - 1 + 2}, true},
	} {
		f.Numbers = []messages.WorkspaceNumbers{tt.numbers}
		err := s.Flush(t.Context(), f)
		if _, refused := errors.AsType[*storage.NumbersError](err); refused != tt.refused || !refused && err != nil {
			t.Errorf("%s: got %v, want refused: %v", name, err, tt.refused)
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
	l := &s.partitions[0].tail
	expect.Equal(t, []int{1, 2, 2}, []int{l.Len(), l.Numbers.Len(), l.Records.Len()})
	rows := int64(0)
	for i := l.Records.First; i < l.Records.End; i++ {
		rows += int64(l.Records.At(i).Size)
	}
	if rows == 0 || l.Size.Rows != rows || s.tails.Rows.Load() != rows {
		t.Errorf("got %d bytes of records, %d in all tails, want %d", l.Size.Rows, s.tails.Rows.Load(), rows)
	}
}

// What finds records in the tail lives as long as it is used once for each flush, however many steps a flush takes to
// drop what it has written.
func TestIndexOfRecordsAgesByFlushes(t *testing.T) {
	s := open(t, t.TempDir(), testDescriptor(1, messages.TrustNone), Options{})
	w := takeOver(t, s, 0)
	var flushes []storage.Flush
	for _, n := range []int{2*tail.TrimStep + 1, 1, 1} {
		w.appendMany(n, 2)
		flushes = append(flushes, w.pending())
		w.flushed = w.next
		clear(w.changed)
	}
	w.appendMany(500, 4)
	p := &s.partitions[0]
	indexed := func() int {
		p.mu.RLock()
		defer p.mu.RUnlock()
		return reflect.ValueOf(&p.tail).Elem().FieldByName("index").Elem().FieldByName("of").Len()
	}
	r := storage.RecordRange{Seq: testSeq, From: 1000, To: 1000}
	if rows := collectRows(t, s, 4, r); len(rows) != 1 || indexed() != 1 {
		t.Fatalf("got %d rows, %d workspaces with an index", len(rows), indexed())
	}
	for i, want := range []int{1, 0, 0} {
		expect.NoError(t, s.Flush(t.Context(), flushes[i]))
		expect.Equal(t, want, indexed(), "after flush", i)
	}
}
