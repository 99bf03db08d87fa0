package actors_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/partita-go/partita/actors"
	"github.com/partita-go/partita/actors/actorstest"
	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage/storagetest"
)

var stressFor = flag.Duration("stress.for", 2*time.Second, "how long the stress test runs")

// Invariant 11 and the truth of every answer: random clients with random contexts,
// owners that die, command processors, and a store that fails in every way.
// Every request is answered exactly once or its context has ended; what was
// acknowledged is in the log, what was refused is not.
func TestPartitionStress(t *testing.T) {
	r := readyRig(t, setup{
		partitions: 4, realClock: true, permits: 2, requests: 16, lasting: *stressFor,
		settings: messages.Settings{
			FlushThreshold: 20, FlushInterval: 5 * time.Millisecond, BusyLimit: 200, BusyEvents: 300,
			RetryDelay: 5 * time.Millisecond, TransactionLimit: 100 * time.Millisecond, StopLimit: 5 * time.Second,
		},
	})
	s := &stress{rig: r, fates: make(map[string]fate)}
	for range 4 {
		r.spawnProcessor(8, insertAll)
	}
	s.desk = newDesk(t)
	end := time.Now().Add(*stressFor)
	var all sync.WaitGroup
	for seed := range uint64(24) {
		all.Go(func() {
			random := rand.New(rand.NewPCG(seed, 42))
			for time.Now().Before(end) {
				s.act(random)
			}
		})
	}
	all.Go(func() { s.spoil(rand.New(rand.NewPCG(99, 42)), end) })
	all.Wait()
	r.store.Heal()
	for p := range r.partitions {
		r.check(r.startSoon(messages.WSID(p)).Cancel(r.ctx))
	}
	s.compare()
	for p := range r.partitions {
		r.stop(p)
	}
	s.desk.allAnswered(t)
	t.Logf("%d writes acknowledged, %d refused, %d unknown; %d restarts, %d requests at the desk",
		s.fateCount(acknowledged), s.fateCount(refusedFate), s.fateCount(unknownFate), s.restarts(), s.desk.asked.Load())
}

// fate is what the writer of an event was told.
type fate int

const (
	acknowledged fate = iota + 1
	refusedFate
	unknownFate
)

type stress struct {
	*rig
	desk *desk

	bodies atomic.Uint64
	mu     sync.Mutex
	fates  map[string]fate
}

func (s *stress) body() []byte { return fmt.Appendf(nil, "event %d", s.bodies.Add(1)) }

