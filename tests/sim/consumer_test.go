package sim

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"go.uber.org/zap"

	"github.com/partita-go/partita/actors"
	"github.com/partita-go/partita/internal/subscription"
	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage"
)

// consumer is a subscription, in whichever process it runs at the time.
type consumer struct {
	s *sim
	// made is its name and what it reads.
	made  storage.Subscription
	batch int
	bytes int
	limit time.Duration
	lane  subscription.Config
	// names says that the handler knows which event it cannot handle.
	names bool
	// applies says that the handler appends an event for some of those that it gets.
	applies bool
	// poison says that the handler can never handle one of so many requests; 0: it can.
	poison int

	models  []*laneModel
	applied map[delivered]*request
	run     *running
	starts  int
	done    bool
}

// running is one start of a subscription.
type running struct {
	consumer *consumer
	node     *node
	lanes    []*laneRun
}

// laneRun is a lane of a subscription that was started.
type laneRun struct {
	consumer *consumer
	model    *laneModel
	node     *node
	lane     *actors.Lane
	key      actors.Key
	pid      *actor.PID
	siblings *running
	// trying is the offset that was tried last, and tried what has become of it.
	trying uint64
	tried  error
}

const laneGroup = "lane"

// chooseConsumers makes up who reads.
func (s *sim) chooseConsumers() {
	r := s.random
	if r.IntN(5) > 0 {
		for i := range 1 + r.IntN(2) {
			s.consumers = append(s.consumers, s.newConsumer(fmt.Sprintf("sub%d", i)))
		}
	}
	for i := range r.IntN(3) {
		s.feeders = append(s.feeders, newFeeder(s, i))
	}
}

func (s *sim) newConsumer(name string) *consumer {
	r := s.random
	ms := func(n int) time.Duration { return time.Duration(1+r.IntN(n)) * time.Millisecond }
	c := &consumer{
		s: s, batch: 1 + r.IntN(6), bytes: 1 << 20, limit: ms(40), names: r.IntN(2) == 0, applies: r.IntN(2) == 0,
		applied: make(map[delivered]*request),
	}
	c.made.Name = name
	if r.IntN(4) == 0 {
		c.bytes = 20 + r.IntN(60)
	}
	if r.IntN(2) == 0 {
		c.poison = 3 + r.IntN(12)
	}
	c.lane = subscription.Config{
		MinDelay: ms(4), MaxDelay: 4*time.Millisecond + ms(10), MaxTries: uint32(1 + r.IntN(3)), StopOnPoison: r.IntN(3) == 0,
	}
	c.made.SubscriptionSource = s.chooseSource(r)
	for p := range messages.PartitionID(s.desc.Partitions) {
		if c.made.Reads(&s.desc, p) {
			c.models = append(c.models, &laneModel{consumer: c, partition: p, done: make(map[uint64]bool), failed: make(map[uint64]uint32)})
		}
	}
	return c
}

// chooseSource returns what a subscription reads: mostly the whole application.
func (s *sim) chooseSource(r *rand.Rand) (source storage.SubscriptionSource) {
	switch r.IntN(5) {
	case 0:
		source.Workspace = new(messages.WSID(r.IntN(s.workspaces)))
		return source
	case 1:
		source.Partition = new(messages.PartitionID(r.IntN(int(s.desc.Partitions))))
	}
	if r.IntN(3) == 0 {
		source.Kinds = []messages.WSKind{messages.WSKind(1 + r.IntN(2))}
	}
	return source
}

func (c *consumer) name() string { return c.made.Name }

func (c *consumer) wants(kind messages.WSKind) bool {
	return len(c.made.Kinds) == 0 || slices.Contains(c.made.Kinds, kind)
}

// spawn starts the lanes, as package partition does.
func (c *consumer) spawn(n *node) {
	c.starts++
	run := &running{consumer: c, node: n}
	for _, m := range c.models {
		// The number tells the lane from one that was left behind.
		key := actors.Key{Group: laneGroup, ID: fmt.Sprintf("%s/%d#%d", c.name(), m.partition, c.starts)}
		r := &laneRun{
			consumer: c, model: m, node: n, key: key, pid: c.s.system.NewLocalPID(n.actorName(key)), siblings: run,
		}
		lane, err := actors.SpawnLane(r.config(), n.ports)
		if err != nil {
			c.s.failf("lane: %v", err)
			return
		}
		r.lane, m.current = lane, r
		run.lanes = append(run.lanes, r)
		n.lanes = append(n.lanes, r)
	}
	c.s.notef("%s runs %s", n.name, c.name())
	c.run = run
}

