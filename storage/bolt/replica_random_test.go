package bolt

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage"
	"github.com/partita-go/partita/storage/bolt/internal/expect"
	"github.com/partita-go/partita/storage/replog"
	"github.com/partita-go/partita/storage/replog/memory"
	"github.com/partita-go/partita/storage/verify"
)

// TestReplicasAtRandom lets owners change, entries and answers be lost or late, and nodes be cut off and come back, while
// there are appends and flushes. Each that was acknowledged is in the log of each replica, once; none that was refused is. No generator has
// the number of another one.
func TestReplicasAtRandom(t *testing.T) {
	seeds := 12
	if testing.Short() {
		seeds = 4
	}
	for seed := range seeds {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			randomReplicas(t, rand.New(rand.NewPCG(uint64(seed), 24)))
		})
	}
}

// randomRun is a run over three nodes.
type randomRun struct {
	*replicas
	t *testing.T
	*rand.Rand
	d     messages.Descriptor
	owner int
	w     *writer
	cut   map[replog.NodeID]bool
	// acked are the bodies that were acknowledged, unsure those of which nobody was told.
	acked, unsure map[string]bool
	tries         int
	// stands is where the subscription was moved to last; may are the moves since of which nobody was told.
	stands uint64
	may    []uint64
	// numbered are the generators, of two launches, that have a number.
	numbered map[[2]uint32]bool
}

func randomReplicas(t *testing.T, r *rand.Rand) {
	run := &randomRun{
		t: t, Rand: r, d: testDescriptor(1, messages.TrustNone),
		cut: make(map[replog.NodeID]bool), acked: make(map[string]bool), unsure: make(map[string]bool),
		numbered: make(map[[2]uint32]bool),
	}
	run.replicas = openReplicas(t, 3, run.d, Options{})
	run.w = takeOver(t, run.nodes[0].store, 0)
	run.stands = 1
	expect.NoError(t, run.w.s.PutSubscription(t.Context(), storage.Subscription{
		Name: "s", SubscriptionSource: storage.SubscriptionSource{Kinds: []messages.WSKind{testKind}},
	}))
	for range 150 {
		switch n := r.IntN(100); {
		case n < 50:
			run.append()
		case n < 65:
			run.move()
		case n < 73:
			run.number()
		case n < 80:
			run.cluster.Doom(run.nodes[run.owner].id, []memory.Fate{memory.Kept, memory.Lost, memory.Late}[r.IntN(3)])
		case n < 85:
			run.change(r.IntN(3))
		case n < 88:
			run.restart()
		case n < 92:
			run.cutOff()
		case n < 95:
			run.cluster.Release()
		default:
			_, _ = run.nodes[r.IntN(3)].store.replica.flush() // it may be fenced
		}
	}
	run.check()
}

// append appends an event. After anything but success the next owner goes on.
func (r *randomRun) append() {
	e := r.w.event(messages.WSID(1 + r.IntN(5)))
	r.tries++
	e.Body = fmt.Appendf(nil, "try %d", r.tries)
	switch err := r.w.try(e); {
	case err == nil:
		r.acked[string(e.Body)] = true
		if r.IntN(10) == 0 {
			r.w.flush()
		}
		return
	case errors.Is(err, messages.ErrOutcomeUnknown):
		r.unsure[string(e.Body)] = true
	}
	r.change(r.IntN(3))
}

// move moves the subscription anywhere, after a look at where it stands.
func (r *randomRun) move() {
	r.looks()
	next := 1 + r.Uint64N(uint64(r.w.next))
	switch err := r.w.s.MoveSubscription(r.t.Context(), moveTo("s", 0, next)); {
	case err == nil:
		r.stands, r.may = next, nil
		return
	case errors.Is(err, messages.ErrOutcomeUnknown):
		r.may = append(r.may, next)
	}
	r.change(r.IntN(3))
}

// number numbers a generator, whose number no other one has.
func (r *randomRun) number() {
	launch := 1 + r.Uint32N(2)
	n, err := r.w.s.NextGenerator(r.t.Context(), launch)
	if err != nil {
		r.change(r.IntN(3))
		return
	}
	if r.numbered[[2]uint32{launch, n}] || n == 0 {
		r.t.Fatalf("launch %d: number %d was given before", launch, n)
	}
	r.numbered[[2]uint32{launch, n}] = true
}

// looks makes sure that the subscription stands where it was moved to. What is seen stays.
func (r *randomRun) looks() {
	sub, err := r.w.s.Subscription(r.t.Context(), "s")
	if errors.Is(err, replog.ErrNotOwner) {
		return
	}
	expect.NoError(r.t, err)
	if next := sub.Position(0); next != r.stands && !slices.Contains(r.may, next) {
		r.t.Fatalf("the subscription is at %d, want %d or one of %v", next, r.stands, r.may)
	}
}

// change lets a node lead, or the next one that can, and take an epoch.
func (r *randomRun) change(node int) {
	for r.cut[r.nodes[node%3].id] {
		node++
	}
	for {
		r.owner = node % 3
		s := r.lead(r.t, r.owner)
		reg, err := s.TakeEpoch(r.t.Context(), 0)
		if err == nil {
			r.w = goOn(r.t, s, 0, reg)
			return
		}
		if !errors.Is(err, messages.ErrOutcomeUnknown) && !errors.Is(err, replog.ErrMoved) && !errors.Is(err, replog.ErrNotOwner) {
			r.t.Fatal(err)
		}
	}
}

// restart closes a node that does not own the log, and opens it again.
func (r *randomRun) restart() {
	n := r.nodes[(r.owner+1+r.IntN(2))%3]
	if len(r.cut) > 0 {
		return // no majority would be left
	}
	r.close(r.t, n)
	r.open(r.t, n, r.d)
}

// cutOff cuts a node off, or connects the one that is.
func (r *randomRun) cutOff() {
	for id := range r.cut {
		r.cluster.Heal(id)
		delete(r.cut, id)
		return
	}
	n := r.IntN(3)
	r.cluster.Cut(r.nodes[n].id)
	r.cut[r.nodes[n].id] = true
}

func (r *randomRun) check() {
	for id := range r.cut {
		r.cluster.Heal(id)
	}
	clear(r.cut)
	r.cluster.Release()
	r.change(r.IntN(3))
	r.w.append(1) // whatever was in doubt is decided
	r.w.flush()
	r.looks()
	r.sameSubscriptions(r.t, r.w.s)
	all := r.caughtUp(r.t, r.w.s)
	for _, events := range all[1:] {
		expect.Equal(r.t, all[0], events)
	}
	for _, e := range all[0] {
		body := string(e.Body)
		if !r.acked[body] && !r.unsure[body] && e.PLogOffset != messages.PLogOffset(len(all[0])) {
			r.t.Errorf("%q was refused, or is there twice", body)
		}
		delete(r.acked, body)
		delete(r.unsure, body)
	}
	for body := range r.acked {
		r.t.Errorf("%q was acknowledged, and is not there", body)
	}
	r.stop(r.t)
	for _, n := range r.nodes {
		report, err := Verify(r.t.Context(), n.dir, verify.Options{})
		expect.NoError(r.t, err)
		expect.NoError(r.t, report.Err())
	}
}
