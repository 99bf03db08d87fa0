package partition_test

import (
	"context"
	"errors"
	"testing"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/partition"
	"github.com/partita-go/partita/storage/storagetest"
)

// An application that is undeployed: subscriptions still reach the group; then the group finishes what is under way and
// refuses the rest; then the partitions end.
func TestGroupEndsBetweenSubscriptionsAndPartitions(t *testing.T) {
	d, _ := newDesk(t)
	arrived, release := make(chan struct{}, 1), make(chan struct{})
	app := d.app
	group, err := app.SpawnGroup(partition.GroupConfig{Name: "bills", Members: 2, Drafter: func(_ context.Context, c *partition.DraftContext) error {
		if string(c.Command().Body) == "held" {
			arrived <- struct{}{}
			<-release
		}
		return nil
	}})
	d.check(err)
	handling, told := make(chan struct{}), make(chan error, 1)
	_, err = app.Subscribe(d.ctx, partition.SubscriptionConfig{Name: "echo", From: partition.FromNow, Handler: func(ctx context.Context, _ partition.Delivery) error {
		close(handling)
		<-release
		_, err := group.Ask(ctx, bill(2, "of the subscription"))
		told <- err
		return err
	}})
	d.check(err)
	d.commit(app, 3)
	soon(d.house, "the subscription's handler", handling)
	d.check(group.Tell(d.ctx, bill(1, "held")))
	soon(d.house, "the group's handler", arrived)
	undeployed := make(chan error, 1)
	go func() { undeployed <- d.parts.Undeploy(d.ctx, app.Name()) }()
	d.eventually("the stop", func() bool {
		_, err := app.SpawnGroup(partition.GroupConfig{Name: "late", Members: 1, Handler: func(context.Context, *partition.CommandContext) error { return nil }})
		return errors.Is(err, partition.ErrStopped)
	})
	close(release)
	d.check(soon(d.house, "the subscription", told))
	d.check(soon(d.house, "Undeploy", undeployed))
	for ws, want := range map[messages.WSID]string{1: "held", 2: "of the subscription"} {
		last := ""
		for e, err := range app.Reader().WLog(d.ctx, ws, 1) {
			d.check(err)
			last = string(e.Body)
		}
		if last != want {
			t.Errorf("workspace %d: got %q, want %q", ws, last, want)
		}
	}
	_, err = group.Ask(d.ctx, bill(1, "late"))
	wants(t, "Ask", err, partition.ErrStopped)
	wants(t, "Tell", group.Tell(d.ctx, bill(1, "late")), partition.ErrStopped)
	wants(t, "Resize", group.Resize(d.ctx, 3), partition.ErrStopped)
	d.check(group.Stop(d.ctx))
}

// A group that is stopped answers everybody: whoever waits in a lane, for a place in it, for a member that leaves, and
// for the end of a resize.
func TestGroupStopAnswersEverybody(t *testing.T) {
	app := billing("one")
	app.RequestLane = 1
	c := newCrewOf(t, app, partition.GroupConfig{Name: "bills", Members: 2})
	leaves, stays := c.of(1, 2, 0, 1), c.of(0, 2, 0, 1)
	var refused []<-chan error
	var done []<-chan error
	for _, ws := range []messages.WSID{leaves, stays} {
		gate := c.gates.close(ws)
		done = append(done, c.ask(c.ctx, bill(ws, "under way")))
		soon(c.house, "a handler", gate.arrived)
		refused = append(refused, c.ask(c.ctx, bill(ws, "in the lane")))
		c.waiting(c.group.MemberOf(ws), 1)
	}
	refused = append(refused, c.ask(c.ctx, bill(stays, "for a place")), c.resize(c.ctx, 1))
	c.eventually("the resize", func() bool { return c.group.Members() == 1 })
	refused = append(refused, c.resize(c.ctx, 5), c.ask(c.ctx, bill(leaves, "for the one that leaves")))
	stopped := make(chan error, 1)
	go func() { stopped <- c.group.Stop(c.ctx) }()
	for _, answer := range refused {
		wants(t, "who waits", soon(c.house, "an answer", answer), partition.ErrStopped)
	}
	for i, ws := range []messages.WSID{leaves, stays} { // one by one: the partition has the small lane too
		c.gates.openOf(ws)
		c.check(soon(c.house, "the command under way", done[i]))
	}
	c.check(soon(c.house, "Stop", stopped))
	if n := len(c.log(leaves)) + len(c.log(stays)); n != 2 {
		t.Errorf("got %d events, want the 2 that were under way", n)
	}
}

