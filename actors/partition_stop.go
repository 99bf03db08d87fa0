package actors

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/partita-go/partita/messages"
)

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
