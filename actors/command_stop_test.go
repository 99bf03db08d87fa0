package actors_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/partita-go/partita/actors"
	"github.com/partita-go/partita/actors/actorstest"
	"github.com/partita-go/partita/messages"
)

// blocking is a handler that waits to be released, or for the end of its context.
type blocking struct {
	arrived chan struct{}
	release chan struct{}
}

func newBlocking() *blocking {
	return &blocking{arrived: make(chan struct{}, 1024), release: make(chan struct{})}
}

func (b *blocking) handle(ctx context.Context, _ *actors.CommandContext) error {
	b.arrived <- struct{}{}
	select {
	case <-b.release:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// deafHandle does not look at its context.
func (b *blocking) deafHandle(context.Context, *actors.CommandContext) error {
	b.arrived <- struct{}{}
	<-b.release
	return nil
}

// execute executes a command in the background.
func (r *rig) execute(ctx context.Context, p *actors.CommandProcessor, c messages.Command) <-chan error {
	answer := make(chan error, 1)
	go func() {
		_, err := p.Execute(ctx, c)
		answer <- err
	}()
	return answer
}

// A full mailbox of a command processor refuses at once.
func TestCommandFullMailbox(t *testing.T) {
	r := readyRig(t, setup{})
	b := newBlocking()
	p := r.spawnProcessor(2, b.handle)
	i := actorstest.NewInbox(t, system)
	postTo(p, i, 1)
	next(t, b.arrived)
	postTo(p, i, 2)
	_, err := p.Execute(r.ctx, command())
	var busy *messages.BusyError
	if !errors.As(err, &busy) || busy.Reason != messages.BusyMailboxFull || busy.RetryAfter <= 0 {
		t.Errorf("got %v, want a full mailbox", err)
	}
	close(b.release)
	for range 3 {
		isA[*messages.CommandDone](r, next(t, i.User))
	}
}

// What waits there takes a bounded amount of memory.
func TestCommandLaneBytes(t *testing.T) {
	r := readyRig(t, setup{})
	b := newBlocking()
	p := r.spawnConfigured(actors.CommandProcessorConfig{Handler: b.handle, Requests: 10, RequestBytes: 500})
	i := actorstest.NewInbox(t, system)
	postTo(p, i, 1)
	next(t, b.arrived)
	postTo(p, i, 2) // each takes 276
	_, err := p.Execute(r.ctx, command())
	if busy, ok := errors.AsType[*messages.BusyError](err); !ok || busy.Reason != messages.BusyMailboxFull {
		t.Errorf("got %v, want a full mailbox", err)
	}
	close(b.release)
	for range 3 {
		isA[*messages.CommandDone](r, next(t, i.User))
	}
}

// post puts commands into the lane of a command processor.
func postTo(p *actors.CommandProcessor, i *actorstest.Inbox, n int) {
	for range n {
		c := command(1)
		system.Root.Send(p.PID(), i.From(&c))
	}
}

// A stop with a backlog: the command under way is finished, everybody is answered.
func TestCommandProcessorStopsWithABacklog(t *testing.T) {
	const backlog = 20
	r := readyRig(t, setup{})
	b := newBlocking()
	p := r.spawnProcessor(backlog, b.handle)
	i := actorstest.NewInbox(t, system)
	postTo(p, i, 1)
	next(t, b.arrived)
	postTo(p, i, backlog)
	stopped := make(chan error, 1)
	go func() { stopped <- p.Stop(r.ctx) }()
	close(b.release)
	done, refused := 0, 0
	for range backlog + 1 {
		switch m := next(t, i.User).(type) {
		case *messages.CommandDone:
			done++
		case *messages.Refused:
			wants(t, "the backlog", m.Err, messages.ErrStopped)
			refused++
		}
	}
	wants(t, "stop", next(t, stopped), nil)
	// The command under way is finished; the backlog need not be.
	if got := len(r.log(0)); got != done || done == 0 || done+refused != backlog+1 {
		t.Errorf("got %d events, %d commands were done and %d refused", got, done, refused)
	}
	_, err := p.Execute(r.ctx, command())
	wants(t, "after the stop", err, messages.ErrStopped)
	r.check(p.Stop(r.ctx))
}

// The deadline of a command ends its handler's context, and its numbers go back.
func TestCommandDeadlineInTheHandler(t *testing.T) {
	for name, handler := range map[string]func(*blocking) actors.Handler{
		"that looks at its context":         func(b *blocking) actors.Handler { return b.handle },
		"that does not look at its context": func(b *blocking) actors.Handler { return b.deafHandle },
	} {
		t.Run(name, func(t *testing.T) {
			r := readyRig(t, setup{})
			b := newBlocking()
			p := r.spawnProcessor(10, handler(b))
			answer := r.executeUntil(p, b, 20*time.Millisecond)
			r.getsThrough(7) // the numbers go back, whatever the handler does
			close(b.release)
			if err := next(t, answer); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("got %v, want %v", err, context.DeadlineExceeded)
			}
			if len(r.log(0)) != 0 {
				t.Errorf("got %d events", len(r.log(0)))
			}
		})
	}
}

// executeUntil executes a command whose deadline passes in its handler.
func (r *rig) executeUntil(p *actors.CommandProcessor, b *blocking, left time.Duration) <-chan error {
	r.t.Helper()
	c := command(1)
	c.Deadline = messages.TimestampOf(r.clock.Now().Add(left))
	answer := r.execute(r.ctx, p, c)
	select {
	case <-b.arrived:
		return answer
	case <-answer: // it passed before
		return r.executeUntil(p, b, 2*left)
	}
}

// Whoever stops waiting is told that the outcome is unknown, unless the command was
// never sent.
func TestCommandExecuteContextEnds(t *testing.T) {
	r := readyRig(t, setup{})
	b := newBlocking()
	p := r.spawnProcessor(10, b.handle)
	ctx, leave := r.client()
	answer := r.execute(ctx, p, command(1))
	next(t, b.arrived)
	leave()
	err := next(t, answer)
	wants(t, "execute", err, messages.ErrOutcomeUnknown)
	wants(t, "execute", err, errGone)
	close(b.release)
	_, err = p.Execute(ctx, command(1))
	wants(t, "execute", err, errGone)
	if errors.Is(err, messages.ErrOutcomeUnknown) {
		t.Errorf("got %v for a command that was not sent", err)
	}
	r.eventually("the command to be done", func() bool { return len(r.log(0)) == 1 })
}

// A panic outside of the handler restarts the command processor; the requester is
// answered and the transaction is given back.
func TestCommandProcessorRestarts(t *testing.T) {
	r := readyRig(t, setup{})
	p := r.spawnProcessor(10, accept)
	r.spy.do(func(k actors.Key, m any) {
		if _, ok := m.(*messages.Command); ok && k.Group == "command-processor" {
			panic("injected")
		}
	})
	answer := r.execute(r.ctx, p, command(1))
	delay := r.failed()
	wants(t, "execute", next(t, answer), messages.ErrInterrupted)
	r.spy.do(nil)
	r.fake.Advance(delay)
	_, err := p.Execute(r.ctx, command(1))
	r.check(err)
}
