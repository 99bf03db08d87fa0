package partitiontest_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"go.uber.org/goleak"

	"github.com/partita-go/partita/actors"
	"github.com/partita-go/partita/actors/actorstest"
	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/partition"
	"github.com/partita-go/partita/partition/partitiontest"
	"github.com/partita-go/partita/storage"
	"github.com/partita-go/partita/storage/storagetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// counted is an application whose numbers never restart, and whose events are flushed one by one.
func counted() partition.Application {
	return partition.Application{
		Descriptor: messages.Descriptor{
			Application: "counted", Partitions: 1,
			Kinds: []messages.Kind{{ID: shop, Name: "shop", Sequences: []messages.Sequence{{ID: invoices, Name: "Invoice", Initial: 1}}}},
		},
		Settings: partition.Settings{FlushThreshold: 1},
	}
}

// all are the numbers of a sequence that never restarts.
var all = messages.SequencePeriod{Seq: invoices}

// verdict is a test that may fail: it keeps why.
type verdict struct {
	testing.TB

	mu       sync.Mutex
	failures []string
	cleanups []func()
}

func (v *verdict) Helper() {}

func (v *verdict) Cleanup(f func()) { v.cleanups = append(v.cleanups, f) }

func (v *verdict) Errorf(format string, args ...any) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.failures = append(v.failures, fmt.Sprintf(format, args...))
}

func (v *verdict) Fatalf(format string, args ...any) {
	v.Errorf(format, args...)
	runtime.Goexit()
}

// judge runs a test that may fail, with its cleanups, and returns why it failed.
func judge(t *testing.T, test func(t testing.TB)) string {
	t.Helper()
	v := &verdict{TB: t}
	run := func(f func()) {
		done := make(chan struct{})
		go func() {
			defer close(done)
			f()
		}()
		<-done
	}
	run(func() { test(v) })
	for _, cleanup := range slices.Backward(v.cleanups) {
		run(cleanup)
	}
	return strings.Join(v.failures, "\n")
}

// fails checks that a test fails, and says why.
func fails(t *testing.T, why string, test func(t testing.TB)) {
	t.Helper()
	if got := judge(t, test); !strings.Contains(got, why) {
		t.Errorf("got failures %q, want %q", got, why)
	}
}

// TestCrashAndRestart: what was acknowledged is there; after a crash it is replayed, after a restart nothing is.
func TestCrashAndRestart(t *testing.T) {
	application := counted()
	application.Settings.FlushThreshold = 1000
	app := partitiontest.Deploy(t, application, partitiontest.Options{})
	replayed := func(want uint64) {
		t.Helper()
		if got := app.Status()[0].Replayed; got != want {
			t.Errorf("got %d events replayed, want %d", got, want)
		}
	}
	app.Append(to, invoice)
	app.Append(to, invoice)
	before := app.Clock.Now()
	app.Crash()
	app.AssertNumbers(tenant, all, 1, 2) // also while it is down
	app.Restart()
	replayed(2)
	app.Append(to, invoice)
	app.Restart()
	replayed(0)
	app.Append(to, invoice)
	app.AssertNumbers(tenant, all, 1, 4)
	app.AssertNumbers(8, all, 1, 0)
	app.AssertGapless()
	if now := app.Clock.Now(); !now.Equal(before) {
		t.Errorf("got %v, want the time of before, %v", now, before)
	}
}

// TestCrashOfWhatIsHeld: a write that has not begun is lost, and its caller does not take it for done.
func TestCrashOfWhatIsHeld(t *testing.T) {
	app := partitiontest.Deploy(t, counted(), partitiontest.Options{})
	gate := app.HoldWrites()
	answer := make(chan error, 1)
	sequencer, err := app.SequencerOf(tenant)
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		_, err := sequencer.Append(context.Background(), to, invoice)
		answer <- err
	}()
	if err := gate.Await(t.Context()); err != nil {
		t.Fatal(err)
	}
	app.Crash()
	if err := <-answer; err == nil {
		t.Error("got an answer from a process that has crashed")
	}
	app.Restart()
	app.AssertNumbers(tenant, all, 1, 0)
}

