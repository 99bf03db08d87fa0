package partition_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/partita-go/partita/ids"
	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/partition"
)

// byBody sends a command where its body says.
func byBody(c *messages.Command, members int) partition.Route {
	switch string(c.Body) {
	case "one":
		return partition.ToMembers(1)
	case "twice":
		return partition.ToMembers(1, 1)
	case "two":
		return partition.ToMembers(2, 0)
	case "all":
		return partition.ToAll()
	case "beyond":
		return partition.ToMembers(0, members)
	case "below":
		return partition.ToMembers(-1)
	}
	return partition.ToNone()
}

// A router of the caller's: one member, several, all, or none.
func TestGroupRouter(t *testing.T) {
	c := newCrew(t, 3, byBody)
	for _, route := range []struct {
		body string
		// members are those that get it; err is what Ask returns, each what AskEach yields if nobody gets it.
		members   []int
		err, each error
	}{
		{"one", []int{1}, nil, nil},
		{"twice", []int{1}, nil, nil},
		{"two", []int{0, 2}, nil, nil},
		{"all", []int{0, 1, 2}, nil, nil},
		{"none", []int{partition.NoMember}, partition.ErrNoMember, partition.ErrNoMember},
		{"beyond", []int{partition.NoMember}, partition.ErrRoute, partition.ErrRoute},
		{"below", []int{partition.NoMember}, partition.ErrRoute, partition.ErrRoute},
	} {
		if len(route.members) > 1 {
			route.err = partition.ErrRoute // one answer is wanted
		}
		_, err := c.group.Ask(c.ctx, bill(1, route.body))
		wants(t, route.body+": Ask", err, route.err)
		_, err = c.group.TryAsk(c.ctx, bill(1, route.body))
		wants(t, route.body+": TryAsk", err, route.err)
		wants(t, route.body+": Tell", c.group.Tell(c.ctx, bill(2, route.body)), route.each)
		var got []int
		for n, o := range c.group.AskEach(c.ctx, bill(3, route.body)) {
			wants(t, route.body+": AskEach", o.Err, route.each)
			if (o.Done == nil) != (o.Err != nil) {
				t.Errorf("%s: got %+v", route.body, o)
			}
			got = append(got, n)
		}
		if slices.Sort(got); !slices.Equal(got, route.members) {
			t.Errorf("%s: got members %v, want %v", route.body, got, route.members)
		}
	}
	c.check(c.group.Resize(c.ctx, 1)) // nothing counts as under way that is not
	c.check(c.group.Resize(c.ctx, 3))
	// Each of the members writes by itself.
	c.eventually("what was told", func() bool { return len(c.log(2)) == 7 })
	for ws, want := range map[messages.WSID]int{1: 4, 2: 7, 3: 7} {
		if got := len(c.log(ws)); got != want {
			t.Errorf("workspace %d has %d events, want %d", ws, got, want)
		}
	}
}

// Of several, each outcome comes by itself, and whoever leaves the loop waits for no more.
func TestGroupOutcomesOneByOne(t *testing.T) {
	c := newCrew(t, 3, byBody)
	errNo := errors.New("no")
	meet, stay := make(chan struct{}), make(chan struct{})
	group, err := c.app.SpawnGroup(partition.GroupConfig{Name: "some", Members: 3, Router: byBody, Drafter: func(_ context.Context, d *partition.DraftContext) error {
		switch d.Command().Workspace {
		case 1:
			return errNo
		case 2: // one of them gets through
			select {
			case meet <- struct{}{}:
			case <-meet:
				<-stay
			}
		}
		return nil
	}})
	c.check(err)
	refused := 0
	for _, o := range group.AskEach(c.ctx, bill(1, "all")) {
		wants(t, "each", o.Err, errNo)
		refused++
	}
	if refused != 3 {
		t.Errorf("got %d outcomes, want 3", refused)
	}
	outcomes := 0
	for _, o := range group.AskEach(c.ctx, bill(2, "two")) {
		c.check(o.Err)
		outcomes++
		break
	}
	if outcomes != 1 {
		t.Errorf("got %d outcomes, want 1", outcomes)
	}
	close(stay)
	// With a deduplication id all members write one event.
	once := bill(3, "all")
	once.DedupID = partition.DedupID{1}
	repeated := 0
	for _, o := range group.AskEach(c.ctx, once) {
		c.check(o.Err)
		if o.Done.Repeated {
			repeated++
		}
	}
	if repeated != 2 || len(c.log(3)) != 1 {
		t.Errorf("got %d repeats and %d events, want 2 and 1", repeated, len(c.log(3)))
	}
}

