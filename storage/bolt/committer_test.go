package bolt

import (
	"bytes"
	"errors"
	"sync/atomic"
	"testing"

	"go.etcd.io/bbolt"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage"
	"github.com/partita-go/partita/storage/bolt/internal/boltfile"
	"github.com/partita-go/partita/storage/bolt/internal/expect"
	"github.com/partita-go/partita/storage/bolt/internal/faulty"
	"github.com/partita-go/partita/storage/bolt/internal/format"
	"github.com/partita-go/partita/storage/bolt/internal/queue"
)

// whileBusy hands requests over while the committer is held in a commit of another one, so that they
// wait together. It returns when they have been answered.
func whileBusy(t *testing.T, s *Store, disk *faulty.Disk, busy *writeRequest, requests ...*writeRequest) {
	t.Helper()
	entered, proceed := disk.Before.Hold()
	s.writes <- busy
	<-entered
	for _, r := range requests {
		s.writes <- r
	}
	close(proceed)
	for _, r := range append(requests, busy) {
		if err := r.Await(t.Context(), s.committed); err != nil {
			t.Error(err)
		}
	}
}

// A commit ends with the request that reaches its limit of events.
func TestCommitEndsAtItsLimit(t *testing.T) {
	s := open(t, t.TempDir(), testDescriptor(1, messages.TrustNone), Options{})
	disk, w := diskOf(s), takeOver(t, s, 0)
	for n, commits := range map[int]uint64{maxCommitEvents - 1: 2, maxCommitEvents: 3} {
		before := s.Stats().Commits
		events := w.following(1, n+2)
		whileBusy(t, s, disk, w.request(t, events[0]), w.request(t, events[1:n+1]...), w.request(t, events[n+1]))
		if got := s.Stats().Commits - before; got != commits {
			t.Errorf("%d events and one: got %d commits, want %d", n, got, commits)
		}
		w.next += messages.PLogOffset(n + 2)
		w.wlog[1] += messages.WLogOffset(n + 2)
	}
}

// A commit ends with the request that reaches its limit of bytes.
func TestCommitEndsAtItsBytes(t *testing.T) {
	s := open(t, t.TempDir(), testDescriptor(1, messages.TrustNone), Options{})
	disk, w := diskOf(s), takeOver(t, s, 0)
	for name, c := range map[string]struct {
		least   int
		commits uint64
	}{"less": {maxCommitBytes - largeRequest/2, 2}, "enough": {maxCommitBytes, 3}} {
		before := s.Stats().Commits
		busy := w.of(t, 10)
		var requests []*writeRequest
		for bytes := 0; bytes < c.least; bytes += requests[len(requests)-1].bytes() {
			requests = append(requests, w.of(t, largeRequest/2-1000))
		}
		whileBusy(t, s, disk, busy, append(requests, w.of(t, 10))...)
		if got := s.Stats().Commits - before; got != c.commits {
			t.Errorf("%s: %d large requests and a small one: got %d commits, want %d", name, len(requests), got, c.commits)
		}
	}
}

// What a commit claims is its own size, not that of those before it.
func TestCommitCountsItsOwnBytes(t *testing.T) {
	s := open(t, t.TempDir(), testDescriptor(1, messages.TrustNone), Options{})
	w := takeOver(t, s, 0)
	c := newCommitter(s)
	for range 2 {
		r := w.request(t, w.following(1, 1)...)
		if !c.serve(r) {
			t.Fatal("the commit failed")
		}
		if err := r.Await(t.Context(), s.committed); err != nil {
			t.Fatal(err)
		}
		if c.bytes != len(r.events[0].value) {
			t.Errorf("got %d bytes, want %d", c.bytes, len(r.events[0].value))
		}
		w.next++
		w.wlog[1]++
	}
}

// Pages are full that are written in order: those of the log, and of the packs of records.
func TestPagesAreFull(t *testing.T) {
	s := open(t, t.TempDir(), testDescriptor(1, messages.TrustNone), Options{})
	w := takeOver(t, s, 0)
	for range 100 {
		w.appendMany(20, 1)
	}
	w.flush()
	for name, c := range map[string]struct {
		f      *boltfile.File
		bucket []byte
		keys   int
	}{
		"log":   {settled(t, s), format.BucketLog, 2000},
		"packs": {s.state, format.BucketPacks, 64},
	} {
		var stats bbolt.BucketStats
		expect.NoError(t, c.f.View(func(tx *bbolt.Tx) error {
			stats = tx.Bucket(c.bucket).Stats()
			return nil
		}))
		if used := float64(stats.LeafInuse) / float64(stats.LeafAlloc); stats.KeyN != c.keys || used < 0.7 {
			t.Errorf("%s: got %d entries in leaves that are used to %.2f, want %d and more than 0.7", name, stats.KeyN, used, c.keys)
		}
	}
}

