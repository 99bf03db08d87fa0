package partition_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/partita-go/partita/actors/groups"
	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/partition"
)

// Each workspace has its member, which the package's function tells.
func TestGroupSendsAWorkspaceToItsMember(t *testing.T) {
	c := newCrew(t, 5, nil)
	used := make(map[int]bool)
	for ws := range messages.WSID(40) {
		name := fmt.Sprint(ws)
		done, err := c.group.Ask(c.ctx, bill(ws, name))
		c.check(err)
		want := groups.MemberOf(ws, 5)
		if got := c.ran.of(name); got != member(want) || c.group.MemberOf(ws) != want || done.WLogOffset != 1 {
			t.Errorf("workspace %d: got %s, MemberOf %d, offset %d, want member %d", ws, got, c.group.MemberOf(ws), done.WLogOffset, want)
		}
		used[want] = true
	}
	if len(used) != 5 {
		t.Errorf("40 workspaces use %d members of 5", len(used))
	}
}

// A group that grows: a workspace stays where something of it is under way, and goes to its new member afterwards.
func TestGroupGrowsUnderAWorkspace(t *testing.T) {
	c := newCrew(t, 1, nil)
	moving := c.of(0, 1, 2, 3)
	gate := c.gates.close(moving)
	first := c.ask(c.ctx, bill(moving, "first"))
	soon(c.house, "the handler", gate.arrived)
	c.check(c.group.Resize(c.ctx, 3))
	c.check(c.group.Tell(c.ctx, bill(moving, "second")))
	if got := c.group.Requests(); len(got) != 3 || got[0].Requests != 1 {
		t.Errorf("got %+v, want the second command behind the first", got)
	}
	other := c.of(0, 1, 1, 3)
	c.check(soon(c.house, "another workspace", c.ask(c.ctx, bill(other, "other"))))
	c.gates.open()
	c.check(soon(c.house, "the first", first))
	c.eventually("the second", func() bool { return len(c.log(moving)) == 2 })
	// Its answer is under way before the member is free.
	c.eventually("the move", func() bool {
		name := fmt.Sprint("third", len(c.log(moving)))
		_, err := c.group.Ask(c.ctx, bill(moving, name))
		c.check(err)
		return c.ran.of(name) == member(2)
	})
	for name, want := range map[string]int{"first": 0, "second": 0, "other": 1} {
		if got := c.ran.of(name); got != member(want) {
			t.Errorf("%s: got %s, want member %d", name, got, want)
		}
	}
	if got := c.log(moving)[:2]; !slices.Equal(got, []string{"first", "second"}) {
		t.Errorf("got %v", got)
	}
}

// A group that shrinks: the member that leaves carries out what it has, and only whoever has something there waits for
// it.
func TestGroupShrinksUnderAWorkspace(t *testing.T) {
	c := newCrew(t, 2, nil)
	busy, idle := c.of(1, 2, 0, 1), c.of(1, 2, 0, 1)+1
	for groups.MemberOf(idle, 2) != 1 {
		idle++
	}
	gate := c.gates.close(busy)
	c.check(c.group.Tell(c.ctx, bill(busy, "first")))
	soon(c.house, "the handler", gate.arrived)
	c.check(c.group.Tell(c.ctx, bill(busy, "second")))
	resized := c.resize(c.ctx, 1)
	c.eventually("the resize", func() bool { return c.group.Members() == 1 })

	_, err := c.group.TryAsk(c.ctx, bill(busy, "tried"))
	wantsBusy(t, "TryAsk", err, messages.BusyStopping)
	wantsBusy(t, "Tell", c.group.Tell(c.ctx, bill(busy, "told")), messages.BusyStopping)
	for _, o := range c.group.TryAskEach(c.ctx, bill(busy, "tried")) {
		wantsBusy(t, "TryAskEach", o.Err, messages.BusyStopping)
	}
	ctx, cancel := context.WithCancel(c.ctx)
	given := c.ask(ctx, bill(busy, "given up"))
	third := c.ask(c.ctx, bill(busy, "third"))
	cancel()
	err = soon(c.house, "the end of the context", given)
	wants(t, "Ask", err, context.Canceled)
	if errors.Is(err, partition.ErrOutcomeUnknown) {
		t.Errorf("got %v, but the command was never sent", err)
	}
	c.check(soon(c.house, "another workspace of the member", c.ask(c.ctx, bill(idle, "idle"))))
	select {
	case err := <-resized:
		t.Fatalf("the resize has ended with a member under way: %v", err)
	case err := <-third:
		t.Fatalf("the third command overtakes: %v", err)
	default:
	}
	c.gates.open()
	c.check(soon(c.house, "the resize", resized))
	c.check(soon(c.house, "the third", third))
	for name, want := range map[string]int{"first": 1, "second": 1, "third": 0, "idle": 0} {
		if got := c.ran.of(name); got != member(want) {
			t.Errorf("%s: got %s, want member %d", name, got, want)
		}
	}
	if got := c.log(busy); !slices.Equal(got, []string{"first", "second", "third"}) {
		t.Errorf("got %v", got)
	}
}

