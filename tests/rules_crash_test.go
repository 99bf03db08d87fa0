package tests

import (
	"bufio"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/partita-go/partita/actors/actorstest"
	"github.com/partita-go/partita/calendar"
	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/partition"
	"github.com/partita-go/partita/storage"
	"github.com/partita-go/partita/storage/bolt"
	"github.com/partita-go/partita/tests/internal/days"
)

// TestCrashRules kills processes whose clocks hurry through days, while workspaces move to other zones, sequences end and are
// moved. An event with a zone is there as a whole or not at all, and the days go on rightly behind it. A sequence that has
// ended refuses with an error that says so, consumes nothing, and does so still in the next process.
func TestCrashRules(t *testing.T) {
	kills := setting("CRASH_KILLS", unlessShort(18))/3 + 1
	seed := uint64(setting("CRASH_SEED", int(time.Now().UnixNano()%1_000_000)))
	t.Logf("CRASH_SEED=%d, %d kills", seed, kills)
	random := rand.New(rand.NewPCG(seed, 2))
	var tally rulesTally
	for n := 0; n < kills || tally.missing() != ""; n++ {
		if n > 4*kills+20 {
			t.Fatalf("after %d kills: never met: %s", n, tally.missing())
		}
		if n%8 == 0 { // the log is read whole each time
			tally.site = newRulesCrash(t)
		}
		c := tally.site
		c.app = rulesApp([]partition.Settings{{}, often, unflushed}[random.IntN(3)])
		c.killed(t, seed+uint64(n), 1+random.IntN(400))
		verifyFiles(t, c.dir)
		if random.IntN(3) == 0 {
			c.deleteState(t)
		}
		c.goOn(t, random, &tally)
		if t.Failed() {
			t.Fatalf("after kill %d", n)
		}
	}
	t.Logf("crash: rules: kills=%d events=%d days=%d zones=%d unanswered=%d ended=%d dates-refused=%d lost=0",
		kills, tally.events, tally.days, tally.zones, tally.unanswered, tally.ended, tally.dates)
}

// rulesTally counts what was met.
type rulesTally struct {
	site *rulesCrash
	// unanswered are events with a zone that nobody was told of; ended is how often a sequence had no number left.
	events, days, zones, unanswered, ended, dates int
}

func (r *rulesTally) missing() string {
	switch 0 {
	case r.days:
		return "a day begins"
	case r.zones:
		return "a workspace moves"
	case r.ended:
		return "a sequence has ended"
	case r.dates:
		return "a business date is refused"
	}
	return ""
}

// rulesCrash is one directory, and what its processes have said.
type rulesCrash struct {
	*site
	base    time.Time
	begun   map[string]*messages.Draft
	done    map[string]*messages.Appended
	refused map[string]*ruled
}

func newRulesCrash(t *testing.T) *rulesCrash {
	t.Helper()
	c := &rulesCrash{
		site: newSite(t, 2, partition.Settings{}), base: time.Date(2026, 3, 1, 20, 0, 0, 0, time.UTC),
		begun: make(map[string]*messages.Draft), done: make(map[string]*messages.Appended), refused: make(map[string]*ruled),
	}
	c.dir, c.app = onDisk(t), rulesApp(partition.Settings{})
	return c
}

// killed lets a process append, and kills it after so many answers.
func (c *rulesCrash) killed(t *testing.T, seed uint64, answers int) {
	t.Helper()
	child := exec.Command(must(filepath.Abs(os.Args[0]))(t))
	config := rulesChild{Dir: c.dir, Seed: seed, Base: c.base, Settings: c.app.Settings}
	child.Env = append(os.Environ(), rulesChildEnv+"="+string(must(json.Marshal(config))(t)))
	child.Stderr = os.Stderr
	out := must(child.StdoutPipe())(t)
	check(t, child.Start())
	lines := bufio.NewReader(out)
	for {
		line, err := lines.ReadBytes('\n')
		if err != nil { // what stands before the end of the file is not finished
			break
		}
		if c.read(t, line); answers > 0 && len(c.done)+len(c.refused) > 0 {
			if answers--; answers == 0 {
				check(t, child.Process.Kill())
			}
		}
	}
	if err := child.Wait(); err == nil || answers > 0 {
		t.Fatalf("the process has ended before it was killed: %v", err)
	}
}

func (c *rulesCrash) read(t *testing.T, line []byte) {
	t.Helper()
	var r ruled
	check(t, json.Unmarshal(line, &r))
	switch {
	case r.Begun != nil:
		c.begun[r.Body] = r.Begun
	case r.Done != nil:
		c.done[r.Body] = r.Done
	default:
		c.refused[r.Body] = &r
	}
}

// goOn checks what is there, and that all sequences go on from there, in a deployment that may be ended like that, too.
func (c *rulesCrash) goOn(t *testing.T, random *rand.Rand, tally *rulesTally) {
	t.Helper()
	store := openBolt(t, c.dir, c.app.Descriptor, bolt.Options{})
	for ws := range messages.WSID(rulesWorkspaces) {
		c.readLog(t, store, ws, tally)
	}
	check(t, store.Close(limit(t)))
	clock := actorstest.NewFakeClock(c.base)
	c.options.Clock = clock
	d := c.run(t)
	for ws := range messages.WSID(rulesWorkspaces) {
		clock.Set(c.base.Add(time.Duration(random.IntN(30)) * time.Hour))
		c.next(t, d, ws, tally)
	}
	for ws := range messages.WSID(rulesWorkspaces) {
		c.readLog(t, d.store, ws, &rulesTally{})
	}
	if c.base = clock.Now(); random.IntN(2) == 0 {
		d.crash(t)
		return
	}
	d.stop(t)
}

