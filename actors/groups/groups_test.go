package groups

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"testing"
	"time"

	"go.uber.org/goleak"
	"go.uber.org/zap"
	"pgregory.net/rapid"

	"github.com/partita-go/partita/actors"
	"github.com/partita-go/partita/internal/quiet"
	"github.com/partita-go/partita/messages"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// The vectors that implementations of jump consistent hashing share.
func TestMemberOfIsTheJumpHash(t *testing.T) {
	for _, v := range []struct {
		ws            messages.WSID
		members, want int
	}{{1, 1, 0}, {42, 57, 43}, {0xDEAD10CC, 1, 0}, {0xDEAD10CC, 666, 361}, {256, 1024, 520}, {7, 0, 0}} {
		if got := MemberOf(v.ws, v.members); got != v.want {
			t.Errorf("workspace %d of %d members: got %d, want %d", v.ws, v.members, got, v.want)
		}
	}
}

// A member more takes its share from all others, and nothing else moves; each has its share, whatever the step between
// the workspaces' ids.
func TestMemberOfMovesItsShareOnly(t *testing.T) {
	const workspaces = 20_000
	for _, step := range []messages.WSID{1, 2, 1000, 1 << 16, 1 << 32} {
		for members := 1; members <= 16; members++ {
			moved, has := 0, make([]int, members, members+1)
			for i := range messages.WSID(workspaces) {
				now, then := MemberOf(i*step, members), MemberOf(i*step, members+1)
				has[now]++
				if now == then {
					continue
				}
				if moved++; then != members {
					t.Fatalf("workspace %d went from %d of %d to %d", i*step, now, members, then)
				}
			}
			has = append(has, moved*(members+1)/members) // what moved is a member's share too
			for i, n := range has {
				if want := workspaces / members; n < want*8/10 || n > want*12/10 {
					t.Errorf("step %d, %d members: member %d has %d workspaces, want about %d", step, members, i, n, want)
				}
			}
		}
	}
}

// shop spawns members that are never sent anything.
type shop struct {
	t          testing.TB
	dispatcher *actors.Dispatcher
	ports      *actors.Ports
	spawned    int
	fails      error
}

var system = quiet.NewSystem()

func newShop(t testing.TB) *shop {
	t.Helper()
	s := &shop{t: t, dispatcher: actors.NewDispatcher(), ports: actors.NewPorts(system)}
	t.Cleanup(s.dispatcher.Close)
	t.Cleanup(s.ports.Close)
	return s
}

func (s *shop) spawn(number int, o actors.Observer) (*actors.CommandProcessor, error) {
	if s.fails != nil && s.spawned > 2 {
		return nil, s.fails
	}
	s.spawned++
	key := actors.Key{Group: "group-test", ID: fmt.Sprint(number)}
	return actors.SpawnCommandProcessor(actors.CommandProcessorConfig{
		Key: key, Name: key.String() + "/" + system.ProcessRegistry.NextId(), Requests: 1, System: system, Observer: o,
		Guardian:   actors.NewGuardian(actors.RestartPolicy{MinDelay: time.Millisecond, MaxDelay: time.Millisecond, Clock: actors.SystemClock()}, nil),
		Dispatcher: s.dispatcher, Clock: actors.SystemClock(), Logger: zap.NewNop(),
	}, s.ports)
}

