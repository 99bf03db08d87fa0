package tests

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage/bolt"
	"github.com/partita-go/partita/storage/verify"
	"github.com/partita-go/partita/tests/internal/powerloss"
)

// recordedAcks is after how many acknowledgements a recorded child stops.
const recordedAcks = 300

// scene is what a recorded child does.
type scene struct {
	name   string
	before func(t testing.TB, s *site)
	config func(c *childConfig)
}

// powerScenes go on from one another: each finds what the one before it has left.
var powerScenes = []scene{
	{name: "a new store, flushed often", config: func(c *childConfig) { c.Settings = often }},
	{name: "default settings"},
	{name: "state.db is rebuilt", before: func(t testing.TB, s *site) { s.deleteState(t) }},
	{name: "small tails", config: func(c *childConfig) { c.Settings, c.TailEvents = often, 40 }},
	{name: "a long log", before: func(t testing.TB, s *site) { s.lengthen(t) }},
	{name: "little memory", config: func(c *childConfig) { c.Memory = littleMemory }},
	{name: "files that grow", before: func(t testing.TB, s *site) { s.tighten(t) }},
}

// TestPowerLoss records the writes and the syncs of child processes under load, and checks
// images of the files that a loss of power could have left at any moment of them: each
// opens, verifies, and holds what was acknowledged by then. What it can show and what not,
// package powerloss says.
func TestPowerLoss(t *testing.T) {
	t.Parallel()
	p := newPower(t)
	each := max(12, p.images/40)
	for i := 0; p.checked < p.images || !testing.Short() && p.cutOffs == 0; i++ {
		if i > 10*len(powerScenes)+p.images {
			t.Fatalf("in %d images: none between the transactions of a flush", p.checked)
		}
		if i%(3*len(powerScenes)) == 0 {
			p.begin(t) // its log is read whole for each image
		}
		s := powerScenes[i%len(powerScenes)]
		p.play(t, s, uint64(i), each)
		if t.Failed() {
			t.Fatalf("in scene %d: %s", i, s.name)
		}
	}
	p.report(t, "of=load")
}

// lengthen makes the log so long that its store writes ahead of it.
func (s *site) lengthen(t testing.TB) {
	t.Helper()
	d := s.run(t)
	body := make([]byte, 256<<10)
	for ws := messages.WSID(0); must(os.Stat(s.path("log.db")))(t).Size() < 40<<20; ws++ {
		tx := d.open(t, 1_000_000+ws)
		check(t, tx.Commit(limit(t), body))
	}
	d.stop(t)
}

// power is a site whose children are recorded.
type power struct {
	*crash
	seed   uint64
	images int
	random *rand.Rand
	// Counts of what was checked.
	checked, losable, went, ackedChecked, generators int
	// cutOffs is how many images are of a moment between the transactions of a flush.
	cutOffs int
	readersTally
	losses map[powerloss.Loss]int
}

// begin begins with a new store.
func (p *power) begin(t *testing.T) {
	t.Helper()
	p.crash = newCrash(t)
	p.ledger.readers = &p.readersTally
}

func newPower(t *testing.T) *power {
	t.Helper()
	needStrace(t)
	seed := uint64(setting("CRASH_SEED", int(time.Now().UnixNano()%1_000_000)))
	p := &power{
		seed: seed, images: setting("POWER_IMAGES", unlessShort(60)), random: rand.New(rand.NewPCG(seed, 1)),
		losses: make(map[powerloss.Loss]int),
	}
	t.Logf("CRASH_SEED=%d POWER_IMAGES=%d", p.seed, p.images)
	return p
}

// needStrace skips the test where system calls cannot be recorded.
func needStrace(t testing.TB) {
	t.Helper()
	if out, err := exec.Command("strace", "-f", "--seccomp-bpf", "-o", os.DevNull, "true").CombinedOutput(); err != nil {
		t.Skipf("strace does not work here, which records the system calls (apt-get install strace): %v: %s", err, out)
	}
}

// play records a scene and checks images of it.
func (p *power) play(t *testing.T, s scene, n uint64, images int) {
	t.Helper()
	if s.before != nil {
		s.before(t, p.site)
	}
	config := p.load(p.seed<<8 | n)
	config.StopAfter, config.Generators = recordedAcks, 16
	if s.config != nil {
		s.config(&config)
	}
	told := p.ledger.clone()
	h := p.record(t, config, nil)
	p.check(t, blow{name: s.name}, true)
	p.cut(t, h, h.Places, told, images)
}

// record lets a child run to its end under strace, and returns what happened to the
// store's files.
func (p *power) record(t *testing.T, config childConfig, flags []string) *powerloss.History {
	t.Helper()
	before := scratch(t)
	check(t, powerloss.Copy(p.dir, before))
	h := must(powerloss.NewHistory(p.trace(t, config, flags), p.dir, before, journalFD))(t)
	check(t, os.RemoveAll(before))
	return h
}