func wantsBusy(t *testing.T, what string, err error, want messages.BusyReason) {
	t.Helper()
	busy, ok := errors.AsType[*partition.BusyError](err)
	if !ok || busy.Reason != want || busy.RetryAfter <= 0 {
		t.Errorf("%s: got %v, want busy (%v) with a hint when to try again", what, err, want)
	}
}

// A resize that is given up while a member leaves: the member leaves all the same, and the next resize waits for it.
func TestGroupResizeGivenUp(t *testing.T) {
	c := newCrew(t, 2, nil)
	ws := c.of(1, 2, 0, 1)
	gate := c.gates.close(ws)
	first := c.ask(c.ctx, bill(ws, "first"))
	soon(c.house, "the handler", gate.arrived)
	ctx, cancel := context.WithCancel(c.ctx)
	resized := c.resize(ctx, 1)
	c.eventually("the resize", func() bool { return c.group.Members() == 1 })
	waits, giveUp := context.WithCancel(c.ctx)
	behind := c.resize(waits, 4)
	giveUp()
	wants(t, "a resize behind it", soon(c.house, "a resize", behind), context.Canceled)
	cancel()
	wants(t, "resize", soon(c.house, "the resize", resized), context.Canceled)
	again, stop := context.WithTimeout(c.ctx, time.Millisecond)
	defer stop()
	wants(t, "again", c.group.Resize(again, 2), context.DeadlineExceeded)
	if n := c.group.Members(); n != 1 {
		t.Errorf("got %d members, want 1", n)
	}
	next := c.resize(c.ctx, 3)
	c.gates.open()
	c.check(soon(c.house, "the first", first))
	c.check(soon(c.house, "the next resize", next))
	if n := c.group.Members(); n != 3 {
		t.Errorf("got %d members, want 3", n)
	}
}

// What waits at a member is bounded, by requests and by bytes: whoever only tries, or tells, is answered at once, and
// whoever asks waits.
func TestGroupIsBounded(t *testing.T) {
	for name, bound := range map[string]func(*partition.Application){
		"requests": func(a *partition.Application) { a.RequestLane = 1 },
		"bytes":    func(a *partition.Application) { a.RequestLaneBytes = 1 },
	} {
		t.Run(name, func(t *testing.T) {
			app := billing("one")
			bound(&app)
			c := newCrewOf(t, app, partition.GroupConfig{Name: "bills", Members: 2})
			gate := c.gates.close(3)
			c.check(c.group.Tell(c.ctx, bill(3, "first")))
			soon(c.house, "the handler", gate.arrived)
			c.check(c.group.Tell(c.ctx, bill(3, "second")))
			wantsBusy(t, "Tell", c.group.Tell(c.ctx, bill(3, "told")), messages.BusyMailboxFull)
			_, err := c.group.TryAsk(c.ctx, bill(3, "tried"))
			wantsBusy(t, "TryAsk", err, messages.BusyMailboxFull)
			if n := c.app.Figures().Refusals["mailbox-full"]; n != 2 {
				t.Errorf("got %d refusals, want 2", n)
			}
			third := c.ask(c.ctx, bill(3, "third"))
			ctx, cancel := context.WithTimeout(c.ctx, time.Millisecond)
			defer cancel()
			_, err = c.group.Ask(ctx, bill(3, "given up"))
			wants(t, "Ask", err, context.DeadlineExceeded)
			if errors.Is(err, partition.ErrOutcomeUnknown) {
				t.Errorf("got %v, but the command was never sent", err)
			}
			c.gates.open()
			c.check(soon(c.house, "the third", third))
			if got := c.log(3); !slices.Equal(got, []string{"first", "second", "third"}) {
				t.Errorf("got %v", got)
			}
		})
	}
}

