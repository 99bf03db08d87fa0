package tests

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/partition"
	"github.com/partita-go/partita/storage"
	"github.com/partita-go/partita/storage/storagetest"
)

// shortStop are settings under which a stop gives up soon.
func shortStop(flush partition.Settings) partition.Settings {
	flush.StopLimit = 30 * time.Millisecond
	flush.RetryDelay = 2 * time.Millisecond
	return flush
}

var errInjected = errors.New("injected")

// flushFaults are the ways in which a flush cannot succeed.
var flushFaults = map[string]func(*storagetest.Gate) storagetest.Effect{
	"fails":            func(*storagetest.Gate) storagetest.Effect { return storagetest.Fail(errInjected) },
	"full":             func(*storagetest.Gate) storagetest.Effect { return storagetest.Full() },
	"unknown, done":    func(*storagetest.Gate) storagetest.Effect { return storagetest.UnknownDone() },
	"unknown":          func(*storagetest.Gate) storagetest.Effect { return storagetest.UnknownNotDone() },
	"hangs":            storagetest.Hold,
	"hangs afterwards": storagetest.HoldAnswer,
}

// forEachFlushFault runs a test with each fault planted, after three events.
func forEachFlushFault(t *testing.T, test func(t *testing.T, s *site, d *deployment)) {
	t.Helper()
	for name, fault := range flushFaults {
		t.Run(name, func(t *testing.T) {
			s := newSite(t, 2, shortStop(often))
			s.faulty = true
			d := s.run(t)
			gate := storagetest.NewGate()
			defer gate.Release()
			s.faults.Plant(storagetest.Fault{Op: storagetest.OpFlush, Do: fault(gate)})
			for n := messages.Number(1); n <= 3; n++ {
				d.invoice(t, 7, n)
			}
			awaitFault(t, s, gate)
			test(t, s, d)
			gate.Release()
			check(t, d.store.Close(limit(t)))
			_ = d.parts.Close(limit(t))
			s.faulty = false
			s.app.Settings.StopLimit = 0 // a clean stop takes what the disk takes
			d = s.run(t)
			d.invoice(t, 7, 4)
			d.stop(t)
		})
	}
}

// awaitFault waits until a flush hangs at the gate, or has failed.
func awaitFault(t testing.TB, s *site, gate *storagetest.Gate) {
	t.Helper()
	ctx := limit(t)
	for s.faults.Injected(storagetest.OpFlush) == 0 {
		select {
		case <-gate.Arrived():
		case <-s.pulse.beat:
		case <-ctx.Done():
			t.Fatal(context.Cause(ctx))
		}
	}
}

// TestFaultStopWhileFlushingFails: "stop hangs while flushing fails […] | […] end in
// bounded time; data stays right".
func TestFaultStopWhileFlushingFails(t *testing.T) {
	forEachFlushFault(t, func(t *testing.T, _ *site, d *deployment) {
		err := d.parts.Undeploy(limit(t), "shop")
		if err != nil {
			wantError(t, err, partition.ErrNotClean)
		}
		for _, status := range d.app.Status() {
			if status.State != messages.StateTerminated && status.Abandoned == 0 {
				t.Errorf("partition %d is %v after the stop", status.Partition, status.State)
			}
		}
		if _, err := commit(limit(t), d.app, 7); !errors.Is(err, messages.ErrStopped) {
			t.Errorf("got error %v after the stop, want ErrStopped", err)
		}
	})
}

// deaf is a store whose flush hangs and does not obey its context, as a system call
// would.
type deaf struct {
	storage.Store
	called, release chan struct{}
	once            sync.Once
}

func (f *deaf) Flush(context.Context, storage.Flush) error {
	f.once.Do(func() { close(f.called) })
	<-f.release
	return errInjected
}

// TestFaultStopWhileStorageHangs: the same if not even the end of the context ends
// the call: the leaf is left behind, counted and shown.
func TestFaultStopWhileStorageHangs(t *testing.T) {
	s := newSite(t, 1, shortStop(often))
	store := &deaf{Store: s.openStore(t), called: make(chan struct{}), release: make(chan struct{})}
	parts := partition.NewAppParts(system, s.options)
	d := &deployment{parts: parts, app: must(parts.Deploy(limit(t), s.app, store))(t), store: store}
	check(t, d.app.Ready(limit(t)))
	d.invoice(t, 7, 1)
	<-store.called
	wantError(t, parts.Undeploy(limit(t), "shop"), partition.ErrNotClean)
	if n := d.app.Status()[0].Abandoned; n != 1 {
		t.Errorf("got %d leaves left behind, want 1", n)
	}
	close(store.release)
	check(t, parts.Close(limit(t)))
	check(t, store.Close(limit(t)))
	s.app.Settings.StopLimit = 0 // a clean stop takes what the disk takes
	d = s.run(t)
	d.invoice(t, 7, 2)
	d.stop(t)
}

// TestFaultActualizeWhileFlushingFails: "actualize waits for a flush that cannot
// succeed | both end in bounded time; data stays right".
func TestFaultActualizeWhileFlushingFails(t *testing.T) {
	forEachFlushFault(t, func(t *testing.T, s *site, d *deployment) {
		tx := d.open(t, 7)
		must(tx.Next(limit(t), seqInvoice))(t)
		check(t, tx.Actualize(limit(t)))
		s.await(t, "the tail is replayed", func() bool {
			status := d.app.Status()[1]
			return status.Actualizations == 2 && status.State != messages.StateInitializing
		})
	})
}

