package sequencer

import (
	"fmt"
	"slices"
	"time"

	"github.com/partita-go/partita/messages"
)

// failer is what the world needs of a testing.T, testing.B or rapid.T.
type failer interface {
	Helper()
	Fatalf(format string, args ...any)
}

// world is all that is around one core: a store, three leaves that work when they
// are told to, a clock that stands still, and owners. It is naive on purpose. Every
// effect and every answer is checked as it passes.
type world struct {
	t      failer
	config Config
	core   *Core
	now    messages.Timestamp
	// kept are the kinds of a game, else nil.
	kept map[messages.WSKind]map[messages.SeqID]messages.Sequence
	// incarnation counts the cores, as the shell does.
	incarnation uint64

	store
	leaves [leafCount]leaf
	timers []timer
	// stopped says that the core has ended, taken that its epoch is known.
	stopped bool
	// statuses counts the changes of the status.
	statuses int

	// unanswered are the requests that have no reply yet.
	unanswered map[*call]bool
	// lastKind is the kind of the transaction granted last.
	lastKind map[messages.WSID]messages.WSKind
	open     *owner
	watched  *call
	ended    []*owner
	lastCall int

	// appends are all Appends that were sent, lastOwner the last of each workspace
	// that was acknowledged, owners those that own an offset.
	appends   []*call
	drafts    int
	lastOwner map[messages.WSID]*call
	owners    map[messages.PLogOffset]*call
	// miscounted says that an owner flushes numbers which cannot be.
	miscounted bool

	// known is how many other periods of its sequences a workspace knew; setBack says that the clock was set back.
	known   map[*span]int
	setBack bool

	hits map[string]int
	// observe, if set, sees each message and its effects before they are carried out.
	observe func(m messages.PartitionMessage, fx *Effects)
}

// timer is an alarm that was set.
type timer struct {
	timer messages.Timer
	due   messages.Timestamp
}

// call is a request; the core sees it as an opaque Requester.
type call struct {
	id      int
	message messages.PartitionMessage
	owner   *owner
	reply   any

	// Of an Append: the log's length when it was sent, what is wrong with it whatever
	// the state, also if that is its length only, and where it has been.
	sent                      int
	wrong                     error
	long                      bool
	followed, rested, doubted bool
	waited                    string
}

const (
	testPartition  = 1
	testPartitions = 2
	// Kinds: both of the first two have sequence 16, with other initial values.
	kindWide, kindOther, kindBare = messages.WSKind(1), messages.WSKind(2), messages.WSKind(3)
	// seqNarrow has three numbers only.
	seqPlain, seqFrom, seqNarrow, seqOther = messages.SeqID(16), messages.SeqID(17), messages.SeqID(18), messages.SeqID(20)
	narrowInitial, narrowLargest           = messages.Number(98), messages.Number(100)
)

func testDescriptor() messages.Descriptor {
	return messages.Descriptor{
		Application: "test",
		Partitions:  testPartitions,
		Kinds: []messages.Kind{
			{ID: kindWide, Name: "shop", Sequences: []messages.Sequence{
				{ID: seqNarrow, Name: "last3", Initial: narrowInitial, Largest: narrowLargest},
				{ID: seqPlain, Name: "invoice", Initial: 1},
				{ID: seqFrom, Name: "order", Initial: 100},
			}},
			{ID: kindOther, Name: "office", Sequences: []messages.Sequence{
				{ID: seqPlain, Name: "invoice", Initial: 10},
				{ID: seqOther, Name: "letter", Initial: 5},
			}},
			{ID: kindBare, Name: "bare"},
			till(),
		},
	}
}

// newWorld returns a world whose core has not begun. Zero settings are defaults.
func newWorld(t failer, s messages.Settings) *world {
	t.Helper()
	s = s.WithDefaults()
	if err := s.Validate(); err != nil {
		t.Fatalf("settings: %v", err)
	}
	return &world{
		t:          t,
		config:     Config{Partition: testPartition, Descriptor: testDescriptor(), Settings: s, CacheNumbers: 1000, Seed: 1},
		now:        1_000_000_000,
		store:      newStore(),
		unanswered: make(map[*call]bool),
		lastKind:   make(map[messages.WSID]messages.WSKind),
		lastOwner:  make(map[messages.WSID]*call),
		owners:     make(map[messages.PLogOffset]*call),
		known:      make(map[*span]int),
		hits:       make(map[string]int),
	}
}

