package bolt

import (
	"errors"
	"strings"
	"testing"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage"
	"github.com/partita-go/partita/storage/bolt/internal/expect"
	"github.com/partita-go/partita/storage/bolt/internal/faulty"
	"github.com/partita-go/partita/storage/bolt/internal/queue"
	"github.com/partita-go/partita/storage/bolt/internal/tail"
	"github.com/partita-go/partita/storage/bolt/internal/wal"
	"github.com/partita-go/partita/storage/storagetest"
)

// request makes a request of events as Append does. The committer has nothing to do meanwhile, so
// that a test may stage it in its place.
func (w *writer) request(t *testing.T, events ...messages.Event) *writeRequest {
	t.Helper()
	r := requestOf(t, w.s, &storage.Batch{Partition: w.id, Epoch: w.epoch, Events: events})
	for i := range r.events {
		n := &r.events[i]
		r.size.Add(tail.SizeOf(len(n.numbers), n.records, n.hasID()))
	}
	return r
}

// following returns the events of a workspace that come next, none of which is written.
func (w *writer) following(ws messages.WSID, n int) (events []messages.Event) {
	for i := range n {
		e := w.event(ws)
		e.PLogOffset += messages.PLogOffset(i)
		e.WLogOffset += messages.WLogOffset(i)
		e.Numbers, e.Records = nil, nil
		events = append(events, e)
	}
	return events
}

// A flush holds the records in memory that it writes: how many bytes they may have is bounded, and
// what is close to that is not put off.
func TestTailFullOfRecords(t *testing.T) {
	const limit = 64 << 10
	s := open(t, t.TempDir(), testDescriptor(2, messages.TrustNone), Options{Memory: 4 * limit})
	w := takeOver(t, s, 0)
	large := func(size int) messages.Event {
		e := w.event(2 + messages.WSID(w.id))
		e.Records = []messages.Record{{ID: messages.RecordID{Seq: testSeq, Number: messages.Number(w.next)}, New: true, Data: make([]byte, size)}}
		return e
	}
	staged, next := newStaging(s), large(1)
	next.PLogOffset, next.WLogOffset = next.PLogOffset+1, next.WLogOffset+1
	expect.NoError(t, staged.admit(w.request(t, large(limit))))
	expect.ErrorIs(t, staged.admit(w.request(t, next)), storage.ErrTailFull)
	expect.NoError(t, w.try(large(limit/2)))
	expect.Equal(t, false, s.pressed())
	expect.NoError(t, w.try(large(1)))
	expect.Equal(t, true, s.pressed())
	expect.NoError(t, w.try(large(limit/2-1)))
	expect.ErrorIs(t, w.try(large(1)), storage.ErrTailFull)
	w.flush()
	expect.Equal(t, int64(0), s.tails.Rows.Load())
	expect.NoError(t, w.try(large(2*limit))) // it is alone
	expect.ErrorIs(t, w.try(large(1)), storage.ErrTailFull)
	// What brings no data is taken, and another partition has a limit of its own.
	expect.NoError(t, w.try(large(0)))
	expect.NoError(t, s.Append(t.Context(), storage.Batch{Partition: 0, Epoch: w.epoch}))
	w = takeOver(t, s, 1)
	expect.NoError(t, w.try(large(2*limit)))
}

// One transaction does not take what it need not have in memory at the same time.
func TestFlushOfManyRecordsIsCut(t *testing.T) {
	const limit = 64 << 10
	for size, grouped := range map[int]int{limit - 1: 2, limit: 1} {
		s := open(t, t.TempDir(), testDescriptor(2, messages.TrustNone), Options{Memory: 4 * limit})
		f := newFlusher(s)
		for id := range messages.PartitionID(2) {
			w := takeOver(t, s, id)
			e := w.event(messages.WSID(id))
			e.Records = []messages.Record{{ID: messages.RecordID{Seq: testSeq, Number: 1}, New: true, Data: make([]byte, size)}}
			expect.NoError(t, w.try(e))
			f.held = append(f.held, &flushRequest{Ticket: queue.NewTicket(), partition: &s.partitions[id], epoch: w.epoch, from: 1, to: 2})
		}
		group := f.gather(f.next())
		expect.Equal(t, []int{grouped, 2 - grouped}, []int{len(group), len(f.held)})
		for _, r := range group {
			r.partition.endFlush()
		}
	}
}

