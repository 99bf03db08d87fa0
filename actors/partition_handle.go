package actors

import (
	"context"
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
	s := *p.status.Load() // before the reach, which is noted before it
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