// TestCrashInNextWrite: the caller learns nothing, and the write has the fate that was chosen, in both ways of writing.
func TestCrashInNextWrite(t *testing.T) {
	ways := map[string]func(app *partitiontest.App) error{
		"append": func(app *partitiontest.App) error {
			_, err := app.TryAppend(to, invoice)
			return err
		},
		"transaction": commit,
	}
	for name, write := range ways {
		for fate, want := range map[partitiontest.Fate]messages.Number{partitiontest.Lost: 1, partitiontest.Written: 2} {
			t.Run(name+" "+fate.String(), func(t *testing.T) {
				app := partitiontest.Deploy(t, counted(), partitiontest.Options{})
				app.Append(to, invoice)
				app.CrashInNextWrite(fate)
				if err := write(app); !errors.Is(err, partition.ErrOutcomeUnknown) {
					t.Errorf("got error %v, want an unknown outcome", err)
				}
				if err := write(app); err == nil {
					t.Error("a process that has crashed goes on")
				}
				app.AssertNumbers(tenant, all, 1, want)
				app.Restart()
				app.Append(to, invoice)
				app.AssertNumbers(tenant, all, 1, want+1)
			})
		}
	}
}

// commit commits an interactive transaction with one number.
func commit(app *partitiontest.App) error {
	sequencer, err := app.SequencerOf(tenant)
	if err != nil {
		return err
	}
	ctx := context.Background()
	tx, err := sequencer.Start(ctx, shop, tenant)
	if err != nil {
		return err
	}
	if _, err := tx.Next(ctx, invoices); err != nil {
		return err
	}
	return tx.Commit(ctx, nil)
}

// TestFaults: what each fault makes of an append and of a transaction, which numbers there are then, and that it ends.
func TestFaults(t *testing.T) {
	type fault func(*partitiontest.App) *storagetest.Planted
	for name, c := range map[string]struct {
		plant                   fault
		appended, committed     error
		appends, commits, times int
	}{
		"full": {(*partitiontest.App).Full, storage.ErrFull, storage.ErrFull, 0, 0, 1},
		"busy": {func(a *partitiontest.App) *storagetest.Planted { return a.Busy(1) }, partition.ErrBusy, storage.ErrTailFull, 0, 0, 1},
		// The partition finds out.
		"lost answer": {(*partitiontest.App).LoseAnswer, nil, nil, 1, 1, 1},
		"lost write":  {(*partitiontest.App).LoseWrite, nil, messages.ErrFenced, 1, 0, 1},
	} {
		ways := map[string]func(*partitiontest.App) error{
			"append":      func(app *partitiontest.App) error { _, err := app.TryAppend(to, invoice); return err },
			"transaction": commit,
		}
		for way, write := range ways {
			t.Run(name+", "+way, func(t *testing.T) {
				app := partitiontest.Deploy(t, counted(), partitiontest.Options{})
				want, count := c.appended, c.appends
				if way == "transaction" {
					want, count = c.committed, c.commits
				}
				planted := c.plant(app)
				if err := write(app); !errors.Is(err, want) {
					t.Errorf("got error %v, want %v", err, want)
				}
				if n := planted.Injected(); n != c.times {
					t.Errorf("it struck %d times, want %d", n, c.times)
				}
				app.AssertNumbers(tenant, all, 1, messages.Number(count))
				app.Heal()
				app.Append(partition.AppendTo{Workspace: tenant, Kind: shop, Wait: true}, invoice)
				app.AssertNumbers(tenant, all, 1, messages.Number(count)+1)
			})
		}
	}
}

// TestFailFlushes: the partition says so, goes on, and recovers when its clock has been moved.
func TestFailFlushes(t *testing.T) {
	app := partitiontest.Deploy(t, counted(), partitiontest.Options{})
	flushes := app.FailFlushes(3)
	app.Append(to, invoice)
	app.Await("the alarm", func() bool { return app.Status()[0].State == messages.StateAlarming })
	app.Append(to, invoice)
	app.AdvanceUntil(time.Second, "a flush that succeeds", func() bool { return app.Status()[0].State == messages.StateNormal })
	if n := flushes.Injected(); n != 3 {
		t.Errorf("got %d flushes that failed, want 3", n)
	}
	app.AssertNumbers(tenant, all, 1, 2)
}

