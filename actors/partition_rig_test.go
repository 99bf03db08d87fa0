package actors_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"go.uber.org/goleak"
	"go.uber.org/zap"

	"github.com/partita-go/partita/actors"
	"github.com/partita-go/partita/actors/actorstest"
	"github.com/partita-go/partita/ids"
	"github.com/partita-go/partita/internal/quiet"
	"github.com/partita-go/partita/internal/sequencer"
	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage/storagetest"
)

// The application of the tests.
const (
	shop messages.WSKind = 1
	site messages.WSKind = 2

	invoices messages.SeqID = 16
	receipts messages.SeqID = 17
	posts    messages.SeqID = 18
)

func described(partitions uint32, trust messages.TrustLevel) messages.Descriptor {
	return messages.Descriptor{
		Application: "shop", Partitions: partitions, TrustLevel: trust,
		Kinds: []messages.Kind{
			{ID: shop, Name: "shop", Sequences: []messages.Sequence{
				{ID: invoices, Name: "Invoice", Initial: 1},
				{ID: receipts, Name: "Receipt", Initial: 1000},
			}},
			{ID: site, Name: "site", Sequences: []messages.Sequence{{ID: posts, Name: "Post", Initial: 1}}},
		},
	}
}

// system is shared: a new one costs 2.5 ms and 3 MB.
var system = quiet.NewSystem()

// patience is how long a test waits for what must happen.
const patience = 30 * time.Second

// setup says what a rig is made of. The zero value is one partition over an
// empty store, with a clock that stands still.
type setup struct {
	partitions uint32
	trust      messages.TrustLevel
	settings   messages.Settings
	requests   int
	// requestBytes bounds what is in the lane, 0: nothing does.
	requestBytes int
	permits      int
	// alarmAfter is that of the partitions, 0: never.
	alarmAfter time.Duration
	// memory is used instead of an empty store.
	memory *storagetest.Memory
	// wrap stands between the partitions and the faulty store.
	wrap func(*storagetest.Faulty) actors.PartitionStore
	// realClock runs on the system's clock, clock on another one than that of the tests.
	realClock bool
	clock     *actorstest.FakeClock
	// lasting is how long the test runs by intention.
	lasting time.Duration
	// logger is where partitions log, nowhere if nil.
	logger *zap.Logger
	// unverified leaves out the check of the store at the end.
	unverified bool
}

// rig is partitions over a store that can be made to fail.
type rig struct {
	t          *testing.T
	ctx        context.Context
	setup      setup
	memory     *storagetest.Memory
	store      *storagetest.Faulty
	fake       *actorstest.FakeClock
	clock      actors.Clock
	ports      *actors.Ports
	dispatcher *actors.Dispatcher
	guardian   actor.SupervisorStrategy
	permits    *actors.Permits
	failures   chan time.Duration
	board      *board
	spy        *spy
	partitions []*actors.Partition
	sequencers []*actors.Sequencer
	processors []*actors.CommandProcessor
	gates      []*storagetest.Gate
}

var rigs int

// newRig starts partitions and waits for nothing. At the end of the test all
// faults are healed, everything is stopped, the store is verified, and no
// goroutine may be left.
func newRig(t *testing.T, s setup) *rig {
	t.Helper()
	before := goleak.IgnoreCurrent()
	ctx, cancel := context.WithTimeout(context.Background(), patience+s.lasting)
	r := &rig{
		t: t, ctx: ctx, setup: s,
		ports: actors.NewPorts(system), dispatcher: actors.NewDispatcher(),
		failures: make(chan time.Duration, 1024),
		board:    newBoard(), spy: newSpy(),
	}
	t.Cleanup(func() {
		r.finish()
		cancel()
		goleak.VerifyNone(t, before)
	})
	if r.setup.partitions == 0 {
		r.setup.partitions = 1
	}
	r.openStore()
	r.clock = actors.SystemClock()
	if !s.realClock {
		r.fake = cmp.Or(s.clock, actorstest.NewFakeClock(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)))
		r.clock = r.fake
	}
	r.guardian = actors.NewGuardian(actors.RestartPolicy{
		MinDelay: 10 * time.Millisecond, MaxDelay: time.Second, Clock: r.clock,
		OnRestart: func(_ *actor.PID, _ any, _ ids.TraceID, _ int, delay time.Duration) { r.failures <- delay },
	}, interrupted)
	r.permits = actors.NewPermits(cmp.Or(s.permits, 64))
	r.spawn()
	return r
}