// TestFaultStartDuringShutdown: "a transaction starts on half-replayed state during
// shutdown | refused".
func TestFaultStartDuringShutdown(t *testing.T) {
	const tail = 5000 // more than the actualizer reads at once
	s := newSite(t, 1, shortStop(neverFlushed()))
	store := openBolt(t, s.dir, s.app.Descriptor, wideTail)
	newHistory(t, store, 100).write(t, tail)
	check(t, store.Close(limit(t)))
	s.faulty = true
	d := func() *deployment {
		// Half of the tail is replayed when the second piece hangs.
		store := s.openStore(t)
		gate := storagetest.NewGate()
		s.faults.Plant(storagetest.Fault{Op: storagetest.OpTail, Do: storagetest.Hold(gate), Skip: 1})
		parts := partition.NewAppParts(system, s.options)
		app := must(parts.Deploy(limit(t), s.app, store))(t)
		check(t, gate.Await(limit(t)))
		return &deployment{parts: parts, app: app, store: store}
	}()
	stop, cancel := context.WithCancel(limit(t))
	var clients sync.WaitGroup
	sequencer := must(d.app.Sequencer(0))(t)
	for i := range 20 {
		clients.Go(func() {
			for stop.Err() == nil {
				tx, err := sequencer.Start(stop, kindShop, messages.WSID(i))
				if err == nil {
					t.Errorf("granted %v on half-replayed state", tx.Token())
					_ = tx.Cancel(stop)
				}
			}
		})
	}
	if err := d.parts.Undeploy(limit(t), "shop"); err != nil {
		wantError(t, err, partition.ErrNotClean)
	}
	cancel()
	clients.Wait()
	check(t, d.parts.Close(limit(t)))
	check(t, d.store.Close(limit(t)))
	s.faulty, s.app.Settings.StopLimit = false, 0
	d = s.run(t)
	d.invoice(t, 7, tail/100+1)
	d.stop(t)
}

// TestFaultStopActualizeRace: "stop and actualize race: leaked flusher, data race |
// one mailbox; goleak at the end of every test".
func TestFaultStopActualizeRace(t *testing.T) {
	s := newSite(t, 2, often)
	before := goleak.IgnoreCurrent()
	for range setting("STOP_RACES", unlessShort(10)) {
		d := s.run(t)
		ctx, cancel := context.WithCancel(limit(t))
		var clients sync.WaitGroup
		for i := range 6 {
			clients.Go(func() {
				for n := i; ctx.Err() == nil; n++ {
					churn(ctx, d.app, messages.WSID(i%3), n)
				}
			})
		}
		for range 4 {
			d.commitSoon(t, 0)
		}
		err := d.parts.Undeploy(limit(t), "shop")
		cancel()
		clients.Wait()
		check(t, err) // it waits for what it can finish
		check(t, d.parts.Close(limit(t)))
		check(t, d.store.Close(limit(t)))
		goleak.VerifyNone(t, before)
	}
	s.look(t, nil)
}

// churn runs a transaction that ends in one of four ways.
func churn(ctx context.Context, app *partition.App, ws messages.WSID, n int) {
	sequencer, err := app.SequencerOf(ws)
	if err != nil {
		return
	}
	tx, err := sequencer.Start(ctx, kindShop, ws)
	if err != nil {
		if errors.Is(err, messages.ErrBusy) {
			_ = app.Ready(ctx)
		}
		return
	}
	_, _ = tx.Next(ctx, seqInvoice)
	switch n % 16 {
	case 0:
		_ = tx.Actualize(ctx)
	case 1, 2:
		_ = tx.Cancel(ctx)
	default:
		_ = tx.Commit(ctx, []byte("churn"))
	}
}

// commitSoon commits as soon as the partition takes a transaction: others actualize it
// all the time, or it is restarted.
func (d *deployment) commitSoon(t testing.TB, ws messages.WSID) {
	t.Helper()
	for {
		_, err := commit(limit(t), d.app, ws, seqInvoice)
		switch {
		case err == nil:
			return
		case errors.Is(err, messages.ErrBusy), errors.Is(err, messages.ErrFenced), errors.Is(err, messages.ErrInterrupted):
			check(t, d.app.Ready(limit(t)))
		default:
			t.Fatal(err)
		}
	}
}

// TestFaultRetryUnknownFlush: a flush whose outcome is unknown is repeated, whether
// it was done or not, and the checkpoint is right.
func TestFaultRetryUnknownFlush(t *testing.T) {
	for _, effect := range []storagetest.Effect{
		storagetest.UnknownDone(), storagetest.UnknownNotDone(), storagetest.Fail(storage.ErrFull), storagetest.Panic("injected"),
	} {
		s := newSite(t, 1, often)
		s.faulty = true
		s.options.RestartDelay = time.Millisecond
		d := s.run(t)
		s.faults.Plant(storagetest.Fault{Op: storagetest.OpFlush, Do: effect, Times: 2})
		for n := messages.Number(1); n <= 20; n++ {
			d.commitSoon(t, 7)
		}
		s.await(t, "everything is flushed", func() bool {
			r, err := d.store.Register(limit(t), 0)
			return err == nil && r.Checkpoint == r.Last+1 && s.faults.Injected(storagetest.OpFlush) == 2
		})
		check(t, d.app.Ready(limit(t)))
		d.stop(t)
	}
}
