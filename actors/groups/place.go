package groups

import (
	"context"
	"time"

	"github.com/partita-go/partita/actors"
	"github.com/partita-go/partita/messages"
)

// member is one of the command processors. It observes itself: so it knows when it has done a command, whatever
// became of that.
type member struct {
	group     *Group
	number    int
	processor *actors.CommandProcessor
	// gone is closed when it has left, and is forgotten.
	gone chan struct{}

	// The group's lock guards what follows.

	// commands is how many are under way: those that were let in, and are not done.
	commands int
	leaving  bool
}

// place is where the commands of a workspace are that are under way.
type place struct {
	member   *member
	commands int
	// left is closed when there are none any more. It is nil if nobody waits for it.
	left chan struct{}
}

// busyFor is the hint to whoever has to wait until a member has left.
const busyFor = 10 * time.Millisecond

// enter lets a command of a workspace in: the member has one more under way.
func (g *Group) enter(ctx context.Context, ws messages.WSID, wait bool) (*member, error) {
	for {
		m, left, err := g.tryEnter(ws)
		if left == nil {
			return m, err
		}
		if !wait {
			return nil, &messages.BusyError{Reason: messages.BusyStopping, RetryAfter: busyFor}
		}
		select {
		case <-left:
		case <-g.stopping:
			return nil, messages.ErrStopped
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// tryEnter returns what is closed when the workspace has left a member that leaves, if it has to wait for that.
func (g *Group) tryEnter(ws messages.WSID) (m *member, left <-chan struct{}, err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return nil, nil, messages.ErrStopped
	}
	p, underWay := g.places[ws]
	switch {
	case !underWay:
		p.member = g.members[MemberOf(ws, len(g.members))]
	case p.member.leaving:
		if p.left == nil {
			p.left = make(chan struct{})
			g.places[ws] = p
		}
		return nil, p.left, nil
	}
	p.commands++
	g.places[ws] = p
	p.member.commands++
	return p.member, nil, nil
}

// route lets a command in where the caller's router says. Wherever it goes, it is of one trace.
func (g *Group) route(ctx context.Context, c *messages.Command) ([]*member, error) {
	if c.Trace == 0 {
		c.Trace, c.Span = g.config.Traces.Of(ctx)
	}
	for {
		n := g.Members()
		chosen, changed, err := g.tryRoute(g.config.Router(c, n), n)
		if !changed {
			return chosen, err
		}
	}
}

// tryRoute reports whether the number of members has changed, so that the route is worth nothing.
func (g *Group) tryRoute(r Route, members int) (chosen []*member, changed bool, err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case g.closed:
		return nil, false, messages.ErrStopped
	case len(g.members) != members:
		return nil, true, nil
	}
	chosen, err = r.of(g.members)
	for _, m := range chosen {
		m.commands++
	}
	return chosen, false, err
}

// done counts a command of a workspace that is under way no more. A member that leaves ends with the last one.
func (m *member) done(ws messages.WSID) {
	g := m.group
	g.mu.Lock()
	if g.config.Router == nil {
		g.unplace(ws)
	}
	m.commands--
	last := m.leaving && m.commands == 0
	g.mu.Unlock()
	if last {
		m.processor.BeginStop()
	}
}

func (g *Group) unplace(ws messages.WSID) {
	p := g.places[ws]
	p.commands--
	if p.commands > 0 {
		g.places[ws] = p
		return
	}
	delete(g.places, ws)
	if p.left != nil {
		close(p.left)
	}
}

func (m *member) ended() bool {
	select {
	case <-m.processor.Terminated():
		return true
	default:
		return false
	}
}

var _ actors.Observer = (*member)(nil)

// Posted implements [actors.Observer].
func (m *member) Posted(actors.Key, any) {}

// Taken implements [actors.Observer].
func (m *member) Taken(actors.Key, any) {}

// Handled implements [actors.Observer].
func (m *member) Handled(_ actors.Key, message any) {
	if c, ok := message.(*messages.Command); ok {
		m.done(c.Workspace)
	}
}