func (r *rig) openStore() {
	r.memory = r.setup.memory
	if r.memory == nil {
		memory, err := storagetest.NewMemory(described(r.setup.partitions, r.setup.trust))
		r.check(err)
		r.memory = memory
	}
	r.store = storagetest.NewFaulty(r.memory)
}

func (r *rig) spawn() {
	r.t.Helper()
	rigs++
	var store actors.PartitionStore = storagetest.NewSubmitting(r.store)
	if r.setup.wrap != nil {
		store = r.setup.wrap(r.store)
	}
	settings := r.setup.settings.WithDefaults()
	r.check(settings.Validate())
	for i := range messages.PartitionID(r.setup.partitions) {
		key := actors.Key{Group: "partition", ID: i.String()}
		p, err := actors.SpawnPartition(actors.PartitionConfig{
			Key: key, Name: fmt.Sprintf("rig/%d/%v", rigs, key),
			Sequencer: sequencer.Config{
				Partition: i, Descriptor: r.memory.Descriptor(), Settings: settings, CacheNumbers: 100, Seed: 1,
			},
			Store: store, System: system, Guardian: r.guardian, Dispatcher: r.dispatcher, Clock: r.clock,
			Logger: cmp.Or(r.setup.logger, zap.NewNop()), Requests: cmp.Or(r.setup.requests, 1024), RequestBytes: r.setup.requestBytes, Permits: r.permits, EpochPermits: r.permits,
			Observer: r.spy, StatusChanged: r.board.put, AlarmAfter: r.setup.alarmAfter,
		})
		r.check(err)
		r.partitions = append(r.partitions, p)
		r.sequencers = append(r.sequencers, actors.NewSequencer(p, r.ports, r.store))
	}
}

// readyRig is newRig, waiting until the partitions take transactions.
func readyRig(t *testing.T, s setup) *rig {
	t.Helper()
	r := newRig(t, s)
	r.ready()
	return r
}

func (r *rig) ready() {
	r.t.Helper()
	for i := range r.partitions {
		r.await(i, messages.StateNormal)
	}
}

func interrupted(message any) (any, bool) {
	switch message.(type) {
	case *messages.Append:
		return &messages.Refused{Err: errors.Join(messages.ErrOutcomeUnknown, messages.ErrInterrupted)}, true
	case messages.PartitionMessage, messages.CommandProcessorMessage:
		return &messages.Refused{Err: messages.ErrInterrupted}, true
	}
	return nil, false
}

// finish stops what still runs.
func (r *rig) finish() {
	r.store.Heal()
	for _, g := range r.gates {
		g.Release()
	}
	stopped := make(chan struct{})
	if r.fake != nil {
		// Whoever waits for a restart or a retry gets it.
		go r.passTime(stopped)
	}
	for _, p := range r.processors {
		if err := p.Stop(r.ctx); err != nil {
			r.t.Errorf("stop command processor: %v", err)
		}
	}
	for i, p := range r.partitions {
		if _, err := p.Stop(r.ctx, r.ports); err != nil {
			r.t.Errorf("stop partition %d: %v", i, err)
		}
	}
	close(stopped)
	r.ports.Close()
	r.dispatcher.Close()
	if !r.setup.unverified {
		storagetest.Verify(r.t, r.memory.Reopen())
	}
}

func (r *rig) passTime(stopped <-chan struct{}) {
	for {
		select {
		case <-stopped:
			return
		case <-time.After(5 * time.Millisecond):
			r.fake.Advance(time.Second)
		}
	}
}

func (r *rig) check(err error) {
	r.t.Helper()
	if err != nil {
		r.t.Fatal(err)
	}
}

// wants fails the test unless the error is what is wanted; nil wants none.
func wants(t *testing.T, what string, got, want error) {
	t.Helper()
	if !errors.Is(got, want) || (want == nil && got != nil) {
		t.Fatalf("%s: got error %v, want %v", what, got, want)
	}
}

