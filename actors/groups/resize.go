package groups

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/partita-go/partita/actors"
	"github.com/partita-go/partita/messages"
)

// Resize changes the number of members, 1 to [MaxMembers], while commands come: see the package's comment for what
// becomes of them. One resize follows the other. It returns when those that leave have ended.
//
// When ctx ends first, it returns the cause: if that happens while members leave, the group has the new number all the
// same, and they end as soon as they have done what they have. The next resize waits for them. It returns ErrSettings of
// package messages if the number is wrong, why a member could not be started (then nothing has changed), or ErrStopped.
// A handler of the group must not call it.
func (g *Group) Resize(ctx context.Context, members int) error {
	if err := checkMembers(members); err != nil {
		return err
	}
	select {
	case g.resizing <- struct{}{}:
		defer func() { <-g.resizing }()
	case <-g.stopping:
		return messages.ErrStopped
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	if g.isClosed() { // before it spawns what nobody would stop
		return messages.ErrStopped
	}
	// A member that comes has the key of one that has left, and no two may have one.
	if err := g.awaitLeft(ctx); err != nil {
		return err
	}
	if has := g.Members(); members >= has {
		return g.grow(members)
	}
	g.shrink(members)
	return g.awaitLeft(ctx)
}

// grow spawns members until there are so many: all of them, or none.
func (g *Group) grow(members int) error {
	var more []*member
	for number := g.Members(); number < members; number++ {
		m := &member{group: g, number: number, gone: make(chan struct{})}
		var err error
		if m.processor, err = g.config.Spawn(number, m); err != nil {
			return errors.Join(fmt.Errorf("member %d: %w", number, err), g.giveUp(more))
		}
		more = append(more, m)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, m := range more {
		g.configure(m.processor)
	}
	// Whoever looks at the members it has got does so without the lock.
	g.members = append(slices.Clip(g.members), more...)
	if g.closed { // whoever closes it stops them
		return messages.ErrStopped
	}
	return nil
}

// giveUp ends members that have got nothing.
func (g *Group) giveUp(members []*member) error {
	var errs []error
	for _, m := range members {
		errs = append(errs, m.processor.Stop(context.Background()))
		g.config.Left(m.processor)
	}
	return errors.Join(errs...)
}

// shrink makes the members leave that are too many: those with nothing under way end now, the others with their last
// command.
func (g *Group) shrink(members int) {
	g.mu.Lock()
	leave := g.members[members:]
	g.members = g.members[:members:members]
	g.leaving = append(g.leaving, leave...)
	var idle []*member
	for _, m := range leave {
		m.leaving = true
		if m.commands == 0 {
			idle = append(idle, m)
		}
	}
	g.mu.Unlock()
	for _, m := range idle {
		m.processor.BeginStop()
	}
	for _, m := range leave {
		go func() {
			g.seeOff(context.Background(), m.processor)
			g.mu.Lock()
			defer g.mu.Unlock()
			g.leaving = slices.DeleteFunc(slices.Clone(g.leaving), func(other *member) bool { return other == m })
			close(m.gone)
		}()
	}
}

// seeOff waits for the end of a member: whoever has made it leave may not have the time.
func (g *Group) seeOff(ctx context.Context, p *actors.CommandProcessor) {
	<-p.Terminated()
	_ = p.Stop(ctx) // one that had failed for good says only now that it has ended
	g.config.Left(p)
}

// awaitLeft waits until those that leave have ended.
func (g *Group) awaitLeft(ctx context.Context) error {
	for {
		m := g.firstLeaving()
		if m == nil {
			return nil
		}
		select {
		case <-m.gone:
		case <-g.stopping:
			return messages.ErrStopped
		case <-ctx.Done():
			return fmt.Errorf("member %d is still leaving: %w", m.number, context.Cause(ctx))
		}
	}
}

func (g *Group) firstLeaving() *member {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.leaving) == 0 {
		return nil
	}
	return g.leaving[0]
}