// begin starts a core over the store, and a new one after a crash or a stop.
func (w *world) begin() {
	w.incarnation++
	w.config.Generation = w.incarnation << 32
	w.core = New(w.config)
	w.stopped, w.open, w.watched = false, nil, nil
	w.timers = nil
	w.carryOut(nil, w.core.Begin(w.now))
}

// up returns a world whose core takes transactions.
func up(t failer, s messages.Settings) *world {
	t.Helper()
	w := newWorld(t, s)
	w.begin()
	w.settle()
	w.mustBe(messages.StateNormal)
	return w
}

// crash ends the core without a word, as the process would: what the leaves have
// not done is not done.
func (w *world) crash() {
	clear(w.unanswered)
	w.leaves = [leafCount]leaf{}
	w.begin()
}

// restart ends the core as a panic of the actor would: everybody is answered, and
// the old leaves go on with what they have until the new epoch stops them.
func (w *world) restart() {
	w.carryOut(nil, w.core.Abort(messages.ErrInterrupted))
	if len(w.unanswered) > 0 {
		w.t.Fatalf("%d requests were not answered when the actor ended: %v", len(w.unanswered), w.unansweredList())
	}
	w.begin()
}

// ask sends a request of an owner, who may be nil.
func (w *world) ask(o *owner, m messages.PartitionMessage) *call {
	w.lastCall++
	c := &call{id: w.lastCall, message: m, owner: o}
	w.unanswered[c] = true
	w.step(c, m)
	return c
}

// tell sends what nobody waits for an answer of.
func (w *world) tell(m messages.PartitionMessage) { w.step(nil, m) }

func (w *world) step(from Requester, m messages.PartitionMessage) {
	w.carryOut(m, w.core.Step(from, m, w.now))
	w.checkCore()
	w.hitCore()
}

// carryOut does what the core wants because of a message, as the shell does.
func (w *world) carryOut(m messages.PartitionMessage, fx *Effects) {
	if w.observe != nil {
		w.observe(m, fx)
	}
	if fx.Unwatch != nil {
		if fx.Unwatch != Requester(w.watched) {
			w.t.Fatalf("unwatches somebody who is not watched")
		}
		w.watched = nil
	}
	if fx.Watch != nil {
		if w.watched != nil {
			w.t.Fatalf("watches a second owner")
		}
		w.watched = fx.Watch.(*call)
	}
	for _, m := range fx.Actualizer {
		w.leaves[actualizerLeaf].jobs = append(w.leaves[actualizerLeaf].jobs, m)
		if _, ok := m.(*messages.Replay); ok {
			w.open = nil
			w.hitIf(len(w.leaves[flusherLeaf].jobs) > 0, "actualization during a flush")
		}
	}
	for _, m := range fx.Reader {
		w.leaves[readerLeaf].jobs = append(w.leaves[readerLeaf].jobs, m)
	}
	if fx.Flusher != nil {
		w.checkOneFlush(fx.Flusher)
		w.leaves[flusherLeaf].jobs = append(w.leaves[flusherLeaf].jobs, fx.Flusher)
	}
	if fx.Appender != nil {
		w.checkOneBatch(fx.Appender)
		w.leaves[appenderLeaf].jobs = append(w.leaves[appenderLeaf].jobs, newWriting(fx.Appender))
	}
	_, reconfigured := m.(*messages.Reconfigure)
	for _, a := range fx.Arm {
		w.arm(a, reconfigured)
	}
	w.stopped = w.stopped || fx.Stopped
	if fx.Status {
		w.statuses++
	}
	for _, r := range fx.Replies {
		w.answer(r)
	}
}

