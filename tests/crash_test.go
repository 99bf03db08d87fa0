package tests

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/partition"
	"github.com/partita-go/partita/storage"
	"github.com/partita-go/partita/storage/bolt"
	"github.com/partita-go/partita/tests/internal/powerloss"
)

// The load of the crash tests.
const (
	crashPartitions = 16
	crashWorkspaces = 400
)

// setting returns a number out of the environment: longer versions of tests.
func setting(name string, fallback int) int {
	if n, err := strconv.Atoi(os.Getenv(name)); err == nil && n > 0 {
		return n
	}
	return fallback
}

// unlessShort is n, and a third of it with -short: what must be hit by chance may not be then.
func unlessShort(n int) int {
	if testing.Short() {
		return (n + 2) / 3
	}
	return n
}

// blow is when a child is killed: after it has entered a phase, then after some
// acknowledgements, then after some time.
type blow struct {
	name  string
	phase string
	acks  int
	// during must be under way then, if it is set.
	during moment
	after  time.Duration
	// hold, if it is set, is closed when the child may be killed, which waits for nothing else when dealt is called.
	hold  <-chan struct{}
	dealt func()
	// betweenRanges says that the child is killed when a flush is seen between its transactions.
	betweenRanges bool
	// paused is called when the child waits behind the phase pause, if it is set.
	pause  string
	paused func()
	// before prepares the site; config changes what the child does.
	before func(t testing.TB, s *site)
	config func(c *childConfig)
}

// often are settings under which checkpoints move all the time.
var often = partition.Settings{FlushThreshold: 5, FlushInterval: time.Millisecond, CatchUpCheckpoint: time.Millisecond}

// blows returns the kinds of blows, with random moments.
func blows(random *rand.Rand) []blow {
	// Any order of magnitude is as likely as another: what a phase takes depends on
	// the machine and on the race detector.
	soon := func() time.Duration {
		return time.Duration(20*math.Pow(1000, random.Float64())) * time.Microsecond
	}
	deleteState := func(t testing.TB, s *site) { s.deleteState(t) }
	return []blow{
		{name: "load, default settings", phase: "ready", acks: 1 + random.IntN(2000)},
		{name: "load, flushing often", phase: "ready", acks: 1 + random.IntN(1500), after: soon(),
			config: func(c *childConfig) { c.Settings = often }},
		{name: "flush", phase: "ready", acks: 1 + random.IntN(1000), during: "flush", after: soon() / 20},
		{name: "flush in many transactions", phase: "ready", acks: 1 + random.IntN(500), betweenRanges: true,
			config: func(c *childConfig) { c.Memory = littleMemory }},
		{name: "start", phase: "opening", after: soon() / 10},
		{name: "load, never flushing", phase: "ready", acks: 1 + random.IntN(1500),
			config: func(c *childConfig) { c.Settings = unflushed }},
		{name: "recovery", phase: "opened", after: soon(), config: func(c *childConfig) { c.Settings = often }},
		{name: "rebuild", phase: "rebuild", after: soon(), before: deleteState},
		{name: "start of a rebuild", phase: "opening", after: soon(), before: deleteState},
		{name: "projecting while opening", phase: "opening", after: soon(),
			config: func(c *childConfig) { c.TailEvents = 20 }},
		{name: "stop", phase: "stopping", after: soon(), config: func(c *childConfig) { c.StopAfter = 300 }},
		{name: "a handler's call", phase: "ready", acks: 1 + random.IntN(1000), during: "delivery"},
		{name: "storing of a position", phase: "ready", acks: 1 + random.IntN(1000), during: "storing", after: soon() / 50},
		{name: "pause or rewind", phase: "ready", acks: 1 + random.IntN(1000), during: "pause", after: soon() / 50},
	}
}

