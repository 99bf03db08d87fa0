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
	t.Parallel()
	p := newPower(t)
	rounds := setting("CALL_FAULTS", unlessShort(2*len(callFaults)))
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

// TestUnreadableFiles lets the reads fail by which a child that opens what a kill has left looks at
// its files. It is told so and has changed nothing, or it does not need what it could not read:
// bbolt finds out a file's page size by whichever meta page there is.
func TestUnreadableFiles(t *testing.T) {
	t.Parallel()
	needStrace(t)
	c := newCrash(t)
	injected, refused := make(map[string]int), make(map[string]int)
	for n := range 4 * len(allFiles) {
		seed := 100 * uint64(n)
		c.leaveWAL(t, seed)
		file, call, when := allFiles[n%len(allFiles)], "pread64", 1+n/len(allFiles)
		if file == walFile {
			call, when = "read", 1+(when-1)%2 // it is read with two calls: all of it, and its end
		}
		config := c.load(seed)
		config.Suffers, config.StopAfter = true, 1
		before := c.contents(t)
		injected[file] += c.watchFailing(t, config, blow{name: "an unreadable " + file, phase: "never"}, file, fmt.Sprintf("%s:error=EIO:when=%d", call, when))
		if c.phases[len(c.phases)-2] == "opening" {
			refused[file]++
			if !slices.Equal(before, c.contents(t)) {
				t.Errorf("%s, read %d: the files were changed", file, when)
			}
		}
		c.check(t, blow{name: "readable again"}, true)
	}
	t.Logf("unreadable: injected=%v refused=%v lost=0", injected, refused)
	for _, file := range allFiles {
		if refused[file] == 0 {
			t.Errorf("%s: no read that failed was told", file)
		}
	}
	if injected[walFile] != refused[walFile] {
		t.Errorf("%s: %d reads failed, %d were told", walFile, injected[walFile], refused[walFile])
	}
}

// watchFailing watches a child whose calls on a file fail as a fault says, in the words of strace, and returns how many
// have.
func (c *crash) watchFailing(t *testing.T, config childConfig, b blow, file, fault string) (injected int) {
	t.Helper()
	trace := filepath.Join(scratch(t), "trace")
	call, _, _ := strings.Cut(fault, ":")
	flags := []string{"-f", "-o", trace, "-P", c.path(file), "-e", "trace=" + call, "-e", "inject=" + fault}
	c.watch(t, under(t, c.command(t, config), flags), b)
	return strings.Count(string(must(os.ReadFile(trace))(t)), "(INJECTED)")
}

// leaveWAL kills a child so that log.wal has what log.db has not. What children do must differ:
// their seeds are behind the one given.
func (c *crash) leaveWAL(t *testing.T, seed uint64) {
	t.Helper()
	for range 20 { // what is appended is soon brought to log.db
		seed++
		c.strike(t, blow{name: "load", phase: "ready", acks: 50}, seed)
		if !hasFile(t, c.dir, walFile) {
			continue
		}
		if _, pending := c.applied(t); pending > 0 {
			return
		}
	}
	t.Fatal("log.db had everything each time")
}
