package sequencer

import (
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"github.com/partita-go/partita/calendar"
	"github.com/partita-go/partita/messages"
)

// TestScenarios plays the files of testdata. Each shows one thing that a partition
// does: what it is told, and every effect that this has. Read them in order to learn the
// machine. After a change, "go test -run TestScenarios -rewrite" writes down what is so
// now; read the difference as you would read code.
//
// The core is alone with the world of world_test.go: a store, the four leaves that
// block in its stead, a clock that stands still. Nothing moves but by a command, and the
// world checks all the while that no number is lost or given twice.
//
// Kinds of workspaces and their sequences, with the first number:
//
//	shop    invoice 1, order 100, last3 (has three numbers only)
//	office  invoice 10, letter 5
//	bare    none but those that each kind has: crecord, owrecord
//	till    receipt 1 (each day in Zurich, two days are kept), bill 100 (each month, all
//	        are kept, up to three ahead), round 2 (each week, has three numbers only)
//
// Commands. Names such as a and x are the scenario's names of requests:
//
//	up [SETTING=N]...       a new partition that takes requests; Cache, Piece (how many
//	                        events are replayed at once) and Clock are settings too
//	new [SETTING=N]...      the same, but nothing is done yet
//	start a ws=1 [kind=shop] [deadline=1s] [date=2026-03-29] [watch] [counts]
//	next a invoice order*2  raise a invoice=7      the owner wants a number, brings an id
//	write a                 the owner writes its event into the log
//	flush a                 commit a               says that it did; both in one
//	cancel a, actualize a, owner-stops a
//	event ws=1 [kind=shop] [invoice]...            a whole transaction, in short
//	append x ws=1 [kind=shop] [id=1] [expected=0] [deadline=1s] [DRAFT [+ DRAFT]...]
//	append y again=x        the same message again; expected and deadline may differ
//	stop s, abort, crash [SETTING=N]...
//	                        abort answers everybody, crash nobody; a new core begins
//	reconfigure r [SETTING=N]...
//
//	serve LEAF...           the leaf does its next job, and the core gets the answer
//	work LEAF...            answer LEAF...         one half of it, and the other
//	settle [but=LEAF]       all leaves do all that they have; a replay is not shown
//	time 500ms [settle]     time passes, and timers fire; leaves work between or do not
//	fault WHAT[=N]          what goes wrong next; see faults
//	key-taken ws=1 invoice=5                       the log has a row or offset there
//	elsewhere [ws=1 [invoice]...] [flushed=yes]    somebody else takes the partition over,
//	                        writes an event, and flushes all that there is
//	state, log, stored      what the core holds; the log; what is flushed
//
// Leaves are reader, appender, flusher, actualizer. A DRAFT lists the sequences that it
// wants numbers of (order*2: two), and its records: new#0 and put#0 create and update the
// row under the first number of the message, new:order/7 and put:order/7 that of an id
// that it brings along. bad is a draft that the store refuses without saying which it
// was, bytes:N one of that size, wrong one that is refused whatever the state, and
// date:2026-03-29 gives it a business date.
//
// A block may have several commands. What a leaf answers, or that a timer fires, is shown
// behind "<"; all other lines are effects. A request that has no reply yet waits, and
// state says where. An event is shown only if it has numbers of its own.
func TestScenarios(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no scenarios: %v", err)
	}
	for _, path := range files {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".txt"), func(t *testing.T) {
			s := new(scenario)
			datadriven.RunTest(t, path, s.run)
			s.finish(t)
		})
	}
}

// scenario is a file that is being played.
type scenario struct {
	*world
	out strings.Builder
	// quiet says that effects are not shown, brief that those of a replay are not.
	quiet, brief bool

	calls  map[string]*call
	owners map[string]*owner
	names  map[*call]string
	// began is when the partition was made.
	began messages.Timestamp
	// sending is the name of the request that is sent.
	sending string
}

// arguments are those of a command, in the order in which they stand.
type arguments struct {
	t     *testing.T
	plain []string
	named map[string]string
}

func (s *scenario) run(t *testing.T, d *datadriven.TestData) string {
	t.Helper()
	s.out.Reset()
	s.command(t, d.Cmd, d.CmdArgs)
	for line := range strings.Lines(d.Input) {
		cmd, args, err := datadriven.ParseLine(line)
		if err != nil {
			t.Fatal(err)
		}
		s.command(t, cmd, args)
	}
	return s.out.String()
}

