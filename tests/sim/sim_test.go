package sim

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"math/rand/v2"
	"testing/synctest"
	"time"
	"unsafe"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/partita-go/partita/internal/quiet"
	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage/storagetest"
)

// sim is one run: what one seed decides.
type sim struct {
	scheduler
	id     string
	system *actor.ActorSystem
	desc   messages.Descriptor
	disk   *storagetest.Memory
	rates  [rates]float64
	aim    aim

	// What the seed chooses for the application.
	settings    messages.Settings
	cache, lane int
	workspaces  int
	sequences   map[messages.SeqID]messages.Sequence
	rules       rules
	// patient says that everybody who ends a transaction does it properly.
	patient bool
	// lies says that the store loses batches that it acknowledges: for the test of the
	// simulation itself.
	lies bool

	// live are the nodes that serve, the last one is the newest; all are all there were.
	live, all []*node
	nodes     int
	clients   []*client
	ledger    ledger
	// quit ends every loop, drained that of the operator.
	quit, drained bool
	operatorDone  bool
	// finished says that the last deployment is there.
	finished bool
	stops    int // nodes that are being undeployed
	// explained says that a partition may fail: something was damaged, a store closed, a
	// second owner deployed.
	explained bool
	steps     int
	// slept is how far the clock of the bubble is.
	slept time.Duration

	history bytes.Buffer
	// failure is what was found wrong first.
	failure      string
	transactions int
	faults       int
	events       uint64
	matrix       matrix
	met          situations

	consumers []*consumer
	feeders   []*feeder
	lanes     matrix
	laneAim   laneAim
	// delivered, repeated and paged are those of figures.
	delivered, repeated, paged int
}

// The sequences of the application.
const (
	seqOrder   messages.SeqID = 16
	seqInvoice messages.SeqID = 17
	seqStaff   messages.SeqID = 18
	// seqScarce has few numbers.
	seqScarce messages.SeqID = 19
)

// The sequence has twelve numbers.
const initialScarce, largestScarce messages.Number = 9_999_988, 9_999_999

func descriptor(level messages.TrustLevel, days messages.Restart) messages.Descriptor {
	return messages.Descriptor{
		Application: "sim", Partitions: 2, TrustLevel: level,
		Kinds: []messages.Kind{
			{ID: 1, Name: "person", Sequences: []messages.Sequence{
				{ID: seqOrder, Name: "order", Initial: 1}, {ID: seqInvoice, Name: "invoice", Initial: 1000},
				{ID: seqScarce, Name: "scarce", Initial: initialScarce, Largest: largestScarce},
				{ID: seqDaily, Name: "daily", Initial: 1, Largest: largestDaily, Restart: days},
			}},
			{ID: 2, Name: "company", Sequences: []messages.Sequence{
				{ID: seqOrder, Name: "order", Initial: 1}, {ID: seqStaff, Name: "staff", Initial: 50},
			}},
		},
	}
}

// newSystem returns a silent actor system, which one run after the other may use.
func newSystem() *actor.ActorSystem {
	return quiet.NewSystem()
}

// throttle is how long the actor system keeps a goroutine because of dead letters.
const throttle = time.Millisecond

// newSim prepares the run of a seed. It is called in the run's bubble.
func newSim(system *actor.ActorSystem, seed uint64) (*sim, error) {
	s := &sim{system: system, id: system.ProcessRegistry.NextId()}
	s.random = rand.New(rand.NewPCG(seed, 0))
	s.posted, s.mailboxes = make(map[string]string), make(map[unsafe.Pointer]string)
	r := s.random
	s.notef("seed %d", seed)
	s.rules = chooseRules(r)
	s.desc = descriptor([]messages.TrustLevel{0, 0, 0, 1, 2}[r.IntN(5)], s.rules.each)
	disk, err := storagetest.NewMemory(s.desc)
	if err != nil {
		return nil, err
	}
	s.disk = disk
	if r.IntN(2) == 0 {
		s.disk.LimitTail(2 + r.IntN(12))
	}
	s.sequences = make(map[messages.SeqID]messages.Sequence)
	for _, k := range s.desc.Kinds {
		for _, def := range k.All() {
			s.sequences[def.ID] = def
		}
	}
	s.settings = s.chooseSettings()
	if s.patient = r.IntN(4) == 0; s.patient {
		s.settings.TransactionLimit = forever
	}
	s.cache, s.lane, s.workspaces = 1+r.IntN(20), 1+r.IntN(5), 2+r.IntN(7)
	s.chooseRates()
	s.chooseSteps()
	s.chooseOrder()
	s.chooseAim()
	s.chooseConsumers()
	s.chooseLaneAim()
	s.ledger = ledger{s: s, known: make(map[messages.WSID]messages.WLogOffset)}
	for i := range 2 + r.IntN(7) {
		c := &client{s: s, name: fmt.Sprintf("client %d", i), random: rand.New(rand.NewPCG(seed, uint64(i)+1))}
		s.clients = append(s.clients, c)
	}
	for i := range s.clients {
		s.clients[i].left = perSeed / len(s.clients)
	}
	return s, nil
}

// forever is the transaction limit of a run in which everybody who ends a transaction
// does it properly: if a run lasts that long, something has waited for the limit.
const forever = 24 * time.Hour

// perSeed is about how many requests a run makes.
const perSeed = 110

// chooseOrder makes the orders of seeds different in kind: fair, in long turns of one,
// with one who hardly gets his turn.
func (s *sim) chooseOrder() {
	switch s.random.IntN(4) {
	case 0:
		s.persist = s.random.Float64()
	case 1:
		victims := []string{"flusher", "reader", "actualizer", "appender", "partition", "store", "client", "Numbers", "Flush", "timer", "lane", "deliverer", "handles", "feeder"}
		s.starved = victims[s.random.IntN(len(victims))]
	default:
	}
}

