package actors

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"go.uber.org/zap"

	"github.com/partita-go/partita/actors/base"
	"github.com/partita-go/partita/ids"
	"github.com/partita-go/partita/messages"
)

// CommandProcessorConfig is what a command processor is made of. All fields are
// required unless they say otherwise.
type CommandProcessorConfig struct {
	// Key names the command processor to the observer and in logs.
	Key Key
	// Name is the actor's name; no other actor of the system may have it.
	Name string
	// Route returns the sequencer of a workspace's partition.
	Route func(messages.WSID) (*Sequencer, error)
	// Handler or Drafter, exactly one, says what commands do.
	Handler    Handler
	Drafter    Drafter
	System     *actor.ActorSystem
	Guardian   actor.SupervisorStrategy
	Dispatcher actor.Dispatcher
	Clock      Clock
	Logger     *zap.Logger
	// Requests and RequestBytes are the bounds of the request lane.
	Requests, RequestBytes int
	// Limit bounds a command without a deadline of its own, until SetLimit changes it.
	Limit time.Duration
	// Traces say of which trace commands are that do not say it.
	Traces Traces
	// Observer may be nil.
	Observer Observer
	// Tally is that of the application; it may be nil.
	Tally *Tally
	// AlarmAfter is how long a command may be under way until that is an alarm. Less than 2 ns means for ever.
	AlarmAfter time.Duration
	// Restart says in words what becomes of the actor when it panics.
	Restart string
	// StatusChanged is called when Standing has changed, on any goroutine; it must not block, and may be nil.
	StatusChanged func()
}

// CommandProcessor is a handle on a command processor actor and its typed client.
// It is safe for concurrent use.
type CommandProcessor struct {
	config   CommandProcessorConfig
	pid      *actor.PID
	ports    *Ports
	ctx      context.Context
	cancel   context.CancelCauseFunc
	mailbox  *Mailbox
	limit    atomic.Int64 // a time.Duration
	standing Standing
	dog      watchdog
	// workspace is that of the command under way.
	workspace  atomic.Uint64
	terminated chan struct{}
}

// SpawnCommandProcessor starts a command processor: an actor that runs one command
// after the other. It returns an error if the name is taken.
func SpawnCommandProcessor(c CommandProcessorConfig, ports *Ports) (*CommandProcessor, error) {
	ctx, cancel := context.WithCancelCause(context.Background())
	p := &CommandProcessor{config: c, ports: ports, ctx: ctx, cancel: cancel, terminated: make(chan struct{})}
	p.SetLimit(c.Limit)
	p.standing.begin(c.Key, c.Restart, c.StatusChanged, c.Tally)
	p.dog.clock, p.dog.every, p.dog.bark = c.Clock, c.AlarmAfter/looksUntilAlarm, p.bark
	p.mailbox = NewMailbox(MailboxConfig{
		Key:          c.Key,
		Requests:     c.Requests,
		RequestBytes: c.RequestBytes,
		SizeOf:       commandSize,
		IsRequest:    isCommand,
		Refuse:       refusal(func() time.Duration { return commandRetryAfter }, c.Tally, errStopped),
		System:       c.System,
		Observer:     c.Observer,
		Blocks:       true,
	})
	props := actor.PropsFromProducer(func() actor.Actor { return &commandProcessor{handle: p} },
		actor.WithMailbox(func() actor.Mailbox { return p.mailbox }),
		actor.WithDispatcher(c.Dispatcher),
		actor.WithGuardian(c.Guardian))
	pid, err := c.System.Root.SpawnNamed(base.ObserveSends(props, p.mailbox), c.Name)
	if err != nil {
		cancel(err)
		return nil, fmt.Errorf("spawn %s: %w", c.Name, err)
	}
	p.pid = pid
	return p, nil
}

// SetLimit bounds the commands to come that have no deadline of their own.
func (p *CommandProcessor) SetLimit(d time.Duration) { p.limit.Store(int64(d)) }

// PID returns the actor's address, for requests by message.
func (p *CommandProcessor) PID() *actor.PID { return p.pid }

// Execute sends a command and waits for the answer. The deadline of ctx is the
// command's, if that has none. When ctx ends first, the command may still be
// carried out: the error is then ErrOutcomeUnknown as well as that of ctx. The command is
// copied if there is a place for it: it must not be changed before the call returns.
//
// It returns ErrBusy if the command processor or its partition is busy, ErrTooLarge (a
// *TooLargeError) if it takes more than one append may, ErrRawID, the handler's or drafter's own error, or what [Transaction.Commit] or
// [Sequencer.Append] returns.
func (p *CommandProcessor) Execute(ctx context.Context, c messages.Command) (*messages.CommandDone, error) {
	return (&Sending{To: p}).Ask(ctx, c)
}

