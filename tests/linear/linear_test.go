package linear

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/partition"
	"github.com/partita-go/partita/storage/bolt"
	"github.com/partita-go/partita/storage/storagetest"
	"github.com/partita-go/partita/storage/verify"
)

var errInjected = errors.New("injected")

// faults are what a store suffers now and then.
var faults = []storagetest.Fault{
	{Op: storagetest.OpAppend, Do: storagetest.UnknownDone(), Chance: 0.1},
	{Op: storagetest.OpAppend, Do: storagetest.UnknownNotDone(), Chance: 0.1},
	{Op: storagetest.OpAppend, Do: storagetest.Full(), Chance: 0.1},
	{Op: storagetest.OpAppend, Do: storagetest.Panic("injected"), Chance: 0.05},
	{Op: storagetest.OpTakeEpoch, Do: storagetest.Fail(errInjected), Chance: 0.2},
	{Op: storagetest.OpTakeEpoch, Do: storagetest.UnknownDone(), Chance: 0.2},
	{Op: storagetest.OpFlush, Do: storagetest.Fail(errInjected), Chance: 0.3},
	{Op: storagetest.OpFlush, Do: storagetest.UnknownDone(), Chance: 0.2},
	{Op: storagetest.OpFlush, Do: storagetest.Panic("injected"), Chance: 0.1},
	{Op: storagetest.OpNumbers, Do: storagetest.Fail(errInjected), Chance: 0.1},
	{Op: storagetest.OpFind, Do: storagetest.Fail(errInjected), Chance: 0.1},
	{Op: storagetest.OpFind, Do: storagetest.Panic("injected"), Chance: 0.05},
	{Op: storagetest.OpWLog, Do: storagetest.Break(1, errInjected), Chance: 0.1},
	{Op: storagetest.OpTail, Do: storagetest.Fail(errInjected), Chance: 0.2},
}

// settings are those of the partitions, some of which make each kind of trouble
// likely.
var settings = []partition.Settings{
	{},
	{FlushThreshold: 1, FlushInterval: time.Millisecond},
	{FlushThreshold: 4, FlushInterval: time.Millisecond, BusyLimit: 12, InFlightEvents: 5, BatchEvents: 4},
	{BusyEvents: 6, FlushInterval: time.Millisecond},
	{FlushInterval: time.Hour, FlushThreshold: 1 << 20},
}

const (
	clients  = 5
	attempts = 8
	maxLives = 3
)

// TestLinearizable runs many short histories, each over its own store, and checks
// each against the model. LINEAR_HISTORIES and LINEAR_SEED are for longer runs.
func TestLinearizable(t *testing.T) {
	seed := setting(t, "LINEAR_SEED", uint64(time.Now().UnixNano()%1_000_000))
	histories := setting(t, "LINEAR_HISTORIES", unlessShort(300))
	t.Logf("LINEAR_SEED=%d LINEAR_HISTORIES=%d", seed, histories)
	var all figures
	for n := range histories {
		random := rand.New(rand.NewPCG(seed, n))
		level := messages.TrustLevel(random.IntN(3))
		// Histories in memory are many; those on disk wait for it.
		name, d := fmt.Sprintf("memory-%d-%d", seed, n), memoryDisk
		if n%4 == 0 {
			name, d = fmt.Sprintf("bolt-%d-%d", seed, n), func(t testing.TB, level messages.TrustLevel) disk {
				return boltDisk(t, level, bolt.Options{TailEvents: []int{0, 10}[random.IntN(2)]})
			}
		}
		t.Run(name, func(t *testing.T) { one(t, name, random, d(t, level), level, &all) })
		if t.Failed() {
			break
		}
	}
	fmt.Fprintln(os.Stdout, all.String())
	t.Logf("%d refused; answered: %v", all.refused, all.kinds)
	if t.Failed() {
		return
	}
	for _, kind := range []string{
		"Append", "Append with id", "AppendAll", "AppendAll with id", "Transaction", "Transaction without end", "Command",
		"repeated", "unexpected", "mismatched", "readPLog", "readWLog", "readRegister", "readRow", "find",
	} {
		if all.kinds[kind] == 0 {
			t.Errorf("no %q was answered", kind)
		}
	}
	if all.unknown == 0 {
		t.Error("no outcome was unknown")
	}
}

