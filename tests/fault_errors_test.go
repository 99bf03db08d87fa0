package tests

import (
	"context"
	"math/rand/v2"
	"testing"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/partition"
	"github.com/partita-go/partita/storage"
	"github.com/partita-go/partita/storage/storagetest"
)

// TestFaultSwallowedError: "a write error is swallowed and the process dies later |
// every storage error reaches the caller". One test per operation that the runtime
// uses; afterwards everything goes on.
func TestFaultSwallowedError(t *testing.T) {
	for op, reaches := range map[storagetest.Op]func(t *testing.T, s *site, d *deployment){
		storagetest.OpAppend:    appendFails,
		storagetest.OpNumbers:   numbersFail,
		storagetest.OpFlush:     flushFails,
		storagetest.OpTakeEpoch: takeEpochFails,
		storagetest.OpTail:      tailFails,
		storagetest.OpPLog:      findFails,
	} {
		t.Run(op.String(), func(t *testing.T) {
			s := newSite(t, 1, neverFlushed())
			d := s.run(t)
			d.invoice(t, 7, 1)
			d.stop(t)
			s.faulty = true
			d = s.run(t)
			reaches(t, s, d)
			s.faults.Heal()
			s.awaitState(t, d, 0, messages.StateNormal)
			d.commit(t, 7, seqInvoice)
			d.stop(t)
		})
	}
}

func appendFails(t *testing.T, s *site, d *deployment) {
	s.faults.Plant(storagetest.Fault{Op: storagetest.OpAppend, Do: storagetest.Fail(errInjected), Times: 1})
	_, err := commit(limit(t), d.app, 7, seqInvoice)
	wantError(t, err, errInjected)
	s.awaitState(t, d, 0, messages.StateNormal)
	d.invoice(t, 7, 2)
}

func numbersFail(t *testing.T, s *site, d *deployment) {
	s.faults.Plant(storagetest.Fault{Op: storagetest.OpNumbers, Do: storagetest.Fail(errInjected), Times: 1})
	_, err := commit(limit(t), d.app, 7, seqInvoice)
	wantError(t, err, errInjected)
	d.invoice(t, 7, 2)
}

func flushFails(t *testing.T, s *site, d *deployment) {
	check(t, d.app.Reconfigure(limit(t), often))
	s.faults.Plant(storagetest.Fault{Op: storagetest.OpFlush, Do: storagetest.Fail(errInjected)})
	d.invoice(t, 7, 2)
	wantError(t, s.awaitState(t, d, 0, messages.StateAlarming).Err, errInjected)
	d.invoice(t, 7, 3) // it goes on
}

func takeEpochFails(t *testing.T, s *site, d *deployment) {
	s.faults.Plant(storagetest.Fault{Op: storagetest.OpTakeEpoch, Do: storagetest.Fail(errInjected)})
	check(t, d.open(t, 7).Actualize(limit(t)))
	s.await(t, "the error shows", func() bool { return d.app.Status()[0].Err != nil })
	wantError(t, d.app.Status()[0].Err, errInjected)
	_, err := commit(limit(t), d.app, 7)
	wantError(t, err, messages.ErrBusy)
}

func tailFails(t *testing.T, s *site, d *deployment) {
	d.invoice(t, 7, 2)
	s.faults.Plant(storagetest.Fault{Op: storagetest.OpTail, Do: storagetest.Fail(errInjected)})
	check(t, d.open(t, 7).Actualize(limit(t)))
	s.await(t, "the error shows", func() bool { return d.app.Status()[0].Err != nil })
	wantError(t, d.app.Status()[0].Err, errInjected)
}

// findFails: a write of unknown outcome is looked up in the log, which fails.
func findFails(t *testing.T, s *site, d *deployment) {
	s.faults.Plant(storagetest.Fault{Op: storagetest.OpAppend, Do: storagetest.UnknownDone(), Times: 1})
	s.faults.Plant(storagetest.Fault{Op: storagetest.OpPLog, Do: storagetest.Fail(errInjected), Times: 1})
	_, err := commit(limit(t), d.app, 7, seqInvoice)
	wantError(t, err, messages.ErrOutcomeUnknown, errInjected)
	s.awaitState(t, d, 0, messages.StateNormal)
	d.invoice(t, 7, 3)
}

// TestFaultUnknownAppend: a write of unknown outcome is answered from the log:
// success if it is there, an error if it is not, and its number is not lost.
func TestFaultUnknownAppend(t *testing.T) {
	s := newSite(t, 1, neverFlushed())
	s.faulty = true
	d := s.run(t)
	s.faults.Plant(storagetest.Fault{Op: storagetest.OpAppend, Do: storagetest.UnknownDone(), Times: 1})
	d.invoice(t, 7, 1)
	s.faults.Plant(storagetest.Fault{Op: storagetest.OpAppend, Do: storagetest.UnknownNotDone(), Times: 1})
	_, err := commit(limit(t), d.app, 7, seqInvoice)
	wantError(t, err, messages.ErrFenced)
	d.invoice(t, 7, 2)
	d.stop(t)
}

