package actors

import (
	"context"
	"fmt"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/partita-go/partita/messages"
)

// Sending is a command's way to a command processor. It is for one command.
type Sending struct {
	To *CommandProcessor
	// Wait says that Ask waits until its context ends for a place in the request lane, instead of returning ErrBusy
	// when the lane is full.
	Wait bool
	// Posted says afterwards whether the command processor's observer is told of the command: then it is told once
	// that it was posted, and once that it was handled, perhaps later.
	Posted bool
}

// Ask is [CommandProcessor.Execute].
func (s *Sending) Ask(ctx context.Context, c messages.Command) (*messages.CommandDone, error) {
	if c.Deadline == 0 {
		c.Deadline = deadlineBy(ctx, s.To.config.Clock)
	}
	own, err := s.To.own(ctx, c)
	if err != nil {
		return nil, err
	}
	taken := false
	reply, err := s.To.ports.AskThrough(ctx, &own.Command, nil, func(e *actor.MessageEnvelope) error {
		s.Posted = true
		err := s.post(ctx, e, own)
		taken = err == nil
		return err
	})
	switch {
	case err == nil:
		return expectDone(reply)
	case taken && ctx.Err() != nil:
		return nil, fmt.Errorf("%w: %w", messages.ErrOutcomeUnknown, err)
	}
	return nil, err // it was not sent, or nobody was there to take it
}

func (s *Sending) post(ctx context.Context, e *actor.MessageEnvelope, own *ownCommand) error {
	if s.Wait {
		return s.To.mailbox.AwaitPostBorrowed(ctx, e, own)
	}
	s.To.mailbox.PostBorrowed(e, own)
	return nil
}

// Tell sends a command whose answer nobody waits for. When it returns nil, the command has its place in the request
// lane; if it is refused later, a line in the log says so. The deadline of ctx is not the command's.
//
// It returns ErrBusy if the lane is full, ErrTooLarge (a *TooLargeError), ErrStopped, or the error of ctx.
func (s *Sending) Tell(ctx context.Context, c messages.Command) error {
	own, err := s.To.own(ctx, c)
	if err != nil {
		return err
	}
	s.Posted = true
	if refused, ok := s.To.mailbox.Tell(&own.Command, own).(*messages.Refused); ok {
		return refused.Err
	}
	return nil
}

// own returns a command that is to be sent, unless it may not be.
func (p *CommandProcessor) own(ctx context.Context, c messages.Command) (*ownCommand, error) {
	if c.Trace == 0 {
		c.Trace, c.Span = p.config.Traces.Of(ctx)
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx) // the command is not sent
	}
	own := &ownCommand{c}
	if sequencer, err := p.config.Route(c.Workspace); err == nil { // else the answer says so
		if err := sequencer.checkCommand(ctx, &own.Command); err != nil {
			return nil, err
		}
	}
	return own, nil
}

func expectDone(reply any) (*messages.CommandDone, error) {
	switch r := reply.(type) {
	case *messages.CommandDone:
		return r, nil
	case *messages.Refused:
		return nil, r.Err
	}
	return nil, fmt.Errorf("%w: got %T", ErrProtocol, reply)
}