// TestCrash kills child processes at random moments. What they had acknowledged by
// then is there, nothing else is wrong, and the next child goes on. It ends when
// each kind of moment was hit.
func TestCrash(t *testing.T) {
	kills := setting("CRASH_KILLS", unlessShort(18))
	seed := uint64(setting("CRASH_SEED", int(time.Now().UnixNano()%1_000_000)))
	t.Logf("CRASH_SEED=%d CRASH_KILLS=%d", seed, kills)
	random := rand.New(rand.NewPCG(seed, 0))
	var tally crashTally
	var c *crash
	for n := 0; tally.kills < kills || !testing.Short() && tally.missing() != ""; n++ {
		if n > 4*kills+100 {
			t.Fatalf("after %d blows: %d of %d kills, never hit: %s", n, tally.kills, kills, tally.missing())
		}
		if n%10 == 0 {
			// The log is read whole after each blow: it must not grow for ever.
			c = newCrash(t)
			c.ledger.readers = &tally.readers
			if n/10%2 == 1 {
				c.prefill(t) // so that a rebuild takes a while
			}
		}
		all := blows(random)
		b := all[n%len(all)]
		before := len(c.acked)
		if killed := c.strike(t, b, seed+uint64(n)); killed {
			tally.hit(c.moment(b.during))
			tally.cutOff += c.cutOff(t)
		}
		tally.acked += len(c.acked) - before
		tally.repeats += c.examine(t, b, afterwards(random.IntN(3)))
		if t.Failed() {
			t.Fatalf("after blow %d: %s", n, b.name)
		}
	}
	t.Log(tally.String())
	t.Logf("subscriptions: kills=%d %v", tally.kills, &tally.readers)
}

// crashTally counts what TestCrash did.
type crashTally struct {
	kills, acked, repeats int
	// cutOff is how many kills fell between the transactions of a flush.
	cutOff  int
	hits    map[moment]int
	readers readersTally
}

func (c *crashTally) hit(m moment) {
	if c.hits == nil {
		c.hits = make(map[moment]int)
	}
	c.hits[m]++
	c.kills++
}

// missing names a moment that was never hit.
func (c *crashTally) missing() moment {
	for _, m := range moments {
		if c.hits[m] == 0 {
			return m
		}
	}
	if c.cutOff == 0 {
		return "between the transactions of a flush"
	}
	return ""
}

func (c *crashTally) String() string {
	line := fmt.Sprintf("crash: kills=%d", c.kills)
	for _, m := range moments {
		line += fmt.Sprintf(" %s=%d", m, c.hits[m])
	}
	return line + fmt.Sprintf(" cut-off=%d acked=%d repeats=%d lost=0", c.cutOff, c.acked, c.repeats)
}

// moment is what a child was doing when it was killed.
type moment string

var moments = []moment{"start", "recovery", "rebuild", "load", "flush", "stop", "delivery", "storing", "pause"}

// underWay reports whether something that is journaled goes on.
func (l *ledger) underWay(m moment) bool {
	return map[moment]int{"flush": l.flushing, "delivery": l.delivering, "storing": l.storing, "pause": l.holding}[m] > 0
}

// moment returns what the last child was doing, as far as its journal tells; if it was doing
// several things, the one that it was to be killed in.
func (l *ledger) moment(during moment) moment {
	switch last := l.phases[len(l.phases)-1]; {
	case last == "opening":
		return "start"
	case last == "rebuild":
		return "rebuild"
	case last == "ready" && l.underWay(during):
		return during
	case last == "ready" && l.underWay("flush"):
		return "flush"
	case last == "ready":
		return "load"
	case last == "stopping":
		return "stop"
	}
	return "recovery"
}

// afterwards is what becomes of a site after it was checked.
type afterwards int

const (
	// staysKilled: a copy is checked, and the next child finds what the last one left.
	staysKilled afterwards = iota
	// stopsDirty: it is recovered, and not flushed.
	stopsDirty
	// stopsClean: it is recovered and flushed.
	stopsClean
)