// trace lets a child run to its end under strace, and returns its system calls.
func (p *power) trace(t *testing.T, config childConfig, flags []string) []powerloss.Call {
	t.Helper()
	dir := scratch(t)
	trace := filepath.Join(dir, "trace")
	if killed := p.watch(t, under(t, p.command(t, config), append(powerloss.Flags(trace), flags...)), blow{name: "recorded", phase: "never"}); killed {
		t.Fatal("the recorded child was killed")
	}
	f := must(os.Open(trace))(t)
	calls, err := powerloss.ReadTrace(f)
	check(t, f.Close())
	check(t, err)
	check(t, os.RemoveAll(dir))
	return calls
}

// under lets a command run under strace.
func under(t testing.TB, cmd *exec.Cmd, flags []string) *exec.Cmd {
	t.Helper()
	cmd.Args = append(append([]string{"strace"}, flags...), cmd.Path)
	cmd.Path = must(exec.LookPath("strace"))(t)
	return cmd
}

// cut checks images of a history, cut at random ones of some of its places, where something
// could be lost. Told is what was acknowledged before it.
func (p *power) cut(t *testing.T, h *powerloss.History, from []int, told *ledger, images int) {
	t.Helper()
	if len(from) == 0 {
		return // nothing was written
	}
	places := make([]int, 0, images)
	for range images {
		places = append(places, from[p.random.IntN(len(from))])
	}
	slices.Sort(places)
	moment, lines := h.Begin(), h.Lines
	for i, place := range places {
		moment.Advance(place)
		lines = told.readUntil(lines, place)
		dir := scratch(t)
		losses := must(moment.Write(dir, p.random))(t)
		for _, loss := range losses {
			p.losses[loss]++
		}
		if moment.Losable() > 0 {
			p.losable++
		}
		p.examineImage(t, dir, told.clone(), i%10 == 0)
		if t.Failed() {
			t.Fatalf("cut at place %d of %d, CRASH_SEED=%d: lost %v", place, h.Places[len(h.Places)-1], p.seed, losses)
		}
		check(t, os.RemoveAll(dir))
	}
}

// readUntil takes the lines that were written before a place, and returns the others.
func (l *ledger) readUntil(lines []powerloss.Line, place int) []powerloss.Line {
	for len(lines) > 0 && lines[0].Place < place {
		l.read(lines[0].Text)
		lines = lines[1:]
	}
	return lines
}

// examineImage checks an image: it opens, verifies, and holds what was promised. GoOn says
// that the application runs on it too.
func (p *power) examineImage(t *testing.T, dir string, told *ledger, goOn bool) {
	t.Helper()
	image := &crash{site: p.site.at(dir), ledger: told}
	p.cutOffs += image.cutOff(t)
	verifyFiles(t, dir)
	store := openBolt(t, dir, p.app.Descriptor, bolt.Options{})
	if told.generator > 0 {
		told.numbered(must(store.NextGenerator(limit(t), generatorLaunch))(t))
		p.generators++
	}
	image.compare(t, store)
	check(t, store.Close(limit(t)))
	verifyFiles(t, dir)
	p.checked++
	p.ackedChecked += len(told.acked)
	if goOn && !t.Failed() {
		image.check(t, blow{name: "an image"}, true)
		p.went++
	}
}

// verifyFiles does what `partita verify` does. Without log.db it is no store yet, without
// state.db one that the next start rebuilds.
func verifyFiles(t testing.TB, dir string) {
	t.Helper()
	if !hasFile(t, dir, "log.db") {
		return
	}
	report, err := bolt.Verify(limit(t), dir, verify.Options{})
	if err != nil {
		t.Errorf("verify: %v", err)
	}
	missing := !hasFile(t, dir, "state.db")
	for _, fault := range report.Faults {
		if !missing || fault.Check != verify.CheckMissing {
			t.Errorf("verify: %v", fault)
		}
	}
}

func hasFile(t testing.TB, dir, name string) bool {
	t.Helper()
	info, err := os.Stat(filepath.Join(dir, name))
	if err != nil && !os.IsNotExist(err) {
		t.Error(err)
	}
	return err == nil && info.Size() > 0
}

// report prints what was done, for people and for programs: of what, first.
func (p *power) report(t *testing.T, of string) {
	t.Helper()
	line := fmt.Sprintf("power: %s images=%d losable=%d cut-off=%d went-on=%d acked-checks=%d positions=%d generators=%d",
		of, p.checked, p.losable, p.cutOffs, p.went, p.ackedChecked, p.positions, p.generators)
	for loss := range powerloss.Losses {
		line += fmt.Sprintf(" %v=%d", loss, p.losses[loss])
	}
	t.Log(line + " lost=0")
	if p.losable*2 < p.checked {
		t.Errorf("in only %d of %d images could anything be lost", p.losable, p.checked)
	}
}
