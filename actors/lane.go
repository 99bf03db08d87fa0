package actors

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"go.uber.org/zap"

	"github.com/partita-go/partita/actors/base"
	"github.com/partita-go/partita/ids"
	"github.com/partita-go/partita/internal/subscription"
	"github.com/partita-go/partita/messages"
)

// LaneConfig is what a lane of a subscription is made of. All fields are required unless
// they say otherwise.
type LaneConfig struct {
	// Key names the lane to the observer and in logs.
	Key Key
	// Name is the actor's name; no other actor of the system may have it.
	Name string
	Lane subscription.Config
	// Subscription is its name in the store.
	Subscription string
	// Workspace is the one whose log is read; nil: that of the lane's partition.
	Workspace *messages.WSID
	// Kinds are those of the workspaces whose events are delivered, in order; none means all.
	Kinds []messages.WSKind
	// Batch and Bytes bound what is handed over at once; one event may exceed the bytes.
	Batch, Bytes int
	// HandlerLimit is when the context of a call of the handler ends.
	HandlerLimit time.Duration
	Handler      BatchHandler
	Store        LaneStore
	System       *actor.ActorSystem
	Guardian     actor.SupervisorStrategy
	Dispatcher   actor.Dispatcher
	Clock        Clock
	Logger       *zap.Logger
	// Traces say with which context the handler is called.
	Traces Traces
	// Observer may be nil.
	Observer Observer
	// Alert is called on the lane's goroutine when it has stopped the subscription, and when
	// it finds it stopped after a restart: the incarnation before may have done it.
	Alert func()
	// AlarmAfter is how long the deliverer may take to read and to write until that is an alarm. Less than 2 ns means for
	// ever, for the handler too, which else may take as long as its limit.
	AlarmAfter time.Duration
	// Restart says in words what becomes of the lane when it panics.
	Restart string
	// Tally is that of the application; it may be nil.
	Tally *Tally
	// StatusChanged is called when Standing has changed, on any goroutine; it must not block, and may be nil.
	StatusChanged func()
}

func (c *LaneConfig) wants(kind messages.WSKind) bool {
	if len(c.Kinds) == 0 {
		return true
	}
	_, found := slices.BinarySearch(c.Kinds, kind)
	return found
}

func (c *LaneConfig) unhandled(message any) {
	c.Logger.Warn("unknown message", zap.Stringer("actor", c.Key), zap.String("type", fmt.Sprintf("%T", message)))
}

// Lane is a handle on the actor that delivers the events of one log to a subscription. It is
// safe for concurrent use.
type Lane struct {
	config       LaneConfig
	pid          *actor.PID
	ports        *Ports
	mailbox      *Mailbox
	status       atomic.Pointer[messages.LaneStatus]
	standing     Standing
	dog          watchdog
	incarnations atomic.Uint64
	// held outlives the incarnation: one that is made while somebody holds the lane delivers
	// nothing either.
	held atomic.Bool
	// givenUp says that the actor has failed and is not restarted.
	givenUp atomic.Bool
	// ctx is that of the deliverer's work.
	ctx        context.Context
	cancel     context.CancelCauseFunc
	terminated chan struct{}
}

// SpawnLane starts a lane, which begins to deliver at once. It returns an error if the name
// is taken.
func SpawnLane(c LaneConfig, ports *Ports) (*Lane, error) {
	ctx, cancel := context.WithCancelCause(context.Background())
	l := &Lane{config: c, ports: ports, ctx: ctx, cancel: cancel, terminated: make(chan struct{})}
	l.status.Store(&messages.LaneStatus{})
	l.standing.begin(c.Key, c.Restart, c.StatusChanged, c.Tally)
	l.dog.clock, l.dog.every, l.dog.bark = c.Clock, c.AlarmAfter/looksUntilAlarm, l.bark
	l.mailbox = NewMailbox(MailboxConfig{
		Key: c.Key, Requests: 1, Refuse: refusal(nil, nil, errStopped), System: c.System, Observer: c.Observer,
	})
	props := actor.PropsFromProducer(l.incarnate,
		actor.WithMailbox(func() actor.Mailbox { return l.mailbox }),
		actor.WithDispatcher(c.Dispatcher),
		actor.WithGuardian(c.Guardian),
		actor.WithSupervisor(EscalateToParent()))
	pid, err := c.System.Root.SpawnNamed(base.ObserveSends(props, l.mailbox), c.Name)
	if err != nil {
		cancel(err)
		return nil, fmt.Errorf("spawn %s: %w", c.Name, err)
	}
	l.pid = pid
	return l, nil
}

// Partition returns the partition whose events the lane delivers.
func (l *Lane) Partition() messages.PartitionID { return l.config.Lane.Partition }

