package bolt

import (
	"errors"
	"testing"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage"
)

func TestAppendFlushReopen(t *testing.T) {
	dir := t.TempDir()
	d := testDescriptor(2, messages.TrustNone)
	s := open(t, dir, d, Options{})
	w := takeOver(t, s, 1)
	w.append(1, 3, 1, 3, 1)
	check := func(s *Store) {
		t.Helper()
		if got := collectEvents(t, s.PLog(t.Context(), 1, 0)); len(got) != 5 || got[4].PLogOffset != 5 {
			t.Fatalf("got %d events", len(got))
		}
		if got := collectEvents(t, s.WLog(t.Context(), 3, 2)); len(got) != 1 || got[0].PLogOffset != 4 {
			t.Fatalf("got %v", got)
		}
		rows := collectRows(t, s, 1, storage.RecordRange{Seq: testSeq})
		if len(rows) != 3 || rows[2].ID.Number != 1002 || string(rows[2].Data) != "invoice 1002" || rows[2].PLogOffset != 5 {
			t.Fatalf("got %v", rows)
		}
		if got := collectEvents(t, s.Log(t.Context(), 2)); len(got) != 4 {
			t.Fatalf("got %d events", len(got))
		}
	}
	check(s)
	closeStore(t, s)
	s = open(t, dir, d, Options{})
	check(s)
	w = takeOver(t, s, 1)
	if w.epoch != 2 || w.next != 6 {
		t.Fatalf("got epoch %d, next %d", w.epoch, w.next)
	}
	tail, err := s.Tail(t.Context(), 1, 1, 3)
	if err != nil || len(tail) != 3 || len(tail[2].Numbers) != 2 {
		t.Fatalf("got %v, %v", tail, err)
	}
	w.flush()
	check(s)
	n, err := s.Numbers(t.Context(), 1)
	if err != nil || n.Kind != testKind || len(n.Numbers) != 3 {
		t.Fatalf("got %v, %v", n, err)
	}
	closeStore(t, s)
	s = open(t, dir, d, Options{})
	check(s)
	if got := s.Stats(); got.Scanned != 0 || got.Events != 5 {
		t.Fatalf("got %+v", got)
	}
	if err := s.Append(t.Context(), storage.Batch{Partition: 1, Epoch: 1, Events: []messages.Event{}}); !errors.Is(err, messages.ErrFenced) {
		t.Fatalf("got %v", err)
	}
}
