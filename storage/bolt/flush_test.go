package bolt

import (
	"errors"
	"reflect"
	"runtime"
	"testing"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage"
	"github.com/partita-go/partita/storage/bolt/internal/expect"
	"github.com/partita-go/partita/storage/bolt/internal/faulty"
)

// A flush must give exactly what the log says.
func TestFlushComparesNumbers(t *testing.T) {
	s := open(t, t.TempDir(), testDescriptor(1, messages.TrustNone), Options{})
	w := takeOver(t, s, 0)
	w.append(1, 2, 1)
	before := dump(t, s.state)
	for name, change := range map[string]func(*storage.Flush){
		"one too high":    func(f *storage.Flush) { f.Numbers[0].Numbers[0].Number++ },
		"one too low":     func(f *storage.Flush) { f.Numbers[1].Numbers[1].Number-- },
		"one missing":     func(f *storage.Flush) { f.Numbers[0].Numbers = f.Numbers[0].Numbers[1:] },
		"all missing":     func(f *storage.Flush) { f.Numbers = nil },
		"kind missing":    func(f *storage.Flush) { f.Numbers[0].Kind = 0 },
		"wrong kind":      func(f *storage.Flush) { f.Numbers[0].Kind = 2 },
		"one more":        func(f *storage.Flush) { f.Numbers = append(f.Numbers, wsNumbers(9, testSeq, 1000)) },
		"before the rest": func(f *storage.Flush) { f.Numbers = append(f.Numbers, wsNumbers(0, testSeq, 1000)) },
		"too early":       func(f *storage.Flush) { f.Checkpoint-- },
	} {
		f := w.pending()
		change(&f)
		var wrong *storage.NumbersError
		if err := s.Flush(t.Context(), f); !errors.As(err, &wrong) || !errors.Is(err, storage.ErrNumbers) {
			t.Fatalf("%s: got %v", name, err)
		}
		if !reflect.DeepEqual(dump(t, s.state), before) {
			t.Fatalf("%s: something was written", name)
		}
	}
	f := w.pending()
	w.flush()
	after := dump(t, s.state)
	if err := s.Flush(t.Context(), f); err != nil {
		t.Fatalf("repeated: got %v", err)
	}
	if !reflect.DeepEqual(dump(t, s.state), after) {
		t.Fatal("a repeated flush changed something")
	}
	// What does not change may be given.
	w.append(1)
	f = w.pending()
	f.Numbers = append(f.Numbers, wsNumbers(2, testSeq, 1000))
	if err := s.Flush(t.Context(), f); err != nil {
		t.Fatal(err)
	}
	w.flushed = w.next
	clear(w.changed)
	w.append(2)
	f = w.pending()
	f.Numbers = append(f.Numbers, wsNumbers(1, testSeq, 1002))
	expect.NoError(t, s.Flush(t.Context(), f))
}

// A flush that is refused leaves nothing in the transaction that it shares with others.
func TestRefusedInASharedFlush(t *testing.T) {
	dir, d := t.TempDir(), testDescriptor(3, messages.TrustNone)
	s := open(t, dir, d, Options{})
	var requests []*flushRequest
	for id := range messages.PartitionID(3) {
		w := takeOver(t, s, id)
		w.append(messages.WSID(id))
		requests = append(requests, w.flushRequest())
	}
	requests[1].given.Puts[0].Number++
	transactions, outcomes := flushTogether(t, s, requests)
	expect.Equal(t, 2, transactions)
	expect.NoError(t, errors.Join(outcomes[0], outcomes[2]))
	expect.ErrorIs(t, outcomes[1], storage.ErrNumbers)
	closeStore(t, s)
	s = open(t, dir, d, Options{})
	for id, want := range []messages.PLogOffset{2, 1, 2} {
		r, err := s.TakeEpoch(t.Context(), messages.PartitionID(id))
		expect.NoError(t, err)
		expect.Equal(t, want, r.Checkpoint, id)
	}
}

func wsNumbers(ws messages.WSID, seq messages.SeqID, n messages.Number) messages.WorkspaceNumbers {
	return messages.WorkspaceNumbers{Workspace: ws, Numbers: []messages.SequenceNumber{{Seq: seq, Number: n}}}
}

func TestFlushChecksCheckpoint(t *testing.T) {
	s := open(t, t.TempDir(), testDescriptor(1, messages.TrustNone), Options{})
	w := takeOver(t, s, 0)
	w.append(1, 2, 1)
	w.flush()
	w.append(1)
	for _, c := range []struct {
		expected, checkpoint messages.PLogOffset
		want                 error
	}{
		{1, 5, storage.ErrCheckpoint},
		{4, 6, storage.ErrCheckpoint},
		{5, 5, storage.ErrCheckpoint},
		{4, 3, storage.ErrCheckpoint},
		{0, 5, storage.ErrCheckpoint},
		{1, 3, storage.ErrCheckpoint},
		{4, 4, nil},
		{1, 4, nil},
	} {
		err := s.Flush(t.Context(), storage.Flush{Partition: 0, Epoch: w.epoch, Expected: c.expected, Checkpoint: c.checkpoint})
		if !errors.Is(err, c.want) {
			t.Fatalf("%d to %d: got %v, want %v", c.expected, c.checkpoint, err, c.want)
		}
	}
	if err := s.Flush(t.Context(), storage.Flush{Partition: 0, Epoch: w.epoch + 1, Expected: 4, Checkpoint: 5}); !errors.Is(err, messages.ErrFenced) {
		t.Fatalf("got %v", err)
	}
	if _, err := s.Tail(t.Context(), 0, 3, 1); !errors.Is(err, storage.ErrCheckpoint) {
		t.Fatalf("tail before the checkpoint: got %v", err)
	}
	w.flush()
}

