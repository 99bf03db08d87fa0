package actors

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"go.uber.org/zap"

	"github.com/partita-go/partita/actors/base"
	"github.com/partita-go/partita/internal/sequencer"
	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage"
)

// PartitionConfig is what a partition actor is made of. All fields are required
// unless they say otherwise.
type PartitionConfig struct {
	// Key names the partition to the observer and in logs.
	Key Key
	// Name is the actor's name; no other actor of the system may have it.
	Name       string
	Sequencer  sequencer.Config
	Store      PartitionStore
	System     *actor.ActorSystem
	Guardian   actor.SupervisorStrategy
	Dispatcher actor.Dispatcher
	Clock      Clock
	Logger     *zap.Logger
	// Requests and RequestBytes are the bounds of the request lane.
	Requests, RequestBytes int
	// Permits bounds how many partitions replay at the same time, EpochPermits how many take an
	// epoch.
	Permits, EpochPermits *Permits
	// Place is that of the store; it may be nil.
	Place *Place
	// FarAhead is set by the first partition of an application that has found the clock far ahead of its log, and
	// logs it. Nil is one of the partition's own.
	FarAhead *atomic.Bool
	// Traces say of which trace requests are.
	Traces Traces
	// Observer may be nil.
	Observer Observer
	// Tally is that of the application. Nil is one of the partition's own.
	Tally *Tally
	// AlarmAfter is for how long a leaf may not answer, or the partition be busy since too much is unflushed, until that
	// is an alarm. Less than 2 ns means for ever.
	AlarmAfter time.Duration
	// Restart says in words what becomes of the partition when it panics.
	Restart string
	// StatusChanged is called on the partition's goroutine, see [Observer], or by Stop if
	// that does not answer; it must not block, and may be nil.
	StatusChanged func(messages.PartitionStatus)
}

// Partition is a handle on a partition actor. It is safe for concurrent use.
type Partition struct {
	config   PartitionConfig
	pid      *actor.PID
	mailbox  *Mailbox
	kinds    *sequencer.Kinds
	settings atomic.Pointer[messages.Settings]
	status   atomic.Pointer[messages.PartitionStatus]
	standing Standing
	restarts atomic.Uint64
	// givenUp says that the actor has failed and is not restarted.
	givenUp atomic.Bool
	// incarnations counts the actors made, so that the first is no restart.
	incarnations atomic.Uint64
	// stopBegun is when BeginStop was called, nil if it was not. It is the machine's time, which
	// no other clock can cut short.
	stopBegun  atomic.Pointer[time.Time]
	terminated chan struct{}
	// guard belongs to the actor.
	guard clockGuard
	done  done
}

// SpawnPartition starts a partition actor, which begins to replay the tail of its
// log at once. It returns an error if the name is taken.
func SpawnPartition(c PartitionConfig) (*Partition, error) {
	if c.Sequencer.Kinds == nil {
		c.Sequencer.Kinds = sequencer.NewKinds(c.Sequencer.Descriptor)
	}
	if c.FarAhead == nil {
		c.FarAhead = new(atomic.Bool)
	}
	if c.Tally == nil {
		c.Tally = new(Tally)
	}
	p := &Partition{config: c, kinds: c.Sequencer.Kinds, terminated: make(chan struct{})}
	p.guard.clock = c.Clock
	p.beginRecovery()
	p.stand(&messages.PartitionStatus{Partition: c.Sequencer.Partition})
	settings := c.Sequencer.Settings
	p.settings.Store(&settings)
	p.mailbox = NewMailbox(MailboxConfig{
		Key:          c.Key,
		Requests:     c.Requests,
		RequestBytes: c.RequestBytes,
		SizeOf:       partitionRequestSize,
		IsRequest:    isPartitionRequest,
		Refuse:       refusal(func() time.Duration { return p.settings.Load().FlushInterval }, c.Tally, p.whyEnded),
		System:       c.System,
		Observer:     c.Observer,
	})
	props := actor.PropsFromProducer(p.incarnate,
		actor.WithMailbox(func() actor.Mailbox { return p.mailbox }),
		actor.WithDispatcher(c.Dispatcher),
		actor.WithGuardian(c.Guardian),
		actor.WithSupervisor(EscalateToParent()))
	pid, err := c.System.Root.SpawnNamed(base.ObserveSends(props, p.mailbox), c.Name)
	if err != nil {
		return nil, fmt.Errorf("spawn %s: %w", c.Name, err)
	}
	p.pid = pid
	return p, nil
}

// PID returns the actor's address, for requests by message.
func (p *Partition) PID() *actor.PID { return p.pid }

