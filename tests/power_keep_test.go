package tests

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/partita-go/partita/tests/internal/powerloss"
)

// TestPowerLossOfWhoKeepsSubscriptions lets a sync of a child fail, and opens what it has left only to be read, but
// for the subscriptions. From when positions may be stored on, a loss of power takes nothing of what was seen:
// it is the meta pages of log.db that say what that is.
func TestPowerLossOfWhoKeepsSubscriptions(t *testing.T) {
	p := newPower(t)
	doomed, wanted := 0, max(3, p.images/20)
	for n := uint64(0); doomed < wanted; n++ {
		if n > 30*uint64(wanted) {
			t.Fatalf("in %d of %d rounds a failed sync left anything that could be lost, want %d", doomed, n, wanted)
		}
		p.begin(t)
		p.dir = scratch(t)
		config := p.load(p.seed<<16 | n)
		config.Suffers, config.StopAfter = true, recordedAcks
		// strace counts the calls of each thread by itself.
		failed := p.record(t, config, []string{"-e", fmt.Sprintf("inject=fdatasync:error=EIO:when=%d", 1+p.random.IntN(14))})
		if !hasFile(t, p.dir, "log.db") || !hasFile(t, p.dir, "state.db") {
			continue // it was being made
		}
		want := p.metaPages(t, p.dir)
		h := must(failed.Next(p.trace(t, childConfig{Dir: p.dir, Keeps: true}, nil)))(t)
		moment := h.Begin()
		if moment.Advance(0); p.mayLose(t, moment, want) {
			doomed++
		}
		if moment.Advance(whenKept(t, h)); p.mayLose(t, moment, want) {
			t.Fatalf("round %d, CRASH_SEED=%d: log.db may be another one after a loss of power", n, p.seed)
		}
	}
	t.Logf("keepers: doomed=%d lost=0", doomed)
}

// whenKept returns the place at which the child has said that a position is durable.
func whenKept(t *testing.T, h *powerloss.History) int {
	t.Helper()
	i := slices.IndexFunc(h.Lines, func(l powerloss.Line) bool { return bytes.Contains(l.Text, []byte(kept)) })
	if i < 0 {
		t.Fatal("the child has kept nothing")
	}
	return h.Lines[i].Place
}

// mayLose reports whether one of some images of a moment has other meta pages.
func (p *power) mayLose(t *testing.T, moment *powerloss.Moment, want []byte) bool {
	t.Helper()
	const images = 8
	for range images {
		dir := scratch(t)
		must(moment.Write(dir, p.random))(t)
		if !bytes.Equal(p.metaPages(t, dir), want) {
			return true
		}
	}
	return false
}

// metaPages are the first two pages of log.db.
func (p *power) metaPages(t *testing.T, dir string) []byte {
	t.Helper()
	f := must(os.Open(filepath.Join(dir, "log.db")))(t)
	pages := make([]byte, 2*os.Getpagesize())
	_, err := io.ReadFull(f, pages)
	check(t, err)
	check(t, f.Close())
	return pages
}