func (s *scenario) command(t *testing.T, cmd string, args []datadriven.CmdArg) {
	t.Helper()
	a := arguments{t: t, named: make(map[string]string)}
	for _, arg := range args {
		if len(arg.Vals) == 0 {
			a.plain = append(a.plain, arg.Key)
		} else {
			a.named[arg.Key] = arg.Vals[0]
		}
	}
	do := commands[cmd]
	if do == nil {
		t.Fatalf("unknown command %q", cmd)
	}
	do(s, a)
}

// finish ends what the file left and checks that nothing is lost and nobody forgotten.
func (s *scenario) finish(t *testing.T) {
	if s.world != nil {
		s.t, s.observe = t, nil
		s.world.finish()
	}
}

// commands are those of TestScenarios.
var commands = map[string]func(*scenario, arguments){
	"up":  func(s *scenario, a arguments) { s.quietly(func() { s.make(a); s.settle() }) },
	"new": (*scenario).make,

	"start":       (*scenario).start,
	"next":        (*scenario).nextNumber,
	"raise":       (*scenario).raiseTo,
	"write":       (*scenario).write,
	"flush":       (*scenario).flush,
	"commit":      func(s *scenario, a arguments) { s.quietly(func() { s.write(a) }); s.flush(a) },
	"cancel":      func(s *scenario, a arguments) { s.byOwner(a, s.world.cancel) },
	"actualize":   func(s *scenario, a arguments) { s.byOwner(a, s.world.actualize) },
	"owner-stops": func(s *scenario, a arguments) { s.ownerStops(s.owner(a)) },
	"event":       (*scenario).event,

	"append":      (*scenario).appendDrafts,
	"stop":        func(s *scenario, a arguments) { s.send(a.first(), s.world.stop) },
	"abort":       func(s *scenario, _ arguments) { s.restart() },
	"crash":       (*scenario).crash,
	"reconfigure": (*scenario).reconfigure,

	"serve":     func(s *scenario, a arguments) { a.leaves(func(i int) { s.work(i); s.deliver(i) }) },
	"work":      func(s *scenario, a arguments) { a.leaves(func(i int) { s.work(i) }) },
	"answer":    func(s *scenario, a arguments) { a.leaves(func(i int) { s.deliver(i) }) },
	"settle":    (*scenario).rest,
	"time":      (*scenario).pass,
	"fault":     (*scenario).fault,
	"key-taken": (*scenario).keyTaken,
	"elsewhere": (*scenario).elsewhere,

	"state":  func(s *scenario, _ arguments) { s.showState() },
	"log":    func(s *scenario, _ arguments) { s.sayList("log", s.events(s.world.log)) },
	"stored": func(s *scenario, _ arguments) { s.showStored() },
}

func leafOf(t *testing.T, name string) int {
	i := slices.Index([]string{flusherLeaf: "flusher", actualizerLeaf: "actualizer", readerLeaf: "reader", appenderLeaf: "appender"}, name)
	if i < 0 {
		t.Fatalf("unknown leaf %q", name)
	}
	return i
}

// make makes a new partition. That of the file's part before ends.
func (s *scenario) make(a arguments) {
	s.finish(a.t)
	s.world = newWorld(a.t, a.settings())
	s.config.CacheNumbers = a.int("Cache", s.config.CacheNumbers)
	s.piece = a.int("Piece", s.piece)
	if text := a.named["Clock"]; text != "" {
		s.now = moment(a.t, text)
	}
	s.began = s.now
	s.calls, s.owners, s.names = make(map[string]*call), make(map[string]*owner), make(map[*call]string)
	s.observe = s.show
	s.begin()
}

func (s *scenario) quietly(do func()) {
	s.quiet = true
	do()
	s.quiet = false
}

// send sends a request under a name.
func (s *scenario) send(name string, ask func() *call) *call {
	s.sending = name
	c := ask()
	s.names[c], s.calls[name] = name, c
	return c
}

// byOwner sends a request of a transaction's owner.
func (s *scenario) byOwner(a arguments, ask func(o *owner) *call) *call {
	o := s.owner(a)
	return s.send(a.first(), func() *call { return ask(o) })
}

func (s *scenario) flush(a arguments) { s.byOwner(a, s.world.flush) }

