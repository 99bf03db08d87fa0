package bolt

import (
	"cmp"
	"context"
	"fmt"
	"hash/crc32"
	"path/filepath"
	"testing"

	"go.etcd.io/bbolt"
	"go.uber.org/goleak"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage"
	"github.com/partita-go/partita/storage/bolt/internal/boltfile"
	"github.com/partita-go/partita/storage/bolt/internal/format"
	"github.com/partita-go/partita/storage/bolt/internal/numbers"
)

// Two thirds of the tests here look inside a store: they damage a file under it, hold a commit or a flush at a point, or ask
// its goroutines' own state. The others share with them what makes, fills, damages and reads stores, and so their package;
// those that need nothing of it, and the suite of all stores, are in bolt_test.
func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	testKind messages.WSKind = 1
	testSeq  messages.SeqID  = 16
)

func testDescriptor(partitions uint32, trust messages.TrustLevel) messages.Descriptor {
	return messages.Descriptor{
		Application: "test",
		Partitions:  partitions,
		TrustLevel:  trust,
		Kinds: []messages.Kind{{ID: testKind, Name: "tenant", Sequences: []messages.Sequence{
			{ID: testSeq, Name: "invoice", Initial: 1000},
		}}},
	}
}

// open opens a store, which it makes if there is none, and closes it at the end of the test.
func open(t testing.TB, dir string, d messages.Descriptor, o Options) *Store {
	t.Helper()
	o.MmapSize = cmp.Or(o.MmapSize, 1<<20) // new files are as large, and tests read them whole
	s, err := Open(t.Context(), dir, d, creating(o))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { closeStore(t, s) })
	return s
}

// creating returns options with which Open makes a store.
func creating(o Options) Options {
	o.Create = true
	return o
}

func closeStore(t testing.TB, s *Store) {
	t.Helper()
	if err := s.Close(context.Background()); err != nil {
		t.Error(err)
	}
}

// numberKey names a sequence of a workspace.
type numberKey struct {
	ws  messages.WSID
	seq messages.SeqID
}

// writer makes valid events of one partition.
type writer struct {
	t       testing.TB
	s       *Store
	id      messages.PartitionID
	epoch   messages.Epoch
	next    messages.PLogOffset
	flushed messages.PLogOffset
	at      messages.Timestamp
	wlog    map[messages.WSID]messages.WLogOffset
	last    map[numberKey]messages.Number
	changed map[numberKey]messages.Number
}

