package tests

import (
	"context"
	"errors"
	"testing"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/partition"
	"github.com/partita-go/partita/storage"
	"github.com/partita-go/partita/storage/bolt"
	"github.com/partita-go/partita/storage/storagetest"
)

// The tests named TestFault… are the rows of the design's table of faults of
// earlier designs, each quoted.

// explicit returns a handler that brings along a record with an id of its own.
func explicit(id messages.RecordID) partition.Handler {
	return func(ctx context.Context, c *partition.CommandContext) error {
		return c.Insert(ctx, id, []byte("explicit"))
	}
}

// bring runs a command that brings along a record with an id of its own.
func (d *deployment) bring(t testing.TB, ws messages.WSID, id messages.RecordID) error {
	t.Helper()
	p := must(d.app.SpawnCommandProcessor(explicit(id)))(t)
	_, err := p.Execute(limit(t), messages.Command{Workspace: ws, Kind: kindShop})
	return err
}

func cRecord(n messages.Number) messages.RecordID {
	return messages.RecordID{Seq: messages.SeqCRecordID, Number: n}
}

// TestFaultLowID: "a low id in an event (a singleton's) lowers the counter: numbers
// given out twice | merge by maximum, ignore values below the initial value".
func TestFaultLowID(t *testing.T) {
	const first = messages.InitialCRecordID
	s := newSite(t, 1, neverFlushed())
	d := s.run(t)
	give := func(d *deployment, want messages.Number) {
		t.Helper()
		if got := d.commit(t, 7, messages.SeqCRecordID).Numbers()[0].Number; got != want {
			t.Errorf("got record id %d, want %d", got, want)
		}
	}
	check(t, d.bring(t, 7, cRecord(65_536)))
	give(d, first)
	check(t, d.bring(t, 7, cRecord(65_537)))
	give(d, first+1)
	check(t, d.bring(t, 7, cRecord(first+1000)))
	give(d, first+1001)
	check(t, d.bring(t, 7, cRecord(first+500)))
	give(d, first+1002)
	low := messages.Number(0)
	lower := func(d *deployment) {
		// Whoever lets the last one win is wrong from here on.
		t.Helper()
		low++
		check(t, d.bring(t, 7, cRecord(first+500+low)))
		check(t, d.bring(t, 7, cRecord(low)))
	}
	lower(d)
	d.crash(t)

	d = s.run(t) // replayed from the log
	give(d, first+1003)
	lower(d)
	d.stop(t)
	d = s.run(t) // loaded from the projections
	give(d, first+1004)
	lower(d)
	d.crash(t)
	s.deleteState(t)
	d = s.run(t) // rebuilt
	give(d, first+1005)
	d.stop(t)
}

// TestFaultHugeID: one bad id must not exhaust a sequence. One above the cap is
// refused and leaves nothing, one at the cap leaves 2^32 numbers.
func TestFaultHugeID(t *testing.T) {
	s := newSite(t, 1, neverFlushed())
	d := s.run(t)
	sequence := messages.Kind{}.All()[1]
	huge := sequence.MaxExplicit() + 1
	wantError(t, d.bring(t, 7, cRecord(huge)), messages.ErrExplicitID)
	wantError(t, d.bring(t, 7, cRecord(sequence.Max())), messages.ErrExplicitID)
	record := messages.Record{ID: cRecord(huge), New: true}
	tx := d.open(t, 7)
	wantError(t, tx.Commit(limit(t), nil, record), messages.ErrExplicitID)
	// Also refused by the store, for whoever writes without announcing the id.
	tx = d.open(t, 7)
	event := must(tx.Event(nil))(t)
	event.Records = []messages.Record{record}
	wantError(t, d.store.Append(limit(t), batchOf(event)), storage.ErrInvalidEvent, messages.ErrExplicitID)
	check(t, tx.Actualize(limit(t)))
	check(t, d.app.Ready(limit(t)))
	if r := d.register(t, 0); r.Last != 0 {
		t.Errorf("got %d events after refusals, want none", r.Last)
	}
	if got := d.commit(t, 7, messages.SeqCRecordID).Numbers()[0].Number; got != messages.InitialCRecordID {
		t.Errorf("got record id %d, want the initial one", got)
	}
	check(t, d.bring(t, 7, cRecord(huge-1)))
	d.crash(t)
	d = s.run(t)
	if got := d.commit(t, 7, messages.SeqCRecordID).Numbers()[0].Number; got != huge {
		t.Errorf("got record id %d, want %d", got, huge)
	}
	d.stop(t)
}

