package bolt

import (
	"errors"
	"runtime"
	"sync"
	"testing"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage"
	"github.com/partita-go/partita/storage/bolt/internal/faulty"
)

// Appends that wait at the same time share a commit.
func TestAppendsShareCommits(t *testing.T) {
	const partitions = 50
	s := open(t, t.TempDir(), testDescriptor(partitions, messages.TrustNone), Options{})
	writers := make([]*writer, partitions)
	for i := range writers {
		writers[i] = takeOver(t, s, messages.PartitionID(i))
	}
	entered, proceed := diskOf(s).Before.Hold()
	before := s.Stats().Commits
	var wait sync.WaitGroup
	start := func(w *writer) {
		wait.Go(func() {
			if err := w.try(w.event(messages.WSID(w.id))); err != nil {
				t.Error(err)
			}
		})
	}
	start(writers[0])
	<-entered
	for _, w := range writers[1:] {
		start(w)
	}
	for len(s.writes) < partitions-1 {
		runtime.Gosched()
	}
	close(proceed)
	wait.Wait()
	if got := s.Stats().Commits - before; got != 2 {
		t.Fatalf("got %d commits, want 2", got)
	}
}

// A request that is refused leaves no trace on those in the same commit.
func TestRefusedInTheSameCommit(t *testing.T) {
	s := open(t, t.TempDir(), testDescriptor(1, messages.TrustNone), Options{})
	commits := faulty.CommitsOf(s.log.File)
	w := takeOver(t, s, 0)
	w.append(1)
	settled(t, s)
	good, bad := w.event(1), w.event(1)
	second := w.event(2)
	bad.Records[1] = messages.Record{ID: messages.RecordID{Seq: testSeq, Number: 1000}, New: true} // taken
	batch := func(events ...messages.Event) *writeRequest {
		return prepared(t, s, &storage.Batch{Partition: 0, Epoch: w.epoch, Events: events})
	}
	second.PLogOffset, second.Records = 3, nil
	good2 := second
	good2.RegisteredAt++
	requests := []*writeRequest{batch(bad), batch(second), batch(good, second), batch(good)}
	wants := []error{storage.ErrConflict, storage.ErrOutOfOrder, nil, storage.ErrOutOfOrder}
	// The committer is kept busy until all requests wait.
	entered, proceed := commits.Before.Hold()
	busy := make(chan error)
	go func() {
		_, err := s.TakeEpoch(t.Context(), 0)
		busy <- err
	}()
	<-entered
	for _, r := range requests {
		r.epoch++ // the epoch being taken
		s.writes <- r
	}
	close(proceed)
	if err := <-busy; err != nil {
		t.Fatal(err)
	}
	for i, r := range requests {
		if err := r.Await(t.Context(), s.committed); !errors.Is(err, wants[i]) {
			t.Fatalf("request %d: got %v, want %v", i, err, wants[i])
		}
	}
	if got := collectEvents(t, s.PLog(t.Context(), 0, 0)); len(got) != 3 {
		t.Fatalf("got %d events", len(got))
	}
}

// Whoever has an acknowledgement finds everything, while flushes move it from the
// tail to state.db; no reader misses an event before one that it sees.
func TestReadYourWritesWhileFlushing(t *testing.T) {
	const partitions, events = 3, 150
	s := open(t, t.TempDir(), testDescriptor(partitions, messages.TrustNone), Options{})
	var wait sync.WaitGroup
	for id := range messages.PartitionID(partitions) {
		w := takeOver(t, s, id)
		ws := []messages.WSID{messages.WSID(id), messages.WSID(id) + partitions}
		flushes := make(chan storage.Flush, 1)
		wait.Go(func() {
			for f := range flushes {
				if err := s.Flush(t.Context(), f); err != nil {
					t.Error(err)
				}
			}
		})
		wait.Go(func() {
			defer close(flushes)
			for i := range events {
				if err := w.try(w.event(ws[i%2])); err != nil {
					t.Error(err)
					return
				}
				if !checkComplete(t, s, w, ws[i%2]) {
					return
				}
				if i%7 != 6 {
					continue
				}
				select {
				case flushes <- w.pending():
					w.flushed = w.next
					clear(w.changed)
				default:
				}
			}
		})
	}
	wait.Wait()
}

