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
// for the subscriptions. Once a change of one is durable, a loss of power takes nothing of what was seen: it is the
// meta pages of log.db that say what that is.
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
		check(t, os.RemoveAll(p.dir))
	}
	t.Logf("keepers: doomed=%d lost=0", doomed)
}

// TestPowerLossOfWhatIsLeft lets a child keep a subscription of what a kill has left. When that is durable, nothing
// that it has written, log.wal among it, may be lost.
func TestPowerLossOfWhatIsLeft(t *testing.T) {
	p := newPower(t)
	p.begin(t)
	p.leaveWAL(t, p.seed<<16)
	h := p.record(t, childConfig{Dir: p.dir, Keeps: true}, nil)
	moment := h.Begin()
	moment.Advance(whenKept(t, h))
	if n := moment.Losable(); n > 0 {
		t.Errorf("%d writes may be lost, CRASH_SEED=%d", n, p.seed)
	}
}

// TestOpenVouchesOrFails lets the writes and syncs fail by which a child makes sure that what a kill has left is on the disk:
// nothing is given out, and no position kept, before it is.
func TestOpenVouchesOrFails(t *testing.T) {
	needStrace(t)
	c := newCrash(t)
	for n, fault := range []vouchFault{
		{"log.db", "pwrite64", "EIO", false}, {"log.db", "fsync", "EIO", false},
		{"log.db", "pwrite64", "EIO", true}, {"log.db", "fsync", "EIO", true},
		{walFile, "pwrite64", "EIO", true}, {walFile, "fsync", "EIO", true},
	} {
		c.leaveWAL(t, 100*uint64(n))
		before := c.contents(t)
		if phases := c.sufferAtOpen(t, fault, 100*uint64(n)); !slices.Equal(phases, []string{"opening", "has suffered"}) {
			t.Errorf("%+v: got phases %q, want that it fails as it opens", fault, phases)
		}
		if !slices.Equal(before, c.contents(t)) {
			t.Errorf("%+v: the files were changed", fault)
		}
		c.check(t, blow{name: "again"}, true)
	}
}

// TestOpenWithoutRoomToVouch lets a file system have no room to write what is there already, as some need it.
func TestOpenWithoutRoomToVouch(t *testing.T) {
	needStrace(t)
	c := newCrash(t)
	for n, fault := range []vouchFault{
		{"log.db", "pwrite64", "ENOSPC", false}, {"log.db", "pwrite64", "ENOSPC", true}, {walFile, "pwrite64", "ENOSPC", true},
	} {
		seed := uint64(1000 + 100*n)
		c.leaveWAL(t, seed)
		if phases := c.sufferAtOpen(t, fault, seed); !slices.Contains(phases, "opened") && !slices.Contains(phases, kept) {
			t.Errorf("%+v: got phases %q, want that the store opens", fault, phases)
		}
		c.check(t, blow{name: "again"}, true)
	}
}

// vouchFault is how the first of a kind of call on a file fails, of who opens the store to write it, or
// to keep subscriptions.
type vouchFault struct {
	file, call, errno string
	keeps             bool
}

// sufferAtOpen lets a child suffer from a fault, and returns its phases.
func (c *crash) sufferAtOpen(t *testing.T, fault vouchFault, seed uint64) (phases []string) {
	t.Helper()
	config := c.load(seed)
	config.Suffers, config.StopAfter, config.Keeps = true, 1, fault.keeps
	before := len(c.phases)
	b := blow{name: fmt.Sprintf("%+v", fault), phase: "never"}
	if c.watchFailing(t, config, b, fault.file, fmt.Sprintf("%s:error=%s:when=1", fault.call, fault.errno)) == 0 {
		t.Errorf("%+v: no call failed", fault)
	}
	return c.phases[before:]
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
		got := p.metaPages(t, dir)
		check(t, os.RemoveAll(dir))
		if !bytes.Equal(got, want) {
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
