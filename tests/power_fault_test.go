package tests

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// callFaults are how system calls on the store's files fail.
var callFaults = []struct{ call, errno string }{
	{"fdatasync", "EIO"},
	{"pwrite64", "EIO"},
	{"pwrite64", "ENOSPC"},
	{"ftruncate", "ENOSPC"},
	{"fdatasync", "ENOSPC"},
	{"fsync", "EIO"},
}

// TestFailingCalls lets system calls of child processes fail, by strace. A child is told
// that the outcome is unknown, or that there is no space; what it was promised is there
// when the store is opened again, also in images of what a loss of power leaves then. A
// sync that has failed vouches for nothing, nor does any sync of that file after it.
func TestFailingCalls(t *testing.T) {
	p := newPower(t)
	rounds := setting("CALL_FAULTS", 2*len(callFaults))
	injected := make(map[string]int)
	for n := range rounds {
		fault := callFaults[n%len(callFaults)]
		if n%30 == 0 {
			p.begin(t) // its log is read whole after each round
			p.dir = scratch(t)
		}
		if p.rebuildable && p.random.IntN(2) == 0 {
			p.tighten(t)
		}
		name := fault.call + "-" + fault.errno
		injected[name] += p.suffer(t, name, fault.call, fault.errno, uint64(n))
		if t.Failed() {
			t.Fatalf("in round %d: %s", n, name)
		}
	}
	line := fmt.Sprintf("faults: rounds=%d images=%d acked-checks=%d positions=%d", rounds, p.checked, p.ackedChecked, p.positions)
	for _, fault := range callFaults {
		name := fault.call + "-" + fault.errno
		line += fmt.Sprintf(" %s=%d", name, injected[name])
		if injected[name] == 0 && rounds >= 10*len(callFaults) {
			t.Errorf("%s was never injected", name)
		}
	}
	t.Log(line + " lost=0")
}

// suffer lets one kind of call fail at some moment of a child's life, and returns how many
// have.
func (p *power) suffer(t *testing.T, name, call, errno string, n uint64) int {
	t.Helper()
	config := p.load(p.seed<<16 | n)
	config.Suffers = true
	config.StopAfter = recordedAcks
	if n%2 == 0 {
		config.Settings = often
	}
	// strace counts the calls of each thread by itself.
	when := 1 + p.random.IntN(30)
	if call == "ftruncate" || call == "fsync" {
		when = 1 + p.random.IntN(2)
	}
	told := p.ledger.clone()
	inject := []string{"-e", fmt.Sprintf("inject=%s:error=%s:when=%d", call, errno, when)}
	h := p.record(t, config, inject)
	p.check(t, blow{name: name}, n%2 == 0)
	p.rebuildable = true
	verifyFiles(t, p.dir)
	p.cut(t, h, h.Places, told, 3)
	return h.Injected
}

// TestUnreadableFiles lets the reads fail by which a child that opens the store looks at
// its files. It is told so and has changed nothing, or it does not need what it could not read:
// bbolt finds out a file's page size by whichever meta page there is.
func TestUnreadableFiles(t *testing.T) {
	needStrace(t)
	c := newCrash(t)
	d := c.run(t)
	d.invoice(t, 7, 1)
	d.stop(t)
	trace := filepath.Join(scratch(t), "trace")
	injected, refused := 0, 0
	for n := range 12 {
		file := storeFiles[n%len(storeFiles)]
		config := c.load(uint64(n))
		config.Suffers, config.StopAfter = true, 1
		inject := fmt.Sprintf("inject=pread64:error=EIO:when=%d", 1+n/len(storeFiles))
		flags := []string{"-f", "-o", trace, "-P", c.path(file), "-e", "trace=pread64", "-e", inject}
		before := c.contents(t)
		c.watch(t, under(t, c.command(t, config), flags), blow{name: "an unreadable " + file, phase: "never"})
		injected += strings.Count(string(must(os.ReadFile(trace))(t)), "(INJECTED)")
		if c.phases[len(c.phases)-2] == "opening" {
			refused++
			if !slices.Equal(before, c.contents(t)) {
				t.Errorf("%s, read %d: the files were changed", file, 1+n/len(storeFiles))
			}
		}
		c.check(t, blow{name: "readable again"}, true)
	}
	t.Logf("unreadable: injected=%d refused=%d lost=0", injected, refused)
	if refused == 0 {
		t.Error("no read that failed was told")
	}
}
