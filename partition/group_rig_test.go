package partition_test

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/partita-go/partita/actors/groups"
	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/partition"
)

// crew is an application with a group of which the test sees who carries out what.
type crew struct {
	*house
	app   *partition.App
	group *partition.Group
	ran   *ran
	gates *handlerGates
}

// newCrew spawns a group whose handler waits at the gate of its workspace, if there is one.
func newCrew(t *testing.T, members int, router partition.Router) *crew {
	t.Helper()
	return newCrewOf(t, billing("one"), partition.GroupConfig{Name: "bills", Members: members, Router: router})
}

func newCrewOf(t *testing.T, app partition.Application, config partition.GroupConfig) *crew {
	t.Helper()
	c := &crew{ran: &ran{by: make(map[string]string)}, gates: &handlerGates{of: make(map[messages.WSID]*handlerGate)}}
	c.house = newHouse(t, partition.Options{Observer: c.ran, RestartDelay: time.Millisecond})
	t.Cleanup(c.gates.open)
	c.app = c.deploy(app, c.newStore(app.Descriptor))
	if config.Handler == nil && config.Drafter == nil {
		config.Drafter = c.gates.draft
	}
	var err error
	c.group, err = c.app.SpawnGroup(config)
	c.check(err)
	return c
}

// bill is a command whose body is its name.
func bill(ws messages.WSID, name string) messages.Command {
	return messages.Command{Workspace: ws, Kind: shop, Body: []byte(name)}
}

// ask asks the group in the background.
func (c *crew) ask(ctx context.Context, m messages.Command) <-chan error {
	answer := make(chan error, 1)
	go func() {
		_, err := c.group.Ask(ctx, m)
		answer <- err
	}()
	return answer
}

// resize resizes the group in the background.
func (c *crew) resize(ctx context.Context, members int) <-chan error {
	answer := make(chan error, 1)
	go func() { answer <- c.group.Resize(ctx, members) }()
	return answer
}

// log returns the bodies of a workspace's events.
func (c *crew) log(ws messages.WSID) (bodies []string) {
	c.t.Helper()
	for e, err := range c.app.Reader().WLog(c.ctx, ws, 1) {
		c.check(err)
		bodies = append(bodies, string(e.Body))
	}
	return bodies
}

// of returns a workspace that belongs to one member of so many, and to another one of so many others.
func (c *crew) of(member, members, then, others int) messages.WSID {
	c.t.Helper()
	for ws := range messages.WSID(100_000) {
		if groups.MemberOf(ws, members) == member && groups.MemberOf(ws, others) == then {
			return ws
		}
	}
	c.t.Fatalf("there is no such workspace")
	return 0
}

// waiting waits until so many requests wait at a member.
func (c *crew) waiting(member, requests int) {
	c.t.Helper()
	c.eventually(fmt.Sprintf("%d requests at member %d", requests, member), func() bool {
		return c.group.Requests()[member].Requests == requests
	})
}

// ran notes which actor has taken each command.
type ran struct {
	mu sync.Mutex
	by map[string]string
}

func (*ran) Posted(partition.ActorKey, any)  {}
func (*ran) Handled(partition.ActorKey, any) {}

func (r *ran) Taken(key partition.ActorKey, message any) {
	if c, ok := message.(*messages.Command); ok {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.by[string(c.Body)] += key.String() + ";"
	}
}

// of returns the keys of the actors that have taken a command.
func (r *ran) of(name string) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.by[name]
}

// member is what ran has if a member alone has taken a command.
func member(n int) string { return "group-bills/" + strconv.Itoa(n) + ";" }

// handlerGates hold the commands of some workspaces.
type handlerGates struct {
	mu sync.Mutex
	of map[messages.WSID]*handlerGate
}

type handlerGate struct{ arrived, release chan struct{} }

// close holds the commands of a workspace from now on.
func (g *handlerGates) close(ws messages.WSID) *handlerGate {
	g.mu.Lock()
	defer g.mu.Unlock()
	gate := &handlerGate{arrived: make(chan struct{}, 1000), release: make(chan struct{})}
	g.of[ws] = gate
	return gate
}

// openOf lets the commands of a workspace go.
func (g *handlerGates) openOf(ws messages.WSID) {
	g.mu.Lock()
	defer g.mu.Unlock()
	close(g.of[ws].release)
	delete(g.of, ws)
}

// open holds nothing any more.
func (g *handlerGates) open() {
	g.mu.Lock()
	defer g.mu.Unlock()
	for ws, gate := range g.of {
		delete(g.of, ws)
		close(gate.release)
	}
}

func (g *handlerGates) draft(ctx context.Context, c *partition.DraftContext) error {
	g.mu.Lock()
	gate := g.of[c.Command().Workspace]
	g.mu.Unlock()
	if gate == nil {
		return nil
	}
	gate.arrived <- struct{}{}
	select {
	case <-gate.release:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