// one runs a history: the application lives some times, and clients use it.
func one(t *testing.T, name string, random *rand.Rand, d disk, level messages.TrustLevel, all *figures) {
	h, names := new(history), new(names)
	users := make([]*client, clients)
	for i := range users {
		users[i] = &client{id: i, process: h.process(), random: rand.New(rand.NewPCG(random.Uint64(), uint64(i)))}
	}
	for range 1 + random.IntN(maxLives) {
		s := settings[random.IntN(len(settings))]
		s.RetryDelay = 2 * time.Millisecond
		// The owners that die are waited for.
		s.TransactionLimit = 5 * time.Millisecond
		h.happened("start")
		l := &life{world: begin(t, d, level, s), history: h, names: names, enough: make(chan struct{})}
		l.run(t, random, users)
	}
	store := d(t)
	defer func() { must(t, store.Close(limit(t))) }()
	report, err := verify.Run(limit(t), store, verify.Options{})
	must(t, errors.Join(err, report.Err()))
	bodies := make(map[string]bool)
	for p := range messages.PartitionID(partitions) {
		called := h.tick()
		a, err := logRead(store.PLog(limit(t), p, 1))
		must(t, err)
		h.answered(h.process(), called, readPLog{p}, a)
		for e, err := range store.PLog(limit(t), p, 1) {
			must(t, err)
			bodies[string(e.Body)] = true
		}
	}
	check(t, name, h.complete(bodies), h.notes)
	all.add(h)
}

// run lets the clients work until the application ends, before or behind them.
func (l *life) run(t *testing.T, random *rand.Rand, users []*client) {
	t.Helper()
	ctx, cancel := context.WithCancel(limit(t))
	defer cancel()
	l.wave = newWave(ctx)
	l.many = 1 + random.Int64N(clients*attempts)
	held := l.plant(ctx, random)
	var working sync.WaitGroup
	for _, c := range users {
		c.life = l
		working.Go(func() { c.run() })
	}
	<-l.enough
	switch random.IntN(3) {
	case 0: // they stop by themselves
	case 1:
		l.happened("undeployed")
		l.store.Heal()
		l.undeploy(t)
	case 2:
		l.happened("crashed")
		must(t, l.store.Close(limit(t)))
	}
	working.Wait()
	held()
	l.store.Heal()
	l.undeploy(t)
	must(t, l.store.Close(limit(t)))
}

// plant makes the store suffer. An append that is held at a gate is let go when all
// who waited for something have given up; the returned function ends that.
func (l *life) plant(ctx context.Context, random *rand.Rand) (end func()) {
	gate := storagetest.NewGate()
	switch random.IntN(4) {
	case 0:
		l.store.Plant(storagetest.Fault{Op: storagetest.OpAppend, Do: storagetest.Hold(gate), Skip: random.IntN(12), Times: 1})
	case 1:
		l.store.Plant(storagetest.Fault{Op: storagetest.OpAppend, Do: storagetest.HoldAnswer(gate), Skip: random.IntN(12), Times: 1})
	}
	if random.IntN(3) > 0 {
		for _, f := range faults {
			f.Seed = random.Uint64()
			l.store.Plant(f)
		}
	}
	over := make(chan struct{})
	var watching sync.WaitGroup
	watching.Go(func() {
		select {
		case <-gate.Arrived():
			l.happened("an append hangs: everybody gives up")
			l.cut(ctx)
		case <-over:
		}
		gate.Release()
	})
	return func() {
		close(over)
		watching.Wait()
	}
}