// workspaceRules are what a workspace's log says.
type workspaceRules struct {
	days    *days.Log
	invoice messages.Number
	events  messages.WLogOffset
	zone    string
}

// readLog checks the log of a workspace, and that it has what was acknowledged, as it was, and nothing that was refused.
func (c *rulesCrash) readLog(t *testing.T, store storage.Store, ws messages.WSID, tally *rulesTally) *workspaceRules {
	t.Helper()
	def := c.app.Kinds[0].Sequences[slices.IndexFunc(c.app.Kinds[0].Sequences, func(s messages.Sequence) bool { return s.ID == seqReceipt })]
	w := &workspaceRules{days: days.New(&def)}
	for e, err := range store.WLog(limit(t), ws, 1) {
		check(t, err)
		w.events++
		draft, done := c.begun[string(e.Body)], c.done[string(e.Body)]
		if draft == nil || c.refused[string(e.Body)] != nil || e.Zone != draft.Zone || e.Date != draft.Date || len(e.Moves) != len(draft.Moves) {
			t.Fatalf("workspace %d: got %+v, want nothing, or what was asked for: %+v", ws, e, draft)
		}
		if done != nil && (done.WLogOffset != e.WLogOffset || done.RegisteredAt != e.RegisteredAt || !slices.Equal(done.Numbers, e.Numbers)) {
			t.Fatalf("workspace %d: got %+v, acknowledged was %+v", ws, e, *done)
		}
		c.base = maxTime(c.base, e.RegisteredAt.Time())
		before := len(w.days.Last)
		named := func(i int) calendar.Date { return draft.Moves[i].Period }
		if err := w.days.Add(&e, w.days.Numbers(&e, named)); err != nil {
			t.Fatal(err)
		}
		for _, n := range e.Numbers {
			if n.Seq != seqInvoice {
				continue
			}
			if w.invoice++; n.Number != w.invoice || n.Number > largestInvoice {
				t.Fatalf("workspace %d, event %d: got invoice %d, want %d", ws, e.WLogOffset, n.Number, w.invoice)
			}
		}
		tally.days += len(w.days.Last) - before
		if e.Zone != "" {
			tally.zones++
			w.zone = e.Zone
			if done == nil {
				tally.unanswered++
			}
		}
	}
	tally.events += int(w.events)
	return w
}

func maxTime(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// next appends to a workspace: its day goes on or begins, and invoices go on or have ended.
func (c *rulesCrash) next(t *testing.T, d *deployment, ws messages.WSID, tally *rulesTally) {
	t.Helper()
	w := c.readLog(t, d.store, ws, &rulesTally{})
	c.checkRefusals(t, tally)
	numbers := must(d.app.Reader().Numbers(limit(t), ws))(t)
	if last, moved := numbers.Zones.Last(); moved != (w.zone != "") || moved && last.Zone.String() != w.zone {
		t.Errorf("workspace %d: got zone %v (%v), want %q", ws, last.Zone, moved, w.zone)
	}
	sequencer := must(d.app.SequencerOf(ws))(t)
	to := partition.AppendTo{Workspace: ws, Kind: kindShop}
	send := func(seq messages.SeqID) (*messages.Appended, error) {
		draft := messages.Draft{Wanted: []messages.Wanted{{Seq: seq}}, Body: []byte(time.Now().Format(time.RFC3339Nano))}
		done, err := sequencer.Append(limit(t), to, draft)
		c.begun[string(draft.Body)] = &draft
		if err == nil {
			c.done[string(draft.Body)] = done
		}
		return done, err
	}
	done := must(send(seqReceipt))(t)
	day := w.days.At(done.RegisteredAt.Time())
	if got, want := done.Numbers[0], (messages.SequenceNumber{Seq: seqReceipt, Period: day, Number: w.days.Last[day] + 1}); got != want {
		t.Errorf("workspace %d: got %v, want %v", ws, got, want)
	}
	done, err := send(seqInvoice)
	ended, isOverflow := errors.AsType[*messages.OverflowError](err)
	want := messages.OverflowError{Workspace: ws, Seq: seqInvoice, Name: "Invoice", Last: largestInvoice, Largest: largestInvoice, Wanted: 1}
	switch {
	case w.invoice < largestInvoice:
		if check(t, err); done.Numbers[0].Number != w.invoice+1 {
			t.Errorf("workspace %d: got %v, want %d", ws, done.Numbers, w.invoice+1)
		}
	case !isOverflow || *ended != want:
		t.Errorf("workspace %d: got %v, want %v", ws, err, &want)
	default:
		tally.ended++
	}
	isNearlyUsed := func(n messages.NearlyUsed) bool { return n.Workspace == ws && n.Seq == seqInvoice }
	listed := slices.ContainsFunc(sequencer.Status().NearlyUsed, isNearlyUsed)
	if last := min(w.invoice+1, largestInvoice); listed != (last > largestInvoice*9/10) {
		t.Errorf("workspace %d: the last invoice is %d of %d: listed as nearly used: %v", ws, last, largestInvoice, listed)
	}
}

// checkRefusals checks that the processes were refused what they could not have.
func (c *rulesCrash) checkRefusals(t *testing.T, tally *rulesTally) {
	t.Helper()
	for body, r := range c.refused {
		if r.Date != nil {
			tally.dates++
		}
		if e := r.Ended; e != nil && (e.Seq != seqInvoice || e.Largest != largestInvoice || e.Last > largestInvoice || int(largestInvoice-e.Last) >= e.Wanted) {
			t.Errorf("%s: got %v", body, e)
		}
		if r.Refused == "" {
			t.Errorf("%s: got no answer", body)
		}
	}
}
