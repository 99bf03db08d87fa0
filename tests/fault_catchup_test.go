package tests

import (
	"fmt"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/partita-go/partita/actors/actorstest"
	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/partition"
	"github.com/partita-go/partita/storage/storagetest"
)

// standingClock returns a clock whose time passes only when the test says so.
func standingClock() *actorstest.FakeClock { return actorstest.NewFakeClock(time.Unix(1_000_000, 0)) }

// tailPiece is how many events the actualizer reads at once.
const tailPiece = 4096

// longTail makes a site whose log has n events of so many workspaces, none of them
// projected, and whose clock stands still.
func longTail(t testing.TB, n int, workspaces uint64) (*site, *actorstest.FakeClock) {
	t.Helper()
	s := newSite(t, 1, partition.Settings{})
	store := openBolt(t, s.dir, s.app.Descriptor, wideTail)
	newHistory(t, store, workspaces).write(t, n)
	check(t, store.Close(limit(t)))
	clock := standingClock()
	s.options.Clock = clock
	s.faulty = true
	return s, clock
}

// TestFaultCatchUpCheckpoint: "no checkpoint during a long catch-up under the key
// threshold | checkpoints by count and time". Here by time: a few workspaces stay
// under every threshold; the tail hangs in the middle, a second passes, and a crash
// then does not lose what was replayed so far.
func TestFaultCatchUpCheckpoint(t *testing.T) {
	const n = 3 * tailPiece
	s, clock := longTail(t, n, 10)
	store := s.openStore(t)
	tail, flush := storagetest.NewGate(), storagetest.NewGate()
	s.faults.Plant(storagetest.Fault{Op: storagetest.OpTail, Do: storagetest.Hold(tail), Skip: 2})
	s.faults.Plant(storagetest.Fault{Op: storagetest.OpFlush, Do: storagetest.HoldAnswer(flush), Times: 1})
	parts := partition.NewAppParts(system, s.options)
	d := &deployment{parts: parts, app: must(parts.Deploy(limit(t), s.app, store))(t), store: store}
	check(t, tail.Await(limit(t)))
	clock.Advance(time.Second)
	check(t, flush.Await(limit(t)))
	if r := d.register(t, 0); r.Checkpoint != 2*tailPiece+1 {
		t.Errorf("got checkpoint %d in the middle of the catch-up, want %d", r.Checkpoint, 2*tailPiece+1)
	}
	check(t, store.Close(limit(t)))
	flush.Release()
	tail.Release()
	_ = parts.Close(limit(t))

	d = s.run(t)
	if got := d.replayed(); got != n-2*tailPiece {
		t.Errorf("got %d events replayed after the crash, want %d", got, n-2*tailPiece)
	}
	d.stop(t)
}

// TestFaultCatchUpLimit: the same by count: a catch-up over many workspaces writes
// checkpoints at the Busy limit. While such a flush hangs the tail is not read on,
// so that memory is bounded.
func TestFaultCatchUpLimit(t *testing.T) {
	const n = 3 * tailPiece
	s, _ := longTail(t, n, n)
	s.app.Settings = partition.Settings{FlushThreshold: 1000, BusyLimit: 1000}
	store := s.openStore(t)
	flush := storagetest.NewGate()
	s.faults.Plant(storagetest.Fault{Op: storagetest.OpFlush, Do: storagetest.Hold(flush)})
	parts := partition.NewAppParts(system, s.options)
	d := &deployment{parts: parts, app: must(parts.Deploy(limit(t), s.app, store))(t), store: store}
	check(t, flush.Await(limit(t)))
	s.await(t, "the second piece is read", func() bool { return s.faults.Calls(storagetest.OpTail) == 2 })
	for range 20 {
		check(t, d.app.Reconfigure(limit(t), s.app.Settings)) // a round trip through the partition
	}
	if got, state := s.faults.Calls(storagetest.OpTail), d.app.Status()[0].State; got != 2 || state != messages.StateInitializing {
		t.Errorf("got %d pieces read and the partition %v while its flush hangs, want 2 and initializing", got, state)
	}
	flush.Release()
	check(t, d.app.Ready(limit(t)))
	if r := d.register(t, 0); r.Checkpoint < tailPiece+1 {
		t.Errorf("got checkpoint %d after the catch-up, want at least %d", r.Checkpoint, tailPiece+1)
	}
	d.stop(t)
}