// TestStopWaitsForTheNextTry: by itself, and nobody sees that time had to pass for it.
func TestStopWaitsForTheNextTry(t *testing.T) {
	app := partitiontest.Deploy(t, counted(), partitiontest.Options{})
	before := app.Clock.Now()
	app.FailFlushes(1)
	app.Append(to, invoice)
	app.Await("the alarm", func() bool { return app.Status()[0].State == messages.StateAlarming })
	app.Restart()
	app.AssertNumbers(tenant, all, 1, 1)
	if now := app.Clock.Now(); !now.Equal(before) {
		t.Errorf("got %v, want the time of before, %v", now, before)
	}
}

// TestHoldFlushes: real backpressure.
func TestHoldFlushes(t *testing.T) {
	application := counted()
	application.Settings.BusyEvents = 2
	app := partitiontest.Deploy(t, application, partitiontest.Options{})
	app.HoldFlushes()
	app.Append(to, invoice)
	app.Append(to, invoice)
	if _, err := app.TryAppend(to, invoice); !errors.Is(err, partition.ErrBusy) {
		t.Errorf("got error %v, want busy", err)
	}
	app.Heal()
	app.AdvanceUntil(time.Second, "room", func() bool { _, err := app.TryAppend(to, invoice); return err == nil })
	app.AssertNumbers(tenant, all, 1, 3)
}

// TestClockGoesAnywhere: a jump over years is no wrong clock.
func TestClockGoesAnywhere(t *testing.T) {
	app := partitiontest.Deploy(t, counted(), partitiontest.Options{})
	later := time.Date(2200, 1, 1, 0, 0, 0, 0, time.UTC)
	app.Clock.AdvanceTo(later)
	app.Clock.AdvanceTo(later.AddDate(-1, 0, 0))
	if at := app.Append(to, invoice).RegisteredAt.Time(); !at.Equal(later) {
		t.Errorf("got an event of %v, want %v", at, later)
	}
}

// posted counts the appends that were posted.
type posted struct{ appends atomic.Int32 }

// Posted implements [partition.Observer].
func (p *posted) Posted(_ actors.Key, message any) {
	if _, is := message.(*messages.Append); is {
		p.appends.Add(1)
	}
}

// Taken implements [partition.Observer].
func (*posted) Taken(actors.Key, any) {}

// Handled implements [partition.Observer].
func (*posted) Handled(actors.Key, any) {}

// TestClockEndsNoWait: whoever waits for an answer while the test moves the clock by days gets it.
func TestClockEndsNoWait(t *testing.T) {
	observer := &posted{}
	app := partitiontest.Deploy(t, counted(), partitiontest.Options{Runtime: partition.Options{Observer: observer}})
	gate := app.HoldWrites()
	answers := make(chan error, 2)
	try := func() {
		_, err := app.TryAppend(to, invoice)
		answers <- err
	}
	go try()
	if err := gate.Await(t.Context()); err != nil {
		t.Fatal(err)
	}
	go try() // it waits for its turn
	app.Await("two appends", func() bool { return observer.appends.Load() == 2 })
	app.Clock.Advance(48 * time.Hour)
	app.Heal()
	for range 2 {
		if err := <-answers; err != nil {
			t.Errorf("got error %v", err)
		}
	}
}

