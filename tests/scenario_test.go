package tests

import (
	"errors"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/partition"
	"github.com/partita-go/partita/storage/bolt"
	"github.com/partita-go/partita/storage/storagetest"
)

// flushedTo waits until a partition's checkpoint is behind its last event.
func (s *site) flushedTo(t testing.TB, d *deployment, p messages.PartitionID) {
	t.Helper()
	s.await(t, "everything is flushed", func() bool {
		r, err := d.store.Register(limit(t), p)
		return err == nil && r.Checkpoint == r.Last+1
	})
}

// TestFlushByTimer: below the threshold the interval flushes, also a transaction
// without numbers.
func TestFlushByTimer(t *testing.T) {
	s := newSite(t, 1, partition.Settings{})
	clock := standingClock()
	s.options.Clock = clock
	s.faulty = true
	d := s.run(t)
	for n := range 5 {
		if n%2 == 0 {
			d.commit(t, 7, seqInvoice)
		} else {
			d.commit(t, 7)
		}
		clock.Advance(499 * time.Millisecond)
		if got := s.faults.Calls(storagetest.OpFlush); got != n {
			t.Errorf("got %d flushes before the interval has passed, want %d", got, n)
		}
		clock.Advance(time.Millisecond)
		s.flushedTo(t, d, 0)
	}
	// The partition may not have heard of the flush yet. The transaction's timer may still be armed.
	s.await(t, "no other timer of an idle partition", func() bool { return clock.Timers() <= 1 })
	d.stop(t)
}

// TestFlushBySize: at the threshold a flush starts although no time passes.
func TestFlushBySize(t *testing.T) {
	s := newSite(t, 1, partition.Settings{FlushThreshold: 12, FlushInterval: time.Hour})
	s.options.Clock = standingClock()
	s.faulty = true
	d := s.run(t)
	for ws := range messages.WSID(4) {
		if got := s.faults.Calls(storagetest.OpFlush); got != 0 {
			t.Errorf("got %d flushes after %d workspaces, want none", got, ws)
		}
		d.commit(t, ws, seqInvoice) // 3 keys: kind, WLog offset, invoice
	}
	s.flushedTo(t, d, 0)
	if got := s.faults.Calls(storagetest.OpFlush); got != 1 {
		t.Errorf("got %d flushes, want 1", got)
	}
	d.stop(t)
}

// TestLongRecovery: with a limit of 5 keys, logs of 0 to 50 events with many keys
// are recovered by a new instance each time, and the numbers go on.
func TestLongRecovery(t *testing.T) {
	s := newSite(t, 1, partition.Settings{FlushThreshold: 5, BusyLimit: 5, FlushInterval: time.Hour, CatchUpCheckpoint: time.Hour})
	given := make(map[messages.WSID]messages.Number)
	for length := 0; length <= 50; length += 1 + length/4 {
		store := openBolt(t, s.dir, s.app.Descriptor, bolt.Options{})
		h := newHistory(t, store, 1)
		h.resume(t, given)
		for i := range length {
			h.add(t, messages.WSID(i%17))
		}
		h.write(t, 0)
		check(t, store.Close(limit(t)))
		for i := range length {
			given[messages.WSID(i%17)]++
		}
		d := s.run(t)
		for ws := range messages.WSID(3) {
			d.commitAgain(t, ws)
			given[ws]++
		}
		d.crash(t)
		s.look(t, nil)
	}
	d := s.run(t)
	for ws, n := range given {
		s.await(t, "there is room", func() bool {
			tx, err := commit(limit(t), d.app, ws, seqInvoice)
			if err == nil && tx.Numbers()[0].Number != n+1 {
				t.Errorf("workspace %d: got number %d, want %d", ws, tx.Numbers()[0].Number, n+1)
			}
			return err == nil
		})
	}
	d.stop(t)
}