// Whoever is told and has no room is named; the others have the command.
func TestGroupTellNamesWhoHasNoRoom(t *testing.T) {
	app := billing("one")
	app.RequestLane = 1
	c := newCrewOf(t, app, partition.GroupConfig{Name: "bills", Members: 3, Router: byBody})
	gate := c.gates.close(1)
	c.check(c.group.Tell(c.ctx, bill(1, "one")))
	soon(c.house, "the handler", gate.arrived)
	c.check(c.group.Tell(c.ctx, bill(1, "one")))
	err := c.group.Tell(c.ctx, bill(2, "all"))
	wants(t, "Tell", err, partition.ErrBusy)
	if who, ok := errors.AsType[*partition.MemberError](err); !ok || who.Member != 1 {
		t.Errorf("got %v, want member 1", err)
	}
	c.eventually("the two others", func() bool { return len(c.log(2)) == 2 })
	for n, o := range c.group.TryAskEach(c.ctx, bill(3, "all")) {
		if busy := errors.Is(o.Err, partition.ErrBusy); busy != (n == 1) {
			t.Errorf("member %d: got %v", n, o.Err)
		}
	}
}

// A router that is called while the group is resized is called again: what it chose is of the members that are there.
func TestGroupRouterSeesTheMembersThatAreThere(t *testing.T) {
	c := newCrew(t, 3, nil)
	var asked []int
	var group *partition.Group
	group, err := c.app.SpawnGroup(partition.GroupConfig{Name: "others", Members: 3, Drafter: c.gates.draft, Router: func(_ *messages.Command, members int) partition.Route {
		asked = append(asked, members)
		if len(asked) == 1 {
			c.check(group.Resize(c.ctx, 2))
		}
		return partition.ToMembers(members - 1)
	}})
	c.check(err)
	_, err = group.Ask(c.ctx, bill(1, "a"))
	c.check(err)
	if !slices.Equal(asked, []int{3, 2}) || c.ran.of("a") != "group-others/1;" {
		t.Errorf("got a router that was asked with %v members, and %s", asked, c.ran.of("a"))
	}
}

// What one command makes at several members is of one trace: the caller's, or a new one.
func TestGroupTrace(t *testing.T) {
	h := newHouse(t, partition.Options{Traces: newTraces()})
	app := billing("one")
	a := h.deploy(app, h.newStore(app.Descriptor))
	seen := make(chan ids.TraceID, 3)
	group, err := a.SpawnGroup(partition.GroupConfig{Name: "bills", Members: 3, Router: byBody, Handler: func(ctx context.Context, _ *partition.CommandContext) error {
		seen <- ids.TraceOf(ctx)
		return nil
	}})
	h.check(err)
	for _, ctx := range []context.Context{h.ctx, ids.ContextWithTrace(h.ctx, given)} {
		for _, o := range group.AskEach(ctx, bill(1, "all")) {
			h.check(o.Err)
		}
		first, second, third := <-seen, <-seen, <-seen
		if first == 0 || first != second || second != third || (ids.TraceOf(ctx) != 0 && first != given) {
			t.Errorf("got traces %v, %v, %v", first, second, third)
		}
	}
	h.check(group.Tell(ids.ContextWithTrace(h.ctx, given), bill(1, "one")))
	if got := soon(h, "the handler", seen); got != given {
		t.Errorf("got trace %v, want %v", got, given)
	}
}