// Status returns the state as of its last change, and how far the log and the projections are now.
func (p *Partition) Status() messages.PartitionStatus {
	s := *p.status.Load()
	s.Checkpoint = messages.PLogOffset(p.done.checkpoint.Load())
	s.Last = messages.PLogOffset(p.done.last.Load())
	s.Displaced, s.Full = p.config.Place.Displaced(), p.full()
	return s
}

// Terminated is closed when the actor and its leaves have ended.
func (p *Partition) Terminated() <-chan struct{} { return p.terminated }

// isPartitionRequest tells what waits for its turn.
func isPartitionRequest(message any) bool {
	switch message.(type) {
	case *messages.Append, *messages.Start:
		return true
	}
	return false
}

// partitionRequestSize returns what a request keeps in memory that waits.
func partitionRequestSize(message any) int {
	switch m := message.(type) {
	case *messages.Append:
		return sequencer.AppendBytes(m)
	case *messages.Start:
		return len(m.Zone)
	}
	return 0
}

// incarnate makes the actor, anew after each restart.
func (p *Partition) incarnate() actor.Actor {
	incarnation := p.incarnations.Add(1)
	if incarnation > 1 {
		p.restarts.Add(1)
	}
	ctx, cancel := context.WithCancelCause(context.Background())
	config := p.config.Sequencer
	config.Generation = incarnation << incarnationShift
	config.Settings = *p.settings.Load()
	config.Secret = rand.Uint64 // ChaCha8, with a seed of the system's
	submitter, _ := p.config.Store.(storage.Submitter)
	return &partition{
		handle:      p,
		incarnation: incarnation,
		core:        sequencer.New(config),
		cancel:      cancel,
		leaf: &leaf{
			ctx:          ctx,
			partition:    p.config.Sequencer.Partition,
			store:        p.config.Store,
			submitter:    submitter,
			permits:      p.config.Permits,
			epochPermits: p.config.EpochPermits,
			place:        p.config.Place,
			unhandled:    p.unhandled,
		},
	}
}

func (p *Partition) unhandled(message any) {
	p.config.Logger.Warn("unknown message", zap.Stringer("actor", p.config.Key), zap.String("type", fmt.Sprintf("%T", message)))
}

// stand shows a status to everybody, and returns the one before.
func (p *Partition) stand(s *messages.PartitionStatus) (before *messages.PartitionStatus) {
	s.Displaced = p.config.Place.Displaced()
	p.standing.mu.Lock()
	defer p.standing.mu.Unlock()
	p.standing.now.Store(&messages.ActorStatus{
		Group: p.config.Key.Group, ID: p.config.Key.ID, State: s.State, Details: s.Details,
		Restarts: s.Restarts, Restart: p.config.Restart, Err: s.Err, Partition: s,
	})
	return p.status.Swap(s)
}

// Standing returns where the partition's status stands.
func (p *Partition) Standing() *Standing { return &p.standing }

// setStatus publishes a status: metrics and dumps hang here.
func (p *Partition) setStatus(s messages.PartitionStatus) {
	s.Restarts = p.restarts.Load()
	before := p.stand(&s)
	p.countState(before.State, s.State)
	if before.State != s.State {
		level := zap.InfoLevel
		if s.State == messages.StateFailed {
			level = zap.ErrorLevel
		}
		p.config.Logger.Log(level, "partition is "+s.State.String(), zap.Stringer("actor", p.config.Key),
			zap.Uint64("epoch", uint64(s.Epoch)), zap.Uint64("last", uint64(s.Last)), zap.Uint64("replayed", s.Replayed),
			detailsField(s.Details), zap.Error(s.Err))
	}
	for _, n := range s.NearlyUsed {
		if !slices.ContainsFunc(before.NearlyUsed, n.SameSequence) {
			p.config.Logger.Warn("more than 90 % of a sequence is used", zap.Stringer("actor", p.config.Key),
				zap.Uint64("workspace", uint64(n.Workspace)), zap.Uint16("sequence", uint16(n.Seq)), zap.String("name", n.Name),
				zap.Stringer("period", n.Period), zap.Uint64("last", uint64(n.Last)), zap.Uint64("largest", uint64(n.Largest)))
		}
	}
	if p.config.StatusChanged != nil {
		p.config.StatusChanged(s)
	}
}

// incarnationShift leaves room for the generations of one incarnation: an answer
// to an earlier one that is still queued after a restart can be told.
const incarnationShift = 32

