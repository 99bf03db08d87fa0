package linear

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/partition"
	"github.com/partita-go/partita/storage/bolt"
	"github.com/partita-go/partita/storage/storagetest"
	"github.com/partita-go/partita/storage/verify"
)

func TestDisorder(t *testing.T) {
	for name, tt := range map[string]struct {
		want   int
		points []point
	}{
		"in order":                {0, []point{event("a", 1, 1, 2), event("a", 2, 3, 4), event("a", 3, 5, 6)}},
		"at the same time":        {0, []point{event("a", 2, 1, 5), event("a", 1, 2, 6)}},
		"swapped":                 {1, []point{event("a", 2, 1, 2), event("a", 1, 3, 4)}},
		"swapped far apart":       {2, []point{event("a", 9, 1, 2), event("a", 5, 1, 4), event("a", 1, 3, 4), event("a", 2, 3, 9)}},
		"other lines":             {0, []point{event("a", 2, 1, 2), event("b", 1, 3, 4)}},
		"given twice":             {1, []point{event("a", 1, 1, 4), event("a", 1, 2, 3)}},
		"read":                    {0, []point{event("a", 1, 1, 2), seen("a", 1, 3, 4), event("a", 2, 5, 6), seen("a", 2, 7, 8)}},
		"read at the same time":   {0, []point{event("a", 1, 1, 4), seen("a", 0, 2, 3), seen("a", 1, 2, 3)}},
		"stale read":              {1, []point{event("a", 1, 1, 2), seen("a", 0, 3, 4)}},
		"read of what is to come": {1, []point{seen("a", 1, 1, 2), event("a", 1, 3, 4)}},
		"reads go back":           {1, []point{seen("a", 2, 1, 2), seen("a", 1, 3, 4)}},
		"the same is read again":  {0, []point{seen("a", 2, 1, 2), seen("a", 2, 3, 4)}},
	} {
		if got := disorder(tt.points); len(got) != tt.want {
			t.Errorf("%s: got %q, want %d", name, got, tt.want)
		}
	}
}

// rareFaults leave a long history long.
var rareFaults = []storagetest.Fault{
	{Op: storagetest.OpAppend, Do: storagetest.UnknownDone(), Chance: 0.002},
	{Op: storagetest.OpAppend, Do: storagetest.UnknownNotDone(), Chance: 0.002},
	{Op: storagetest.OpFlush, Do: storagetest.Fail(errInjected), Chance: 0.05},
	{Op: storagetest.OpTail, Do: storagetest.Fail(errInjected), Chance: 0.05},
}

// TestLongHistory lets many clients work on one store and checks that real time
// agrees with every offset and number. LINEAR_ATTEMPTS and LINEAR_SEED are for longer
// runs.
func TestLongHistory(t *testing.T) {
	seed := setting(t, "LINEAR_SEED", uint64(time.Now().UnixNano()%1_000_000))
	tries := setting(t, "LINEAR_ATTEMPTS", unlessShort(20_000))
	t.Logf("LINEAR_SEED=%d LINEAR_ATTEMPTS=%d", seed, tries)
	const users = 32
	d := boltDisk(t, messages.TrustNone, bolt.Options{})
	w := begin(t, d, messages.TrustNone, partition.Settings{FlushInterval: 5 * time.Millisecond, RetryDelay: 2 * time.Millisecond})
	for _, f := range rareFaults {
		f.Seed = seed
		w.store.Plant(f)
	}
	h, names := new(history), new(names)
	l := &life{world: w, history: h, names: names, enough: make(chan struct{}), wave: newWave(limit(t))}
	var working sync.WaitGroup
	for i := range users {
		c := &client{life: l, id: i, process: h.process(), random: rand.New(rand.NewPCG(seed, uint64(i)))}
		working.Go(func() {
			for range tries / users {
				c.count++
				c.onceInLong(t.Context())
			}
		})
	}
	working.Wait()
	l.wave.cancel()
	w.store.Heal()
	w.undeploy(t)
	report, err := verify.Run(limit(t), w.store, verify.Options{})
	must(t, err)
	must(t, report.Err())
	must(t, w.store.Close(limit(t)))
	points := h.points()
	fmt.Fprintf(os.Stdout, "linear: long history: operations=%d unknown=%d points=%d\n", len(h.answers)+len(h.open), len(h.open), len(points))
	for _, fault := range disorder(points) {
		t.Error(fault)
	}
	if len(points) < int(tries) {
		t.Errorf("got %d points of %d attempts", len(points), tries)
	}
}

// onceInLong is once without what ends other clients' operations, and without reads
// of whole logs.
func (c *client) onceInLong(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	if c.random.IntN(200) == 0 {
		ctx, cancel = context.WithTimeout(ctx, time.Duration(c.random.Int64N(int64(2*time.Millisecond))))
	}
	defer cancel()
	switch n := c.random.IntN(20); {
	case n < 2:
		called := c.tick()
		p := messages.PartitionOf(c.workspace(), partitions)
		if r, err := c.store.Register(ctx, p); err == nil {
			c.answered(c.process, called, readRegister{p}, answer{plog: r.Last})
		}
	case n < 16:
		c.write(ctx, c.newAppend(), c.append)
	case n < 18:
		c.write(ctx, c.newCommand(), c.command)
	default:
		c.write(ctx, c.newWrite("Transaction"), c.transaction)
	}
}

// points are what the answers of a history say of each line.
func (h *history) points() []point {
	var all []point
	for _, o := range h.answers {
		a := o.Output.(*answer)
		plog := fmt.Sprintf("partition %d", o.Input.(operation).partition())
		w, isWrite := o.Input.(*write)
		switch {
		case !isWrite:
			all = append(all, seen(plog, uint64(a.plog), o.Call, o.Return))
		case a.outcome == unexpected:
			all = append(all, seen(fmt.Sprintf("workspace %d", w.workspace), uint64(a.wlog), o.Call, o.Return))
		case a.outcome == ahead && len(w.drafts) == 1:
			before := a.last - messages.Number(w.drafts[0].invoices)
			all = append(all, seen(fmt.Sprintf("workspace %d, sequence %d", w.workspace, seqInvoice), uint64(before), o.Call, o.Return))
		case a.outcome == done && !a.repeated:
			all = append(all, w.points(plog, a, o.Call, o.Return)...)
		}
	}
	return slices.Clip(all)
}

func (w *write) points(plog string, a *answer, call, ret int64) []point {
	wlog := fmt.Sprintf("workspace %d", w.workspace)
	var all []point
	for i := range w.drafts {
		all = append(all, event(plog, uint64(a.plog)+uint64(i), call, ret), event(wlog, uint64(a.wlog)+uint64(i), call, ret))
	}
	for _, n := range a.numbers {
		all = append(all, event(fmt.Sprintf("%s, sequence %d", wlog, n.Seq), uint64(n.Number), call, ret))
	}
	return all
}
