package groups

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/partita-go/partita/actors"
	"github.com/partita-go/partita/messages"
)

// MaxMembers is how many members a group has at the most.
const MaxMembers = 1024

// Config is what a group is made of.
type Config struct {
	// Members is how many there are at first, 1 to [MaxMembers].
	Members int
	// Router chooses the members that get a command. Default: by the workspace.
	Router Router
	// Spawn starts a member, whose observer must be told of what its mailbox gets. There may have been a member of that
	// number before, which has ended.
	Spawn func(number int, o actors.Observer) (*actors.CommandProcessor, error)
	// Left is told of a member that has left and ended, or has ended with the group.
	Left func(*actors.CommandProcessor)
	// Traces say of which trace commands are that do not say it.
	Traces actors.Traces
}

// Group is several command processors behind one handle. It is safe for concurrent use.
type Group struct {
	config Config
	// resizing is held by whoever changes the number of members.
	resizing chan struct{}
	// stopping is closed when the group is.
	stopping chan struct{}

	mu     sync.Mutex
	closed bool
	// configure is what Configure has done last, for members that come.
	configure func(*actors.CommandProcessor)
	members   []*member
	// leaving are those that have not ended yet, and get nothing any more.
	leaving []*member
	// places are where the commands under way of workspaces are, if the router goes by the workspace.
	places map[messages.WSID]place
}

// New returns a group with its members. It returns ErrSettings of package messages if their number is wrong, or why
// one could not be started.
func New(c Config) (*Group, error) {
	if err := checkMembers(c.Members); err != nil {
		return nil, err
	}
	g := &Group{
		config:    c,
		resizing:  make(chan struct{}, 1),
		stopping:  make(chan struct{}),
		configure: func(*actors.CommandProcessor) {},
		places:    make(map[messages.WSID]place),
	}
	if err := g.grow(c.Members); err != nil {
		return nil, err
	}
	return g, nil
}

func checkMembers(n int) error {
	if n < 1 || n > MaxMembers {
		return fmt.Errorf("%w: members of a group: got %d, want 1 to %d", messages.ErrSettings, n, MaxMembers)
	}
	return nil
}

// Members returns how many there are: those not counted that leave.
func (g *Group) Members() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return len(g.members)
}

func (g *Group) isClosed() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.closed
}

// Ended reports whether the group was stopped, and all its members have ended.
func (g *Group) Ended() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.closed && !slices.ContainsFunc(g.all(), func(m *member) bool { return !m.ended() })
}

// MemberOf returns the member that a workspace belongs to, as [MemberOf] does. Where something of the workspace is
// under way, that may be another one. A router of the caller's does not ask it.
func (g *Group) MemberOf(ws messages.WSID) int { return MemberOf(ws, g.Members()) }

// Requests returns what waits at each member, by number.
func (g *Group) Requests() []actors.LaneFigures {
	g.mu.Lock()
	members := g.members
	g.mu.Unlock()
	all := make([]actors.LaneFigures, len(members))
	for i, m := range members {
		all[i] = m.processor.Requests()
	}
	return all
}

// Configure changes what bounds the commands to come that have no deadline of their own, and the request lanes of the
// members. What waits already stays, also above that.
func (g *Group) Configure(limit time.Duration, requests, requestBytes int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.configure = func(p *actors.CommandProcessor) {
		p.SetLimit(limit)
		p.SetLane(requests, requestBytes)
	}
	for _, m := range g.all() {
		g.configure(m.processor)
	}
}

// Stop ends the group: each member finishes the command under way, and those that wait are refused with ErrStopped.
// It returns when all members have ended, or when ctx ends: the contexts of handlers are ended then. Stopping again is
// harmless.
func (g *Group) Stop(ctx context.Context) error {
	processors := g.Close()
	for _, p := range processors {
		p.BeginStop()
	}
	var errs []error
	for _, p := range processors {
		err := p.Stop(ctx)
		if err == nil {
			g.config.Left(p)
		} else {
			go g.seeOff(context.WithoutCancel(ctx), p)
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// Close lets nothing more in, and returns the members, those that leave too: whoever closes the group stops them.
func (g *Group) Close() []*actors.CommandProcessor {
	g.mu.Lock()
	if !g.closed {
		g.closed = true
		close(g.stopping)
	}
	g.mu.Unlock()
	// Whoever resizes the group does so no more, and it has all that were spawned.
	g.resizing <- struct{}{}
	defer func() { <-g.resizing }()
	g.mu.Lock()
	defer g.mu.Unlock()
	var all []*actors.CommandProcessor
	for _, m := range g.all() {
		all = append(all, m.processor)
	}
	return all
}

// all returns the members, those that leave too.
func (g *Group) all() []*member { return slices.Concat(g.members, g.leaving) }