// Interrupted publishes that the actor has failed, and waits to be restarted or has ended.
func (p *Partition) Interrupted(f Failure) {
	s := p.Status()
	if s.State != messages.StateTerminated {
		s.State, s.Details, s.Err = f.state(), f.String(), fmt.Errorf("%w: %v", messages.ErrInterrupted, f.Reason)
		p.givenUp.Store(f.GivenUp)
		p.setStatus(s)
	}
}

// whyEnded is the answer to whoever asks an actor that has ended, or is about to.
func (p *Partition) whyEnded() error {
	if p.givenUp.Load() {
		return &messages.PartitionError{Partition: p.config.Sequencer.Partition, Cause: errGivenUp}
	}
	return messages.ErrStopped
}

// partition is the actor: a thin shell around the core.
type partition struct {
	handle      *Partition
	incarnation uint64
	core        *sequencer.Core
	leaf        *leaf
	cancel      context.CancelCauseFunc

	// leaves are those that there are, spawned counts those that there were.
	leaves  [leafKinds]*actor.PID
	spawned int

	timers [messages.Timers]Timer

	// watched is the owner of the open transaction if it is an actor.
	watched *actor.PID
	token   messages.Token

	// lastNow is what the clock said last.
	lastNow messages.Timestamp
	// distrusted says that the core was told to distrust the clock.
	distrusted bool
	// openSince is what the handle says of the open transaction.
	openSince messages.Timestamp
	// held says that the request lane is on hold.
	held bool
	// aborted says that everybody was answered.
	aborted bool

	// asked counts what the leaves have not answered, answered what they have.
	asked    [leafKinds]int
	answered [leafKinds]uint64
	alarm    alarm
	// refused says that the store has had no room for what was written last.
	refused bool
}

func (p *partition) Receive(ctx actor.Context) {
	switch m := ctx.Message().(type) {
	case messages.PartitionMessage:
		p.handleMessage(ctx, m)
	case *actor.Started:
		p.started(ctx)
	case *actor.Terminated:
		p.childOrOwnerEnded(ctx, m.Who)
	case *actor.Restarting:
		p.abort(ctx, messages.ErrInterrupted)
	case *actor.Stopping:
		p.abort(ctx, p.handle.whyEnded())
		// The leaves may take long to end: nobody asks until then and is not answered.
		p.handle.mailbox.Close()
	case *actor.Stopped:
		p.ended()
	case actor.AutoReceiveMessage, actor.SystemMessage:
	default:
		p.handle.unhandled(m)
	}
}

func (p *partition) started(ctx actor.Context) {
	// The incarnation before may have left the lane on hold.
	p.handle.mailbox.Release()
	now := p.now(ctx)
	p.carryOut(ctx, p.core.Begin(now))
	if p.handle.stopBegun.Load() != nil {
		// Whoever asked the incarnation before may not have waited.
		ctx.Send(ctx.Self(), &messages.Stop{})
	}
}

// now reads the clock, and tells the core when it begins or ceases to be wrong.
func (p *partition) now(ctx actor.Context) messages.Timestamp {
	now, err := p.handle.guard.read(p.handle.settings.Load().ClockJump)
	if distrusted := err != nil; distrusted != p.distrusted {
		p.distrusted = distrusted
		p.carryOut(ctx, p.core.DistrustClock(err, now))
	}
	return now
}

// handleMessage steps the core and carries out what it wants.
func (p *partition) handleMessage(ctx actor.Context, m messages.PartitionMessage) {
	var from sequencer.Requester
	if sender := ctx.Sender(); sender != nil {
		from = p.handle.mailbox.Requester(sender, m)
	} else if g := p.countAnswer(m); g != 0 && g>>incarnationShift != p.incarnation {
		return
	}
	now := p.nowFor(ctx, m)
	fx := p.core.Step(from, m, now)
	p.carryOut(ctx, fx)
	if fx.Stopped {
		return // its end is that of its leaves
	}
	switch m := m.(type) { //nolint:gochecksumtype // after the others there is more to do, or there was nothing
	case *messages.Taken, *messages.Replayed, *messages.Written:
		p.rest(ctx)
	case *messages.TimerFired:
		if m.Timer == messages.TimerAlarm {
			p.look(ctx)
		}
	case *messages.EventsWritten:
		p.noteRoom(ctx, m.Err)
	}
}

