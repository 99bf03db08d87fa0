package tests

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/partition"
	"github.com/partita-go/partita/storage"
)

// TestTakeOver deploys the same store a second time, as another owner would: the
// older one's open transactions cannot be written any more, and no number is given
// twice.
func TestTakeOver(t *testing.T) {
	for level := messages.TrustNone; level <= messages.TrustAll; level++ {
		s := newSite(t, 2, neverFlushed())
		s.app.TrustLevel = level
		older := s.run(t)
		older.invoice(t, 2, 1)
		stale := older.open(t, 2)
		must(stale.Next(limit(t), seqInvoice))(t)

		newer := older.again(t)
		newer.invoice(t, 2, 2)
		// Not Commit: that would actualize, which takes the partition back.
		wantError(t, stale.Write(limit(t), []byte("stale")), messages.ErrFenced)
		newer.invoice(t, 2, 3)
		check(t, newer.parts.Close(limit(t)))
		// The older one finds out when it tries to flush, and has written nothing.
		_ = stale.Actualize(limit(t))
		_ = older.parts.Close(limit(t))
		verifyStore(t, older.store)
		check(t, older.store.Close(limit(t)))
		s.look(t, nil)
	}
}

// shared is a store that another process has as well.
type shared struct{ storage.Store }

func (shared) Claim(string) (func(), error) { return func() {}, nil }

// again deploys over the same store a second time.
func (d *deployment) again(t testing.TB) *deployment {
	t.Helper()
	parts := partition.NewAppParts(system, partition.Options{})
	app := must(parts.Deploy(limit(t), partition.Application{WorkspaceZero: true, Descriptor: d.store.Descriptor(), Settings: neverFlushed()}, shared{d.store}))(t)
	check(t, app.Ready(limit(t)))
	return &deployment{parts: parts, app: app, store: d.store}
}

// TestTakeOverBackAndForth lets two owners work against each other, each taking
// over from the other when it is fenced: whatever was acknowledged is there once.
func TestTakeOverBackAndForth(t *testing.T) {
	s := newSite(t, 2, neverFlushed())
	one := s.run(t)
	two := one.again(t)
	ctx, cancel := context.WithTimeout(limit(t), time.Second)
	defer cancel()
	var mu sync.Mutex
	seen := make(map[position]messages.Number)
	var clients sync.WaitGroup
	for i, d := range []*deployment{one, two, one, two} {
		clients.Go(func() {
			for ctx.Err() == nil {
				tx, err := commit(ctx, d.app, messages.WSID(i%2), seqInvoice)
				if errors.Is(err, messages.ErrBusy) {
					_ = d.app.Ready(ctx)
				}
				if err != nil {
					continue
				}
				mu.Lock()
				at := position{tx.Token().Partition, tx.PLogOffset()}
				if _, twice := seen[at]; twice {
					t.Errorf("acknowledged twice: %v", at)
				}
				seen[at] = tx.Numbers()[0].Number
				mu.Unlock()
			}
		})
	}
	clients.Wait()
	_ = one.parts.Close(limit(t))
	_ = two.parts.Close(limit(t))
	verifyStore(t, one.store)
	for at, number := range seen {
		for e, err := range one.store.PLog(limit(t), at.partition, at.offset) {
			check(t, err)
			if e.Numbers[0].Number != number {
				t.Errorf("%v: got number %d, acknowledged was %d", at, e.Numbers[0].Number, number)
			}
			break
		}
	}
	if len(seen) < 10 {
		t.Errorf("got %d commits in a second, want that both get on", len(seen))
	}
	check(t, one.store.Close(limit(t)))
}

// TestTransactionLimit: an owner that does not come back is fenced, and what it
// still writes is refused.
func TestTransactionLimit(t *testing.T) {
	s := newSite(t, 1, neverFlushed())
	clock := standingClock()
	s.options.Clock = clock
	d := s.run(t)
	tx := d.open(t, 7)
	must(tx.Next(limit(t), seqInvoice))(t)
	event := must(tx.Event([]byte("too late")))(t)
	clock.Advance(5 * time.Second)
	s.await(t, "a new epoch", func() bool {
		status := d.app.Status()[0]
		return status.Actualizations == 2 && status.State == messages.StateNormal
	})
	wantError(t, d.store.Append(limit(t), batchOf(event)), messages.ErrFenced)
	wantError(t, tx.Flush(limit(t)), messages.ErrFenced)
	d.invoice(t, 7, 1)
	d.stop(t)
}