// TestFaultRecoveryOverwrites: "recovery overwrites a foreign record that trust
// level 0 had protected | never". The record is foreign from before the crash; see
// also TestTrust….
func TestFaultRecoveryOverwrites(t *testing.T) {
	s := newSite(t, 1, neverFlushed())
	d := s.run(t)
	d.commit(t, 7)
	d.stop(t)
	taken := recordSpot{7, messages.RecordID{Seq: seqInvoice, Number: 2}}
	taken.plant(t, s)
	d = s.run(t)
	must(commitRecord(limit(t), d.app, 7))(t)
	_, err := commitRecord(limit(t), d.app, 7)
	wantConflict(t, err, storage.PlaceRecord)
	d.crash(t)
	for range 3 {
		d = s.run(t)
		d.crash(t)
		flushTail1(t, s)
		s.keep(t, taken, true)
	}
}

// flushTail1 projects what was recovered by a clean stop.
func flushTail1(t testing.TB, s *site) {
	t.Helper()
	d := s.run(t)
	check(t, d.parts.Close(limit(t)))
	check(t, d.store.Close(limit(t)))
}

// TestFaultDamagedEvent: "one damaged or unprocessable event makes a crash loop, or
// a full rescan at each command | a clear state (failed, naming partition and
// offset), others go on". Here it is damaged, in the tail.
func TestFaultDamagedEvent(t *testing.T) {
	s := newSite(t, 4, neverFlushed())
	d := s.run(t)
	for i := range 40 {
		d.commit(t, messages.WSID(i), seqInvoice)
	}
	d.crash(t)
	// The log has the events of partitions 0, 1, 2, 3 in turn: the 22nd is the 6th of
	// partition 1.
	s.flip(t, logKey(22), rand.New(rand.NewPCG(1, 1)))
	s.faulty = true
	d, err := s.start(t)
	wantError(t, err, storage.ErrDamaged)
	stuck(t, s, d, err, 1, 6)
	d.crash(t)
}

// TestFaultUnprocessableEvent: the same for an event that is intact and makes no
// sense: the tail jumps over an offset.
func TestFaultUnprocessableEvent(t *testing.T) {
	s := newSite(t, 4, neverFlushed())
	d := s.run(t)
	for i := range 40 {
		d.commit(t, messages.WSID(i), seqInvoice)
	}
	d.crash(t)
	s.faults = storagetest.NewFaulty(jumping{Store: openBolt(t, s.dir, s.app.Descriptor, s.bolt), partition: 1, offset: 6})
	parts := partition.NewAppParts(system, s.options)
	d = &deployment{parts: parts, app: must(parts.Deploy(limit(t), s.app, s.faults))(t), store: s.faults}
	err := d.app.Ready(limit(t))
	wantError(t, err, messages.ErrBrokenLog)
	stuck(t, s, d, err, 1, 6)
	d.crash(t)
}

// jumping is a store whose tail leaves out an event.
type jumping struct {
	storage.Store
	partition messages.PartitionID
	offset    messages.PLogOffset
}

func (j jumping) Tail(ctx context.Context, p messages.PartitionID, from messages.PLogOffset, n int) ([]messages.Numbering, error) {
	events, err := j.Store.Tail(ctx, p, from, n)
	for i := range events {
		if p == j.partition && events[i].PLogOffset == j.offset {
			return append(events[:i:i], events[i+1:]...), err
		}
	}
	return events, err
}

// stuck checks that one partition has failed at an offset, in a clear state: it
// answers at once, asks the store for nothing and is not restarted; others go on.
func stuck(t testing.TB, s *site, d *deployment, err error, p messages.PartitionID, o messages.PLogOffset) {
	t.Helper()
	wantFailed(t, err, p, o)
	calls := func() (n int) {
		for op := range storagetest.OpClose {
			n += s.faults.Calls(op)
		}
		return n
	}
	before := calls()
	for range 100 {
		_, err := commit(limit(t), d.app, messages.WSID(p), seqInvoice)
		wantFailed(t, err, p, o)
	}
	if after := calls(); after != before {
		t.Errorf("got %d calls of the store for 100 commands of a failed partition, want none", after-before)
	}
	status := d.app.Status()[p]
	if status.State != messages.StateFailed || status.Restarts != 0 || status.Actualizations != 1 {
		t.Errorf("got %+v, want failed, not restarted, actualized once", status)
	}
	for other := range messages.PartitionID(4) {
		if other != p {
			d.commit(t, messages.WSID(other), seqInvoice)
		}
	}
}