// nowFor spares those messages the clock which do not depend on the time: for
// them it is still that of their Start. Reading it takes as long as the core's own
// work. What ends a transaction or a batch does depend on it if something begins with it.
func (p *partition) nowFor(ctx actor.Context, m messages.PartitionMessage) messages.Timestamp {
	switch m := m.(type) { //nolint:gochecksumtype // all others take the default
	case *messages.Next, *messages.Raise:
		return p.lastNow
	case *messages.Flush, *messages.Cancel:
		if !p.core.NeedsTime() {
			return p.lastNow
		}
	case *messages.EventsWritten:
		// Whoever was not written is judged again.
		if m.Outcome == messages.WriteDone && !p.core.NeedsTime() {
			return p.lastNow
		}
	}
	p.lastNow = p.now(ctx)
	return p.lastNow
}

// countAnswer keeps count of the leaves that have work in their hands. It returns
// the generation of a leaf's answer, else 0.
func (p *partition) countAnswer(m messages.PartitionMessage) uint64 {
	var generation uint64
	by := leafKinds
	switch m := m.(type) {
	case *messages.Written:
		generation, by = m.Generation, leafFlusher
	case *messages.Taken:
		generation, by = m.Generation, leafActualizer
		p.warnAhead(m.Register.LastRegisteredAt)
		p.handle.guard.notBehind(m.Register.LastRegisteredAt)
	case *messages.Replayed:
		generation, by = m.Generation, leafActualizer
	case *messages.ReplayFailed:
		generation, by = m.Generation, leafActualizer
	case *messages.Loaded:
		generation, by = m.Generation, leafReader
	case *messages.Found:
		generation, by = m.Generation, leafReader
	case *messages.EventsLoaded:
		generation, by = m.Generation, leafReader
	case *messages.EventsWritten:
		generation, by = m.Generation, leafAppender
	case *messages.Start, *messages.Append, *messages.Next, *messages.Raise, *messages.Flush, *messages.Actualize, *messages.Cancel,
		*messages.OwnerStopped, *messages.TimerFired, *messages.Stop, *messages.Reconfigure:
	}
	if by != leafKinds && generation>>incarnationShift == p.incarnation {
		p.asked[by]--
		p.answered[by]++
	}
	return generation
}

// farAhead is how long after the last event a partition is hardly ever started.
const farAhead = 365 * 24 * time.Hour

// warnAhead logs, when the partition starts, that the first reading of the clock, which is
// trusted, is far ahead of the last event.
func (p *partition) warnAhead(last messages.Timestamp) {
	now := p.handle.guard.highest
	if p.core.Status().Epoch == 0 && last != 0 && now-last > messages.Timestamp(farAhead/time.Microsecond) && p.handle.config.FarAhead.CompareAndSwap(false, true) {
		p.handle.config.Logger.Warn("clock is far ahead of the last event: later times of registration will not be earlier",
			zap.Stringer("actor", p.handle.config.Key), zap.Stringer("clock", now), zap.Stringer("last", last))
	}
}

// abandoned counts the leaves that hang.
func (p *partition) abandoned() int {
	n := 0
	for _, asked := range p.asked {
		if asked > 0 {
			n++
		}
	}
	return n
}

// childOrOwnerEnded tells the core about an owner that is gone. Leaves end only
// when the partition does.
func (p *partition) childOrOwnerEnded(ctx actor.Context, who *actor.PID) {
	if p.watched != nil && p.watched.Equal(who) {
		p.watched = nil
		token, now := p.token, p.now(ctx)
		p.carryOut(ctx, p.core.Step(nil, &messages.OwnerStopped{Token: token}, now))
	}
}

// abort answers everybody whose request this incarnation holds, and lets go of
// the leaves.
func (p *partition) abort(ctx actor.Context, why error) {
	defer logPanic(p.handle.config.Logger, p.handle.config.Key)
	if p.aborted {
		// It was stopped while it waited to be restarted.
		return
	}
	p.aborted = true
	p.cancel(why)
	p.handle.done.openSince.Store(0)
	for i := range p.timers {
		p.disarm(messages.Timer(i))
	}
	p.reply(ctx, p.core.Abort(why).Replies)
}

// ended is the actor's last word: nobody may wait for an answer any more. An actor
// that somebody stopped without asking it has not flushed.
func (p *partition) ended() {
	defer close(p.handle.terminated)
	defer p.handle.mailbox.Close()
	s := p.handle.Status()
	if s.State == messages.StateFailed && p.handle.givenUp.Load() && p.handle.stopBegun.Load() == nil {
		return // until somebody stops the partition that is how it stands
	}
	if s.State != messages.StateTerminated || s.Abandoned > 0 {
		s.State, s.Abandoned, s.Details = messages.StateTerminated, 0, ""
		p.handle.setStatus(s)
	}
}