// examine checks what a child has left, as it is and recovered. It returns how many
// appends were repeated.
func (c *crash) examine(t *testing.T, b blow, then afterwards) int {
	t.Helper()
	verifyFiles(t, c.dir)
	checked := c
	switch then {
	case staysKilled:
		checked = &crash{site: c.at(scratch(t)), ledger: c.ledger.clone()}
		check(t, powerloss.Copy(c.dir, checked.dir))
		defer func() { check(t, os.RemoveAll(checked.dir)) }()
	case stopsDirty, stopsClean:
	}
	before := checked.asked
	checked.check(t, b, then == stopsClean)
	verifyFiles(t, checked.dir)
	return checked.asked - before
}

// crash is one directory and what its children have promised.
type crash struct {
	*site
	*ledger
	// rebuildable says that the log has events: state.db can be deleted, and is rebuilt then.
	rebuildable bool
}

// strike lets a child run until the blow, and reports whether it hit it alive.
func (c *crash) strike(t *testing.T, b blow, seed uint64) bool {
	t.Helper()
	if b.before != nil && c.rebuildable {
		b.before(t, c.site)
	} else if b.before != nil {
		b.phase = "opening" // nothing is rebuilt, and the child would wait for it for ever
	}
	config := c.load(seed)
	if b.config != nil {
		b.config(&config)
	}
	if b.betweenRanges {
		defer c.lookOut(t, &b)()
	}
	alive := c.watch(t, c.command(t, config), b)
	c.rebuildable = c.rebuildable || len(c.acked) > 0
	return alive
}

// load is what children do: everybody who can write an event does.
func (c *crash) load(seed uint64) childConfig {
	return childConfig{
		Dir: c.dir, Partitions: crashPartitions, Workspaces: crashWorkspaces, Seed: seed,
		Clients: 24, Processors: 8, Appenders: 16, Drafters: 4, Subscribes: true,
	}
}

func newCrash(t testing.TB) *crash {
	t.Helper()
	c := &crash{site: newSite(t, crashPartitions, partition.Settings{}), ledger: newLedger()}
	c.dir = onDisk(t)
	return c
}

// prefill writes a log that takes a while to read.
func (c *crash) prefill(t testing.TB) {
	t.Helper()
	store := openBolt(t, c.dir, c.app.Descriptor, wideTail)
	newHistory(t, store, crashWorkspaces).write(t, 10_000)
	check(t, store.Close(limit(t)))
	c.rebuildable = true
}

func (c *crash) command(t *testing.T, config childConfig) *exec.Cmd {
	t.Helper()
	cmd := exec.CommandContext(limit(t), must(os.Executable())(t))
	cmd.Env = append(os.Environ(), childEnv+"="+string(must(json.Marshal(config))(t)))
	cmd.Stderr = &bytes.Buffer{}
	return cmd
}

// watch reads the child's journal to its end and deals the blow on the way.
func (c *crash) watch(t *testing.T, cmd *exec.Cmd, b blow) (alive bool) {
	t.Helper()
	reader, writer, err := os.Pipe()
	check(t, err)
	defer func() { _ = reader.Close() }()
	cmd.ExtraFiles = []*os.File{writer}
	check(t, cmd.Start())
	check(t, writer.Close())
	before := len(c.acked)
	inPhase, dealt := false, false
	lines := bufio.NewReader(reader)
	for {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			break // the child has ended; a line without an end was never written
		}
		e := c.read(line)
		inPhase = inPhase || e.Phase == b.phase
		if b.paused != nil && e.Phase == b.pause {
			b.paused()
		}
		if inPhase && !dealt && len(c.acked)-before >= b.acks && (b.during == "" || c.underWay(b.during)) {
			dealt = true
			defer b.deal(cmd.Process)()
		}
	}
	return c.ended(t, cmd, b, len(c.acked)-before)
}