// wantsNot fails the test if the error is one that it must not be.
func wantsNot(t *testing.T, what string, got, unwanted error) {
	t.Helper()
	if errors.Is(got, unwanted) {
		t.Fatalf("%s: got error %v", what, got)
	}
}

// start opens a transaction of a workspace of the first partition.
func (r *rig) start(ws messages.WSID) *actors.Transaction {
	r.t.Helper()
	tx, err := r.of(ws).Start(r.ctx, shop, ws)
	r.check(err)
	return tx
}

func (r *rig) of(ws messages.WSID) *actors.Sequencer {
	return r.sequencers[messages.PartitionOf(ws, r.setup.partitions)]
}

// commit writes one event with an invoice and returns its number.
func (r *rig) commit(ws messages.WSID) messages.Number {
	r.t.Helper()
	tx := r.start(ws)
	n, err := tx.Next(r.ctx, invoices)
	r.check(err)
	r.check(tx.Commit(r.ctx, []byte("event")))
	return n
}

// stop stops a partition.
func (r *rig) stop(p int) messages.Stopped {
	r.t.Helper()
	stopped, err := r.partitions[p].Stop(r.ctx, r.ports)
	r.check(err)
	return stopped
}

// again stops everything and spawns it anew over the same store.
func (r *rig) again() {
	r.t.Helper()
	for i := range r.partitions {
		r.stop(i)
	}
	r.partitions, r.sequencers, r.board = nil, nil, newBoard()
	r.spawn()
}

// log returns the events of a partition.
func (r *rig) log(p messages.PartitionID) []messages.Event {
	r.t.Helper()
	var events []messages.Event
	for e, err := range r.memory.PLog(r.ctx, p, 1) {
		r.check(err)
		events = append(events, e)
	}
	return events
}

func (r *rig) register(p messages.PartitionID) messages.Register {
	r.t.Helper()
	reg, err := r.memory.Register(r.ctx, p)
	r.check(err)
	return reg
}

// ask sends a message by PID and returns the answer.
func (r *rig) ask(p int, m messages.PartitionMessage) any {
	r.t.Helper()
	reply, err := r.ports.Ask(r.ctx, r.partitions[p].PID(), m, nil)
	r.check(err)
	return reply
}

// askNext asks the partition for a number of a transaction, as an owner does that
// does not count itself.
func (r *rig) askNext(tx *actors.Transaction) error {
	reply, err := r.ports.Ask(r.ctx, r.partitions[tx.Token().Partition].PID(), &messages.Next{Token: tx.Token(), Seq: invoices}, nil)
	if refused, ok := reply.(*messages.Refused); ok {
		return refused.Err
	}
	return err
}

// await waits until a partition's status has passed through a state, from the
// last one that was awaited on, and returns the status.
func (r *rig) await(p int, state messages.PartitionState) messages.PartitionStatus {
	r.t.Helper()
	return r.awaitThat(p, state.String(), func(s messages.PartitionStatus) bool { return s.State == state })
}

func (r *rig) awaitThat(p int, what string, holds func(messages.PartitionStatus) bool) messages.PartitionStatus {
	r.t.Helper()
	s, err := r.board.await(r.ctx, messages.PartitionID(p), holds)
	if err != nil {
		r.t.Fatalf("partition %d: want %s, history is %v", p, what, r.board.history(messages.PartitionID(p)))
	}
	return s
}

// failed waits until a partition has failed, and returns the delay before its
// restart.
func (r *rig) failed() time.Duration {
	r.t.Helper()
	select {
	case d := <-r.failures:
		return d
	case <-r.ctx.Done():
		r.t.Fatal("no actor has failed")
		return 0
	}
}

// restart waits until a partition has failed and lets it come back.
func (r *rig) restart() {
	r.t.Helper()
	r.fake.Advance(r.failed())
}

// newGate returns a gate that opens at the end of the test at the latest.
func (r *rig) newGate() *storagetest.Gate {
	g := storagetest.NewGate()
	r.gates = append(r.gates, g)
	return g
}

// arrives waits until a call is held at the gate.
func (r *rig) arrives(g *storagetest.Gate) {
	r.t.Helper()
	r.check(g.Await(r.ctx))
}
