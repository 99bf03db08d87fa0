package bolt

import (
	"context"
	"errors"
	"io"
	"testing"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage"
	"github.com/partita-go/partita/storage/bolt/internal/faulty"
	"github.com/partita-go/partita/storage/bolt/internal/numbers"
	"github.com/partita-go/partita/storage/bolt/internal/queue"
)

// flushRequest is the flush of everything that was appended, as Flush makes it.
func (w *writer) flushRequest() *flushRequest {
	f := w.pending()
	return &flushRequest{
		Ticket: queue.NewTicket(), partition: &w.s.partitions[w.id], epoch: f.Epoch, from: f.Expected, to: f.Checkpoint, given: numbers.Give(&f),
	}
}

// flushesOf returns the flushes of so many events of one partition, each for itself.
func flushesOf(w *writer, events int) (requests []*flushRequest) {
	for range events {
		w.append(1)
		requests = append(requests, w.flushRequest())
		w.flushed = w.next
		clear(w.changed)
	}
	return requests
}

// flushTogether holds the flusher in the transaction of the first flush until the others wait. It
// returns how many transactions there were, and the outcomes.
func flushTogether(t *testing.T, s *Store, requests []*flushRequest) (transactions int, outcomes []error) {
	t.Helper()
	entered, proceed := make(chan struct{}), make(chan struct{})
	faulty.CommitsOf(s.state).Before.Set(func() error {
		if transactions++; transactions == 1 {
			close(entered)
			<-proceed
		}
		return nil
	})
	s.flushes <- requests[0]
	<-entered
	for _, r := range requests[1:] {
		s.flushes <- r
	}
	close(proceed)
	for _, r := range requests {
		outcomes = append(outcomes, r.Await(t.Context(), s.flushed))
	}
	return transactions, outcomes
}

// Flushes of one partition that wait are written one after the other, though no other comes.
func TestFlushesOfAPartitionWait(t *testing.T) {
	s := open(t, t.TempDir(), testDescriptor(1, messages.TrustNone), Options{})
	w := takeOver(t, s, 0)
	transactions, outcomes := flushTogether(t, s, flushesOf(w, 4))
	if err := errors.Join(outcomes...); err != nil || transactions != 4 {
		t.Errorf("got %d transactions, %v, want four", transactions, err)
	}
	w.append(1)
	w.flush()
}

// Behind a transaction of which nobody knows whether it is on the disk, nothing is written.
func TestNothingIsFlushedAfterAnUnknownOutcome(t *testing.T) {
	s := open(t, t.TempDir(), testDescriptor(1, messages.TrustNone), Options{})
	w := takeOver(t, s, 0)
	faulty.CommitsOf(s.state).After.Fail(io.ErrUnexpectedEOF)
	transactions, outcomes := flushTogether(t, s, flushesOf(w, 3))
	if transactions != 1 || !errors.Is(outcomes[0], messages.ErrOutcomeUnknown) {
		t.Errorf("got %d transactions, the first: %v, want one: %v", transactions, outcomes[0], messages.ErrOutcomeUnknown)
	}
	for _, err := range outcomes[1:] {
		if !errors.Is(err, storage.ErrClosed) {
			t.Errorf("got %v for what waited, want %v", err, storage.ErrClosed)
		}
	}
}

// Flushes that are written together and have their fill of events leave those behind them to the next ones.
func TestFlushEndsAtItsLimit(t *testing.T) {
	t.Parallel()
	o := Options{Memory: 8 << 20}
	most := o.shares().flushEvents
	for n, transactions := range map[int]uint64{most - 1: 2, most: 3} {
		s := open(t, t.TempDir(), testDescriptor(3, messages.TrustAll), o)
		var requests []*flushRequest
		for id, events := range []int{1, n, 1} {
			w := takeOver(t, s, messages.PartitionID(id))
			for left := events; left > 0; left -= 1024 {
				batch := w.following(messages.WSID(id), min(left, 1024))
				if err := w.try(batch...); err != nil {
					t.Fatal(err)
				}
			}
			requests = append(requests, w.flushRequest())
		}
		_, outcomes := flushTogether(t, s, requests)
		if got, err := s.Stats().Flushes, errors.Join(outcomes...); err != nil || got != transactions {
			t.Errorf("%d events and one: got %d flushes, %v, want %d", n, got, err, transactions)
		}
	}
}

// A flush whose caller has given up while it waited is not written.
func TestAbandonedFlush(t *testing.T) {
	s := open(t, t.TempDir(), testDescriptor(2, messages.TrustNone), Options{})
	busy, w := takeOver(t, s, 0), takeOver(t, s, 1)
	busy.append(2)
	w.append(1)
	abandoned := w.flushRequest()
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if err := abandoned.Await(gone, s.flushed); !errors.Is(err, context.Canceled) {
		t.Fatalf("got %v, want %v", err, context.Canceled)
	}
	entered, proceed := faulty.CommitsOf(s.state).Before.Hold()
	first := busy.flushRequest()
	s.flushes <- first
	<-entered
	s.flushes <- abandoned
	close(proceed)
	if err := first.Await(t.Context(), s.flushed); err != nil {
		t.Fatal(err)
	}
	busy.flushed, busy.changed = busy.next, map[numberKey]messages.Number{}
	busy.append(2)
	busy.flush() // it is behind the abandoned one
	if r, err := s.Register(t.Context(), 1); err != nil || r.Checkpoint != 1 {
		t.Errorf("got %+v, %v, want the checkpoint where it was", r, err)
	}
}