// Status returns the state as of its last change.
func (l *Lane) Status() messages.LaneStatus { return *l.status.Load() }

// Hold waits until the batch under way was handled and is stored, and keeps the lane from
// going on until Release; whoever holds it may change where it stands. If it returns an error,
// the lane must be released all the same.
func (l *Lane) Hold(ctx context.Context) error {
	l.held.Store(true)
	for {
		_, err := askLane[*messages.Held](ctx, l, &messages.HoldLane{})
		if !errors.Is(err, messages.ErrInterrupted) {
			return err
		}
	}
}

// Release lets the lane go on from where the store says.
func (l *Lane) Release() {
	l.held.Store(false)
	l.send(&messages.ReleaseLane{})
}

// Reload makes the lane look whether the store has stopped the subscription.
func (l *Lane) Reload() { l.send(&messages.ReloadLane{}) }

func (l *Lane) send(m messages.LaneMessage) { l.config.System.Root.Send(l.pid, m) }

// Try hands one event to the handler, while the lane is held, and returns what that has
// returned.
func (l *Lane) Try(ctx context.Context, e messages.LogEvent) error {
	tried, err := askLane[*messages.Tried](ctx, l, &messages.TryEvent{Event: e})
	if err != nil {
		return err
	}
	return tried.Err
}

// askLane waits for an answer of a type.
func askLane[T any](ctx context.Context, l *Lane, m messages.LaneMessage) (answer T, err error) {
	reply, err := l.ports.Ask(ctx, l.pid, m, nil)
	if err != nil {
		return answer, err
	}
	switch r := reply.(type) {
	case T:
		return r, nil
	case *messages.Refused:
		return answer, r.Err
	}
	return answer, fmt.Errorf("%w: got %T", ErrProtocol, reply)
}

// Stop lets the batch under way be handled and stored, for so long at the most or until ctx
// ends; then its own context ends. The lane has ended when Stop returns, or was left behind a
// second later. Stopping one that has ended is harmless. It returns ErrHanging, ErrBrokenOff,
// or the reason why what was handled could not be stored.
func (l *Lane) Stop(ctx context.Context, limit time.Duration) error {
	l.standing.become(messages.StateTerminating, "")
	limited, cancel := context.WithCancel(ctx)
	defer cancel()
	patience := l.config.Clock.AfterFunc(limit, cancel)
	defer patience.Stop()
	stopped, err := askLane[*messages.LaneStopped](limited, l, &messages.StopLane{})
	switch {
	case err == nil:
		return errors.Join(stopped.Err, l.awaitTerminated())
	case errors.Is(err, messages.ErrStopped):
		return l.awaitTerminated()
	}
	// It is in the hands of its handler, whose context ends with the actor, or waits to be
	// restarted.
	l.config.System.Root.Stop(l.pid)
	return errors.Join(ErrBrokenOff, l.awaitTerminated())
}

// awaitTerminated waits for the deliverer to end, but not for ever.
func (l *Lane) awaitTerminated() error {
	grace := time.NewTimer(leafGrace)
	defer grace.Stop()
	select {
	case <-l.terminated:
		l.standing.become(messages.StateTerminated, "")
		return nil
	case <-grace.C:
		l.standing.become(messages.StateTerminating, "its deliverer hangs and was left behind")
		l.mailbox.Close()
		return fmt.Errorf("%w: %v", ErrHanging, l.config.Key)
	}
}

// incarnate makes the actor, anew after each restart.
func (l *Lane) incarnate() actor.Actor {
	c := l.config.Lane
	incarnation := l.incarnations.Add(1)
	c.Generation, c.Restarted = incarnation<<incarnationShift, incarnation > 1
	c.Held = l.held.Load()
	before := l.Status()
	c.Delivered, c.Parked = before.Delivered, before.Parked
	ctx, cancel := context.WithCancelCause(l.ctx)
	return &laneActor{handle: l, core: subscription.New(c), ctx: ctx, cancel: cancel}
}

// laneActor is the actor: a thin shell around the core.
type laneActor struct {
	handle    *Lane
	core      *subscription.Lane
	ctx       context.Context
	cancel    context.CancelCauseFunc
	wait      atomic.Pointer[logWait]
	timer     Timer
	deliverer *actor.PID
	aborted   bool
	// givenUp is the trace of the event that is being given up, zero if none is, or has one.
	givenUp ids.TraceID
}

func (l *laneActor) Receive(ctx actor.Context) {
	switch m := ctx.Message().(type) {
	case messages.LaneMessage:
		l.handleMessage(ctx, m)
	case *actor.Started:
		l.started(ctx)
	case *actor.Restarting:
		l.abort(ctx, messages.ErrInterrupted)
	case *actor.Stopping:
		l.abort(ctx, messages.ErrStopped)
		// The deliverer may take long to end: nobody asks until then and is not answered.
		l.handle.mailbox.Close()
	case *actor.Stopped:
		l.ended()
	case actor.AutoReceiveMessage, actor.SystemMessage:
	default:
		l.handle.config.unhandled(m)
	}
}