// TestFaultCatchUpSpeed: "catch-up waits 5 ms per 500 keys: 22 s for 1M events in 10k
// workspaces […] | credit, no sleeping". The clock stands still, so nothing can have
// waited for it; the tail is read in as few pieces as there are.
func TestFaultCatchUpSpeed(t *testing.T) {
	const n = 20_000
	s, _ := longTail(t, n, 5000)
	d := s.run(t)
	if got := d.replayed(); got != n {
		t.Errorf("got %d events replayed, want %d", got, n)
	}
	if got, want := s.faults.Calls(storagetest.OpTail), (n+tailPiece-1)/tailPiece; got != want {
		t.Errorf("got %d reads of the tail, want %d", got, want)
	}
	if got := s.faults.Calls(storagetest.OpFlush); got > 1 {
		t.Errorf("got %d flushes during a catch-up in no time, want at most the one that follows it", got)
	}
	for _, op := range []storagetest.Op{storagetest.OpPLog, storagetest.OpWLog, storagetest.OpNumbers, storagetest.OpRecords} {
		if got := s.faults.Calls(op); got != 0 {
			t.Errorf("got %d calls of %v during a catch-up, want none", got, op)
		}
	}
	d.stop(t)
}

// TestFaultFlushPerCommand: "one flush per command when commands come more than
// 20 us apart | threshold or interval, nothing else". The commands come 1 ms apart: two
// intervals pass, or ten thresholds.
func TestFaultFlushPerCommand(t *testing.T) {
	const commands = 200
	for _, c := range []struct {
		name       string
		settings   partition.Settings
		workspaces int
		most       int
	}{
		{"interval", partition.Settings{FlushInterval: 100 * time.Millisecond}, 1, 2},
		{"threshold", partition.Settings{FlushThreshold: 60, FlushInterval: time.Hour}, commands, 10},
		{"neither", partition.Settings{FlushInterval: time.Hour}, 10, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newSite(t, 1, c.settings)
			clock := standingClock()
			s.options.Clock = clock
			s.faulty = true
			d := s.run(t)
			for i := range commands {
				d.commit(t, messages.WSID(i%c.workspaces), seqInvoice)
				clock.Advance(time.Millisecond)
			}
			s.await(t, "the first flush", func() bool { return c.most == 0 || s.faults.Calls(storagetest.OpFlush) > 0 })
			if got := s.faults.Calls(storagetest.OpFlush); got > c.most {
				t.Errorf("got %d flushes, want at most %d", got, c.most)
			}
			d.stop(t)
		})
	}
}

// TestFaultBoundedLogs: "recovery logs every workspace | logs are bounded". What is
// logged by a recovery, many commands and a stop does not depend on the number
// of workspaces or events.
func TestFaultBoundedLogs(t *testing.T) {
	logged := func(events int, workspaces uint64) []observer.LoggedEntry {
		s, clock := longTail(t, events, workspaces)
		core, logs := observer.New(zapcore.DebugLevel)
		s.options.Logger = zap.New(core)
		s.options.AlarmAfter = 1000 * time.Hour // the clock runs ahead of the disk
		d := s.run(t)
		for i := range events {
			d.commit(t, messages.WSID(i)%messages.WSID(workspaces), seqInvoice)
		}
		s.await(t, "everything is flushed, so that the stop has nothing left to do", func() bool {
			clock.Advance(time.Minute) // whatever was armed by the last message fires
			r := d.register(t, 0)
			return r.Checkpoint > r.Last
		})
		d.stop(t)
		return logs.All()
	}
	few, many := logged(10, 1), logged(300, 300)
	if len(few) != len(many) || len(few) > 10 {
		t.Errorf("got %d lines for one workspace and %d for many: %v", len(few), len(many), many)
	}
	for _, line := range many {
		if size := len(line.Message) + len(fmt.Sprint(line.ContextMap())); size > 1000 {
			t.Errorf("got a line of %d bytes: %s", size, line.Message)
		}
	}
}

// TestFaultBoundedRetryLogs: nor does it depend on how often a flush is tried again.
func TestFaultBoundedRetryLogs(t *testing.T) {
	core, logs := observer.New(zapcore.DebugLevel)
	s := newSite(t, 1, often)
	clock := standingClock()
	s.options.Clock, s.options.Logger = clock, zap.New(core)
	s.faulty = true
	d := s.run(t)
	s.faults.Plant(storagetest.Fault{Op: storagetest.OpFlush, Do: storagetest.Fail(errInjected), Times: 200})
	d.commit(t, 7, seqInvoice)
	s.await(t, "the flush succeeds after 200 failures", func() bool {
		clock.Advance(time.Second) // whatever was armed by the last message fires
		return s.faults.Injected(storagetest.OpFlush) == 200 && d.app.Status()[0].State == messages.StateNormal
	})
	d.stop(t)
	if n := logs.Len(); n > 10 {
		t.Errorf("got %d lines about 200 failures: %v", n, logs.All())
	}
}