// TestFaultCheckpointBeforeNumbers: "the checkpoint is stored before the numbers of
// its last event: lost after a crash | values and checkpoint in one transaction".
func TestFaultCheckpointBeforeNumbers(t *testing.T) {
	for name, effect := range map[string]func(*storagetest.Gate) storagetest.Effect{
		"before the flush": storagetest.Hold, "after the flush": storagetest.HoldAnswer,
	} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t, 1, often)
			s.faulty = true
			for n := messages.Number(1); n <= 10; n++ {
				d := s.run(t)
				gate := storagetest.NewGate()
				s.faults.Plant(storagetest.Fault{Op: storagetest.OpFlush, Do: effect(gate)})
				d.invoice(t, 7, 3*n-2)
				check(t, gate.Await(limit(t)))
				d.invoice(t, 7, 3*n-1)
				d.invoice(t, 7, 3*n)
				check(t, d.store.Close(limit(t)))
				gate.Release() // too late: the store is closed
				_ = d.parts.Close(limit(t))
				s.look(t, nil) // the numbers are those of the events before the checkpoint
			}
		})
	}
}

// TestFaultFirstOffset: "a fresh partition starts at offset 0, and its first event
// is never seen again | first offset is 1, from storage too".
func TestFaultFirstOffset(t *testing.T) {
	s := newSite(t, 3, neverFlushed())
	d := s.run(t)
	for p := range messages.PartitionID(3) {
		if r := d.register(t, p); r.Last != 0 || r.Checkpoint != 1 {
			t.Errorf("fresh partition %d: got last %d, checkpoint %d, want 0, 1", p, r.Last, r.Checkpoint)
		}
	}
	if tx := d.invoice(t, 1, 1); tx.PLogOffset() != 1 || tx.WLogOffset() != 1 {
		t.Errorf("got first offsets %d, %d, want 1, 1", tx.PLogOffset(), tx.WLogOffset())
	}
	d.crash(t)
	d = s.run(t)
	if n := d.replayed(); n != 1 {
		t.Errorf("got %d events replayed, want the first", n)
	}
	if tx := d.invoice(t, 1, 2); tx.PLogOffset() != 2 || tx.WLogOffset() != 2 {
		t.Errorf("got second offsets %d, %d, want 2, 2", tx.PLogOffset(), tx.WLogOffset())
	}
	d.stop(t)
	s.look(t, func(store *bolt.Store) {
		if events := readPLog(t, store, 1); len(events) != 2 || events[0].PLogOffset != 1 {
			t.Errorf("got %+v, want 2 events from offset 1", events)
		}
	})
}

// TestFaultCheckpoint: "the checkpoint is one too low after a flush | exactly the
// next offset to replay".
func TestFaultCheckpoint(t *testing.T) {
	s := newSite(t, 1, neverFlushed())
	number := messages.Number(0)
	for unflushedEvents := range 5 {
		d := s.run(t)
		if r := d.register(t, 0); r.Checkpoint != r.Last+1-messages.PLogOffset(d.replayed()) {
			t.Errorf("got %d events replayed from checkpoint %d to %d", d.replayed(), r.Checkpoint, r.Last)
		}
		d.stop(t)
		d = s.run(t)
		last := d.register(t, 0).Last
		if r := d.register(t, 0); r.Checkpoint != last+1 || d.replayed() != 0 {
			t.Errorf("got checkpoint %d and %d events replayed after a stop at %d", r.Checkpoint, d.replayed(), last)
		}
		for range unflushedEvents {
			number++
			d.invoice(t, 7, number)
		}
		d.crash(t)
		d = s.run(t)
		if n := d.replayed(); n != uint64(unflushedEvents) {
			t.Errorf("got %d events replayed, want %d", n, unflushedEvents)
		}
		d.crash(t)
	}
}

// TestFaultCleanStop: "clean stop drops the pending flush | final flush".
func TestFaultCleanStop(t *testing.T) {
	s := newSite(t, 4, neverFlushed())
	d := s.run(t)
	for i := range 200 {
		d.commit(t, messages.WSID(i%20), seqInvoice, seqReceipt)
	}
	d.stop(t)
	for _, status := range d.app.Status() {
		if !status.Clean || status.State != messages.StateTerminated {
			t.Errorf("partition %d: got %v, clean %v", status.Partition, status.State, status.Clean)
		}
	}
	d = s.run(t)
	if n := d.replayed(); n != 0 {
		t.Errorf("got %d events replayed after a clean stop, want 0", n)
	}
	if stats := d.store.(*bolt.Store).Stats(); stats.Scanned != 0 || stats.TailEvents != 0 {
		t.Errorf("got %+v after a clean stop, want nothing scanned", stats)
	}
	d.invoice(t, 7, 11)
	d.stop(t)
}

