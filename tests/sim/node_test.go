package sim

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing/synctest"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"go.uber.org/zap"

	"github.com/partita-go/partita/actors"
	"github.com/partita-go/partita/ids"
	"github.com/partita-go/partita/internal/sequencer"
	"github.com/partita-go/partita/messages"
)

// node is a process with the application deployed: it does what package partition does
// around the actors, one thing after the other.
type node struct {
	s    *sim
	name string
	// dead says that the process has crashed; the scheduler's mutex guards it.
	dead bool
	// broken says that its store has closed itself.
	broken bool
	// stopping says that it is being undeployed.
	stopping bool

	settings   messages.Settings
	tailPiece  int
	partitions []*actors.Partition
	sequencers []*actors.Sequencer
	handler    *actors.CommandProcessor
	drafter    *actors.CommandProcessor
	ports      *actors.Ports
	writers    []writers
	owners     []*owner
	lanes      []*laneRun
	guardian   actor.SupervisorStrategy
	watch      *observer
	stopped    context.Context
	cancel     context.CancelCauseFunc
}

// writers are those who have a transaction open, or write, in one partition.
type writers struct{ open, owners, appender int }

// settings are so small that every limit is met.
func (s *sim) chooseSettings() messages.Settings {
	r := s.random
	ms := func(n int) time.Duration { return time.Duration(1+r.IntN(n)) * time.Millisecond }
	set := messages.Settings{
		FlushThreshold:    1 + r.IntN(12),
		FlushInterval:     ms(20),
		InFlightEvents:    1 + r.IntN(8),
		InFlightBytes:     600 + r.IntN(4000),
		RetryDelay:        ms(20),
		TransactionLimit:  ms(60),
		StopLimit:         ms(60),
		CatchUpCheckpoint: ms(4),
		ClockJump:         2 * farthest,
	}
	set.BusyLimit = set.FlushThreshold + r.IntN(16)
	set.BusyEvents = 2 + r.IntN(12)
	set.BatchEvents = 1 + r.IntN(6)
	return set.WithDefaults()
}

func (s *sim) deploy() (*node, error) {
	s.nodes++
	n := &node{
		s: s, name: fmt.Sprintf("n%d", s.nodes), settings: s.settings, tailPiece: 1 + s.random.IntN(6),
		ports: actors.NewPorts(s.system), writers: make([]writers, s.desc.Partitions),
	}
	n.stopped, n.cancel = context.WithCancelCause(context.Background())
	s.notef("%s is deployed", n.name)
	n.watch = &observer{s: s, node: n, taken: make(map[actors.Key]any)}
	n.guardian = actors.NewGuardian(actors.RestartPolicy{
		MaxDelay: 20 * time.Millisecond, Clock: clock{&s.scheduler, n}, Jitter: n.jitter, OnRestart: n.restarting,
	}, interrupted)
	permits := actors.NewPermits(1 + s.random.IntN(2))
	for i := range s.desc.Partitions {
		key := actors.Key{Group: "partition", ID: fmt.Sprint(i)}
		p, err := actors.SpawnPartition(actors.PartitionConfig{
			Key:  key,
			Name: n.actorName(key),
			Sequencer: sequencer.Config{
				Partition: messages.PartitionID(i), Descriptor: s.desc, Settings: n.settings, CacheNumbers: s.cache, Seed: s.random.Uint64(),
			},
			Store:         &store{s: s, node: n, disk: s.disk},
			System:        s.system,
			Guardian:      n.guardian,
			Dispatcher:    dispatcher{&s.scheduler, n},
			Clock:         clock{&s.scheduler, n},
			Logger:        zap.NewNop(),
			Requests:      s.lane,
			Permits:       permits,
			EpochPermits:  permits,
			Observer:      n.watch,
			StatusChanged: func(status messages.PartitionStatus) { s.checkStatus(n, &status) },
		})
		if err != nil {
			return nil, err
		}
		n.partitions = append(n.partitions, p)
		n.sequencers = append(n.sequencers, actors.NewSequencer(p, n.ports, &store{s: s, node: n, disk: s.disk, owners: true}))
	}
	s.live = append(s.live, n)
	s.all = append(s.all, n)
	return n, n.spawnProcessors()
}

// jitter draws from the seed, unless the process is dead: whether its actors still restart
// is not the seed's to say.
func (n *node) jitter() float64 {
	if n.s.isDead(n) {
		return 0
	}
	return n.s.random.Float64()
}

func (n *node) actorName(key actors.Key) string {
	return fmt.Sprintf("sim/%s/%s/%v", n.s.id, n.name, key)
}

func (n *node) spawnProcessors() error {
	spawn := func(name string, c actors.CommandProcessorConfig) (*actors.CommandProcessor, error) {
		c.Key = actors.Key{Group: name, ID: "0"}
		c.Name = n.actorName(c.Key)
		c.Route = func(ws messages.WSID) (*actors.Sequencer, error) { return n.sequencers[n.s.partitionOf(ws)], nil }
		c.System, c.Guardian, c.Dispatcher, c.Clock = n.s.system, n.guardian, dispatcher{&n.s.scheduler, n}, clock{&n.s.scheduler, n}
		c.Logger, c.Requests, c.Limit, c.Observer = zap.NewNop(), n.s.lane, n.settings.TransactionLimit, n.watch
		return actors.SpawnCommandProcessor(c, n.ports)
	}
	var err, drafterErr error
	n.handler, err = spawn("handler", actors.CommandProcessorConfig{Handler: n.handle})
	n.drafter, drafterErr = spawn("drafter", actors.CommandProcessorConfig{Drafter: n.draft})
	return errors.Join(err, drafterErr)
}

