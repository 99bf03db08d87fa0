package tests

import (
	"bytes"
	"fmt"
	"slices"
	"testing"

	"github.com/partita-go/partita/tests/internal/powerloss"
)

// TestPowerLossOfWhatIsLeft lets a child keep a subscription of what a kill has left. When that is durable, nothing
// that it has written may be lost.
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
		{"log.db", "pwrite64", "ENOSPC", false}, {"log.db", "pwrite64", "ENOSPC", true},
	} {
		seed := uint64(1000 + 100*n)
		c.leaveWAL(t, seed)
		if phases := c.sufferAtOpen(t, fault, seed); !slices.Contains(phases, "opened") && !slices.Contains(phases, kept) {
			t.Errorf("%+v: got phases %q, want that the store opens", fault, phases)
		}
		c.check(t, blow{name: "again"}, true)
	}
}

// vouchFault is how the first of a kind of call on a file fails, of whoever opens the store to write it, or
// to keep a subscription.
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