func (r *laneRun) config() actors.LaneConfig {
	c, n := r.consumer, r.node
	core := c.lane
	core.Partition, core.Seed = r.model.partition, c.s.random.Uint64()
	return actors.LaneConfig{
		Key: r.key, Name: n.actorName(r.key), Lane: core, Subscription: c.name(), Workspace: c.made.Workspace, Kinds: c.made.Kinds,
		Batch: c.batch, Bytes: c.bytes, HandlerLimit: c.limit, Handler: r.handle,
		Store:  &laneStore{store: &store{s: c.s, node: n, disk: c.s.disk}, run: r},
		System: c.s.system, Guardian: n.guardian, Dispatcher: dispatcher{&c.s.scheduler, n}, Clock: clock{&c.s.scheduler, n},
		Logger: zap.NewNop(), Observer: n.watch, Alert: r.alert,
	}
}

// alert tells the other lanes that the subscription has stopped.
func (r *laneRun) alert() {
	for _, other := range r.siblings.lanes {
		if other != r {
			r.node.s.hitLane(faultAlert, other)
			other.lane.Reload()
		}
	}
}

// runs reports whether the lane's actor has not ended yet.
func (r *laneRun) runs() bool {
	_, there := r.node.s.system.ProcessRegistry.GetLocal(r.pid.Id)
	return there
}

// together does something to lanes at the same time, as package partition does, and returns
// the error of each.
func (n *node) together(what string, lanes []*laneRun, work func(*laneRun) error) []error {
	errs := make([]error, len(lanes))
	var all sync.WaitGroup
	for i, r := range lanes {
		all.Go(func() {
			key := fmt.Sprintf("%s %v %s", n.name, r.key, what)
			n.s.gate(n, key)
			errs[i] = work(r)
			n.s.gate(n, key)
		})
	}
	all.Wait()
	n.s.gate(nil, n.name+" "+what)
	return errs
}

// stop ends a start of the subscription.
func (c *consumer) stop(ctx context.Context, run *running, what string) error {
	n := run.node
	errs := n.together(what+" "+c.name(), run.lanes, func(r *laneRun) error {
		return r.lane.Stop(ctx, n.settings.StopLimit)
	})
	// By now it is this goroutine's turn. Of a node that has died all lanes are broken.
	for i, r := range run.lanes {
		if errs[i] != nil && !c.s.isDead(n) {
			r.model.broken = true
		}
	}
	err := errors.Join(errs...)
	if c.run == run {
		c.run = nil
	}
	if !c.s.isDead(n) {
		c.s.notef("%s: %s has stopped: %v", n.name, c.name(), err)
	}
	return err
}

// stopConsumers ends the subscriptions of a node.
func (n *node) stopConsumers() {
	var runs []*running
	for _, c := range n.s.consumers {
		if c.run != nil && c.run.node == n {
			runs = append(runs, c.run)
		}
	}
	var all sync.WaitGroup
	for _, run := range runs {
		c := run.consumer
		all.Go(func() {
			n.s.gate(n, n.name+" ends "+c.name())
			if err := c.stop(n.stopped, run, "stop"); err != nil && n.s.finished {
				n.s.failf("the last deployment has left %s behind: %v", c.name(), err)
			}
		})
	}
	all.Wait()
	n.s.gate(nil, n.name+" stop")
}

// hitLanes counts what strikes all lanes of a node.
func (n *node) hitLanes(f fault) {
	for _, r := range n.lanes {
		if r.runs() {
			n.s.hitLane(f, r)
		}
	}
}

// hitLane counts a fault.
func (s *sim) hitLane(f fault, r *laneRun) {
	state := r.lane.Status().State
	s.lanes[f][state]++
	s.faults++
	if f >= faultCrash {
		s.notef("%s %v, %v: fault: %v", r.node.name, r.key, state, f)
	}
}

// hitCall counts a call that is spoilt.
func (s *sim) hitCall(f fault, st *store, c *call) {
	if f.exists() {
		s.hit(f, st.node, c.partition)
		return
	}
	for _, r := range c.lanes {
		s.hitLane(f, r)
	}
}

// readersDone reports whether those are done who read what clients have written.
func (s *sim) readersDone() bool {
	for _, c := range s.consumers {
		if !c.done {
			return false
		}
	}
	for _, f := range s.feeders {
		if !f.done {
			return false
		}
	}
	return true
}
