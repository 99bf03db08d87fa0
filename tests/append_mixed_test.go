package tests

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/partition"
	"github.com/partita-go/partita/storage"
	"github.com/partita-go/partita/storage/bolt"
	"github.com/partita-go/partita/storage/storagetest"
)

// book is a ledger that many clients write in one process.
type book struct {
	mu sync.Mutex
	*ledger
}

func (b *book) write(e entry) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.ledger.write(e)
}

// mixedEnd is how the clients' work comes to an end.
type mixedEnd int

const (
	// endsAfterwards: they stop, then the application is undeployed.
	endsAfterwards mixedEnd = iota
	// endsUndeployed: the application is undeployed under them.
	endsUndeployed
	// endsCrashed: the store is closed under them.
	endsCrashed
	mixedEnds
)

// mixedFaults are what the store suffers now and then.
var mixedFaults = []storagetest.Fault{
	{Op: storagetest.OpAppend, Do: storagetest.UnknownDone(), Chance: 0.01},
	{Op: storagetest.OpAppend, Do: storagetest.UnknownNotDone(), Chance: 0.01},
	{Op: storagetest.OpAppend, Do: storagetest.Full(), Chance: 0.01},
	{Op: storagetest.OpFlush, Do: storagetest.Fail(errInjected), Chance: 0.05},
	{Op: storagetest.OpFlush, Do: storagetest.Panic("injected"), Chance: 0.01},
	{Op: storagetest.OpNumbers, Do: storagetest.Fail(errInjected), Chance: 0.02},
	{Op: storagetest.OpFind, Do: storagetest.Fail(errInjected), Chance: 0.02},
	{Op: storagetest.OpFind, Do: storagetest.Panic("injected"), Chance: 0.01},
	{Op: storagetest.OpWLog, Do: storagetest.Break(1, errInjected), Chance: 0.02},
	{Op: storagetest.OpTail, Do: storagetest.Fail(errInjected), Chance: 0.05},
}

// mixedSettings are those of the partitions, chosen anew at each start.
func mixedSettings(random *rand.Rand) partition.Settings {
	all := []partition.Settings{
		{},
		often,
		neverFlushed(),
		{FlushThreshold: 10, FlushInterval: time.Millisecond, BusyLimit: 60, InFlightEvents: 9, BatchEvents: 4},
		{FlushThreshold: 50, BusyEvents: 12, FlushInterval: time.Millisecond},
	}
	s := all[random.IntN(len(all))]
	s.RetryDelay = 2 * time.Millisecond
	return s
}

// TestMixedLoad lets everybody who can write an event write at the same time on few
// partitions: interactive transactions, appends of one event and of several, and
// command processors of both kinds, through faults of the store, undeployments and
// crashes. Whatever was answered is so.
func TestMixedLoad(t *testing.T) {
	seed := uint64(setting("MIXED_SEED", int(time.Now().UnixNano()%1_000_000)))
	rounds := setting("MIXED_ROUNDS", unlessShort(12))
	t.Logf("MIXED_SEED=%d MIXED_ROUNDS=%d", seed, rounds)
	random := rand.New(rand.NewPCG(seed, 0))
	var m *mixed
	for n := range rounds {
		if n%30 == 0 {
			m = &mixed{site: newSite(t, 3, partition.Settings{}), book: &book{ledger: newLedger()}}
			m.dir, m.options.RestartDelay, m.options.Observer = onDisk(t), 2*time.Millisecond, nil
		}
		m.round(t, random, seed<<20|uint64(n), n)
		if t.Failed() {
			t.Fatalf("after round %d", n)
		}
	}
}

type mixed struct {
	*site
	*book
}

func (m *mixed) round(t *testing.T, random *rand.Rand, seed uint64, n int) {
	t.Helper()
	end := mixedEnd(random.IntN(int(mixedEnds)))
	if n%30 > 0 && random.IntN(4) == 0 {
		m.deleteState(t)
	}
	m.app.Settings = mixedSettings(random)
	m.bolt = bolt.Options{TailEvents: []int{0, 60}[random.IntN(2)]}
	m.faulty = true
	d := m.run(t)
	m.resolve(t, d)
	if random.IntN(3) > 0 {
		for _, f := range mixedFaults {
			f.Seed = seed
			m.faults.Plant(f)
		}
	}
	m.work(t, d, end, &child{
		childConfig: childConfig{
			Partitions: 3, Workspaces: 8, Seed: seed, Clients: 5, Processors: 3, Appenders: 12, Drafters: 4, StopAfter: 1 + random.Int64N(600),
		},
		journal: m.book, app: d.app, tolerates: tolerated,
	})
	t.Logf("round %d: end %d, %d events promised, %d appends unanswered", n, end, len(m.acked), len(m.open))
	m.look(t, func(store *bolt.Store) { m.compare(t, store) })
}

// work runs the clients to the end of a round.
func (m *mixed) work(t *testing.T, d *deployment, end mixedEnd, c *child) {
	t.Helper()
	ctx, cancel := context.WithCancel(limit(t))
	defer cancel()
	enough := make(chan struct{})
	c.stop = func() { close(enough) }
	ended := make(chan error, 1)
	go func() { ended <- c.work(ctx) }()
	select {
	case <-enough:
	case <-ctx.Done():
		t.Errorf("the clients do not get on: %+v", d.app.Status())
	}
	switch end {
	case endsAfterwards, mixedEnds:
	case endsUndeployed:
		m.faults.Heal()
		m.undeploy(t, d)
	case endsCrashed:
		check(t, d.store.Close(limit(t)))
	}
	cancel()
	check(t, <-ended)
	m.faults.Heal()
	m.undeploy(t, d)
	check(t, d.store.Close(limit(t)))
}

// undeploy undeploys: after faults that may not be clean, and need not.
func (*mixed) undeploy(t *testing.T, d *deployment) {
	t.Helper()
	if err := d.parts.Close(limit(t)); err != nil {
		wantError(t, err, partition.ErrNotClean)
	}
}

// tolerated are errors that happen when the store suffers or goes away.
func tolerated(err error) bool {
	for _, expected := range []error{
		errInjected, storage.ErrFull, storage.ErrClosed, messages.ErrStopped, messages.ErrInterrupted, messages.ErrPartitionFailed,
	} {
		if errors.Is(err, expected) {
			return true
		}
	}
	return false
}
