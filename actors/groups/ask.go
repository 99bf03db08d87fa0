package groups

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"sync"

	"github.com/partita-go/partita/actors"
	"github.com/partita-go/partita/messages"
)

// Ask sends a command to the member that the router chooses, and waits until ctx ends for a place there, and for the
// answer. Whoever waits for a place keeps no copy of the command.
//
// It returns ErrNoMember; ErrRoute if the router chooses several; ErrStopped; and else what
// [actors.CommandProcessor.Execute] does. When ctx ends while the command waits for a place, it was not sent.
func (g *Group) Ask(ctx context.Context, c messages.Command) (*messages.CommandDone, error) {
	return g.ask(ctx, c, true)
}

// TryAsk is Ask, but returns ErrBusy if the command has to wait for a place: the member's request lane is full, or the
// workspace has commands under way at a member that leaves.
func (g *Group) TryAsk(ctx context.Context, c messages.Command) (*messages.CommandDone, error) {
	return g.ask(ctx, c, false)
}

func (g *Group) ask(ctx context.Context, c messages.Command, wait bool) (*messages.CommandDone, error) {
	if g.config.Router == nil {
		m, err := g.enter(ctx, c.Workspace, wait)
		if err != nil {
			return nil, err
		}
		return m.ask(ctx, c, wait)
	}
	chosen, err := g.route(ctx, &c)
	switch {
	case err != nil:
		return nil, err
	case len(chosen) > 1:
		g.release(chosen, c.Workspace)
		return nil, fmt.Errorf("%w: got %d members for one answer", ErrRoute, len(chosen))
	}
	return chosen[0].ask(ctx, c, wait)
}

// release takes back a command that was let in and is not sent.
func (g *Group) release(members []*member, ws messages.WSID) {
	for _, m := range members {
		m.done(ws)
	}
}

// ask sends a command to a member that has let it in.
func (m *member) ask(ctx context.Context, c messages.Command, wait bool) (*messages.CommandDone, error) {
	s := actors.Sending{To: m.processor, Wait: wait}
	done, err := s.Ask(ctx, c)
	if !s.Posted {
		m.done(c.Workspace)
	}
	return done, err
}

func (m *member) tell(ctx context.Context, c messages.Command) error {
	s := actors.Sending{To: m.processor}
	err := s.Tell(ctx, c)
	if !s.Posted {
		m.done(c.Workspace)
	}
	return err
}

// Tell sends a command to each member that the router chooses and waits for no answer. The mailboxes bound what waits
// there, requests and bytes, as they bound what is asked. When it returns nil, each of them has the command in its
// request lane, and will carry it out unless it is stopped before; if the command is refused then, a line in the log
// says so. The deadline of ctx is not the command's: without one of its own, the transaction limit bounds it.
//
// It returns ErrBusy if a lane is full, or the workspace has commands under way at a member that leaves; ErrTooLarge (a
// *TooLargeError), ErrNoMember, ErrRoute, ErrStopped, or the error of ctx. With a router of the caller's, there is a
// [*MemberError] for each member that has not taken the command: the others have it.
func (g *Group) Tell(ctx context.Context, c messages.Command) error {
	if g.config.Router == nil {
		m, err := g.enter(ctx, c.Workspace, false)
		if err != nil {
			return err
		}
		return m.tell(ctx, c)
	}
	chosen, err := g.route(ctx, &c)
	if err != nil {
		return err
	}
	var errs []error
	for _, m := range chosen {
		if err := m.tell(ctx, c); err != nil {
			errs = append(errs, &MemberError{m.number, err})
		}
	}
	return errors.Join(errs...)
}

// Outcome is what became of a command at one member. Done is nil if Err is not.
type Outcome struct {
	Done *messages.CommandDone
	Err  error
}

// NoMember stands for the member in an outcome that is none of a member's.
const NoMember = -1

// AskEach sends a command, each time it is ranged over, to all members that the router chooses, and yields each of them
// with its outcome as they come. It waits as Ask does. If nobody gets the command, it yields [NoMember] and the reason,
// as ErrNoMember. Each member carries the command out by itself: of a command that writes, there are as many events, unless
// it has a deduplication id.
//
// Whoever leaves the loop early waits for the other answers no more, as if ctx had ended: the command may be carried
// out there.
func (g *Group) AskEach(ctx context.Context, c messages.Command) iter.Seq2[int, Outcome] {
	return g.askEach(ctx, c, true)
}

// TryAskEach is AskEach, but the outcome of members that have no place is ErrBusy, as that of TryAsk.
func (g *Group) TryAskEach(ctx context.Context, c messages.Command) iter.Seq2[int, Outcome] {
	return g.askEach(ctx, c, false)
}

func (g *Group) askEach(ctx context.Context, c messages.Command, wait bool) iter.Seq2[int, Outcome] {
	return func(yield func(int, Outcome) bool) {
		chosen, err := g.choose(ctx, &c, wait)
		if err != nil {
			yield(NoMember, Outcome{Err: err})
			return
		}
		type of struct {
			member int
			Outcome
		}
		outcomes := make(chan of, len(chosen))
		ctx, cancel := context.WithCancel(ctx)
		var all sync.WaitGroup
		defer all.Wait() // what the command refers to is the caller's again then
		defer cancel()
		for _, m := range chosen {
			all.Go(func() {
				done, err := m.ask(ctx, c, wait)
				outcomes <- of{m.number, Outcome{done, err}}
			})
		}
		for range chosen {
			if o := <-outcomes; !yield(o.member, o.Outcome) {
				return
			}
		}
	}
}

// choose lets a command in at all members that get it.
func (g *Group) choose(ctx context.Context, c *messages.Command, wait bool) ([]*member, error) {
	if g.config.Router != nil {
		return g.route(ctx, c)
	}
	m, err := g.enter(ctx, c.Workspace, wait)
	return []*member{m}, err
}