// takeOver takes a new epoch and learns from the log where the partition stands.
func takeOver(t testing.TB, s *Store, id messages.PartitionID) *writer {
	t.Helper()
	reg, err := s.TakeEpoch(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	return goOn(t, s, id, reg)
}

// goOn learns from the log where the partition stands.
func goOn(t testing.TB, s *Store, id messages.PartitionID, reg storage.Register) *writer {
	t.Helper()
	w := &writer{
		t: t, s: s, id: id, epoch: reg.Epoch, next: reg.Last + 1, flushed: reg.Checkpoint, at: reg.LastRegisteredAt,
		wlog:    make(map[messages.WSID]messages.WLogOffset),
		last:    make(map[numberKey]messages.Number),
		changed: make(map[numberKey]messages.Number),
	}
	for e, err := range s.PLog(t.Context(), id, 0) {
		if err != nil {
			t.Fatal(err)
		}
		w.learn(&e)
	}
	return w
}

func (w *writer) learn(e *messages.Event) {
	w.wlog[e.Workspace] = max(w.wlog[e.Workspace], e.WLogOffset)
	set := func(seq messages.SeqID, n messages.Number) {
		k := numberKey{e.Workspace, seq}
		if n <= w.last[k] {
			return
		}
		w.last[k] = n
		if e.PLogOffset >= w.flushed {
			w.changed[k] = n
		}
	}
	if e.WLogOffset == 1 && e.PLogOffset >= w.flushed {
		w.changed[numberKey{e.Workspace, format.KindSeq}] = messages.Number(e.WorkspaceKind)
	}
	set(messages.SeqWLogOffset, messages.Number(e.WLogOffset))
	for _, n := range e.Numbering().Numbers {
		if n.Seq == testSeq && n.Number < 1000 {
			continue
		}
		set(n.Seq, n.Number)
	}
}

// event makes the next event of a workspace, with one new record of each of two
// sequences.
func (w *writer) event(ws messages.WSID) messages.Event {
	w.at++
	c := max(w.last[numberKey{ws, messages.SeqCRecordID}]+1, messages.InitialCRecordID)
	n := max(w.last[numberKey{ws, testSeq}]+1, 1000)
	return messages.Event{
		Kind: messages.EventBusiness, Epoch: w.epoch, Partition: w.id, PLogOffset: w.next,
		Workspace: ws, WorkspaceKind: testKind, WLogOffset: w.wlog[ws] + 1, RegisteredAt: w.at,
		Numbers: []messages.SequenceNumber{{Seq: messages.SeqCRecordID, Number: c}, {Seq: testSeq, Number: n}},
		Body:    fmt.Appendf(nil, "body of %d/%d", w.id, w.next),
		Records: []messages.Record{
			{ID: messages.RecordID{Seq: messages.SeqCRecordID, Number: c}, New: true, Data: fmt.Appendf(nil, "row %d", c)},
			{ID: messages.RecordID{Seq: testSeq, Number: n}, New: true, Data: fmt.Appendf(nil, "invoice %d", n)},
		},
	}
}

func (w *writer) try(events ...messages.Event) error {
	err := w.s.Append(w.t.Context(), storage.Batch{Partition: w.id, Epoch: w.epoch, Events: events})
	if err == nil {
		for i := range events {
			w.learn(&events[i])
		}
		w.next += messages.PLogOffset(len(events))
	}
	return err
}

// append appends one event to each workspace given.
func (w *writer) append(workspaces ...messages.WSID) {
	w.t.Helper()
	for _, ws := range workspaces {
		if err := w.try(w.event(ws)); err != nil {
			w.t.Fatal(err)
		}
	}
}

// appendMany appends n events in batches.
func (w *writer) appendMany(n int, workspaces ...messages.WSID) {
	w.t.Helper()
	w.tryMany(n, func() messages.Event { return w.event(workspaces[int(w.next)%len(workspaces)]) })
}

// tryMany appends n events that next makes in batches.
func (w *writer) tryMany(n int, next func() messages.Event) {
	w.t.Helper()
	for n > 0 {
		first := w.next
		var batch []messages.Event
		for range min(n, 1000) {
			e := next()
			batch = append(batch, e)
			w.learn(&e)
			w.next++
		}
		n -= len(batch)
		if err := w.s.Append(w.t.Context(), storage.Batch{Partition: w.id, Epoch: w.epoch, Events: batch}); err != nil {
			w.t.Fatalf("from %d: %v", first, err)
		}
	}
}

// pending is the flush of everything that was appended.
func (w *writer) pending() storage.Flush {
	f := storage.Flush{Partition: w.id, Epoch: w.epoch, Expected: w.flushed, Checkpoint: w.next}
	var flat []numbers.Put
	for k, n := range w.changed {
		flat = append(flat, numbers.Put{Workspace: k.ws, SequenceNumber: messages.SequenceNumber{Seq: k.seq, Number: n}})
	}
	f.Numbers = unflatten(flat)
	return f
}

func unflatten(flat []numbers.Put) []messages.WorkspaceNumbers {
	byWS := make(map[messages.WSID]*messages.WorkspaceNumbers)
	for _, n := range flat {
		w := byWS[n.Workspace]
		if w == nil {
			w = &messages.WorkspaceNumbers{Workspace: n.Workspace}
			byWS[n.Workspace] = w
		}
		if n.Seq == format.KindSeq {
			w.Kind = messages.WSKind(n.Number)
			continue
		}
		w.Numbers = append(w.Numbers, n.SequenceNumber)
	}
	var list []messages.WorkspaceNumbers
	for _, w := range byWS {
		list = append(list, *w)
	}
	return list
}

func (w *writer) flush() {
	w.t.Helper()
	if err := w.s.Flush(w.t.Context(), w.pending()); err != nil {
		w.t.Fatal(err)
	}
	w.flushed = w.next
	clear(w.changed)
}

// events collects a sequence, which must not fail.
func collectEvents(t testing.TB, seq func(func(messages.Event, error) bool)) []messages.Event {
	t.Helper()
	var list []messages.Event
	for e, err := range seq {
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, e)
	}
	return list
}

func collectRows(t testing.TB, s *Store, ws messages.WSID, r storage.RecordRange) []storage.Row {
	t.Helper()
	var list []storage.Row
	for row, err := range s.Records(t.Context(), ws, r) {
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, row)
	}
	return list
}

func crcOf(data []byte) uint32 { return crc32.Checksum(data, format.Castagnoli) }

// openPlain opens a file of a store without the store.
func openPlain(t *testing.T, dir string, r format.Role) *boltfile.File {
	t.Helper()
	f, err := openPath(t, filepath.Join(dir, r.FileName()), r.FileName(), &bbolt.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return f
}