// A command that is told is the teller's again when Tell returns, and its end does not end the command.
func TestGroupTellCopies(t *testing.T) {
	c := newCrew(t, 2, nil)
	ws := c.of(1, 2, 0, 1)
	gate := c.gates.close(ws)
	c.check(c.group.Tell(c.ctx, bill(ws, "first")))
	soon(c.house, "the handler", gate.arrived)
	told := bill(ws, "second")
	ctx, cancel := context.WithTimeout(c.ctx, time.Minute)
	c.check(c.group.Tell(ctx, told))
	cancel()
	copy(told.Body, "broken")
	wants(t, "Tell of one that has ended", c.group.Tell(ctx, bill(ws, "third")), context.Canceled)
	large := bill(ws, strings.Repeat("x", 17<<20))
	wants(t, "Tell of too much", c.group.Tell(c.ctx, large), partition.ErrTooLarge)
	_, err := c.group.TryAsk(c.ctx, large)
	wants(t, "TryAsk of too much", err, partition.ErrTooLarge)
	c.gates.open()
	c.eventually("the second", func() bool { return len(c.log(ws)) == 2 })
	if got := c.log(ws); !slices.Equal(got, []string{"first", "second"}) {
		t.Errorf("got %v", got)
	}
	c.check(c.group.Resize(c.ctx, 1)) // nothing counts as under way that was not sent
}

// Configurations that cannot be, and names that are taken.
func TestGroupConfig(t *testing.T) {
	c := newCrew(t, 1, nil)
	draft := func(context.Context, *partition.DraftContext) error { return nil }
	for what, config := range map[string]partition.GroupConfig{
		"no name":     {Members: 1, Drafter: draft},
		"a bad name":  {Name: "A", Members: 1, Drafter: draft},
		"a long name": {Name: strings.Repeat("a", 65), Members: 1, Drafter: draft},
		"no handler":  {Name: "other", Members: 1},
		"two":         {Name: "other", Members: 1, Drafter: draft, Handler: func(context.Context, *partition.CommandContext) error { return nil }},
		"no members":  {Name: "other", Drafter: draft},
		"too many":    {Name: "other", Members: groups.MaxMembers + 1, Drafter: draft},
	} {
		_, err := c.app.SpawnGroup(config)
		wants(t, what, err, messages.ErrSettings)
	}
	for _, n := range []int{-1, 0, groups.MaxMembers + 1} {
		wants(t, "resize", c.group.Resize(c.ctx, n), messages.ErrSettings)
	}
	_, err := c.app.SpawnGroup(partition.GroupConfig{Name: "bills", Members: 1, Drafter: draft})
	wants(t, "twice", err, partition.ErrGrouped)
	c.check(c.group.Stop(c.ctx))
	again, err := c.app.SpawnGroup(partition.GroupConfig{Name: "bills", Members: 3, Drafter: draft})
	c.check(err)
	_, err = again.Ask(c.ctx, bill(3, "again"))
	c.check(err)
	f := c.app.Figures().Groups
	if len(f) != 1 || f[0].Name != "bills" || len(f[0].Members) != 3 || f[0].Members[2].MostRequests != 1024 {
		t.Errorf("got %+v", f)
	}
}

// A new transaction limit holds for members that are there, and for those to come: it ends the contexts of their handlers.
func TestGroupLimitChanges(t *testing.T) {
	deadlines := make(chan time.Time, 1)
	c := newCrewOf(t, billing("one"), partition.GroupConfig{Name: "bills", Members: 2, Drafter: func(ctx context.Context, _ *partition.DraftContext) error {
		deadline, _ := ctx.Deadline()
		deadlines <- deadline
		return nil
	}})
	ws := messages.WSID(0)
	ctx := context.WithoutCancel(c.ctx) // a deadline of the context would be the command's
	for _, limit := range []time.Duration{time.Hour, 2 * time.Hour} {
		c.check(c.app.Reconfigure(c.ctx, partition.Settings{TransactionLimit: limit}))
		for _, members := range []int{2, 1, 2} {
			c.check(c.group.Resize(c.ctx, members))
			// Each command has a workspace of its own of the last member: whoever has an answer does not know yet that the
			// command is not under way any more, and it would keep its workspace where it is.
			ws++
			for groups.MemberOf(ws, members) != members-1 {
				ws++
			}
			name := fmt.Sprint(limit, " at ", members, " for ", ws)
			before := time.Now()
			_, err := c.group.Ask(ctx, bill(ws, name))
			c.check(err)
			if got := soon(c.house, "the handler", deadlines); got.Before(before.Add(limit)) || got.After(time.Now().Add(limit)) {
				t.Errorf("%s: got %v from %v on", name, got.Sub(before), before)
			}
			if got := c.ran.of(name); got != member(members-1) {
				t.Errorf("%s: got %q", name, got)
			}
		}
	}
}