// TestProbe: it asks and is answered, is asked and answers, and is told of an end.
func TestProbe(t *testing.T) {
	app := partitiontest.Deploy(t, counted(), partitiontest.Options{})
	one, other := app.Probe(), app.Probe()
	one.Watch(other.PID())
	one.Send(other.PID(), &messages.Start{Workspace: tenant})
	if m := actorstest.Expect[*messages.Start](other); m.Workspace != tenant {
		t.Errorf("got %+v, want that of the tenant", m)
	}
	other.Reply(&messages.Refused{Err: partition.ErrBusy})
	if m := actorstest.Expect[*messages.Refused](one); !errors.Is(m.Err, partition.ErrBusy) {
		t.Errorf("got %v, want busy", m.Err)
	}
	other.Stop()
	if m := actorstest.Expect[*actor.Terminated](one); !m.Who.Equal(other.PID()) {
		t.Errorf("got the end of %v, want that of %v", m.Who, other.PID())
	}
}

// TestStartHasTheLifeOfTheProgram: it starts each time, and its context ends with what runs.
func TestStartHasTheLifeOfTheProgram(t *testing.T) {
	var lives []context.Context
	var apps []*partition.App
	app := partitiontest.Deploy(t, counted(), partitiontest.Options{
		Start: func(ctx context.Context, app *partition.App) error {
			lives, apps = append(lives, ctx), append(apps, app)
			return nil
		},
	})
	app.Crash()
	app.Restart()
	app.Restart()
	if len(lives) != 3 || lives[0].Err() == nil || lives[1].Err() == nil || lives[2].Err() != nil {
		t.Errorf("got %v, want three lives, the last one under way", lives)
	}
	if apps[2] != app.App || apps[1] == app.App {
		t.Error("got another application than the one that runs")
	}
}

// TestWhatMustFail: the kit sees what is wrong, and says so in time.
func TestWhatMustFail(t *testing.T) {
	soon := partitiontest.Options{Patience: 50 * time.Millisecond}
	three := func(t testing.TB, o partitiontest.Options) *partitiontest.App {
		app := partitiontest.Deploy(t, counted(), o)
		for range 3 {
			app.Append(to, invoice)
		}
		return app
	}
	fails(t, "got the numbers [1 2 3], want [1 2]", func(t testing.TB) { three(t, partitiontest.Options{}).AssertNumbers(tenant, all, 1, 2) })
	fails(t, "got the numbers [1 2 3], want [2 3]", func(t testing.TB) { three(t, partitiontest.Options{}).AssertNumbers(tenant, all, 2, 3) })
	fails(t, "got the numbers [1 2 3], want []", func(t testing.TB) { three(t, partitiontest.Options{}).AssertNumbers(tenant, all, 1, 0) })
	fails(t, "waited in vain: a miracle", func(t testing.TB) { three(t, soon).Await("a miracle", func() bool { return false }) })
	fails(t, "got nothing for 50ms, want a message", func(t testing.TB) { three(t, soon).Probe().Take() })
	fails(t, "got the numbers [1 2 3], want [2 3 4]", func(t testing.TB) { three(t, partitiontest.Options{}).AssertNumbers(tenant, all, 2, 4) })
	fails(t, "got *messages.Cancel &{", func(t testing.TB) {
		probe := three(t, soon).Probe()
		probe.Send(probe.PID(), &messages.Cancel{})
		actorstest.Expect[*messages.Start](probe)
	})
	fails(t, "got no sender to reply to", func(t testing.TB) { three(t, soon).Probe().Reply(1) })
	fails(t, "append: no space left", func(t testing.TB) {
		app := three(t, partitiontest.Options{})
		app.Full()
		app.Append(to, invoice)
	})
	fails(t, "start: no", func(t testing.TB) {
		three(t, partitiontest.Options{Start: func(context.Context, *partition.App) error { return errors.New("no") }})
	})
	var executed sync.WaitGroup
	begun, gate := make(chan struct{}), make(chan struct{})
	fails(t, "stop: waited in vain", func(t testing.TB) {
		app := three(t, partitiontest.Options{Patience: time.Second})
		processor, err := app.SpawnCommandProcessor(func(context.Context, *partition.CommandContext) error {
			close(begun)
			<-gate
			return nil
		})
		if err != nil {
			t.Errorf("%v", err)
		}
		executed.Go(func() {
			_, _ = processor.Execute(context.Background(), messages.Command{Workspace: tenant, Kind: shop})
		})
		<-begun
	})
	close(gate)
	executed.Wait()
}