// notef adds a line to the history.
func (s *sim) notef(format string, args ...any) {
	if s.failure != "" {
		return // the rest is a consequence
	}
	fmt.Fprintf(&s.history, "%5d ", s.steps)
	fmt.Fprintf(&s.history, format, args...)
	s.history.WriteByte('\n')
}

// failf notes what is wrong. The run ends; what comes after the first is a consequence.
func (s *sim) failf(format string, args ...any) {
	if s.failure == "" {
		failure := fmt.Sprintf(format, args...)
		s.notef("FAILURE: %s", failure)
		s.failure = failure
	}
}

func (s *sim) hash() [sha256.Size]byte { return sha256.Sum256(s.history.Bytes()) }

func (s *sim) partitionOf(ws messages.WSID) messages.PartitionID {
	return messages.PartitionOf(ws, s.desc.Partitions)
}

func (s *sim) kindOf(ws messages.WSID) messages.WSKind { return messages.WSKind(1 + ws/2%2) }

// sequencesOf returns those of a kind whose numbers can be ids.
func (s *sim) sequencesOf(kind messages.WSKind) []messages.SeqID {
	if kind == 2 {
		return []messages.SeqID{messages.SeqCRecordID, messages.SeqOWRecordID, seqOrder, seqStaff}
	}
	return []messages.SeqID{messages.SeqCRecordID, messages.SeqOWRecordID, seqOrder, seqInvoice, seqScarce}
}

func (s *sim) isDead(n *node) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return n.dead
}

func (s *sim) isHealed() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.healed
}

func (s *sim) after(d time.Duration) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.elapsed + d
}

// heal ends all faults; calls that were to be late are done now.
func (s *sim) heal() {
	s.mu.Lock()
	s.healed = true
	s.mu.Unlock()
}

// run is the whole life of a seed.
func (s *sim) run() {
	defer s.tearDown()
	go s.operate()
	for _, c := range s.clients {
		go c.run()
	}
	for _, c := range s.consumers {
		go c.keep()
	}
	for _, f := range s.feeders {
		go f.run()
	}
	s.drive(s.clientsDone)
	s.drained = true
	s.heal()
	s.drive(func() bool { return s.operatorDone && s.stops == 0 && s.readersDone() })
	s.finish()
}

func (s *sim) clientsDone() bool {
	for _, c := range s.clients {
		if !c.done {
			return false
		}
	}
	return true
}

// Most runs end before patience is over; then faults end, and after that the run must.
const (
	patience = 60_000
	limit    = 4 * patience
)

// drive lets one after the other go on until the run is as wanted.
func (s *sim) drive(until func() bool) {
	for {
		// What the others do is seen only after they have come to rest.
		synctest.Wait()
		if until() || s.failure != "" {
			return
		}
		switch s.steps++; s.steps {
		case patience:
			s.notef("faults end")
			s.heal()
		case limit:
			s.failf("the run does not end; %s", s.waiting())
		}
		s.tick()
		synctest.Wait()
		if s.upset() {
			continue
		}
		s.step()
	}
}

func (s *sim) step() {
	task, timer := s.pick()
	switch {
	case task != nil:
		task.begin()
	case timer != nil:
		timer.f()
	case s.skip():
		s.catchUp()
	default:
		s.lastResort()
	}
}

// tick lets a little time pass.
func (s *sim) tick() {
	s.mu.Lock()
	s.elapsed += time.Duration(s.random.IntN(150)) * time.Microsecond
	s.mu.Unlock()
	s.catchUp()
}

// catchUp lets the clock of the bubble, which the deadlines of contexts go by, follow.
func (s *sim) catchUp() {
	if d := s.after(0) - s.slept; d > 0 {
		s.slept += d
		time.Sleep(d) //nolint:forbidigo // the clock of a synctest bubble
	}
}

// lastResort waits for time-outs of the bubble's clock. If none helps, somebody is
// never answered.
func (s *sim) lastResort() {
	s.mu.Lock()
	s.elapsed += 2 * time.Second
	s.mu.Unlock()
	s.catchUp()
	synctest.Wait()
	s.mu.Lock()
	idle := !s.anything()
	s.mu.Unlock()
	if idle {
		s.failf("somebody is never answered; %s", s.waiting())
	}
}

// waiting says what the clients wait for.
func (s *sim) waiting() string {
	text := ""
	for _, c := range s.clients {
		if c.node != nil {
			text += fmt.Sprintf("%s is %s at %s; ", c.name, c.stage, c.node.name)
		}
	}
	return text
}

// upset strikes from outside: a crash, the clock, the end of a context.
func (s *sim) upset() bool {
	switch {
	case len(s.live) > 0 && s.strikes(rateCrash):
		s.live[s.random.IntN(len(s.live))].crash()
		s.verify()
	case s.strikes(rateClock):
		s.stepClock()
	case s.strikes(rateContext):
		s.clients[s.random.IntN(len(s.clients))].end(context.Canceled)
	default:
		return false
	}
	return true
}

// tearDown ends every goroutine of the run, also after a failure.
func (s *sim) tearDown() {
	s.quit = true
	s.heal()
	for _, n := range s.all {
		if !s.isDead(n) {
			n.end()
		}
	}
	for _, c := range s.clients {
		if c.cancel != nil {
			c.cancel(errCrashed)
		}
	}
	for {
		synctest.Wait()
		task, _ := s.pick()
		if task == nil {
			break
		}
		task.begin()
	}
	time.Sleep(2 * throttle) //nolint:forbidigo // the clock of a synctest bubble
}
