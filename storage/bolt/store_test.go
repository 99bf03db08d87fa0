package bolt

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage"
	"github.com/partita-go/partita/storage/bolt/internal/expect"
	"github.com/partita-go/partita/storage/bolt/internal/format"
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

func TestTimeMustNotFall(t *testing.T) {
	dir, d := t.TempDir(), testDescriptor(1, messages.TrustAll)
	s := open(t, dir, d, Options{})
	w := takeOver(t, s, 0)
	w.append(1, 1)
	early := func() messages.Event {
		e := w.event(1)
		e.RegisteredAt = 1
		return e
	}
	if err := w.try(early()); !errors.Is(err, storage.ErrTimeFell) {
		t.Fatalf("got %v", err)
	}
	w.flush()
	closeStore(t, s)
	s = open(t, dir, d, Options{})
	w = takeOver(t, s, 0)
	if err := w.try(early()); !errors.Is(err, storage.ErrTimeFell) {
		t.Fatalf("after reopening: got %v", err)
	}
}

func TestWorkspaceKeepsItsKind(t *testing.T) {
	d := testDescriptor(1, messages.TrustNone)
	d.Kinds = append(d.Kinds, messages.Kind{ID: 2, Name: "another"})
	s := open(t, t.TempDir(), d, Options{})
	w := takeOver(t, s, 0)
	w.append(1)
	for _, flushed := range []bool{false, true} {
		if flushed {
			w.flush()
		}
		e := w.event(1)
		e.WorkspaceKind, e.Numbers, e.Records = 2, nil, nil
		if err := w.try(e); !errors.Is(err, messages.ErrKindMismatch) || !errors.Is(err, storage.ErrInvalidEvent) {
			t.Fatalf("flushed %v: got %v", flushed, err)
		}
	}
}

func TestWorkspaceLogHasNoHoles(t *testing.T) {
	s := open(t, t.TempDir(), testDescriptor(1, messages.TrustNone), Options{})
	w := takeOver(t, s, 0)
	w.append(1)
	for _, flushed := range []bool{false, true} {
		if flushed {
			w.flush()
		}
		e := w.event(1)
		e.WLogOffset++
		if err := w.try(e); !errors.Is(err, storage.ErrOutOfOrder) {
			t.Fatalf("flushed %v: got %v", flushed, err)
		}
	}
}

func TestExplicitIDs(t *testing.T) {
	s := open(t, t.TempDir(), testDescriptor(1, messages.TrustAll), Options{})
	w := takeOver(t, s, 0)
	for id, want := range map[messages.RecordID]error{
		{Seq: testSeq, Number: 0}:                                                       messages.ErrExplicitID,
		{Seq: testSeq, Number: 5}:                                                       nil,
		{Seq: testSeq, Number: 1<<64 - 1<<32}:                                           messages.ErrExplicitID,
		{Seq: messages.SeqOWRecordID, Number: messages.InitialCRecordID - 1}:            messages.ErrExplicitID,
		{Seq: messages.SeqWLogOffset, Number: 1}:                                        messages.ErrUnknownSequence,
		{Seq: 99, Number: 1}:                                                            messages.ErrUnknownSequence,
		{Seq: messages.SeqOWRecordID, Number: messages.InitialOWRecordID + 1_000_000}:   nil,
		{Seq: messages.SeqOWRecordID, Number: messages.InitialCRecordID + 1_000_000}:    messages.ErrExplicitID,
		{Seq: messages.SeqCRecordID, Number: messages.InitialCRecordID + 1_000_000_000}: nil,
	} {
		e := w.event(1)
		e.Numbers, e.Records = nil, []messages.Record{{ID: id, New: true}}
		if err := w.try(e); !errors.Is(err, want) || want != nil && !errors.Is(err, storage.ErrInvalidEvent) {
			t.Errorf("%v: got %v, want %v", id, err, want)
		}
	}
}

// The last write of a record in an event counts, however many there are: before a flush, after it,
// and where state.db was rebuilt.
func TestRecordsShowTheLastWriteOfAnEvent(t *testing.T) {
	for _, writes := range []int{2, 10, 200} {
		dir, d := t.TempDir(), testDescriptor(1, messages.TrustNone)
		s := open(t, dir, d, Options{})
		w := takeOver(t, s, 0)
		e := w.event(1)
		created := e.Records
		for i := range writes {
			for _, r := range created {
				e.Records = append(e.Records, messages.Record{ID: r.ID, Data: fmt.Append(nil, i)})
			}
		}
		expect.NoError(t, w.try(e))
		check := func(when string) {
			t.Helper()
			for _, r := range created {
				rows := collectRows(t, s, 1, storage.RecordRange{Seq: r.ID.Seq})
				if want := fmt.Sprint(writes - 1); len(rows) != 1 || string(rows[0].Data) != want {
					t.Errorf("%d writes, %s: got %v, want %q", writes, when, rows, want)
				}
			}
		}
		check("before a flush")
		w.flush()
		check("after a flush")
		closeStore(t, s)
		expect.NoError(t, os.Remove(filepath.Join(dir, format.StateFileName)))
		s = open(t, dir, d, Options{})
		check("rebuilt")
	}
}

// The last write of a record counts, wherever the writes lie.
func TestRecordsShowTheLastWrite(t *testing.T) {
	dir, d := t.TempDir(), testDescriptor(1, messages.TrustNone)
	s := open(t, dir, d, Options{})
	w := takeOver(t, s, 0)
	w.append(1, 1, 1)
	update := func(data string, numbers ...messages.Number) {
		t.Helper()
		e := w.event(1)
		e.Numbers, e.Records = nil, nil
		for _, n := range numbers {
			e.Records = append(e.Records, messages.Record{ID: messages.RecordID{Seq: testSeq, Number: n}, Data: []byte(data)})
		}
		if err := w.try(e); err != nil {
			t.Fatal(err)
		}
	}
	check := func(want ...string) {
		t.Helper()
		rows := collectRows(t, s, 1, storage.RecordRange{Seq: testSeq, From: 1000, To: 1002})
		for i, row := range rows {
			one := collectRows(t, s, 1, storage.RecordRange{Seq: testSeq, From: row.ID.Number, To: row.ID.Number})
			if len(one) != 1 || string(one[0].Data) != string(row.Data) {
				t.Fatalf("alone: got %v, want %v", one, row)
			}
			if i >= len(want) || string(row.Data) != want[i] {
				t.Fatalf("got %q at %d, want %q", row.Data, i, want)
			}
		}
		if len(rows) != len(want) {
			t.Fatalf("got %d rows, want %d", len(rows), len(want))
		}
	}
	check("invoice 1000", "invoice 1001", "invoice 1002")
	update("a", 1000, 1001)
	update("b", 1001)
	check("a", "b", "invoice 1002") // all in the tail
	w.flush()
	check("a", "b", "invoice 1002") // all in state.db
	update("c", 1002, 1000)
	update("d", 1000)
	check("d", "b", "c") // in both
	closeStore(t, s)
	s = open(t, dir, d, Options{})
	check("d", "b", "c")
}