// The place where the log ends in memory is compared with the file: what somebody else has put there
// stays, and is named; what is gone is damage.
func TestLogThatEndsElsewhere(t *testing.T) {
	events := map[string]messages.LSN{"empty log": 0, "two events": 2}
	for name, last := range events {
		t.Run(name+", a foreign entry behind", func(t *testing.T) {
			s := open(t, t.TempDir(), testDescriptor(1, messages.TrustNone), Options{})
			w := takeOver(t, s, 0)
			w.appendMany(int(last), 3)
			e := w.event(3)
			put(t, settled(t, s), format.BucketLog, format.AppendLSNKey(nil, last+1), foreign)
			err := w.try(e)
			conflict, ok := errors.AsType[*storage.ConflictError](err)
			if !ok || conflict.Place != storage.PlaceLog || conflict.LSN != last+1 ||
				conflict.Workspace != 3 || conflict.PLogOffset != e.PLogOffset || conflict.WLogOffset != e.WLogOffset {
				t.Errorf("got %v, want a conflict at LSN %d that names the event", err, last+1)
			}
			if got := get(t, settled(t, s), format.BucketLog, format.AppendLSNKey(nil, last+1)); !bytes.Equal(got, foreign) {
				t.Error("the foreign value was overwritten")
			}
		})
	}
	t.Run("a foreign entry where an epoch is taken", func(t *testing.T) {
		s := open(t, t.TempDir(), testDescriptor(1, messages.TrustNone), Options{})
		put(t, settled(t, s), format.BucketLog, format.AppendLSNKey(nil, 1), foreign)
		if _, err := s.TakeEpoch(t.Context(), 0); !conflictAt(err, storage.PlaceLog) {
			t.Errorf("got %v, want a conflict", err)
		}
	})
	for name, gone := range map[string][]messages.LSN{"the last entry is gone": {2}, "all are gone": {1, 2}} {
		t.Run(name, func(t *testing.T) {
			s := open(t, t.TempDir(), testDescriptor(1, messages.TrustNone), Options{})
			w := takeOver(t, s, 0)
			w.append(3, 3)
			if err := settled(t, s).Update(func(tx *bbolt.Tx) error {
				for _, lsn := range gone {
					if err := tx.Bucket(format.BucketLog).Delete(format.AppendLSNKey(nil, lsn)); err != nil {
						return err
					}
				}
				return nil
			}); err != nil {
				t.Fatal(err)
			}
			if err := w.try(w.event(3)); !errors.Is(err, storage.ErrDamaged) {
				t.Errorf("got %v, want %v", err, storage.ErrDamaged)
			}
		})
	}
}

// What waits when the store is closed is written before it is.
func TestCloseServesWhoWaits(t *testing.T) {
	// The committer may see either first: the request or that the store closes.
	for range 8 {
		s := open(t, t.TempDir(), testDescriptor(1, messages.TrustNone), Options{})
		w := takeOver(t, s, 0)
		events := w.following(1, 2)
		entered, proceed := diskOf(s).Before.Hold()
		first, second := w.request(t, events[0]), w.request(t, events[1])
		s.writes <- first
		<-entered
		s.writes <- second
		closed := make(chan error, 1)
		go func() { closed <- s.Close(t.Context()) }()
		<-s.closing
		close(proceed)
		if err := first.Await(t.Context(), s.committed); err != nil {
			t.Fatal(err)
		}
		if err := second.Await(t.Context(), s.committed); err != nil {
			t.Fatalf("got %v for what waited when the store was closed", err)
		}
		if err := <-closed; err != nil {
			t.Fatal(err)
		}
	}
}

// TestRefusalRestsOnTheCommit: what is refused because of something else in the same commit
// is told so only if that commit succeeds.
func TestRefusalRestsOnTheCommit(t *testing.T) {
	s := open(t, t.TempDir(), testDescriptor(2, messages.TrustNone), Options{})
	disk, commits := diskOf(s), faulty.CommitsOf(s.log.File)
	w, other := takeOver(t, s, 0), takeOver(t, s, 1)
	w.append(2)
	commits.Before.Fail(errNoSpace)
	begun, goOn := disk.Before.Hold()
	first := make(chan error, 1)
	go func() { first <- other.try(other.event(3)) }()
	<-begun
	// These two are the next commit.
	epoch := &writeRequest{Ticket: queue.NewTicket(), partition: &s.partitions[0], takeEpoch: true}
	s.writes <- epoch
	b := storage.Batch{Partition: 0, Epoch: w.epoch, Events: []messages.Event{w.event(2)}}
	answer := make(chan error, 1)
	if s.Submit(b, func(err error) { answer <- err }) != nil {
		t.Fatal("the batch was not taken")
	}
	close(goOn)
	if err := <-first; err != nil {
		t.Fatal(err)
	}
	if err := <-answer; errors.Is(err, messages.ErrFenced) || !errors.Is(err, storage.ErrFull) {
		t.Errorf("got %v, want ErrFull: nobody has taken an epoch", err)
	}
}

// TestACommitEnds although those who are refused come back at once.
func TestACommitEnds(t *testing.T) {
	s := open(t, t.TempDir(), testDescriptor(1, messages.TrustNone), Options{})
	w := takeOver(t, s, 0)
	w.append(2)
	var again func(error)
	var ended atomic.Bool
	again = func(error) {
		if !ended.Load() {
			s.Submit(storage.Batch{Partition: 0, Epoch: w.epoch + 1}, again)
		}
	}
	again(nil)
	err := w.try(w.event(2))
	ended.Store(true)
	if err != nil {
		t.Error(err)
	}
}