func (l *laneActor) started(ctx actor.Context) {
	c := &l.handle.config
	leaves := parent{c.Key, l.handle.incarnations.Load(), c.Dispatcher, c.System, c.Observer}
	l.deliverer = leaves.spawn(ctx, "deliverer", 1, func() actor.Actor { return &deliverer{config: c, ctx: l.ctx, wait: &l.wait} })
	l.carryOut(ctx, l.core.Begin())
}

func (l *laneActor) handleMessage(ctx actor.Context, m messages.LaneMessage) {
	var from subscription.Requester
	if sender := ctx.Sender(); sender != nil {
		from = l.handle.mailbox.Requester(sender, m)
	}
	l.carryOut(ctx, l.core.Step(from, m))
}

// carryOut does what the core wants.
func (l *laneActor) carryOut(ctx actor.Context, fx *subscription.Effects) {
	if fx.EndWait {
		l.endWait()
	}
	if fx.Disarm {
		l.disarm()
	}
	if fx.Work != nil {
		l.prepareWait(fx.Work)
		ctx.Send(l.deliverer, fx.Work)
	}
	if fx.Arm != nil {
		l.arm(ctx, fx.Arm)
	}
	if fx.Status {
		l.setStatus(l.core.Status())
	}
	if fx.Work != nil {
		l.givenUp = 0
		if m, ok := fx.Work.(*messages.StorePosition); ok {
			l.givenUp = m.Trace
		}
	}
	if fx.Alert {
		l.handle.config.Alert()
	}
	l.reply(ctx, fx.Replies)
	if fx.Ended {
		l.handle.mailbox.Close()
		ctx.Stop(ctx.Self())
	}
}

// prepareWait makes the context of a wait, so that its end can come first.
func (l *laneActor) prepareWait(work messages.DelivererMessage) {
	if m, ok := work.(*messages.AwaitLog); ok {
		w := &logWait{generation: m.Generation}
		w.ctx, w.cancel = context.WithCancel(l.ctx)
		l.wait.Store(w)
	}
}

func (l *laneActor) endWait() { l.wait.Load().cancel() }

func (l *laneActor) arm(ctx actor.Context, a *subscription.Alarm) {
	self, root, fired := ctx.Self(), ctx.ActorSystem().Root, &messages.RetryFired{Generation: a.Generation}
	l.timer = l.handle.config.Clock.AfterFunc(a.After, func() { root.Send(self, fired) })
}

func (l *laneActor) disarm() {
	if l.timer != nil {
		l.timer.Stop()
	}
}

func (l *laneActor) reply(ctx actor.Context, replies []subscription.Reply) {
	for _, r := range replies {
		l.handle.mailbox.Answer(ctx, r.To, r.Message)
	}
}

// setStatus publishes a status: metrics and dumps hang here.
func (l *laneActor) setStatus(s messages.LaneStatus) {
	c := &l.handle.config
	before := l.handle.status.Swap(&s)
	l.handle.show(&s)
	if s.State != before.State && (s.State == messages.LaneFailed || s.State == messages.LaneHalted) {
		c.Logger.Warn("subscription is "+s.State.String(), zap.Stringer("actor", c.Key), zap.Uint64("next", s.Next),
			zap.String("why", s.Halted), TraceField(l.givenUp), zap.Error(s.Err))
	}
	if s.Parked > before.Parked {
		c.Logger.Warn("subscription has parked an event", zap.Stringer("actor", c.Key), zap.Uint64("next", s.Next), TraceField(l.givenUp))
	}
}

// abort answers everybody whose request this incarnation holds, and lets go of the
// deliverer.
func (l *laneActor) abort(ctx actor.Context, why error) {
	defer logPanic(l.handle.config.Logger, l.handle.config.Key)
	if l.aborted {
		return // it was stopped while it waited to be restarted
	}
	l.aborted = true
	l.cancel(why)
	l.disarm()
	l.reply(ctx, l.core.Abort(why).Replies)
}

// ended is the actor's last word: nobody may wait for an answer any more.
func (l *laneActor) ended() {
	defer close(l.handle.terminated)
	defer l.handle.mailbox.Close()
	l.handle.cancel(messages.ErrStopped)
	l.handle.dog.close()
	s := l.handle.Status()
	if l.handle.givenUp.Load() {
		s.State, s.Err = messages.LaneFailed, l.handle.standing.Status().Err
	} else {
		s.State = messages.LaneEnded
		l.handle.standing.become(messages.StateTerminated, "")
	}
	l.handle.status.Store(&s)
}