// crash begins a new core, with other settings if there are any.
func (s *scenario) crash(a arguments) {
	if len(a.named) > 0 {
		s.config.Settings, s.piece = a.settings().WithDefaults(), a.int("Piece", s.piece)
	}
	s.world.crash()
}

func (s *scenario) reconfigure(a arguments) {
	m := &messages.Reconfigure{Settings: a.settings()}
	s.send(a.first(), func() *call { return s.ask(nil, m) })
}

// rest lets the leaves do all that they have.
func (s *scenario) rest(a arguments) {
	s.brief = true
	if but := a.named["but"]; but != "" {
		s.settleBut(leafOf(a.t, but))
	} else {
		s.settle()
	}
	s.brief = false
}

func (s *scenario) start(a arguments) {
	m := messages.Start{
		Workspace: a.workspace(), Kind: s.kind(a), Deadline: s.deadline(a),
		WatchOwner: slices.Contains(a.plain, "watch"), WithNumbers: slices.Contains(a.plain, "counts"),
	}
	if text := a.named["date"]; text != "" {
		m.Date = dateOf(a.t, text)
	}
	var o *owner
	s.send(a.first(), func() *call { o = s.request(m); return o.start })
	s.owners[a.first()] = o
}

// nextNumber and raiseTo show the reply of an owner that counts itself, too, which no
// effect shows.
func (s *scenario) nextNumber(a arguments) {
	for _, term := range a.plain[1:] {
		s.counted(a, func(o *owner) *call { return s.nextRange(o, s.wanted(a.t, term)) })
	}
}

func (s *scenario) raiseTo(a arguments) {
	for _, name := range slices.Sorted(maps.Keys(a.named)) {
		s.counted(a, func(o *owner) *call {
			return s.raise(o, s.sequence(a.t, name), messages.Number(a.uint(name)))
		})
	}
}

func (s *scenario) counted(a arguments, ask func(o *owner) *call) {
	before := s.out.Len()
	if c := s.byOwner(a, ask); s.out.Len() == before {
		s.showReply(Reply{To: c, Message: c.reply})
	}
}

// owner returns whoever has sent the Start of that name.
func (s *scenario) owner(a arguments) *owner {
	o := s.owners[a.first()]
	if o == nil {
		a.t.Fatalf("no owner %q", a.first())
	}
	return o
}

func (s *scenario) write(a arguments) {
	o := s.owner(a)
	if s.world.write(o) {
		s.say("the log takes event %d", o.token.PLogOffset)
	} else {
		s.say("the log does not take event %d of epoch %d", o.token.PLogOffset, o.token.Epoch)
	}
}

// event goes through a transaction in which nothing happens.
func (s *scenario) event(a arguments) {
	s.quietly(func() {
		o := s.begun(a.workspace(), s.kind(a))
		for _, name := range a.plain {
			s.given(s.next(o, s.sequence(a.t, name)))
		}
		s.world.commit(o)
	})
	if len(a.plain) > 0 {
		s.say("%s", s.events(s.world.log[len(s.world.log)-1:])[0])
	}
}

func (s *scenario) appendDrafts(a arguments) {
	var m messages.Append
	if again := a.named["again"]; again != "" {
		m = *s.calls[again].message.(*messages.Append)
	} else {
		m = messages.Append{Workspace: a.workspace(), Kind: s.kind(a), Drafts: []messages.Draft{s.draft()}}
		m.DedupID[0] = byte(a.int("id", 0))
	}
	if a.named["expected"] != "" {
		m.Expected = new(messages.WLogOffset(a.uint("expected")))
	}
	m.Deadline = s.deadline(a)
	var wrong error
	for _, term := range a.plain[1:] {
		switch term {
		case "wrong":
			wrong = errWrong
		case "+":
			m.Drafts = append(m.Drafts, s.draft())
		default:
			s.addTo(&m.Drafts[len(m.Drafts)-1], a.t, term)
		}
	}
	s.send(a.first(), func() *call { return s.appendWrong(m, wrong) })
}

// errWrong is what an Append is refused with whatever the state.
var errWrong = errors.Join(messages.ErrWrongPartition, messages.ErrUnknownKind, messages.ErrUnknownSequence, messages.ErrDraft)