// A member that cannot be started: nothing has changed, and none is left over.
func TestGrowsWhollyOrNotAtAll(t *testing.T) {
	s := newShop(t)
	g, err := New(Config{Members: 2, Spawn: s.spawn, Left: func(*actors.CommandProcessor) {}})
	if err != nil {
		t.Fatal(err)
	}
	s.fails = errors.New("injected")
	if err := g.Resize(t.Context(), 4); !errors.Is(err, s.fails) || g.Members() != 2 || len(g.leaving) != 0 {
		t.Errorf("got %v and %d members, %d of them leaving", err, g.Members(), len(g.leaving))
	}
	if g, err := New(Config{Members: 2, Spawn: s.spawn, Left: func(*actors.CommandProcessor) {}}); g != nil || !errors.Is(err, s.fails) {
		t.Errorf("got %v, %v", g, err)
	}
	s.fails = nil
	if err := g.Resize(t.Context(), 3); err != nil || g.Members() != 3 {
		t.Errorf("got %v and %d members, want 3", err, g.Members())
	}
	if g.Ended() {
		t.Error("a group that runs has ended")
	}
	if err := g.Stop(t.Context()); err != nil || !g.Ended() {
		t.Errorf("got %v, ended %v", err, g.Ended())
	}
}

// Whoever waits for members to leave may give up: they are told to have left as soon as they have ended, and have said
// so themselves before.
func TestMembersLeaveAlone(t *testing.T) {
	s := newShop(t)
	left := make(chan messages.ActorState, 10)
	g, err := New(Config{Members: 3, Spawn: s.spawn, Left: func(p *actors.CommandProcessor) { left <- p.Standing().Status().State }})
	if err != nil {
		t.Fatal(err)
	}
	last := g.members[2]
	last.commands++ // one is under way
	ctx, cancel := context.WithCancel(t.Context())
	resized := make(chan error, 1)
	go func() { resized <- g.Resize(ctx, 2) }()
	for g.Members() != 2 {
		runtime.Gosched()
	}
	cancel()
	if err := <-resized; !errors.Is(err, context.Canceled) {
		t.Fatalf("got %v", err)
	}
	last.done(1)
	if got := wait(t, left); got != messages.StateTerminated {
		t.Errorf("got %v", got)
	}
	if err := g.Stop(ctx); !errors.Is(err, context.Canceled) && err != nil { // it may see the end of the members or that of ctx
		t.Errorf("got %v", err)
	}
	for range 2 {
		wait(t, left)
	}
}

