package metrics

import (
	"reflect"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/partita-go/partita/actors"
	"github.com/partita-go/partita/ids"
	"github.com/partita-go/partita/partition"
)

const (
	// partitionGroup is the group of partitions, whose messages take about a microsecond each.
	partitionGroup = "partition"
	// timedOneOf is how many messages of a kind a partition gets of which one is timed. Of the other actors, which wait
	// for disks and handlers, each is.
	timedOneOf = 32
)

var messageLabels = []string{"actor_group", "actor_key", "message", "protocol"}

func histogram(name, help string) prometheus.HistogramOpts {
	return prometheus.HistogramOpts{
		Name: name, Help: help,
		Buckets:                        []float64{1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1, 10},
		NativeHistogramBucketFactor:    1.2,
		NativeHistogramMaxBucketNumber: 100,
	}
}

func newHandling() *prometheus.HistogramVec {
	return prometheus.NewHistogramVec(histogram("partita_message_handling_time_seconds",
		"How long actors took to handle messages. Of partitions one message in 32 is timed."), messageLabels)
}

func newWaiting() *prometheus.HistogramVec {
	return prometheus.NewHistogramVec(histogram("partita_message_waiting_time_seconds",
		"How long messages waited for actors. One message of an actor is timed at a time."), messageLabels[:2])
}

// stripes are how many counters there are of what many actors count at the same time. It is a power of two.
const stripes = 16

// group counts what actors do that are not told apart.
type group struct {
	key     partition.ActorKey
	timedOf uint64
	waiting prometheus.Observer
	of      *prometheus.HistogramVec
	// busy is in nanoseconds.
	busy atomic.Int64
	// alive and restarting are how many there are.
	alive, restarting atomic.Int64
	// members are those that have not ended; [Metrics.mu] guards it.
	members map[*watchedActor]struct{}

	// cells are those of each kind of message. A list that is there is never changed.
	cells atomic.Pointer[[]*cell]
	mu    sync.Mutex
}

// cell counts messages of a kind.
type cell struct {
	// of is the address of the type: comparing it takes less than comparing types.
	of                uintptr
	message, protocol string
	// mask says which of them are timed: none if handling is nil.
	mask     uint64
	handling prometheus.Observer
	// exampled is when the last example was given, in nanoseconds, 0 if none was.
	exampled atomic.Int64
	life     life
	sent     [stripes]stripe
}

// stripe is the counter of some actors. Others do not have the same cache line.
type stripe struct {
	sent atomic.Uint64
	// weighed is what sent was when the last timed message was handled.
	weighed atomic.Uint64
	_       [48]byte
}

func (c *cell) total() (n uint64) {
	for i := range c.sent {
		n += c.sent[i].sent.Load()
	}
	return n
}

// life is what a message means to the life of its actor.
type life uint8

const (
	lifeUnchanged life = iota
	lifeStarted
	lifeFailed
	lifeResumed
	lifeStopped
)

// ForActor implements [partition.KeyedObserver].
func (m *Metrics) ForActor(key partition.ActorKey) partition.Observer {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.actors++
	a := &watchedActor{metrics: m, key: key, stripe: m.actors % stripes}
	g := m.groupOf(key)
	a.group.Store(g)
	g.members[a] = struct{}{}
	return a
}

// groupOf returns where an actor is counted. The caller holds m.mu.
func (m *Metrics) groupOf(key partition.ActorKey) *group {
	if !slices.Contains(m.options.Keys, key.Group) {
		key.ID = ""
	}
	g := m.groups[key]
	if g == nil {
		g = &group{
			key: key, timedOf: 1, of: m.handling, waiting: m.waiting.WithLabelValues(key.Group, key.ID), members: make(map[*watchedActor]struct{}),
		}
		if key.Group == partitionGroup {
			g.timedOf = timedOneOf
		}
		g.cells.Store(new([]*cell))
		m.groups[key] = g
	}
	return g
}

// forget is for an actor that has ended.
func (m *Metrics) forget(a *watchedActor) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(a.group.Load().members, a)
}

// Posted makes it an observer, with Taken and Handled: but [Metrics.ForActor] returns who is told.
func (*Metrics) Posted(partition.ActorKey, any) {}

// Taken is as Posted.
func (*Metrics) Taken(partition.ActorKey, any) {}

// Handled is as Posted.
func (*Metrics) Handled(partition.ActorKey, any) {}