// addTo adds a term to a draft.
func (s *scenario) addTo(d *messages.Draft, t *testing.T, term string) {
	what, id, isID := strings.Cut(term, ":")
	row, number, isRow := strings.Cut(term, "#")
	switch {
	case term == "bad":
		d.Body = append([]byte(poison), d.Body...)
	case what == "bytes":
		d.Body = append(d.Body, make([]byte, parseInt(t, id)-len(d.Body))...)
	case what == "date":
		d.Date = dateOf(t, id)
	case what == "move":
		d.Moves = append(d.Moves, s.numberOf(t, id))
	case what == "bring":
		d.Brought = append(d.Brought, s.numberOf(t, id))
	case isRow:
		d.Records = append(d.Records, messages.DraftRecord{Number: parseInt(t, number), New: row == "new"})
	case isID:
		seq, number, _ := strings.Cut(id, "/")
		r := messages.RecordID{Seq: s.sequence(t, seq), Number: messages.Number(parseInt(t, number))}
		d.Records = append(d.Records, messages.DraftRecord{ID: r, New: what == "new"})
	default:
		d.Wanted = append(d.Wanted, s.wanted(t, term))
	}
}

// numberOf is a number of a sequence: order/12, or one of a period: receipt/2026-06-30/12.
func (s *scenario) numberOf(t *testing.T, term string) messages.SequenceNumber {
	words := strings.Split(term, "/")
	n := messages.SequenceNumber{Seq: s.sequence(t, words[0]), Number: messages.Number(parseInt(t, words[len(words)-1]))}
	if len(words) > 2 {
		n.Period = dateOf(t, words[1])
	}
	return n
}

// wanted are numbers of a sequence: order is one, order*2 two.
func (s *scenario) wanted(t *testing.T, term string) messages.Wanted {
	name, count, _ := strings.Cut(term, "*")
	return messages.Wanted{Seq: s.sequence(t, name), Count: uint32(parseInt(t, "0"+count))}
}

// pass lets time pass; a clock that is set back makes no timer fire.
func (s *scenario) pass(a arguments) {
	d := a.duration(a.first())
	s.setBack = s.setBack || d < 0
	if len(a.plain) > 1 {
		s.advance(d)
		return
	}
	end := s.now + messages.Timestamp(d/time.Microsecond)
	for due, some := s.nextDue(); some && due <= end && d > 0; due, some = s.nextDue() {
		s.now = max(s.now, due)
		s.fire()
	}
	s.now = end
}

// faults is what can go wrong. A flusher that fails or lies does so until it works.
var faults = map[string]func(w *world, n int){
	"flush-fails":    func(w *world, _ int) { w.flushMode = flushFails },
	"flush-lies":     func(w *world, _ int) { w.flushMode = flushLies }, // writes, and says that it failed
	"flush-works":    func(w *world, _ int) { w.flushMode = flushWorks },
	"flush-diverges": func(w *world, _ int) { w.diverge = true },
	"flush-breaks":   func(w *world, _ int) { w.breakFlush = true },

	"write-lies":     func(w *world, _ int) { w.writeFault = writeLies },     // writes, and nobody knows
	"write-vanishes": func(w *world, _ int) { w.writeFault = writeVanishes }, // does not, and nobody knows
	"no-space":       func(w *world, _ int) { w.writeFault = writeNoSpace },
	"tail-full":      func(w *world, _ int) { w.writeFault = writeTailFull },
	"write-diverges": func(w *world, n int) { w.writeFault, w.faultyWrites = writeDiverges, n },

	"load-fails":    func(w *world, n int) { w.failLoads = n },
	"search-fails":  func(w *world, n int) { w.failSearches = n },
	"find-fails":    func(w *world, n int) { w.failFind = n },
	"replay-fails":  func(w *world, n int) { w.failReplays = n },
	"replay-breaks": func(w *world, _ int) { w.breakReplay = true },

	// wrong-kind: event N of the tail is read as one of a kind that nobody knows.
	"wrong-kind": func(w *world, n int) {
		w.damage = func(e *messages.Numbering) {
			if int(e.PLogOffset) == n {
				e.WorkspaceKind = 99
			}
		}
	},
}

func (s *scenario) fault(a arguments) {
	for _, what := range slices.Concat(a.plain, slices.Sorted(maps.Keys(a.named))) {
		fault := faults[what]
		if fault == nil {
			a.t.Fatalf("unknown fault %q", what)
		}
		fault(s.world, a.int(what, 1))
	}
}

func (s *scenario) keyTaken(a arguments) {
	for name := range a.named {
		if name != "ws" {
			s.taken[taken{a.workspace(), s.sequence(a.t, name), messages.Number(a.uint(name))}] = true
		}
	}
}