// deal kills a process when all that the blow waits for has come. It returns what gives that up.
func (b *blow) deal(child *os.Process) (stop func()) {
	kill := func() { _ = child.Kill() }
	if b.hold == nil {
		timer := time.AfterFunc(b.after, kill)
		return func() { timer.Stop() }
	}
	b.dealt()
	given := make(chan struct{})
	go func() {
		select {
		case <-b.hold:
			kill()
		case <-given:
		}
	}()
	return func() { close(given) }
}

// straceNotes are what strace says of itself, as when somebody stops and continues it
// while it begins. Whether it has recorded anything its record tells.
var straceNotes = regexp.MustCompile(`(?m)^strace: .*\n`)

// ended checks how the child ended: killed, or by itself and well.
func (c *crash) ended(t *testing.T, cmd *exec.Cmd, b blow, acks int) (killed bool) {
	t.Helper()
	err := cmd.Wait()
	killed = err != nil && cmd.ProcessState.ExitCode() == -1
	t.Logf("%-24s killed %5v in %-8s after %4d acknowledgements, %d appends unanswered", b.name, killed, c.moment(b.during), acks, len(c.open))
	stderr := straceNotes.ReplaceAllString(cmd.Stderr.(*bytes.Buffer).String(), "")
	if stderr != "" || err != nil && !killed {
		t.Errorf("child: %v\n%s", err, stderr)
	}
	return killed
}

// check opens what the child has left, and compares. It leaves the site clean, or
// as a crash would.
func (c *crash) check(t *testing.T, b blow, clean bool) {
	t.Helper()
	began := time.Now()
	d := c.run(t)
	tx := d.open(t, messages.WSID(began.UnixNano()))
	t.Logf("%-24s first Start granted after %v, %d events replayed", "", time.Since(began).Round(time.Millisecond), d.replayed())
	check(t, tx.Cancel(limit(t)))
	c.resolve(t, d)
	c.compare(t, d.store)
	c.deliverAll(t, d)
	if clean {
		d.stop(t)
	} else {
		d.crash(t)
		c.look(t, nil)
	}
}

// TestCleanChild lets a child stop by itself: nothing is replayed then.
func TestCleanChild(t *testing.T) {
	c := newCrash(t)
	alive := c.strike(t, blow{phase: "never", config: func(c *childConfig) { c.StopAfter = 300 }}, 1)
	if alive || !slices.Contains(c.phases, "stopped") {
		t.Fatalf("got phases %v, want a clean stop", c.phases)
	}
	d := c.run(t)
	if n := d.replayed(); n != 0 {
		t.Errorf("got %d events replayed after a clean stop, want 0", n)
	}
	c.resolve(t, d)
	c.compare(t, d.store)
	d.stop(t)
}

// TestLockedByChild opens a store that a living process has: it is refused, and
// works as soon as that process is dead.
func TestLockedByChild(t *testing.T) {
	c := &crash{site: newSite(t, 2, partition.Settings{}), ledger: newLedger()}
	config := childConfig{Dir: c.dir, Partitions: 2, Workspaces: 10, Clients: 2}
	cmd := c.command(t, config)
	reader, writer, err := os.Pipe()
	check(t, err)
	defer func() { _ = reader.Close() }()
	cmd.ExtraFiles = []*os.File{writer}
	check(t, cmd.Start())
	check(t, writer.Close())
	lines := bufio.NewReader(reader)
	for e := (entry{}); e.Phase != "ready"; {
		line, err := lines.ReadBytes('\n')
		check(t, err)
		e = c.read(line)
	}
	_, err = bolt.Open(context.Background(), c.dir, shop(2), bolt.Options{LockTimeout: 20 * time.Millisecond})
	wantError(t, err, storage.ErrLocked)
	if !strings.Contains(err.Error(), "in use by another process") {
		t.Errorf("got %v, want whose it is", err)
	}
	check(t, cmd.Process.Kill())
	_ = cmd.Wait()
	d := c.run(t)
	d.stop(t)
}