// creating returns an event that creates a record.
func creating(r messages.Register, o messages.PLogOffset, ws messages.WSID, w messages.WLogOffset, n messages.Number) messages.Event {
	return messages.Event{
		Kind: messages.EventBusiness, Epoch: r.Epoch, Partition: messages.PartitionID(ws % 2), PLogOffset: o,
		Workspace: ws, WorkspaceKind: kindShop, WLogOffset: w, RegisteredAt: 1,
		Records: []messages.Record{{ID: messages.RecordID{Seq: seqInvoice, Number: n}, New: true}},
	}
}

// TestFaultInsertIfAbsent: "insert-if-absent reads in one transaction and writes in
// another: both racers win | one transaction". Two events that create the same record
// come in one batch, and in two that wait for the same commit: only one gets it.
func TestFaultInsertIfAbsent(t *testing.T) {
	s := newSite(t, 2, partition.Settings{})
	store := s.openStore(t)
	r := must(store.TakeEpoch(limit(t), 0))(t)
	batch := batchOf(creating(r, 1, 6, 1, 1))
	batch.Events = append(batch.Events, creating(r, 2, 6, 2, 1))
	wantConflict(t, store.Append(limit(t), batch), storage.PlaceRecord)
	stop := keepBusy(t, store)
	for round := range messages.PLogOffset(100) {
		ctx := limit(t)
		racer := func(o messages.PLogOffset) error {
			for {
				err := store.Append(ctx, batchOf(creating(r, o, 6, messages.WLogOffset(o), messages.Number(round+1))))
				if !errors.Is(err, storage.ErrOutOfOrder) {
					return err
				}
			}
		}
		second := make(chan error, 1)
		go func() { second <- racer(round + 2) }()
		check(t, racer(round+1))
		wantConflict(t, <-second, storage.PlaceRecord)
	}
	stop()
	if r := must(store.Register(limit(t), 0))(t); r.Last != 100 {
		t.Errorf("got %d events, want 100", r.Last)
	}
	verifyStore(t, store)
	check(t, store.Close(limit(t)))
}

// keepBusy appends to partition 1 all the time, so that others wait for a commit
// together.
func keepBusy(t testing.TB, store storage.Store) (stop func()) {
	t.Helper()
	r := must(store.TakeEpoch(limit(t), 1))(t)
	ctx, cancel := context.WithCancel(limit(t))
	ended := make(chan error, 1)
	go func() {
		var err error
		for o := messages.PLogOffset(1); err == nil && ctx.Err() == nil; o++ {
			err = store.Append(context.Background(), batchOf(creating(r, o, 1, messages.WLogOffset(o), messages.Number(o))))
		}
		ended <- err
	}()
	return func() {
		cancel()
		check(t, <-ended)
	}
}

// TestFaultSamePlace is the same for the logs: of many that write one place, one
// wins.
func TestFaultSamePlace(t *testing.T) {
	s := newSite(t, 1, partition.Settings{})
	store := s.openStore(t)
	r := must(store.TakeEpoch(limit(t), 0))(t)
	const racers = 8
	for o := messages.PLogOffset(1); o <= 50; o++ {
		results := make(chan error, racers)
		for i := range racers {
			go func() {
				results <- store.Append(limit(t), storage.Batch{Epoch: r.Epoch, Events: []messages.Event{{
					Kind: messages.EventBusiness, Epoch: r.Epoch, PLogOffset: o, Workspace: messages.WSID(i), WorkspaceKind: kindShop,
					WLogOffset: 1, RegisteredAt: 1, Body: []byte{byte(i)},
				}}})
			}()
		}
		won := 0
		for range racers {
			if err := <-results; err == nil {
				won++
			} else if !errors.Is(err, storage.ErrOutOfOrder) && !errors.Is(err, storage.ErrConflict) {
				t.Fatal(err)
			}
		}
		if won > 1 {
			t.Fatalf("offset %d: %d racers won", o, won)
		}
		if won == 0 {
			break // every racer's workspace has its event by now
		}
	}
	verifyStore(t, store)
	check(t, store.Close(limit(t)))
}