// arm sets a timer. There is one of each kind, but that new settings may replace it, and a period that ends earlier.
func (w *world) arm(a Alarm, replace bool) {
	if a.After <= 0 && (a.Timer == messages.TimerFlushRetry || a.Timer == messages.TimerActualizeRetry) {
		w.t.Fatalf("tries again at once, for ever")
	}
	for i, t := range w.timers {
		if t.timer != a.Timer {
			continue
		}
		// One that was armed before the clock was set back fires earlier than the core knows.
		earlier := w.setBack || w.now+messages.Timestamp(a.After/time.Microsecond) < t.due
		if !replace && (a.Timer != messages.TimerPeriod || !earlier) {
			w.t.Fatalf("timer %d is armed twice", a.Timer)
		}
		w.timers = append(w.timers[:i], w.timers[i+1:]...)
		break
	}
	w.timers = append(w.timers, timer{a.Timer, w.now + messages.Timestamp(max(0, a.After)/time.Microsecond)})
}

// answer takes note of a reply: each request gets exactly one.
func (w *world) answer(r Reply) {
	c := r.To.(*call)
	if !w.unanswered[c] {
		w.t.Fatalf("%T is answered again: first %T, now %T %+v", c.message, c.reply, r.Message, r.Message)
	}
	delete(w.unanswered, c)
	c.reply = r.Message
	if _, ok := c.message.(*messages.Append); ok {
		w.checkAppendReply(c)
		w.hitAppendReply(c)
		return
	}
	if c.owner == nil {
		return
	}
	open := w.open
	w.checkReply(c)
	// The situation is that before the reply ended the transaction.
	after := w.open
	if _, started := c.reply.(*messages.Started); !started {
		w.open = open
	}
	w.hitReply(c)
	w.open = after
}

// fire lets the timer that is due first fire, and reports whether one was due.
func (w *world) fire() bool {
	first := -1
	for i, t := range w.timers {
		if t.due <= w.now && (first < 0 || t.due < w.timers[first].due) {
			first = i
		}
	}
	if first < 0 {
		return false
	}
	t := w.timers[first]
	w.timers = append(w.timers[:first], w.timers[first+1:]...)
	w.tell(&messages.TimerFired{Timer: t.timer})
	return true
}

// nextDue returns when the next timer is due.
func (w *world) nextDue() (messages.Timestamp, bool) {
	due, some := messages.Timestamp(0), false
	for _, t := range w.timers {
		if !some || t.due < due {
			due, some = t.due, true
		}
	}
	return due, some
}

// advance lets time pass, with timers firing and leaves working on the way.
func (w *world) advance(d time.Duration) {
	end := w.now + messages.Timestamp(d/time.Microsecond)
	for !w.stopped {
		due, some := w.nextDue()
		if !some || due > end {
			break
		}
		w.now = max(w.now, due)
		w.fire()
		w.settle()
	}
	w.now = end
}

// settle lets the leaves work and answer until they have nothing to do. Time
// stands still.
func (w *world) settle() {
	for busy := true; busy; {
		busy = false
		for i := range w.leaves {
			if w.work(i) || w.deliver(i) {
				busy = true
			}
		}
	}
}

// quiesce lets everything come to an end, with as much time as it needs.
func (w *world) quiesce() {
	for range 100_000 {
		w.settle()
		due, some := w.nextDue()
		if !some || w.stopped {
			return
		}
		w.now = max(w.now, due)
		w.fire()
	}
	w.t.Fatalf("does not come to rest: %+v", w.core.Status())
}

func (w *world) mustBe(want messages.PartitionState) {
	w.t.Helper()
	if got := w.core.Status(); got.State != want {
		w.t.Fatalf("state: got %v (%v), want %v", got.State, got.Err, want)
	}
}

func (w *world) hit(what string) { w.hits[what]++ }

func (w *world) unansweredList() (list []string) {
	for c := range w.unanswered {
		list = append(list, fmt.Sprintf("%T %+v", c.message, c.message))
	}
	return list
}

// never is an interval that no test waits for.
const never = time.Hour

// settleBut lets all leaves but some work.
func (w *world) settleBut(idle ...int) {
	for busy := true; busy; {
		busy = false
		for i := range w.leaves {
			if !slices.Contains(idle, i) && (w.work(i) || w.deliver(i)) {
				busy = true
			}
		}
	}
}