// A handler that does not heed its context is left behind, whether its member leaves or not.
func TestUndeployWhileAGroupHangs(t *testing.T) {
	arrived, release := make(chan struct{}, 2), make(chan struct{})
	c := newCrewOf(t, hurried("one"), partition.GroupConfig{Name: "bills", Members: 2, Drafter: func(context.Context, *partition.DraftContext) error {
		arrived <- struct{}{}
		<-release
		return nil
	}})
	for member := range 2 {
		c.check(c.group.Tell(c.ctx, bill(c.of(member, 2, 0, 1), "deaf")))
		soon(c.house, "a handler", arrived)
	}
	resized := c.resize(c.ctx, 1)
	c.eventually("the resize", func() bool { return c.group.Members() == 1 })
	err := c.parts.Undeploy(c.ctx, "one")
	wants(t, "undeploy", err, partition.ErrNotClean)
	wants(t, "resize", soon(c.house, "the resize", resized), partition.ErrStopped)
	for _, s := range c.app.Status() {
		if s.State != messages.StateTerminated || !s.Clean {
			t.Errorf("got %+v", s)
		}
	}
	close(release)
}

// panics fails each time that an actor takes the command whose body is given.
type panics struct {
	*ran
	of string
}

func (p *panics) Taken(key partition.ActorKey, message any) {
	p.ran.Taken(key, message)
	if c, ok := message.(*messages.Command); ok && string(c.Body) == p.of {
		panic("injected")
	}
}

// A member that fails with a command in its hands has done it: what is behind it keeps its order, and the member can
// leave.
func TestGroupMemberFails(t *testing.T) {
	o := &panics{&ran{by: make(map[string]string)}, "failing"}
	h := newHouse(t, partition.Options{Observer: o})
	app := billing("one")
	a := h.deploy(app, h.newStore(app.Descriptor))
	gates := &handlerGates{of: make(map[messages.WSID]*handlerGate)}
	t.Cleanup(gates.open)
	group, err := a.SpawnGroup(partition.GroupConfig{Name: "bills", Members: 2, Drafter: gates.draft})
	h.check(err)
	c := &crew{house: h, app: a, group: group, ran: o.ran, gates: gates}
	ws := c.of(1, 2, 0, 1)
	gate := gates.close(ws)
	h.check(group.Tell(h.ctx, bill(ws, "first")))
	soon(h, "the handler", gate.arrived)
	failing := c.ask(h.ctx, bill(ws, "failing"))
	c.waiting(1, 1)
	h.check(group.Tell(h.ctx, bill(ws, "behind it")))
	resized := c.resize(h.ctx, 1)
	h.eventually("the resize", func() bool { return group.Members() == 1 })
	last := c.ask(h.ctx, bill(ws, "last"))
	gates.open()
	wants(t, "the command that failed", soon(h, "an answer", failing), messages.ErrInterrupted)
	h.check(soon(h, "the resize", resized))
	h.check(soon(h, "the last", last))
	wantsLog(t, c.log(ws), "first", "behind it", "last")
}

// Storage that fails changes nothing about the order, and a command of unknown outcome is over.
func TestGroupWhileStorageFails(t *testing.T) {
	h := newHouse(t, partition.Options{})
	app := billing("one")
	store := h.newStore(app.Descriptor)
	a := h.deploy(app, store)
	group, err := a.SpawnGroup(partition.GroupConfig{Name: "bills", Members: 3, Drafter: func(context.Context, *partition.DraftContext) error { return nil }})
	h.check(err)
	injected := errors.New("injected")
	store.Plant(storagetest.Fault{Op: storagetest.OpAppend, Do: storagetest.Fail(injected), Times: 1})
	_, err = group.Ask(h.ctx, bill(1, "refused"))
	wants(t, "Ask", err, injected)
	h.check(group.Resize(h.ctx, 1))
	h.eventually("the partition", func() bool {
		_, err := group.TryAsk(h.ctx, bill(1, "taken"))
		return err == nil
	})
}