// checkComplete reads everything that the writer has had acknowledged.
func checkComplete(t *testing.T, s *Store, w *writer, ws messages.WSID) bool {
	from := max(1, w.next-min(w.next, 40))
	next := from
	for e, err := range s.PLog(t.Context(), w.id, from) {
		if err != nil || e.PLogOffset != next {
			t.Errorf("PLog: got offset %d, %v, want %d", e.PLogOffset, err, next)
			return false
		}
		next++
	}
	var wlog messages.WLogOffset
	for e, err := range s.WLog(t.Context(), ws, 0) {
		if wlog++; err != nil || e.WLogOffset != wlog {
			t.Errorf("WLog: got offset %d, %v, want %d", e.WLogOffset, err, wlog)
			return false
		}
	}
	number := messages.Number(1000)
	for row, err := range s.Records(t.Context(), ws, storage.RecordRange{Seq: testSeq}) {
		if err != nil || row.ID.Number != number {
			t.Errorf("records: got %v, %v, want %d", row.ID, err, number)
			return false
		}
		number++
	}
	if next != w.next || wlog != w.wlog[ws] || number != 1000+messages.Number(wlog) {
		t.Errorf("partition %d: got %d, %d, %d, want %d, %d", w.id, next, wlog, number, w.next, w.wlog[ws])
		return false
	}
	return true
}

// A key that was taken stays taken while its event moves from the tail to state.db.
func TestTakenKeyIsSeenDuringFlush(t *testing.T) {
	s := open(t, t.TempDir(), testDescriptor(1, messages.TrustNone), Options{})
	w := takeOver(t, s, 0)
	for i := range 60 {
		id := messages.RecordID{Seq: testSeq, Number: messages.Number(i + 1)}
		e := w.event(1)
		e.Records = append(e.Records, messages.Record{ID: id, New: true})
		if err := w.try(e); err != nil {
			t.Fatal(err)
		}
		flushed := make(chan error, 1)
		f := w.pending()
		go func() { flushed <- s.Flush(t.Context(), f) }()
		again := w.event(1)
		again.Records = []messages.Record{{ID: id, New: true}}
		again.Numbers = nil
		for done := false; !done; {
			select {
			case err := <-flushed:
				if err != nil {
					t.Fatal(err)
				}
				done = true
			default:
			}
			if err := s.Append(t.Context(), storage.Batch{Partition: 0, Epoch: w.epoch, Events: []messages.Event{again}}); !conflictAt(err, storage.PlaceRecord) {
				t.Fatalf("got %v", err)
			}
		}
		w.flushed = w.next
		clear(w.changed)
	}
}

func TestTailFull(t *testing.T) {
	s := open(t, t.TempDir(), testDescriptor(2, messages.TrustNone), Options{TailEvents: 3})
	w := takeOver(t, s, 0)
	w.append(2, 2, 2)
	if err := w.try(w.event(2)); !errors.Is(err, storage.ErrTailFull) {
		t.Fatalf("got %v", err)
	}
	takeOver(t, s, 1).append(1)
	w.flush()
	w.append(2)
	small := open(t, t.TempDir(), testDescriptor(1, messages.TrustNone), Options{Memory: 4000})
	w = takeOver(t, small, 0)
	var err error
	for n := 0; err == nil && n < 100; n++ {
		err = w.try(w.event(2))
	}
	if !errors.Is(err, storage.ErrTailFull) || small.Stats().TailBytes > 1000 {
		t.Fatalf("got %v, %+v", err, small.Stats())
	}
	w.flush()
	if n := small.tails.Rows.Load(); n != 0 {
		t.Errorf("got %d bytes of records unflushed, want none", n)
	}
	if st := small.Stats(); st.TailBytes != 0 || st.TailEvents != 0 {
		t.Fatalf("got %+v", st)
	}
	w.append(2)
}