// Stop lets the command under way finish, refuses those that wait with ErrStopped,
// and ends the actor. It returns when the actor has ended, or when ctx ends: the
// handler's context is ended then, and the actor ends when the handler returns.
func (p *CommandProcessor) Stop(ctx context.Context) error {
	p.BeginStop()
	select {
	case <-p.terminated:
		p.become(messages.StateTerminated, "")
		return nil
	case <-ctx.Done():
		p.cancel(messages.ErrStopped)
		p.become(messages.StateTerminating, "a handler ignores the end of its context")
		return context.Cause(ctx)
	}
}

// BeginStop is Stop, but waits for nothing. It may be called on the actor's goroutine.
func (p *CommandProcessor) BeginStop() {
	p.become(messages.StateTerminating, "")
	p.mailbox.Close()
	p.config.System.Root.Stop(p.pid)
}

// Terminated is closed when the actor has ended.
func (p *CommandProcessor) Terminated() <-chan struct{} { return p.terminated }

// commandRetryAfter is the hint of a command processor whose lane is full.
const commandRetryAfter = 10 * time.Millisecond

func isCommand(message any) bool {
	_, ok := message.(*messages.Command)
	return ok
}

// What a command takes besides its body, and each of its raw records, in bytes, about.
const (
	commandBytes   = 256
	rawRecordBytes = 16
)

// commandSize returns what a command keeps in memory that waits.
func commandSize(message any) int {
	c, ok := message.(*messages.Command)
	if !ok {
		return 0
	}
	return commandBytes + len(c.Body) + len(c.RawRecords)*rawRecordBytes + len(c.Zone)
}

// checkCommand refuses a command that takes more than one append may.
func (s *Sequencer) checkCommand(ctx context.Context, c *messages.Command) error {
	return s.checkBytes(ctx, AppendTo{Workspace: c.Workspace, Kind: c.Kind, DedupID: c.DedupID}, commandSize(c))
}

// commandProcessor is the actor. It is a leaf: it waits for its partition, for the
// handler and for the store.
type commandProcessor struct {
	handle *CommandProcessor
}

func (p *commandProcessor) Receive(ctx actor.Context) {
	switch m := ctx.Message().(type) {
	case messages.CommandProcessorMessage:
		p.handleMessage(ctx, m)
	case *actor.Started:
		p.handle.started()
	case *actor.Stopped:
		p.handle.hasEnded()
		p.handle.mailbox.Close()
		p.handle.cancel(messages.ErrStopped)
		close(p.handle.terminated)
	case actor.AutoReceiveMessage, actor.SystemMessage:
	default:
		p.handle.config.Logger.Warn("unknown message", zap.Stringer("actor", p.handle.config.Key), zap.String("type", fmt.Sprintf("%T", m)))
	}
}

func (p *commandProcessor) handleMessage(ctx actor.Context, m messages.CommandProcessorMessage) {
	switch m := m.(type) {
	case *messages.Command:
		done, err := p.execute(m)
		switch {
		case ctx.Sender() == nil:
			p.logTold(m, err)
		case err != nil:
			p.handle.mailbox.Answer(ctx, p.handle.mailbox.Requester(ctx.Sender(), m), &messages.Refused{Err: err})
		default:
			p.handle.mailbox.Answer(ctx, p.handle.mailbox.Requester(ctx.Sender(), m), done)
		}
	}
}

// logTold tells the log that a command was refused which nobody waits for.
func (p *commandProcessor) logTold(m *messages.Command, err error) {
	if err != nil {
		p.handle.config.Logger.Warn("command was refused, and nobody waits for its answer", zap.Stringer("actor", p.handle.config.Key),
			zap.Stringer("workspace", m.Workspace), TraceField(m.Trace), zap.Error(err))
	}
}

// execute runs one command, in a transaction or as an append.
func (p *commandProcessor) execute(m *messages.Command) (*messages.CommandDone, error) {
	p.handle.begin(m.Workspace)
	defer p.handle.end()
	if err := checkRaw(m.RawRecords); err != nil {
		return nil, err
	}
	sequencer, err := p.handle.config.Route(m.Workspace)
	if err != nil {
		return nil, err
	}
	ctx, cancel := p.limit(m)
	defer cancel()
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("%w: deadline %v", messages.ErrDeadlineExceeded, m.Deadline)
	}
	if err := sequencer.checkCommand(ctx, m); err != nil {
		return nil, err
	}
	if p.handle.config.Drafter != nil {
		return p.appendCommand(ctx, sequencer, m)
	}
	return p.transact(ctx, sequencer, m)
}