// Reconfigure changes the settings while the partition runs, also after a
// restart. The settings must be complete and valid.
func (p *Partition) Reconfigure(ctx context.Context, ports *Ports, s messages.Settings) error {
	p.settings.Store(&s)
	reply, err := ports.Ask(ctx, p.pid, &messages.Reconfigure{Settings: s}, nil)
	if err != nil {
		return err
	}
	if refused, ok := reply.(*messages.Refused); ok {
		return refused.Err
	}
	return nil
}

// leafGrace is how long a stop waits for a leaf whose context has ended, before
// the leaf counts as hanging.
const leafGrace = time.Second

// BeginStop asks the partition to end and does not wait. Stop does, and waits no longer than
// if it had been called now. A restart does not forget it.
func (p *Partition) BeginStop() {
	now := time.Now()
	if p.stopBegun.CompareAndSwap(nil, &now) {
		p.config.System.Root.Send(p.pid, &messages.Stop{})
	}
}

// stopLimit is how long a call of Stop waits for an answer.
func (p *Partition) stopLimit() time.Duration {
	limit := p.settings.Load().StopLimit + leafGrace
	if begun := p.stopBegun.Load(); begun != nil {
		limit -= time.Since(*begun)
	}
	return max(limit, leafGrace)
}

// Stop asks the partition to end and waits for its answer and for its leaves; a
// leaf that hangs in storage is left behind and counted. Stopping one that has
// ended is harmless. A restart in between is waited for, but not for ever: after
// the stop limit and a little grace the actor is ended without being asked.
func (p *Partition) Stop(ctx context.Context, ports *Ports) (messages.Stopped, error) {
	if p.hasTerminated() {
		return p.lastWord(ctx, messages.ErrStopped)
	}
	limited, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	limit := p.config.Clock.AfterFunc(p.stopLimit(), func() { cancel(errStopLimit) })
	defer limit.Stop()
	for {
		reply, err := ports.Ask(limited, p.pid, &messages.Stop{}, nil)
		if errors.Is(err, errStopLimit) {
			return p.end(ctx)
		}
		if err != nil {
			return p.lastWord(ctx, err)
		}
		switch r := reply.(type) {
		case *messages.Stopped:
			return p.awaitTerminated(ctx, *r)
		case *messages.Refused:
			if errors.Is(r.Err, errGivenUp) {
				return p.end(ctx)
			}
			if !errors.Is(r.Err, messages.ErrInterrupted) {
				return p.lastWord(ctx, r.Err)
			}
		default:
			return messages.Stopped{}, fmt.Errorf("%w: got %T", ErrProtocol, reply)
		}
	}
}

// end stops an actor that does not answer: it waits for a leaf that hangs before it
// can be restarted.
func (p *Partition) end(ctx context.Context) (messages.Stopped, error) {
	p.config.System.Root.Stop(p.pid)
	stopped, err := p.awaitTerminated(ctx, messages.Stopped{Abandoned: 1})
	if err != nil {
		return stopped, err
	}
	s := p.Status()
	if stopped.Abandoned == 0 && s.State == messages.StateTerminated {
		return stopped, nil
	}
	s.State, s.Abandoned, s.Clean = messages.StateTerminated, stopped.Abandoned, false
	s.Details = detailsOf(&s)
	p.setStatus(s)
	p.mailbox.Close()
	return stopped, nil
}

// lastWord is the answer of a partition that has ended already, but for its leaves maybe.
func (p *Partition) lastWord(ctx context.Context, err error) (messages.Stopped, error) {
	if !errors.Is(err, messages.ErrStopped) {
		return messages.Stopped{}, err
	}
	s := p.Status()
	if s.State != messages.StateTerminated {
		return p.end(ctx) // it ends without having been asked
	}
	return p.awaitTerminated(ctx, messages.Stopped{Clean: s.Clean, Abandoned: s.Abandoned})
}

func (p *Partition) hasTerminated() bool {
	select {
	case <-p.terminated:
		return true
	default:
		return false
	}
}

// awaitTerminated waits for the leaves to end, but not for ever for those that
// had work in their hands.
func (p *Partition) awaitTerminated(ctx context.Context, s messages.Stopped) (messages.Stopped, error) {
	if p.hasTerminated() {
		s.Abandoned = 0
		return s, nil
	}
	var grace <-chan time.Time
	if s.Abandoned > 0 {
		timer := time.NewTimer(leafGrace)
		defer timer.Stop()
		grace = timer.C
	}
	select {
	case <-p.terminated:
		s.Abandoned = 0
		return s, nil
	case <-grace:
		return s, nil
	case <-ctx.Done():
		return s, context.Cause(ctx)
	}
}