// A member that has failed for good leaves as others do.
func TestFailedMemberLeaves(t *testing.T) {
	s := newShop(t)
	left := make(chan messages.ActorState, 10)
	g, err := New(Config{Members: 2, Spawn: s.spawn, Left: func(p *actors.CommandProcessor) { left <- p.Standing().Status().State }})
	if err != nil {
		t.Fatal(err)
	}
	failed := g.members[1].processor
	failed.Interrupted(actors.Failure{Failures: 1, GivenUp: true})
	system.Root.Stop(failed.PID())
	<-failed.Terminated()
	if state := failed.Standing().Status().State; state != messages.StateFailed {
		t.Fatalf("got %v", state)
	}
	if err := g.Resize(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	if got := wait(t, left); got != messages.StateTerminated {
		t.Errorf("got %v", got)
	}
	if err := g.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func wait[T any](t *testing.T, c <-chan T) T {
	t.Helper()
	select {
	case v := <-c:
		return v
	case <-time.After(30 * time.Second):
		t.Fatal("waited in vain")
		panic("unreachable")
	}
}

// model is what a group should be like: each command under way, with its member.
type model struct {
	t     *rapid.T
	group *Group
	// at are the members of commands under way by workspace; all of a workspace's are at one.
	at map[messages.WSID]*member
	// under are the workspaces of commands under way, in the order in which they were let in.
	under []messages.WSID
	// left is what whoever waits for a workspace has got.
	left map[messages.WSID]<-chan struct{}
}

// enter lets a command in, or finds out that it has to wait.
func (m *model) enter(ws messages.WSID) {
	got, left, err := m.group.tryEnter(ws)
	if err != nil {
		m.t.Fatal(err)
	}
	at, underWay := m.at[ws]
	switch {
	case underWay && at.leaving:
		if left == nil {
			m.t.Fatalf("workspace %d was let in at member %d, and has commands at one that leaves", ws, got.number)
		}
		m.left[ws] = left
		return
	case !underWay:
		at = m.group.members[MemberOf(ws, len(m.group.members))]
	}
	if got != at || got.leaving {
		m.t.Fatalf("workspace %d: got member %d, leaving %v, want %d", ws, got.number, got.leaving, at.number)
	}
	m.at[ws], m.under = at, append(m.under, ws)
}

// done ends a command.
func (m *model) done(i int) {
	ws := m.under[i]
	m.under = append(m.under[:i:i], m.under[i+1:]...)
	m.at[ws].Handled(actors.Key{}, &messages.Command{Workspace: ws})
	if m.count(ws) > 0 {
		return
	}
	delete(m.at, ws)
	if left := m.left[ws]; left != nil {
		if !isClosed(left) {
			m.t.Fatalf("workspace %d has nothing under way, and somebody waits for it", ws)
		}
		delete(m.left, ws)
	}
}

func (m *model) count(ws messages.WSID) (n int) {
	for _, other := range m.under {
		if other == ws {
			n++
		}
	}
	return n
}

// check compares the group with the model.
func (m *model) check(leaving []*member) {
	commands := make(map[*member]int)
	for _, ws := range m.under {
		commands[m.at[ws]]++
	}
	for _, x := range append(leaving, m.group.members...) {
		if x.commands != commands[x] {
			m.t.Fatalf("member %d: got %d commands under way, want %d", x.number, x.commands, commands[x])
		}
		if ends := isClosed(x.processor.Terminated()); ends && (!x.leaving || x.commands > 0) {
			m.t.Fatalf("member %d has ended, leaving %v, with %d commands under way", x.number, x.leaving, x.commands)
		}
		if x.leaving && x.commands == 0 {
			<-x.processor.Terminated()
		}
	}
	if len(m.group.places) != len(m.at) {
		m.t.Fatalf("got %d places, want %d", len(m.group.places), len(m.at))
	}
	for ws, left := range m.left {
		if isClosed(left) {
			m.t.Fatalf("workspace %d has %d commands under way, and nobody waits for them", ws, m.count(ws))
		}
	}
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// Whatever is let in, done and resized: the commands under way of a workspace are at one member, a member that leaves
// gets nothing and ends with the last of them, and what has nothing under way goes where it belongs.
func TestPlacesProperty(t *testing.T) {
	s := newShop(t)
	rapid.Check(t, func(t *rapid.T) {
		g, err := New(Config{Members: rapid.IntRange(1, 4).Draw(t, "members"), Spawn: s.spawn, Left: func(*actors.CommandProcessor) {}})
		if err != nil {
			t.Fatal(err)
		}
		m := &model{t: t, group: g, at: make(map[messages.WSID]*member), left: make(map[messages.WSID]<-chan struct{})}
		var leaving []*member
		t.Repeat(map[string]func(*rapid.T){
			"enter": func(t *rapid.T) { m.enter(messages.WSID(rapid.IntRange(0, 3).Draw(t, "workspace"))) },
			"done": func(t *rapid.T) {
				if len(m.under) == 0 {
					t.Skip("nothing is under way")
				}
				m.done(rapid.IntRange(0, len(m.under)-1).Draw(t, "command"))
			},
			"resize": func(t *rapid.T) {
				n := rapid.IntRange(1, 6).Draw(t, "members")
				if n < len(g.members) {
					leaving = append(leaving, g.members[n:]...)
					g.shrink(n)
				} else if err := g.grow(n); err != nil {
					t.Fatal(err)
				}
			},
			"": func(*rapid.T) { m.check(leaving) },
		})
		for len(m.under) > 0 {
			m.done(len(m.under) - 1)
		}
		m.check(leaving)
		if err := g.awaitLeft(s.t.Context()); err != nil || len(g.leaving) != 0 {
			t.Fatalf("got %v, %d members still leave", err, len(g.leaving))
		}
		if err := g.Stop(s.t.Context()); err != nil {
			t.Fatal(err)
		}
	})
}