// told records what the answer to a write says.
func (s *stress) told(body []byte, err error) {
	f := refusedFate
	switch {
	case err == nil:
		f = acknowledged
	case errors.Is(err, messages.ErrOutcomeUnknown), errors.Is(err, messages.ErrInterrupted):
		f = unknownFate
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fates[string(body)] = f
}

func (s *stress) fateCount(f fate) (n int) {
	for _, got := range s.fates {
		if got == f {
			n++
		}
	}
	return n
}

func (s *stress) restarts() (n uint64) {
	for _, p := range s.partitions {
		n += p.Status().Restarts
	}
	return n
}

// compare checks every answer against the log.
func (s *stress) compare() {
	logged := make(map[string]int)
	for p := range s.partitions {
		for _, e := range s.log(messages.PartitionID(p)) {
			logged[string(e.Body)]++
		}
	}
	for body, f := range s.fates {
		n := logged[body]
		if n > 1 || (f == acknowledged && n != 1) || (f == refusedFate && n != 0) {
			s.t.Errorf("%s is %d times in the log, its writer was told %d", body, n, f)
		}
		delete(logged, body)
	}
	for body := range logged {
		s.t.Errorf("%s is in the log, its writer was told nothing", body)
	}
}

// act does one of the things that users do.
func (s *stress) act(random *rand.Rand) {
	ctx, cancel := s.randomContext(random)
	defer cancel()
	switch n := random.IntN(10); {
	case n < 5:
		s.transact(ctx, random)
	case n < 7:
		body := s.body()
		_, err := s.processors[random.IntN(len(s.processors))].Execute(ctx, messages.Command{
			Workspace: messages.WSID(random.IntN(40)), Kind: shop, RawRecords: raw(1, 2), Body: body,
		})
		s.told(body, err)
	case n < 8:
		s.own(random)
	default:
		s.desk.ask(s.rig, random)
	}
}

func (s *stress) randomContext(random *rand.Rand) (context.Context, context.CancelFunc) {
	switch random.IntN(4) {
	case 0:
		return context.WithTimeout(s.ctx, time.Duration(random.IntN(3000))*time.Microsecond)
	case 1:
		ctx, cancel := context.WithCancel(s.ctx)
		timer := time.AfterFunc(time.Duration(random.IntN(1000))*time.Microsecond, cancel)
		return ctx, func() { timer.Stop(); cancel() }
	}
	return context.WithCancel(s.ctx)
}

// transact runs one transaction of a typed client.
func (s *stress) transact(ctx context.Context, random *rand.Rand) {
	ws := messages.WSID(random.IntN(40))
	start := s.of(ws).Start
	if random.IntN(2) == 0 {
		start = s.of(ws).StartWaiting
	}
	tx, err := start(ctx, shop, ws)
	if err != nil {
		return
	}
	for range random.IntN(4) {
		_, err = tx.Next(ctx, invoices)
	}
	if err != nil || random.IntN(8) == 0 {
		_ = tx.Cancel(ctx)
		return
	}
	body := s.body()
	if random.IntN(3) > 0 {
		s.told(body, tx.Commit(ctx, body))
		return
	}
	err = tx.Write(ctx, body)
	s.told(body, err)
	switch {
	case random.IntN(30) == 0: // it leaves the rest to the transaction limit
	case err == nil:
		_ = tx.Flush(ctx)
	default:
		_ = tx.Actualize(ctx)
	}
}

// own runs one owner that is an actor, up to a random moment.
func (s *stress) own(random *rand.Rand) {
	o := actorstest.NewProbe(s.t, system, patience)
	defer o.Stop()
	ws := messages.WSID(random.IntN(40))
	partition := s.of(ws).PID()
	ask := func(m messages.PartitionMessage) any {
		o.Send(partition, m)
		return o.Take()
	}
	start := &messages.Start{Workspace: ws, Kind: shop, WatchOwner: true}
	if random.IntN(4) == 0 {
		o.Send(partition, start)
		return
	}
	started, ok := ask(start).(*messages.Started)
	if !ok || random.IntN(4) == 0 {
		return
	}
	given, ok := ask(&messages.Next{Token: started.Token, Seq: invoices}).(*messages.Given)
	if !ok || random.IntN(4) == 0 {
		return
	}
	body := s.body()
	err := s.writeAs(started, ws, body, messages.SequenceNumber{Seq: invoices, Number: given.Number})
	s.told(body, err)
	if err == nil && random.IntN(4) > 0 {
		ask(&messages.Flush{Token: started.Token})
	}
}

// spoil plants faults and heals them, one after the other.
func (s *stress) spoil(random *rand.Rand, end time.Time) {
	injected := errors.New("injected")
	ops := []storagetest.Op{
		storagetest.OpTakeEpoch, storagetest.OpAppend, storagetest.OpFlush, storagetest.OpNumbers, storagetest.OpTail, storagetest.OpPLog,
	}
	for time.Now().Before(end) {
		f := storagetest.Fault{Op: ops[random.IntN(len(ops))], Chance: 0.05 + random.Float64()/2, Seed: random.Uint64()}
		gate := storagetest.NewGate()
		effects := []storagetest.Effect{
			storagetest.Fail(injected), storagetest.Full(), storagetest.UnknownDone(), storagetest.UnknownNotDone(),
			storagetest.Hold(gate), storagetest.HoldAnswer(gate), storagetest.Panic("injected"),
		}
		if f.Op == storagetest.OpAppend {
			effects = effects[:len(effects)-1] // that would be the client's own panic
		}
		f.Do = effects[random.IntN(len(effects))]
		if f.Op == storagetest.OpNumbers || f.Op == storagetest.OpPLog || f.Op == storagetest.OpTail {
			f.Times = 1 + random.IntN(20)
		}
		planted := s.store.Plant(f)
		pause := time.NewTimer(time.Duration(random.IntN(10_000)) * time.Microsecond)
		<-pause.C
		gate.Release()
		planted.Heal()
		s.store.Heal()
	}
}

// desk is a process that counts the answers to each request.
type desk struct {
	pid   *actor.PID
	asked atomic.Uint32

	mu      sync.Mutex
	answers map[uint32]int
	tokens  []messages.Token
	rig     *rig
}

func newDesk(t *testing.T) *desk {
	d := &desk{answers: make(map[uint32]int)}
	d.pid, _ = system.ProcessRegistry.Add(d, "desk"+system.ProcessRegistry.NextId())
	t.Cleanup(func() { system.ProcessRegistry.Remove(d.pid) })
	return d
}

// ask sends a request of a random kind, the tokens of earlier transactions
// included. A transaction that is granted is ended at once.
func (d *desk) ask(r *rig, random *rand.Rand) {
	ws := messages.WSID(random.IntN(40))
	// That of the first transaction, but for its secret.
	token := messages.Token{Partition: messages.PartitionOf(ws, 4), Epoch: 1, PLogOffset: 1, Serial: 1}
	d.mu.Lock()
	d.rig = r
	if n := len(d.tokens); n > 0 && random.IntN(4) > 0 {
		token = d.tokens[random.IntN(n)]
	}
	d.mu.Unlock()
	kinds := []messages.PartitionMessage{
		&messages.Start{Workspace: ws, Kind: shop, Deadline: messages.TimestampOf(time.Now().Add(time.Millisecond))},
		&messages.Start{Workspace: ws, Kind: shop},
		&messages.Start{Workspace: ws, Kind: site},
		&messages.Next{Token: token, Seq: invoices},
		&messages.Flush{Token: token},
		&messages.Cancel{Token: token},
		&messages.Raise{Token: token, ID: messages.RecordID{Seq: invoices}},
		&messages.Reconfigure{Settings: r.setup.settings},
	}
	partition := r.partitions[token.Partition]
	m := kinds[random.IntN(len(kinds))]
	if _, ok := m.(*messages.Start); ok {
		partition = r.partitions[messages.PartitionOf(ws, 4)]
	}
	d.send(partition, m)
}

func (d *desk) send(p *actors.Partition, m messages.PartitionMessage) {
	sender := &actor.PID{Address: d.pid.Address, Id: d.pid.Id, RequestId: d.asked.Add(1)}
	system.Root.Send(p.PID(), &actor.MessageEnvelope{Message: m, Sender: sender})
}

// SendUserMessage implements [actor.Process].
func (d *desk) SendUserMessage(pid *actor.PID, message any) {
	d.mu.Lock()
	d.answers[pid.RequestId]++
	started, ok := actor.UnwrapEnvelopeMessage(message).(*messages.Started)
	if ok && len(d.tokens) < 1000 {
		d.tokens = append(d.tokens, started.Token)
	}
	r := d.rig
	d.mu.Unlock()
	if ok {
		d.send(r.partitions[started.Token.Partition], &messages.Cancel{Token: started.Token})
	}
}

// SendSystemMessage implements [actor.Process].
func (d *desk) SendSystemMessage(*actor.PID, any) {}

// Stop implements [actor.Process].
func (d *desk) Stop(*actor.PID) {}

// allAnswered checks that every request has one answer.
func (d *desk) allAnswered(t *testing.T) {
	t.Helper()
	d.mu.Lock()
	defer d.mu.Unlock()
	for n := uint32(1); n <= d.asked.Load(); n++ {
		if d.answers[n] != 1 {
			t.Errorf("request %d has %d answers", n, d.answers[n])
		}
	}
}