// cell returns that of a message.
func (g *group) cell(message any) *cell {
	of := reflect.ValueOf(reflect.TypeOf(message)).Pointer()
	if c := find(*g.cells.Load(), of); c != nil {
		return c
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	before := *g.cells.Load()
	if c := find(before, of); c != nil {
		return c
	}
	c := g.newCell(of, message)
	after := append(slices.Clone(before), c)
	g.cells.Store(&after)
	return c
}

func find(cells []*cell, of uintptr) *cell {
	for _, c := range cells {
		if c.of == of {
			return c
		}
	}
	return nil
}

func (g *group) newCell(of uintptr, message any) *cell {
	kind := reflect.TypeOf(message)
	c := &cell{of: of, life: lifeOf(message), mask: g.timedOf - 1}
	c.message, c.protocol = actors.NamesOf(kind)
	// One that is no pointer could not be told from others, nor one of no size: all of these have one address.
	if !isSystem(message) && kind.Kind() == reflect.Pointer && kind.Elem().Size() > 0 {
		c.handling = g.of.WithLabelValues(g.key.Group, g.key.ID, c.message, c.protocol)
	}
	return c
}

// isSystem reports whether a message is of the actor system.
func isSystem(message any) bool {
	switch message.(type) {
	case actor.SystemMessage, actor.AutoReceiveMessage:
		return true
	}
	return false
}

func lifeOf(message any) life {
	switch message.(type) {
	case *actor.Started:
		return lifeStarted
	case *actor.SuspendMailbox:
		return lifeFailed
	case *actor.ResumeMailbox:
		return lifeResumed
	case *actor.Stop:
		return lifeStopped
	}
	return lifeUnchanged
}

// watchedActor is the observer of one actor. It times one of the actor's messages at a time.
type watchedActor struct {
	metrics *Metrics
	key     partition.ActorKey
	// group is where it is counted: [Metrics.SetKeys] changes that.
	group  atomic.Pointer[group]
	stripe int

	mu   sync.Mutex
	life life

	// message is the address of the one that is timed, 0 if none is. When it was posted and taken is in nanoseconds;
	// taken is 0 if it was not taken yet.
	message       atomic.Uintptr
	posted, taken atomic.Int64
	// trace is its trace id, zero if it is of none.
	trace atomic.Uint64
}

var begun = time.Now()

func now() int64 { return int64(time.Since(begun)) }

func address(message any) uintptr { return reflect.ValueOf(message).Pointer() }

// isTimed reports whether a message is the one that is timed.
func (a *watchedActor) isTimed(message any) bool {
	timed := a.message.Load()
	return timed != 0 && reflect.TypeOf(message).Kind() == reflect.Pointer && address(message) == timed
}

// Posted implements [partition.Observer].
func (a *watchedActor) Posted(_ partition.ActorKey, message any) {
	c := a.group.Load().cell(message)
	nth := c.sent[a.stripe].sent.Add(1) - 1
	if c.life != lifeUnchanged {
		a.live(c.life)
	}
	if c.handling == nil || nth&c.mask != 0 || a.message.Load() != 0 {
		return
	}
	// Whoever else comes here at the same time says nearly the same.
	a.posted.Store(now())
	a.taken.Store(0)
	a.trace.Store(uint64(actors.TraceOf(message)))
	a.message.CompareAndSwap(0, address(message))
}

// Taken implements [partition.Observer].
func (a *watchedActor) Taken(_ partition.ActorKey, message any) {
	if !a.isTimed(message) {
		return
	}
	at := now()
	a.taken.Store(at)
	a.group.Load().waiting.Observe(seconds(max(0, at-a.posted.Load())))
}

// Handled implements [partition.Observer].
func (a *watchedActor) Handled(_ partition.ActorKey, message any) {
	if !a.isTimed(message) {
		return
	}
	if taken := a.taken.Load(); taken != 0 {
		took := now() - taken
		c := a.group.Load().cell(message)
		c.observe(took, ids.TraceID(a.trace.Load()))
		// It stands for those that were not timed.
		s := &c.sent[a.stripe]
		sent, weighed := s.sent.Load(), s.weighed.Load()
		if sent > weighed && s.weighed.CompareAndSwap(weighed, sent) {
			a.group.Load().busy.Add(took * int64(sent-weighed))
		}
	}
	a.message.Store(0)
}

// An example costs ten times as much as a time. So messages of a kind that take less than slow give one in exampleEvery at
// the most; Prometheus asks far less often.
const (
	slow         = int64(time.Millisecond)
	exampleEvery = int64(100 * time.Millisecond)
)

// observe observes a time, and may give the trace that it was measured in as an example.
func (c *cell) observe(took int64, trace ids.TraceID) {
	e, ok := c.handling.(prometheus.ExemplarObserver)
	if !ok || trace == 0 || !c.wantsExample(took, now()) {
		c.handling.Observe(seconds(took))
		return
	}
	e.ObserveWithExemplar(seconds(took), prometheus.Labels{traceLabel: trace.String()})
}

// wantsExample reports whether a message that took so long until at is to give an example.
func (c *cell) wantsExample(took, at int64) bool {
	if took >= slow {
		return true
	}
	last := c.exampled.Load()
	return (last == 0 || at-last >= exampleEvery) && c.exampled.CompareAndSwap(last, at)
}

// traceLabel is the label that those who show exemplars look for.
const traceLabel = "trace_id"

func seconds(nanos int64) float64 { return time.Duration(nanos).Seconds() }

// live counts actors that begin, fail and end.
func (a *watchedActor) live(to life) {
	if to == lifeResumed {
		to = lifeStarted
	}
	a.mu.Lock()
	if a.life != to {
		g := a.group.Load()
		g.count(a.life, -1)
		g.count(to, 1)
		a.life = to
	}
	a.mu.Unlock()
	if to == lifeStopped {
		a.metrics.forget(a)
	}
}

// count adds actors of a life.
func (g *group) count(of life, n int64) {
	switch of {
	case lifeStarted:
		g.alive.Add(n)
	case lifeFailed:
		g.restarting.Add(n)
	case lifeUnchanged, lifeResumed, lifeStopped:
	}
}
