package tests

import (
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/partition"
	"github.com/partita-go/partita/storage/bolt"
	"github.com/partita-go/partita/storage/storagetest"
)

// TestFaultLimitZero: "a limit of 0 hangs for ever […] | validated". Zero means the
// default; what is out of range is refused at Deploy by its name.
func TestFaultLimitZero(t *testing.T) {
	s := newSite(t, 1, partition.Settings{})
	store := s.openStore(t)
	parts := partition.NewAppParts(system, s.options)
	for name, change := range map[string]func(a *partition.Application){
		"FlushThreshold":    func(a *partition.Application) { a.Settings.FlushThreshold = -1 },
		"BusyLimit":         func(a *partition.Application) { a.Settings.FlushThreshold, a.Settings.BusyLimit = 10, 9 },
		"BusyEvents":        func(a *partition.Application) { a.Settings.BusyEvents = -1 },
		"GroupBytes":        func(a *partition.Application) { a.Settings.GroupBytes = -1 },
		"FlushInterval":     func(a *partition.Application) { a.Settings.FlushInterval = time.Microsecond },
		"RetryDelay":        func(a *partition.Application) { a.Settings.RetryDelay = -1 },
		"TransactionLimit":  func(a *partition.Application) { a.Settings.TransactionLimit = -time.Second },
		"StopLimit":         func(a *partition.Application) { a.Settings.StopLimit = 1 },
		"ClockJump":         func(a *partition.Application) { a.Settings.ClockJump = 1 },
		"CatchUpCheckpoint": func(a *partition.Application) { a.Settings.CatchUpCheckpoint = 1 },
		"CacheNumbers":      func(a *partition.Application) { a.CacheNumbers = -1 },
		"RequestLane":       func(a *partition.Application) { a.RequestLane = -1 },
		"RequestLaneBytes":  func(a *partition.Application) { a.RequestLaneBytes = -1 },
		"Actualizations":    func(a *partition.Application) { a.Actualizations = -1 },
	} {
		app := s.app
		change(&app)
		_, err := parts.Deploy(limit(t), app, store)
		wantError(t, err, messages.ErrSettings)
		wantText(t, err, name)
	}
	d := &deployment{parts: parts, app: must(parts.Deploy(limit(t), s.app, store))(t), store: store}
	check(t, d.app.Ready(limit(t)))
	wantError(t, d.app.Reconfigure(limit(t), partition.Settings{FlushThreshold: -1}), messages.ErrSettings)
	d.invoice(t, 7, 1)
	d.stop(t)
	_, err := bolt.Open(limit(t), s.dir, s.app.Descriptor, bolt.Options{TailEvents: -1})
	wantError(t, err, messages.ErrSettings)
	wantText(t, err, "TailEvents")
}

// TestFaultSmallestLimits: with every limit at its smallest, work still goes on.
func TestFaultSmallestLimits(t *testing.T) {
	s := newSite(t, 1, partition.Settings{
		FlushThreshold: 1, BusyLimit: 1, BusyEvents: 1, FlushInterval: time.Millisecond, RetryDelay: time.Millisecond,
	})
	s.app.CacheNumbers, s.app.RequestLane, s.app.Actualizations = 1, 1, 1
	s.bolt = bolt.Options{TailEvents: 1}
	d := s.run(t)
	for i := range 50 {
		d.commitAgain(t, messages.WSID(i%3))
	}
	d.stop(t)
}

// commitAgain commits, as often as it takes: the partition is busy until the event
// before is flushed.
func (d *deployment) commitAgain(t testing.TB, ws messages.WSID) {
	t.Helper()
	ctx := limit(t)
	for {
		_, err := commit(ctx, d.app, ws, seqInvoice)
		if err == nil {
			return
		}
		if !errors.Is(err, messages.ErrBusy) {
			t.Fatal(err)
		}
	}
}

// TestFaultOvershoot: "one event can overshoot the limit without bound | […]
// bounded". While flushing hangs, clients rush in: at most one event passes each
// limit, and it can hold no more keys than its workspace has sequences.
func TestFaultOvershoot(t *testing.T) {
	const sequences = 6 // with the built-in ones
	for name, settings := range map[string]partition.Settings{
		"keys":   {FlushThreshold: 20, BusyLimit: 40},
		"events": {FlushThreshold: 1 << 20, BusyLimit: 1 << 20, BusyEvents: 25},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t, 1, settings)
			s.faulty = true
			d := s.run(t)
			gate := storagetest.NewGate()
			s.faults.Plant(storagetest.Fault{Op: storagetest.OpFlush, Do: storagetest.Hold(gate)})
			var keys, events atomic.Int64
			var clients sync.WaitGroup
			for i := range 32 {
				clients.Go(func() {
					for n := 0; ; n++ {
						tx, err := commit(limit(t), d.app, messages.WSID(1000*i+n), seqInvoice, seqReceipt, seqDelivery)
						if errors.Is(err, messages.ErrBusy) {
							return
						}
						check(t, err)
						events.Add(1)
						keys.Add(int64(len(tx.Numbers()) + 2)) // and the WLog offset, and the kind
					}
				})
			}
			clients.Wait()
			if got, most := keys.Load(), int64(settings.BusyLimit+sequences); got > most {
				t.Errorf("got %d keys unflushed, want at most %d", got, most)
			}
			if most := int64(settings.BusyEvents); most > 0 && events.Load() > most {
				t.Errorf("got %d events unflushed, want at most %d", events.Load(), most)
			}
			gate.Release()
			s.await(t, "there is room again", func() bool {
				_, err := commit(limit(t), d.app, 7, seqInvoice)
				return err == nil
			})
			d.stop(t)
		})
	}
}

// TestFaultOneHugeEvent: one event cannot take numbers without bound.
func TestFaultOneHugeEvent(t *testing.T) {
	if setting("LONG", 0) == 0 {
		t.Skip("set LONG=1")
	}
	s := newSite(t, 1, neverFlushed())
	s.app.Settings.TransactionLimit = time.Hour
	d := s.run(t)
	tx := d.open(t, 7)
	ctx := limit(t)
	for range messages.MaxEventNumbers {
		must(tx.Next(ctx, seqInvoice))(t)
	}
	_, err := tx.Next(ctx, seqInvoice)
	wantError(t, err, messages.ErrTooManyNumbers)
	check(t, tx.Commit(ctx, nil))
	d.invoice(t, 7, messages.MaxEventNumbers+1)
	d.stop(t)
}