// transact runs one command from Start to Flush.
func (p *commandProcessor) transact(ctx context.Context, s *Sequencer, m *messages.Command) (*messages.CommandDone, error) {
	if m.Expected != nil || !m.DedupID.IsZero() {
		return nil, ErrNotAppending
	}
	tx, err := s.Start(ctx, m.Kind, m.Workspace, OnDate(m.Date), SetZone(m.Zone))
	if err != nil {
		return nil, err
	}
	c := &CommandContext{command: m, tx: tx, body: m.Body, ids: make(map[messages.RawID]messages.RecordID, len(m.RawRecords))}
	if err := p.prepare(ctx, c); err != nil {
		// The context may have ended: the numbers must go back all the same.
		_ = tx.Cancel(p.handle.ctx)
		return nil, err
	}
	if err := tx.Commit(ctx, c.body, c.records...); err != nil {
		return nil, err
	}
	return &messages.CommandDone{
		Partition:    tx.Token().Partition,
		PLogOffset:   tx.PLogOffset(),
		WLogOffset:   tx.WLogOffset(),
		RegisteredAt: tx.RegisteredAt(),
		IDs:          c.ids,
		Numbers:      tx.Numbers(),
	}, nil
}

// limit returns the context of a command.
func (p *commandProcessor) limit(m *messages.Command) (context.Context, context.CancelFunc) {
	left := time.Duration(p.handle.limit.Load())
	if m.Deadline != 0 {
		left = m.Deadline.Time().Sub(p.handle.config.Clock.Now())
	}
	return context.WithTimeout(p.handle.config.Traces.handling(p.handle.ctx, m.Trace, m), left)
}

// prepare takes the numbers of the raw ids and runs the handler.
func (p *commandProcessor) prepare(ctx context.Context, c *CommandContext) error {
	for _, raw := range c.command.RawRecords {
		seq := raw.Sequence()
		n, err := c.tx.Next(ctx, seq)
		if err != nil {
			return err
		}
		c.ids[raw.ID] = messages.RecordID{Seq: seq, Number: n}
	}
	return p.call(c.command.Trace, func() error { return p.handle.config.Handler(ctx, c) })
}

func (p *commandProcessor) call(trace ids.TraceID, users func() error) error {
	return callHandler(p.handle.config.Logger, p.handle.config.Key, trace, users)
}

// Standing returns where the command processor's status stands.
func (p *CommandProcessor) Standing() *Standing { return &p.standing }

func (p *CommandProcessor) become(state messages.ActorState, details string) {
	p.standing.become(state, details)
}

// Interrupted publishes that the actor has failed, and waits to be restarted or has ended.
func (p *CommandProcessor) Interrupted(f Failure) { p.standing.interrupted(f) }

// started publishes that the actor takes commands, anew if it was restarted.
func (p *CommandProcessor) started() {
	p.standing.change(func(s *messages.ActorStatus) {
		if s.State != messages.StateInitializing {
			return // it is being stopped
		}
		if s.Err != nil {
			s.Restarts++
		}
		s.State, s.Details, s.Err = messages.StateNormal, "", nil
	})
}

// hasEnded publishes that the actor has ended. One that was not restarted stands as it has failed, until somebody stops it.
func (p *CommandProcessor) hasEnded() {
	p.dog.close()
	if p.standing.Status().State != messages.StateFailed {
		p.become(messages.StateTerminated, "")
	}
}

// begin notes that a command is under way, end that it has ended.
func (p *CommandProcessor) begin(ws messages.WSID) {
	p.workspace.Store(uint64(ws))
	p.dog.begin(p.config.AlarmAfter)
}

func (p *CommandProcessor) end() { p.dog.end() }

// bark publishes that the command under way does not end, or has ended at last.
func (p *CommandProcessor) bark(lasts time.Duration) {
	p.standing.change(func(s *messages.ActorStatus) {
		switch {
		case lasts > 0:
			s.Details = fmt.Sprintf("a command of workspace %d has not ended for %s", p.workspace.Load(), seconds(lasts))
			if s.State == messages.StateNormal {
				s.State = messages.StateAlarming
			}
		case s.State == messages.StateAlarming:
			s.State, s.Details = messages.StateNormal, ""
		}
	})
}