// elsewhere lets somebody else take the partition over.
func (s *scenario) elsewhere(a arguments) {
	s.usurp()
	if a.named["ws"] != "" {
		e := messages.Event{
			Kind: messages.EventBusiness, Epoch: s.epoch, Partition: testPartition, PLogOffset: messages.PLogOffset(len(s.world.log) + 1),
			Workspace: a.workspace(), WorkspaceKind: s.kind(a), RegisteredAt: s.now,
		}
		last := s.truth[e.Workspace]
		e.WLogOffset = messages.WLogOffset(last.last(messages.SeqWLogOffset) + 1)
		for _, name := range a.plain {
			seq := s.sequence(a.t, name)
			e.Numbers = append(e.Numbers, messages.SequenceNumber{Seq: seq, Number: max(last.last(seq)+1, s.kinds()[e.WorkspaceKind][seq].Initial)})
		}
		s.appendEvent(e)
		s.say("somebody else writes %s", s.events([]messages.Event{e})[0])
	}
	if a.named["flushed"] != "" {
		s.hidden = true
		s.seqData, s.checkpoint = lastsOf(s.world.log, s.kinds()), messages.PLogOffset(len(s.world.log)+1)
	}
}

// sequence returns a sequence by its name.
func (s *scenario) sequence(t *testing.T, name string) messages.SeqID {
	for seq, got := range s.sequenceNames() {
		if got == name {
			return seq
		}
	}
	t.Fatalf("unknown sequence %q", name)
	return 0
}

func (s *scenario) sequenceNames() map[messages.SeqID]string {
	names := map[messages.SeqID]string{messages.SeqWLogOffset: "offset", messages.SeqCRecordID: "crecord", messages.SeqOWRecordID: "owrecord"}
	for _, k := range s.config.Descriptor.Kinds {
		for _, seq := range k.Sequences {
			names[seq.ID] = seq.Name
		}
	}
	return names
}

func (s *scenario) kind(a arguments) messages.WSKind {
	for _, k := range s.config.Descriptor.Kinds {
		if name := a.named["kind"]; name == k.Name || name == "" {
			return k.ID
		}
	}
	return messages.WSKind(a.uint("kind"))
}

func (s *scenario) deadline(a arguments) messages.Timestamp {
	if text := a.named["deadline"]; text != "" {
		return s.now + messages.Timestamp(a.duration(text)/time.Microsecond)
	}
	return 0
}

// first is the first argument: what a request is called, as a rule.
func (a arguments) first() string {
	if len(a.plain) == 0 {
		a.t.Fatalf("an argument is missing")
	}
	return a.plain[0]
}

func (a arguments) leaves(do func(leaf int)) {
	for _, name := range a.plain {
		do(leafOf(a.t, name))
	}
}

func (a arguments) workspace() messages.WSID { return messages.WSID(a.uint("ws")) }

func (a arguments) duration(text string) time.Duration {
	d, err := time.ParseDuration(text)
	if err != nil {
		a.t.Fatal(err)
	}
	return d
}

func (a arguments) uint(name string) uint64 {
	n, err := strconv.ParseUint(a.named[name], 10, 64)
	if err != nil {
		a.t.Fatalf("%s: %v", name, err)
	}
	return n
}

func (a arguments) int(name string, otherwise int) int {
	if text := a.named[name]; text != "" {
		return parseInt(a.t, text)
	}
	return otherwise
}

func dateOf(t *testing.T, text string) calendar.Date {
	d, err := calendar.ParseDate(text)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func parseInt(t *testing.T, text string) int {
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// settings are those that are named as they are in messages.Settings.
func (a arguments) settings() (settings messages.Settings) {
	for name, text := range a.named {
		switch field := reflect.ValueOf(&settings).Elem().FieldByName(name); {
		case !field.IsValid() && name != "Cache" && name != "Piece" && name != "Clock":
			a.t.Fatalf("unknown setting %q", name)
		case !field.IsValid():
		case field.Kind() == reflect.Int64:
			field.SetInt(int64(a.duration(text)))
		default:
			field.SetInt(int64(parseInt(a.t, text)))
		}
	}
	return settings
}

func (s *scenario) say(format string, args ...any) {
	if !s.quiet {
		fmt.Fprintf(&s.out, format+"\n", args...)
	}
}