// The limits of the tail hold for all that is written in one commit.
func TestTailFullInOneCommit(t *testing.T) {
	for name, o := range map[string]Options{
		"events": {TailEvents: 3},
		"bytes":  {Memory: 4 * 3 * tail.BytesOf(0, 0, false)},
	} {
		t.Run(name, func(t *testing.T) {
			s := open(t, t.TempDir(), testDescriptor(1, messages.TrustNone), o)
			w := takeOver(t, s, 0)
			events := w.following(1, 4)
			g := newStaging(s)
			if err := g.admit(w.request(t, events[:2]...)); err != nil {
				t.Fatal(err)
			}
			if err := g.admit(w.request(t, events[2:]...)); !errors.Is(err, storage.ErrTailFull) {
				t.Errorf("two events behind two: got %v, want %v", err, storage.ErrTailFull)
			}
			if err := g.admit(w.request(t, events[2])); err != nil {
				t.Errorf("one event behind two: got %v", err)
			}
		})
	}
}

// An empty tail has room for any batch.
func TestLargeBatchIntoAnEmptyTail(t *testing.T) {
	for name, o := range map[string]Options{"events": {TailEvents: 2}, "bytes": {Memory: 1}} {
		t.Run(name, func(t *testing.T) {
			s := open(t, t.TempDir(), testDescriptor(1, messages.TrustNone), o)
			w := takeOver(t, s, 0)
			w.appendMany(3, 1)
			if err := w.try(w.event(1)); !errors.Is(err, storage.ErrTailFull) {
				t.Errorf("behind it: got %v, want %v", err, storage.ErrTailFull)
			}
		})
	}
}

// A record that one request of a commit brings is in the way of the next one's, also behind the
// first that had to be looked for.
func TestSameRecordInOneCommit(t *testing.T) {
	s := open(t, t.TempDir(), testDescriptor(1, messages.TrustNone), Options{})
	w := takeOver(t, s, 0)
	g := newStaging(s)
	for _, e := range w.following(2, 2) {
		e.Records = []messages.Record{{ID: messages.RecordID{Seq: testSeq, Number: 5000 + messages.Number(e.WLogOffset)}, New: true}}
		expect.NoError(t, g.admit(w.request(t, e)))
		e.PLogOffset++
		e.WLogOffset++
		if err := g.admit(w.request(t, e)); !conflictAt(err, storage.PlaceRecord) {
			t.Errorf("got %v, want a conflict", err)
		}
	}
}

// What was staged for one commit is forgotten with it, and its memory does not grow.
func TestStagingForgets(t *testing.T) {
	s := open(t, t.TempDir(), testDescriptor(1, messages.TrustNone), Options{TailEvents: 2, Memory: 4 * 2 * tail.BytesOf(0, 0, false)})
	w := takeOver(t, s, 0)
	events := w.following(1, 2)
	g := newStaging(s)
	for range 3 {
		if err := g.admit(w.request(t, events...)); err != nil {
			t.Fatal(err)
		}
		if len(g.ends) != 1 {
			t.Errorf("got the ends of %d workspaces, want one", len(g.ends))
		}
		g.reset()
	}
	if len(g.accepted) != 0 || len(g.ends) != 0 || g.events != 0 || g.bytes != 0 {
		t.Errorf("got %d requests, %d ends, %d events, %d bytes staged, want none", len(g.accepted), len(g.ends), g.events, g.bytes)
	}
}

// A refusal says what was wanted.
func TestOutOfOrderSaysWhatIsNext(t *testing.T) {
	s := open(t, t.TempDir(), testDescriptor(1, messages.TrustNone), Options{})
	w := takeOver(t, s, 0)
	w.append(1, 1, 1)
	late, early := w.event(1), w.event(1)
	late.PLogOffset += 3
	early.WLogOffset += 5
	for e, want := range map[*messages.Event]string{&late: "got offset 7, want 4", &early: "workspace 1: got offset 9, want 4"} {
		if err := w.try(*e); !errors.Is(err, storage.ErrOutOfOrder) || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %v with %q", err, storage.ErrOutOfOrder, want)
		}
	}
}

