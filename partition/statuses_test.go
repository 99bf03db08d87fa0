package partition_test

import (
	"context"
	"errors"
	"io"
	"slices"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/partita-go/partita/actors/actorstest"
	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/partition"
)

// names are who has which state.
func names(all []partition.ActorStatus) (out []string) {
	for _, s := range all {
		out = append(out, s.Group+"/"+s.ID+" "+s.State.String())
	}
	return out
}

func wantNames(t *testing.T, got []partition.ActorStatus, want ...string) {
	t.Helper()
	if !slices.Equal(names(got), want) {
		t.Errorf("got %q, want %q", names(got), want)
	}
}

// TestStatusesOfAllActors: a watcher is told of all actors, of those that come, and of the last status of those that go.
func TestStatusesOfAllActors(t *testing.T) {
	d, _ := newDesk(t)
	w := d.app.Watcher()
	next := func() []partition.ActorStatus {
		t.Helper()
		news, err := w.Next(d.ctx)
		d.check(err)
		return news
	}
	var all []string
	for _, s := range d.app.Status() {
		all = append(all, "partition/"+s.Partition.String()+" normal")
	}
	wantNames(t, next(), all...)
	p, err := d.app.SpawnCommandProcessor(func(context.Context, *partition.CommandContext) error { return nil })
	d.check(err)
	d.eventually("a processor", func() bool { return d.app.Actors()[len(all)].State == messages.StateNormal })
	news := next()
	wantNames(t, news[len(news)-1:], "command-processor/0 normal")
	s := d.subscribe(partition.SubscriptionConfig{
		Name: "mails", Partition: new(messages.PartitionID(1)),
		Handler: func(context.Context, partition.Delivery) error { return nil },
	})
	d.reaches(s, 1, messages.LaneWaiting)
	d.check(s.Pause(d.ctx))
	d.eventually("the pause", func() bool { return d.app.Actors()[len(all)+1].Details == "paused" })
	news = next()
	wantNames(t, news[len(news)-1:], "lane/mails/1 normal")
	if got := news[len(news)-1]; got.Details != "paused" || got.Restart != "on-failure, after 1ms to 1ms" {
		t.Errorf("got %+v", got)
	}
	d.check(s.End(d.ctx))
	wantNames(t, next(), "lane/mails/1 terminated")
	d.check(p.Stop(d.ctx))
	wantNames(t, next(), "command-processor/0 terminated")
	d.check(d.undeploy())
	wantNames(t, next(), slices.Concat(replaced(all, " normal", " terminated"))...)
	if _, err := w.Next(d.ctx); !errors.Is(err, io.EOF) {
		t.Errorf("got %v, want the end", err)
	}
}

func replaced(all []string, from, to string) (out []string) {
	for _, s := range all {
		out = append(out, s[:len(s)-len(from)]+to)
	}
	return out
}

// TestStatusOfALane: one whose events cannot be handled is alarming, and says which and why.
func TestStatusOfALane(t *testing.T) {
	d, _ := newDesk(t)
	s := d.subscribe(partition.SubscriptionConfig{
		Name: "mails", MinDelay: time.Hour,
		Handler: func(context.Context, partition.Delivery) error { return errors.New("no such address") },
	})
	d.write(1)
	d.reaches(s, d.app.PartitionOf(1), messages.LaneRetrying)
	for _, a := range d.app.Actors() {
		if a.Group == "lane" && a.ID == "mails/"+d.app.PartitionOf(1).String() {
			if a.State != messages.StateAlarming || a.Details != "event 1 cannot be handled: no such address, 1st try" {
				t.Errorf("got %+v", a)
			}
			return
		}
	}
	t.Error("there is no such lane")
}