// TestMultipleActualizes: over many random cycles of commits, cancellations,
// actualizations and crashes, numbers go up by one.
func TestMultipleActualizes(t *testing.T) {
	random := rand.New(rand.NewPCG(uint64(setting("SEED", 1)), 0))
	s := newSite(t, 1, often)
	d := s.run(t)
	next := make(map[messages.WSID]messages.Number)
	for range 100 {
		ws := messages.WSID(random.IntN(4))
		for range random.IntN(3) {
			s.await(t, "the partition is ready", func() bool {
				tx, err := commit(limit(t), d.app, ws, seqInvoice)
				if err == nil {
					next[ws]++
					if got := tx.Numbers()[0].Number; got != next[ws] {
						t.Fatalf("workspace %d: got number %d, want %d", ws, got, next[ws])
					}
				}
				return err == nil
			})
		}
		s.awaitState(t, d, 0, messages.StateNormal)
		tx := d.open(t, ws)
		must(tx.Next(limit(t), seqInvoice))(t)
		switch random.IntN(8) {
		case 0:
			check(t, d.store.Close(limit(t)))
			_ = tx.Cancel(limit(t)) // else its limit would be waited for
			_ = d.parts.Close(limit(t))
			d = s.run(t)
		case 1, 2:
			check(t, tx.Cancel(limit(t)))
		default:
			check(t, tx.Actualize(limit(t)))
			check(t, d.app.Ready(limit(t)))
		}
	}
	check(t, d.app.Ready(limit(t)))
	d.stop(t)
}

// TestFlushPermanentlyFails: transactions go on until the limit, then Start is busy;
// nothing is lost, and it heals.
func TestFlushPermanentlyFails(t *testing.T) {
	s := newSite(t, 1, partition.Settings{FlushThreshold: 10, BusyLimit: 40, FlushInterval: time.Millisecond, RetryDelay: time.Millisecond})
	s.faulty = true
	d := s.run(t)
	s.faults.Plant(storagetest.Fault{Op: storagetest.OpFlush, Do: storagetest.Fail(errInjected)})
	committed := 0
	for ws := messages.WSID(0); ; ws++ {
		_, err := commit(limit(t), d.app, ws, seqInvoice)
		if err != nil {
			busy, ok := errors.AsType[*messages.BusyError](err)
			if !ok || busy.Reason != messages.BusyUnflushed || busy.RetryAfter <= 0 {
				t.Fatalf("got %v, want busy because of what is not flushed, and when to retry", err)
			}
			break
		}
		committed++
	}
	if committed < 40/3 || committed > 40/3+1 {
		t.Errorf("got %d commits before the limit of 40 keys", committed)
	}
	s.awaitState(t, d, 0, messages.StateAlarming)
	s.faults.Heal()
	s.awaitState(t, d, 0, messages.StateNormal)
	s.flushedTo(t, d, 0)
	d.invoice(t, 0, 2)
	d.stop(t)
}

// TestEviction: with room for one workspace in the cache, numbers are loaded again
// and again, before and after they are flushed, and are right.
func TestEviction(t *testing.T) {
	for name, settings := range map[string]partition.Settings{"flushing often": often, "never flushing": neverFlushed()} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t, 1, settings)
			s.app.CacheNumbers = 1
			for round := range messages.Number(3) {
				d := s.run(t)
				for n := range messages.Number(4) {
					for ws := range messages.WSID(8) {
						d.invoice(t, ws, 4*round+n+1)
					}
				}
				if round == 1 {
					d.crash(t)
				} else {
					d.stop(t)
				}
			}
		})
	}
}

// TestThousandPartitions are deployed, become ready, work, and are undeployed.
func TestThousandPartitions(t *testing.T) {
	const n = 1000
	s := newSite(t, n, partition.Settings{})
	s.options.Observer = nil
	for round := range messages.Number(2) {
		d := s.run(t)
		for ws := messages.WSID(0); ws < n; ws += 50 {
			d.invoice(t, ws, round+1)
		}
		d.stop(t)
	}
}