// The conflict of an event that was written before names the place in its workspace's log, also when
// it has left the tail.
func TestRepeatedWorkspaceOffset(t *testing.T) {
	s := open(t, t.TempDir(), testDescriptor(1, messages.TrustNone), Options{})
	w := takeOver(t, s, 0)
	again := w.event(1)
	w.append(1)
	w.flush()
	again.PLogOffset, again.RegisteredAt = w.next, w.at
	again.Numbers, again.Records = nil, nil
	err := w.try(again)
	conflict, ok := errors.AsType[*storage.ConflictError](err)
	if !ok || conflict.Place != storage.PlaceWLog || conflict.Workspace != 1 || conflict.WLogOffset != 1 {
		t.Errorf("got %v, want a conflict at offset 1 of workspace 1", err)
	}
}

// The conflict at a place of the partition's log names the event that was to go there.
func TestConflictNamesTheEvent(t *testing.T) {
	s := open(t, t.TempDir(), testDescriptor(1, messages.TrustNone), Options{})
	w := takeOver(t, s, 0)
	w.append(3, 3)
	w.flush()
	e := w.event(3)
	plant(t, s, storage.PlacePLog, &e)
	forgetEnds(s)
	err := w.try(e)
	conflict, ok := errors.AsType[*storage.ConflictError](err)
	if !ok || conflict.Place != storage.PlacePLog || conflict.PLogOffset != 3 || conflict.Workspace != 3 || conflict.WLogOffset != 3 {
		t.Errorf("got %v, want a conflict at offset 3, with offset 3 of workspace 3", err)
	}
}

// Whoever takes an epoch while a flush is under way learns where that has left the checkpoint.
func TestTakeEpochDuringAFlushLearnsTheCheckpoint(t *testing.T) {
	s := open(t, t.TempDir(), testDescriptor(1, messages.TrustNone), Options{})
	w := takeOver(t, s, 0)
	w.append(1, 2)
	entered, proceed := faulty.CommitsOf(s.state).Before.Hold()
	flushed := make(chan error, 1)
	go func() { flushed <- s.Flush(t.Context(), w.pending()) }()
	<-entered
	type taken struct {
		register storage.Register
		err      error
	}
	learned := make(chan taken, 1)
	go func() {
		r, err := s.TakeEpoch(t.Context(), 0)
		learned <- taken{r, err}
	}()
	for epoch := w.epoch; epoch == w.epoch; {
		r, err := s.Register(t.Context(), 0)
		if err != nil {
			t.Fatal(err)
		}
		epoch = r.Epoch
	}
	close(proceed)
	if err := <-flushed; err != nil {
		t.Fatal(err)
	}
	got := <-learned
	if got.err != nil || got.register.Epoch != w.epoch+1 || got.register.Last != 2 || got.register.Checkpoint != 3 {
		t.Errorf("got %+v, %v, want epoch %d, last 2, checkpoint 3", got.register, got.err, w.epoch+1)
	}
}

// TestFailedCommitTakesNoKeys: what was staged for a commit that wrote nothing is free.
func TestFailedCommitTakesNoKeys(t *testing.T) {
	s := open(t, t.TempDir(), storagetest.Descriptor(messages.TrustNone), Options{})
	disk, p := diskOf(s), storagetest.Take(t, s, 0)
	row := func(n messages.Number) storagetest.Spec {
		return storagetest.Spec{Workspace: 3, Explicit: []messages.RecordID{{Seq: storagetest.SeqOrder, Number: n}}}
	}
	p.Append(t, row(100))
	large := row(50) // it lies below the end, so that it is looked for
	large.Body = make([]byte, wal.Chunk)
	b := p.Build(large)
	disk.Growth.Fail(errNoSpace)
	if err := s.Append(t.Context(), b); !errors.Is(err, storage.ErrFull) {
		t.Fatalf("got %v, want ErrFull", err)
	}
	disk.Growth.Clear()
	if err := s.Append(t.Context(), b); err != nil {
		t.Fatal(err)
	}
}