// TestStatusReports: an actor that subscribes gets all statuses, then what has changed, and the end.
func TestStatusReports(t *testing.T) {
	clock := actorstest.NewFakeClock(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	h := newHouse(t, partition.Options{Clock: clock})
	app := h.deploy(partition.Application{Descriptor: descriptor}, h.newStore(descriptor))
	board, err := app.StatusActor()
	h.check(err)
	one, two := actorstest.NewProbe(t, shared, patience), actorstest.NewProbe(t, shared, patience)
	gone := actorstest.NewProbe(t, shared, patience)
	for _, p := range []*actorstest.Probe{one, two, gone} {
		p.Send(board, &messages.SubscribeToStatuses{})
		if got := actorstest.Expect[*messages.StatusReport](p); len(got.Statuses) != len(app.Status()) || got.Last {
			t.Errorf("got %+v", got)
		}
	}
	gone.Stop()
	two.Send(board, &messages.UnsubscribeFromStatuses{})
	two.Send(board, &messages.SubscribeToStatuses{}) // and once more
	if got := actorstest.Expect[*messages.StatusReport](two); len(got.Statuses) != len(app.Status()) {
		t.Errorf("got %+v", got)
	}
	two.Send(board, &messages.UnsubscribeFromStatuses{})
	one.Send(board, &messages.SubscribeToStatuses{}) // its answer says that the one before was taken
	if got := actorstest.Expect[*messages.StatusReport](one); len(got.Statuses) != len(app.Status()) {
		t.Errorf("got %+v", got)
	}
	h.check(h.parts.Undeploy(h.ctx, app.Name()))
	last := make(map[string]messages.ActorState)
	for {
		report := actorstest.Expect[*messages.StatusReport](one)
		for _, s := range report.Statuses {
			last[s.ID] = s.State
		}
		if report.Last {
			break
		}
	}
	if len(last) != len(app.Status()) {
		t.Errorf("got the ends of %v", last)
	}
	for id, state := range last {
		if state != messages.StateTerminated {
			t.Errorf("partition %s: got %v at last", id, state)
		}
	}
	two.Send(one.PID(), "nothing else has come")
	actorstest.Expect[string](one)
	one.Send(two.PID(), "nothing else has come")
	actorstest.Expect[string](two)
	if _, err := app.StatusActor(); !errors.Is(err, partition.ErrStopped) {
		t.Errorf("got %v", err)
	}
}

// TestRestartNever: an actor of a group that is not restarted has failed, and says so; others go on.
func TestRestartNever(t *testing.T) {
	o := &panicking{counting{posted: make(map[string]int), handled: make(map[string]int)}}
	never := partition.RestartPolicy{Mode: partition.RestartNever}
	h := newHouse(t, partition.Options{Observer: o, Restarts: map[string]partition.RestartPolicy{"partition": never}})
	app := billing("one")
	a := h.deploy(app, h.newStore(app.Descriptor))
	s, err := a.SequencerOf(4)
	h.check(err)
	_, err = s.Start(h.ctx, shop, 4)
	wants(t, "start", err, messages.ErrInterrupted)
	h.eventually("its end", func() bool {
		_, err := s.Start(h.ctx, shop, 4)
		return errors.Is(err, messages.ErrPartitionFailed)
	})
	of := int(a.PartitionOf(4))
	got := a.Actors()[of]
	if got.State != messages.StateFailed || got.Restart != "never" || got.Restarts != 0 ||
		got.Details != "panicked for the 1st time in a row: injected; it is not restarted" {
		t.Errorf("got %+v", got)
	}
	h.commit(a, messages.WSID(of+1))
	p, err := a.SpawnCommandProcessor(func(context.Context, *partition.CommandContext) error { return nil })
	h.check(err)
	_, err = p.Execute(h.ctx, messages.Command{Workspace: 3, Kind: shop})
	wants(t, "execute", err, messages.ErrInterrupted)
	h.eventually("the restart of another group", func() bool {
		got := a.Actors()[len(a.Status())]
		return got.State == messages.StateNormal && got.Restarts == 1
	})
	wants(t, "undeploy", h.parts.Undeploy(h.ctx, "one"), partition.ErrNotClean)
	if got := a.Actors()[of]; got.State != messages.StateTerminated {
		t.Errorf("got %+v", got)
	}
}

// TestOrderOfTermination: subscriptions end first, then command processors, then partitions. Each of them waits here for a
// handler; what comes later has not begun to end then.
func TestOrderOfTermination(t *testing.T) {
	d, _ := newDesk(t)
	entered := make(chan string, 2)
	goOn := map[string]chan struct{}{"lane": make(chan struct{}), "command-processor": make(chan struct{})}
	wait := func(group string) error {
		entered <- group
		<-goOn[group]
		return nil
	}
	p, err := d.app.SpawnCommandProcessor(func(context.Context, *partition.CommandContext) error { return wait("command-processor") })
	d.check(err)
	d.subscribe(partition.SubscriptionConfig{Name: "mails", Handler: func(context.Context, partition.Delivery) error { return wait("lane") }})
	d.write(1)
	soon(d.house, "the delivery", entered)
	executed, undeployed := make(chan error, 1), make(chan error, 1)
	go func() {
		_, err := p.Execute(d.ctx, messages.Command{Workspace: 2, Kind: shop})
		executed <- err
	}()
	soon(d.house, "the command", entered)
	go func() { undeployed <- d.undeploy() }()
	inState := func(group string, state messages.ActorState) (n int) {
		for _, a := range d.app.Actors() {
			if a.Group == group && a.State == state {
				n++
			}
		}
		return n
	}
	partitions := len(d.app.Status())
	var order []string
	for _, group := range []string{"lane", "command-processor"} {
		d.eventually("the end of all but one", func() bool {
			left := inState(group, messages.StateTerminating)
			return left == 1 && (group != "lane" || inState(group, messages.StateTerminated) == partitions-1)
		})
		order = append(order, group)
		if group == "lane" && inState("command-processor", messages.StateNormal) != 1 || inState("partition", messages.StateNormal) != partitions {
			t.Errorf("while the first %s ends: got %q", group, names(d.app.Actors()))
		}
		close(goOn[group])
	}
	d.check(soon(d.house, "the end", undeployed))
	d.check(soon(d.house, "the command", executed))
	if n := inState("partition", messages.StateTerminated); n != partitions || !slices.Equal(order, []string{"lane", "command-processor"}) {
		t.Errorf("got %q, %q", order, names(d.app.Actors()))
	}
}

// stuck is a subscriber whose mailbox blocks whoever sends to it.
type stuck struct{ arrived, release chan struct{} }

func (s *stuck) SendUserMessage(*actor.PID, any) {
	s.arrived <- struct{}{}
	<-s.release
}
func (*stuck) SendSystemMessage(*actor.PID, any) {}
func (*stuck) Stop(*actor.PID)                   {}

// TestSubscriberThatBlocks: one that does not take its report does not keep an application from ending.
func TestSubscriberThatBlocks(t *testing.T) {
	h := newHouse(t, partition.Options{})
	app := billing("one")
	app.Settings.StopLimit = 50 * time.Millisecond
	a := h.deploy(app, h.newStore(app.Descriptor))
	board, err := a.StatusActor()
	h.check(err)
	s := &stuck{make(chan struct{}, 10), make(chan struct{})}
	who, _ := shared.ProcessRegistry.Add(s, "stuck"+shared.ProcessRegistry.NextId())
	t.Cleanup(func() { shared.ProcessRegistry.Remove(who) })
	shared.Root.RequestWithCustomSender(board, &messages.SubscribeToStatuses{}, who)
	soon(h, "the first report", s.arrived)
	undeployed := make(chan error, 1)
	go func() { undeployed <- h.parts.Undeploy(h.ctx, "one") }()
	err = soon(h, "the end", undeployed)
	close(s.release)
	wants(t, "undeploy", err, partition.ErrNotClean)
	if h.parts.Apps() != nil && len(h.parts.Apps()) != 0 {
		t.Errorf("got %q", h.parts.Apps())
	}
}

// TestLogsOfARestart: what writes the log may ask for the applications, whatever the log is about.
func TestLogsOfARestart(t *testing.T) {
	o := &panicking{counting{posted: make(map[string]int), handled: make(map[string]int)}}
	var h *house
	logger := zap.New(zapcore.NewNopCore()).WithOptions(zap.WrapCore(func(zapcore.Core) zapcore.Core {
		return asking{zapcore.NewNopCore(), func() {
			if h != nil {
				h.parts.Apps()
			}
		}}
	}))
	h = newHouse(t, partition.Options{Observer: o, Logger: logger, RestartDelay: time.Millisecond})
	app := billing("one")
	a := h.deploy(app, h.newStore(app.Descriptor))
	s, err := a.SequencerOf(4)
	h.check(err)
	_, err = s.Start(h.ctx, shop, 4)
	wants(t, "start", err, messages.ErrInterrupted)
	h.eventually("its restart", func() bool { return a.Status()[a.PartitionOf(4)].Restarts == 1 })
}

// asking is a core that asks something about each line.
type asking struct {
	zapcore.Core
	ask func()
}

func (asking) Enabled(zapcore.Level) bool                   { return true }
func (a asking) With([]zapcore.Field) zapcore.Core          { return a }
func (a asking) Write(zapcore.Entry, []zapcore.Field) error { a.ask(); return nil }
func (a asking) Check(e zapcore.Entry, c *zapcore.CheckedEntry) *zapcore.CheckedEntry {
	return c.AddCore(e, a)
}