// A number below the initial value, and one below the last, say nothing about the
// sequence.
func TestFlushIgnoresLowNumbers(t *testing.T) {
	dir, d := t.TempDir(), testDescriptor(1, messages.TrustNone)
	s := open(t, dir, d, Options{})
	w := takeOver(t, s, 0)
	create := func(numbers ...messages.Number) {
		e := w.event(1)
		e.Numbers, e.Records = nil, nil
		for _, n := range numbers {
			e.Records = append(e.Records, messages.Record{ID: messages.RecordID{Seq: testSeq, Number: n}, New: true})
		}
		if err := w.try(e); err != nil {
			t.Fatal(err)
		}
	}
	create(5, 2000)
	w.flush()
	create(1500, 7)
	f := w.pending()
	// What a replay of the tail alone gives: the largest among these events.
	f.Numbers[0].Numbers = append(f.Numbers[0].Numbers, messages.SequenceNumber{Seq: testSeq, Number: 1500})
	if err := s.Flush(t.Context(), f); err != nil {
		t.Fatal(err)
	}
	w.flushed = w.next
	clear(w.changed)
	e := w.event(2)
	e.Numbers, e.Records = nil, []messages.Record{{ID: messages.RecordID{Seq: testSeq, Number: 5}, New: true}}
	if err := w.try(e); err != nil {
		t.Fatal(err)
	}
	w.flush()
	if n, err := s.Numbers(t.Context(), 2); err != nil || len(n.Numbers) != 1 {
		t.Fatalf("only a low number: got %+v, %v", n, err)
	}
	n, err := s.Numbers(t.Context(), 1)
	want := []messages.SequenceNumber{{Seq: messages.SeqWLogOffset, Number: 2}, {Seq: testSeq, Number: 2000}}
	if err != nil || !reflect.DeepEqual(n.Numbers, want) || n.Kind != testKind {
		t.Fatalf("got %+v, %v, want %v", n, err, want)
	}
}

// Flushes of many partitions that wait share a transaction, and one that is refused
// does not take the others with it.
func TestFlushesShareTransactions(t *testing.T) {
	const partitions = 20
	s := open(t, t.TempDir(), testDescriptor(partitions, messages.TrustNone), Options{})
	entered, proceed := faulty.CommitsOf(s.state).Before.Hold()
	results := make([]chan error, partitions)
	for i := range results {
		w := takeOver(t, s, messages.PartitionID(i))
		w.append(messages.WSID(i), messages.WSID(i))
		f := w.pending()
		if i == 7 {
			f.Numbers[0].Numbers[0].Number++
		}
		results[i] = make(chan error, 1)
		go func() { results[i] <- s.Flush(t.Context(), f) }()
		if i == 0 {
			<-entered
		}
	}
	for len(s.flushes) < partitions-1 {
		runtime.Gosched()
	}
	close(proceed)
	for i, result := range results {
		if err := <-result; (i == 7) != errors.Is(err, storage.ErrNumbers) || i != 7 && err != nil {
			t.Errorf("partition %d: got %v", i, err)
		}
	}
	if got := s.Stats().Flushes; got != 2 {
		t.Fatalf("got %d transactions, want 2", got)
	}
}

// Flushes of one partition that wait together are done one after the other, the
// same one twice, too.
func TestFlushesOfOnePartitionQueue(t *testing.T) {
	s := open(t, t.TempDir(), testDescriptor(2, messages.TrustNone), Options{})
	other, w := takeOver(t, s, 1), takeOver(t, s, 0)
	other.append(1)
	w.append(2, 2)
	first := w.pending()
	w.flushed = w.next
	clear(w.changed)
	w.append(2, 4)
	second := w.pending()

	entered, proceed := faulty.CommitsOf(s.state).Before.Hold()
	results := make(chan error, 4)
	go func() { results <- s.Flush(t.Context(), other.pending()) }()
	<-entered
	for i, f := range []storage.Flush{first, first, second} {
		go func() { results <- s.Flush(t.Context(), f) }()
		for len(s.flushes) <= i {
			runtime.Gosched()
		}
	}
	close(proceed)
	for range cap(results) {
		if err := <-results; err != nil {
			t.Error(err)
		}
	}
	if reg, err := s.Register(t.Context(), 0); err != nil || reg.Checkpoint != 5 {
		t.Fatalf("got %+v, %v", reg, err)
	}
}
