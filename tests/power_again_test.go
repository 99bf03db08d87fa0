package tests

import (
	"fmt"
	"os"
	"testing"
)

// againAcks is after how many acknowledgements a child stops that is only to recover.
const againAcks = 3

// TestPowerLossAgain cuts the power of a child under load somewhere, and lets another one go on with the
// image: its recovery is recorded, and cut in turn.
func TestPowerLossAgain(t *testing.T) {
	t.Parallel()
	p := newPower(t)
	p.images = max(10, p.images/2)
	withWAL := 0
	for i := uint64(0); p.checked < p.images; i++ {
		if i%5 == 0 {
			p.begin(t) // its log is read whole for each image
		}
		p.lose(t, 4*i)
		if hasFile(t, p.dir, "log.wal") {
			withWAL++
		}
		if i%3 == 1 && hasFile(t, p.dir, "state.db") {
			p.deleteState(t)
		}
		told := p.ledger.clone()
		h := p.record(t, p.again(4*i+2+i%2), nil)
		p.check(t, blow{name: "again"}, true)
		p.cut(t, h, h.Places, told, 10)
	}
	p.report(t, fmt.Sprintf("of=recovery with-wal=%d", withWAL))
	if withWAL == 0 && !testing.Short() {
		t.Error("no image had a log.wal to recover from")
	}
}

// lose records a child under load, and goes on with what a loss of power in its midst leaves.
func (p *power) lose(t *testing.T, n uint64) {
	t.Helper()
	config := p.load(p.seed<<16 | n)
	config.StopAfter = int64(50 + p.random.IntN(recordedAcks))
	if n%8 == 0 {
		config.Settings = often
	}
	told := p.ledger.clone()
	h := p.record(t, config, nil)
	moment, places := h.Begin(), len(h.Places)
	place := h.Places[places/5+p.random.IntN(places*7/10)]
	moment.Advance(place)
	told.readUntil(h.Lines, place)
	dir := scratch(t)
	must(moment.Write(dir, p.random))(t)
	check(t, os.RemoveAll(p.dir))
	p.dir, p.ledger = dir, told
}

// again is the load of a child that soon stops.
func (p *power) again(n uint64) childConfig {
	config := p.load(p.seed<<16 | n)
	config.StopAfter = againAcks
	if n%2 == 1 {
		config.Settings = often
	}
	return config
}

// TestPowerLossAfterFailedSync lets a sync of a child fail, opens the store again, and cuts the
// power then: what the sync was about is seen by whoever opens the store, and may still be lost.
func TestPowerLossAfterFailedSync(t *testing.T) {
	t.Parallel()
	p := newPower(t)
	p.images = max(20, p.images/2)
	rounds, open := 0, 0
	for i := uint64(0); p.checked < p.images; i++ {
		if i > uint64(p.images) {
			t.Fatalf("in %d of %d rounds a failed sync left anything that could be lost", rounds, i)
		}
		if i%5 == 0 {
			p.begin(t)
			p.dir = scratch(t)
		}
		if i%10 == 5 { // else the store is new
			p.strike(t, blow{name: "before", phase: "never", config: func(c *childConfig) { c.StopAfter = recordedAcks }}, p.seed<<16|4*i)
		}
		if left := p.failSync(t, 4*i+1); left > 0 {
			rounds++
			open += left
		}
	}
	p.report(t, fmt.Sprintf("of=failed-syncs rounds=%d doomed=%d", rounds, open))
}

// failSync lets a sync of a child fail, and cuts the next child's recovery. It returns how many writes
// could be lost at its beginning.
func (p *power) failSync(t *testing.T, n uint64) (left int) {
	t.Helper()
	config := p.load(p.seed<<16 | n)
	config.Suffers = true
	config.StopAfter = recordedAcks
	// strace counts the calls of each thread by itself.
	failed := p.record(t, config, []string{"-e", fmt.Sprintf("inject=fdatasync:error=EIO:when=%d", 1+p.random.IntN(14))})
	told := p.ledger.clone()
	h := must(failed.Next(p.trace(t, p.again(n+1+n/4%2), nil)))(t)
	p.check(t, blow{name: "after a failed sync"}, true)
	moment := h.Begin()
	moment.Advance(0)
	if left = moment.Losable(); left > 0 {
		// Later on what could be lost is overwritten.
		p.cut(t, h, h.Places[:min(160, len(h.Places))], told, 20)
	}
	return left
}