// interrupted answers the requester of the message that an actor failed on, as package
// partition does.
func interrupted(message any) (any, bool) {
	switch message.(type) {
	case *messages.Append, messages.CommandProcessorMessage:
		return &messages.Refused{Err: fmt.Errorf("%w: %w", messages.ErrOutcomeUnknown, messages.ErrInterrupted)}, true
	case messages.PartitionMessage, messages.LaneMessage:
		return &messages.Refused{Err: messages.ErrInterrupted}, true
	}
	return nil, false
}

func (n *node) restarting(child *actor.PID, reason any, _ ids.TraceID, failures int, delay time.Duration) {
	for _, p := range n.partitions {
		if p.PID().Equal(child) {
			p.Interrupted(actors.Failure{Reason: reason, Failures: failures, Delay: delay})
		}
	}
}

// undeploy stops the application as package partition does: subscriptions, command
// processors, then partitions. It runs on the operator's goroutine.
func (n *node) undeploy() {
	for i := range n.partitions {
		n.s.hit(faultUndeploy, n, messages.PartitionID(i))
	}
	n.hitLanes(faultUndeploy)
	n.s.notef("%s is undeployed", n.name)
	n.stopConsumers()
	for _, p := range []*actors.CommandProcessor{n.handler, n.drafter} {
		limited, cancel := context.WithCancelCause(n.stopped)
		limit := clock{&n.s.scheduler, n}.AfterFunc(n.settings.StopLimit, func() { cancel(context.DeadlineExceeded) })
		_ = p.Stop(limited) // one that hangs ends later
		limit.Stop()
		cancel(nil)
	}
	var all sync.WaitGroup
	for i := range n.partitions {
		all.Go(func() { n.stopPartition(i) })
	}
	all.Wait()
	n.s.gate(nil, n.name+" stop")
	n.ports.Close()
}

func (n *node) stopPartition(i int) {
	key := fmt.Sprintf("%s stop %d", n.name, i)
	n.s.gate(n, key)
	stopped, err := n.partitions[i].Stop(n.stopped, n.ports)
	n.s.gate(n, key)
	if n.s.isDead(n) {
		return
	}
	n.s.notef("%s partition %d has stopped: %+v, %v", n.name, i, stopped, err)
	if err != nil {
		n.s.failf("%s: stop of partition %d: %v", n.name, i, err)
		return
	}
	n.s.checkStopped(n, i, stopped)
}

// crash ends the process: nothing of it has any effect from now on, and nobody
// gets an answer.
func (n *node) crash() {
	s := n.s
	for i := range n.partitions {
		s.hit(faultCrash, n, messages.PartitionID(i))
	}
	n.hitLanes(faultCrash)
	s.notef("%s crashes", n.name)
	n.end()
	synctest.Wait()
	n.gone()
	for i, p := range n.partitions {
		select {
		case <-p.Terminated():
		default:
			s.failf("%s: partition %d has not ended after the crash", n.name, i)
		}
	}
	for _, r := range n.lanes {
		if r.runs() {
			s.failf("%s: lane %v has not ended after the crash", n.name, r.key)
		}
	}
}

// end lets everything go that waits in the node, and stops its actors.
func (n *node) end() {
	s := n.s
	for _, t := range s.abandon(n) {
		t.begin()
	}
	n.cancel(errCrashed)
	for _, c := range s.clients {
		if c.node == n {
			c.cancel(errCrashed)
		}
	}
	for _, p := range []*actors.CommandProcessor{n.handler, n.drafter} {
		_ = p.Stop(n.stopped) // its context has ended: it does not wait
	}
	for _, p := range n.partitions {
		s.system.Root.Stop(p.PID())
	}
	for _, o := range n.owners {
		s.system.Root.Stop(o.pid)
	}
	for _, r := range n.lanes {
		r.model.broken = true
		s.system.Root.Stop(r.pid)
	}
	n.ports.Close()
}

// gone takes the node off the list of those that serve.
func (n *node) gone() {
	for i, other := range n.s.live {
		if other == n {
			n.s.live = append(n.s.live[:i:i], n.s.live[i+1:]...)
			return
		}
	}
}

// abandon marks a node as dead and removes what waits in it.
func (s *scheduler) abandon(n *node) []*task {
	s.mu.Lock()
	defer s.mu.Unlock()
	n.dead = true
	var left []*task
	kept := s.tasks[:0]
	for _, t := range s.tasks {
		if t.node == n {
			left = append(left, t)
		} else {
			kept = append(kept, t)
		}
	}
	clear(s.tasks[len(kept):])
	s.tasks = kept
	timers := s.timers[:0]
	for _, t := range s.timers {
		if t.node != n {
			timers = append(timers, t)
		}
	}
	clear(s.timers[len(timers):])
	s.timers = timers
	return left
}
