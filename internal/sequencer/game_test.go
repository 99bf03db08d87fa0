package sequencer

import (
	"math/bits"
	"math/rand/v2"
	"slices"
	"time"

	"pgregory.net/rapid"

	"github.com/partita-go/partita/calendar"
	"github.com/partita-go/partita/messages"
)

// dice makes the choices: rapid's, which can be shrunk, or a seeded source's, which
// can be repeated.
type dice interface {
	roll(sides int, what string) int
}

type rapidDice struct{ t *rapid.T }

// roll draws bits: rapid's ranges prefer small numbers, which would make the first
// actions of the list the most frequent ones.
func (d rapidDice) roll(sides int, what string) int {
	n := 0
	for range bits.Len(uint(sides-1)) + 3 {
		n <<= 1
		if rapid.Bool().Draw(d.t, what) {
			n++
		}
	}
	return n % sides
}

type seededDice struct{ *rand.Rand }

func (d seededDice) roll(sides int, _ string) int { return d.IntN(sides) }

// game plays at random in a world.
type game struct {
	*world
	dice dice
	// late says that what is registered has mostly happened long ago.
	late bool
}

func newGame(t failer, d dice) *game {
	w := newWorld(t, randomSettings(d))
	g := &game{world: w, dice: d, late: d.roll(4, "late") == 0}
	w.config.CacheNumbers = []int{1, 1, 40, 1000}[d.roll(4, "cache")]
	if g.late {
		w.config.CacheNumbers = []int{1, 1000, 1000}[d.roll(3, "cache")]
	}
	w.piece = 1 + d.roll(5, "piece")
	night := nights[d.roll(len(nights), "night")]
	w.config.Descriptor.Kinds[3].Sequences[0].Restart.Zone, w.now = night.zone, moment(t, night.at)
	w.kept = w.kinds()
	w.begin()
	return g
}

func randomSettings(d dice) messages.Settings {
	s := messages.Settings{FlushThreshold: 1 + d.roll(5, "threshold")}
	s.BusyLimit = s.FlushThreshold + d.roll(8, "limit")
	s.BusyEvents = []int{1, 3, 8, 1000}[d.roll(4, "events")]
	if d.roll(2, "roomy") == 0 {
		s.FlushThreshold, s.BusyLimit, s.BusyEvents = 40, 50, 100
	}
	s.InFlightEvents = []int{1, 5, 20, 60}[d.roll(4, "in flight")]
	s.BatchEvents = []int{1, 3, 8, 40}[d.roll(4, "batch")]
	s.InFlightBytes = []int{700, 5000, 1 << 20, 1 << 20}[d.roll(4, "bytes")]
	s.GroupBytes = []int{500, 1000, 1 << 20, 1 << 20}[d.roll(4, "group bytes")]
	if d.roll(2, "checkpoints") == 0 {
		s.CatchUpCheckpoint = time.Millisecond
	}
	return s.WithDefaults()
}

// nights are those in which a game begins: local time is set forward or back in them, also at midnight.
var nights = []struct{ zone, at string }{
	{"Europe/Zurich", "2026-03-28T21:00:00Z"},
	{"Europe/Zurich", "2026-10-24T21:00:00Z"},
	{"Africa/Cairo", "2026-04-23T20:00:00Z"},
	{"Africa/Cairo", "2026-10-29T19:00:00Z"},
	{"America/Havana", "2026-11-01T03:00:00Z"},
	{"America/Scoresbysund", "2026-12-30T23:00:00Z"},
}

// date is a business date, mostly one that the sequences of the till take, or none.
func (g *game) date(kind messages.WSKind) calendar.Date {
	if g.dice.roll(map[bool]int{true: 2, false: 20}[kind == kindTill], "dated") > 0 && (!g.late || kind != kindTill || g.dice.roll(2, "late") == 0) {
		return 0
	}
	days := [...]int{0, 0, -1, -1, -2, -7, 1, 1, 2, 8, 31, 31, 62, 62, 92, 92, 130}
	at := g.dice.roll(len(days)+8, "days")
	d := -(20 + 30*g.dice.roll(30, "months"))
	if at < len(days) && !g.late {
		d = days[at]
	}
	return calendar.DateOf(g.now.Time().AddDate(0, 0, d))
}

// zone is a time zone that a workspace gets now and then.
func (g *game) zone(kind messages.WSKind) string {
	zones := []string{"Asia/Tokyo", "America/New_York", "Europe/Zurich", "UTC", "Pacific/Kiritimati", "Africa/Cairo"}
	at := g.dice.roll(map[bool]int{true: 40, false: 200}[kind == kindTill], "zone")
	if at >= len(zones) {
		return ""
	}
	return zones[at]
}

func (g *game) workspace() messages.WSID {
	if g.late {
		return messages.WSID(2*g.dice.roll(3, "workspace") + 1)
	}
	return messages.WSID(2*g.dice.roll(6, "workspace") + 1)
}

// kindOf is the kind that a workspace is given as a rule.
func (g *game) kindOf(ws messages.WSID) messages.WSKind {
	if ws > 7 || ws > 1 && g.late {
		return kindTill
	}
	return kindWide
}

// actions are weighted by how often they are listed.
var actions = []func(*game){
	(*game).start, (*game).start, (*game).start, (*game).start, (*game).start,
	(*game).append, (*game).append, (*game).append, (*game).append, (*game).append, (*game).burst, (*game).burst,
	(*game).take, (*game).take, (*game).take, (*game).take, (*game).take, (*game).lift, (*game).lift,
	(*game).end, (*game).end, (*game).end, (*game).end, (*game).end, (*game).end, (*game).end, (*game).end,
	(*game).serve, (*game).serve, (*game).serve, (*game).serve, (*game).serve, (*game).serve, (*game).serve, (*game).serve,
	(*game).serve, (*game).serve, (*game).serve, (*game).serve, (*game).rest, (*game).rest,
	(*game).pass, (*game).pass, (*game).pass,
	(*game).lag, (*game).lag, (*game).pretend,
	(*game).fault, (*game).breakWrites, (*game).rare,
}

func (g *game) act() {
	if g.stopped {
		g.hitAfterStop()
		g.restart()
		return
	}
	actions[g.dice.roll(len(actions), "action")](g)
}

func (g *game) hitAfterStop() {
	if g.core.Status().Clean {
		g.hit("stopped clean")
		if g.checkpoint != messages.PLogOffset(len(g.log))+1 {
			g.t.Fatalf("a clean stop left %d events unflushed", messages.PLogOffset(len(g.log))+1-g.checkpoint)
		}
		return
	}
	g.hit("stopped dirty")
}

// start asks for a transaction; mostly as a shell does, which holds the lane.
func (g *game) start() {
	held := !g.core.TakesRequests()
	if held && g.dice.roll(4, "unheld") > 0 {
		return
	}
	ws := g.workspace()
	m := messages.Start{
		Workspace: ws, Kind: g.kindOf(ws),
		WatchOwner: g.dice.roll(2, "watch") == 0, WithNumbers: g.dice.roll(2, "counts") == 0,
	}
	if g.dice.roll(3, "kind") == 0 {
		m.Kind = messages.WSKind(1 + g.dice.roll(4, "kind"))
	}
	m.Date, m.Zone = g.date(m.Kind), g.zone(m.Kind)
	switch g.dice.roll(6, "deadline") {
	case 0:
		m.Deadline = g.now - 1
	case 1:
		m.Deadline = g.now + messages.Timestamp(g.dice.roll(100_000, "until"))
	}
	g.hitStart(m, g.request(m))
}

func (g *game) hitStart(m messages.Start, o *owner) {
	switch {
	case o.granted:
		g.hit("granted at once")
	case busyReason(o.start) == messages.BusyUnflushed && g.core.unflushedKeys() >= g.core.settings.BusyLimit:
		g.hit("busy on the limit of keys")
	case busyReason(o.start) == messages.BusyUnflushed:
		g.hit("busy on the limit of events")
	}
	if l := g.core.loads[m.Workspace]; l == nil && g.core.flight.pending != nil {
		if d := g.core.flight.pending.workspaces[m.Workspace]; d != nil && d.first && o.granted {
			g.hit("born in flight")
		}
	}
}

// take asks for a number of the open transaction.
func (g *game) take() {
	if o := g.open; o != nil && !o.wrote {
		all := []messages.SeqID{seqPlain, seqFrom, seqNarrow, seqNarrow, seqOther, messages.SeqCRecordID, messages.SeqOWRecordID, messages.SeqWLogOffset, 15}
		if o.kind == kindTill {
			all = []messages.SeqID{seqReceipt, seqReceipt, seqBill, seqBill, seqRound, messages.SeqCRecordID, seqPlain}
		}
		seq := all[g.dice.roll(len(all), "sequence")]
		g.nextRange(o, messages.Wanted{Seq: seq, Count: uint32(g.dice.roll(4, "count"))})
	}
}

// lift announces an explicit id of the open transaction.
func (g *game) lift() {
	o := g.open
	if o == nil || o.wrote {
		return
	}
	all := []messages.SeqID{seqPlain, seqFrom, seqOther, messages.SeqCRecordID, messages.SeqOWRecordID, messages.SeqWLogOffset, seqReceipt}
	seq := all[g.dice.roll(len(all), "sequence")]
	last := g.lastOf(o, seq)
	n := messages.Number(0)
	switch g.dice.roll(5, "id") {
	case 0:
		n = messages.Number(g.dice.roll(4, "low"))
	case 1:
		n = last
	case 2:
		n = last - min(last, messages.Number(g.dice.roll(3, "below")))
	case 3:
		n = max(last, g.kinds()[o.kind][seq].Initial) + messages.Number(g.dice.roll(3, "above"))
	case 4:
		n = maxOf(seq) - messages.Number(g.dice.roll(3, "end"))
	}
	if _, ok := g.raise(o, seq, n).reply.(*messages.Raised); ok && n < last {
		g.hit("raised below the last")
	}
}

// end takes the open transaction a step further.
func (g *game) end() {
	o := g.open
	if o == nil {
		return
	}
	switch g.dice.roll(16, "end") {
	case 0:
		if !o.wrote {
			g.cancel(o)
		}
	case 1:
		g.write(o)
		g.actualize(o)
	case 2:
		if !o.wrote {
			g.actualize(o)
		}
	case 3:
		if g.watched == o.start {
			g.hit("owner died")
			g.ownerStops(o)
		}
	case 4:
		g.write(o)
	default:
		if o.wrote || g.write(o) {
			g.flush(o)
		}
	}
	g.remember(o)
}

func (g *game) remember(o *owner) {
	if !slices.Contains(g.ended, o) {
		g.ended = append(g.ended, o)
	}
}

// serve lets a leaf do a job, or delivers an answer. A load's answer that waits
// while a flush is written and delivered is stale.
func (g *game) serve() {
	var open []func()
	for i := range g.leaves {
		if len(g.leaves[i].jobs) > 0 {
			open = append(open, func() { g.work(i) })
		}
		if len(g.leaves[i].answers) > 0 {
			open = append(open, func() { g.hitAnswer(i); g.deliver(i) })
		}
	}
	if len(open) > 0 {
		open[g.dice.roll(len(open), "leaf")]()
	}
}

func (g *game) hitAnswer(leaf int) {
	answers := g.leaves[leaf].answers
	if len(answers) == 0 {
		return
	}
	switch m := answers[0].(type) {
	case *messages.Written:
		g.hitWritten(m)
	case *messages.Loaded:
		g.hitLoaded(m)
	case *messages.EventsWritten:
		g.hitEventsWritten(m)
	}
}

func (g *game) hitWritten(m *messages.Written) {
	if m.Generation != g.core.generation {
		g.hit("old answer")
		return
	}
	switch m.Outcome {
	case messages.Done:
		if len(g.core.loads) > 0 {
			g.hit("flushed while loading")
		}
		if g.core.state == messages.StateInitializing {
			g.hit("checkpoint during catch-up")
		}
	case messages.Retry:
		g.hit("flush failed")
	case messages.Diverged:
		g.hit("flush diverged")
	case messages.Broken:
		g.hit("flush broken")
	}
}

func (g *game) hitLoaded(m *messages.Loaded) {
	switch stored := g.seqData[m.Numbers.Workspace]; {
	case m.Generation != g.core.generation:
		g.hit("old answer")
	case m.Err != nil:
		g.hit("load failed")
	case len(m.Numbers.Numbers) == 0 && len(stored.numbers) > 0,
		len(m.Numbers.Numbers) > 0 && m.Numbers.Numbers[0].Number < stored.last(messages.SeqWLogOffset):
		g.hit("stale load")
	}
}

// rest lets all leaves work off what they have.
func (g *game) rest() {
	g.settle()
}

// pass lets time pass and timers fire.
func (g *game) pass() {
	g.now += messages.Timestamp([]int{0, 1000, 100_000, 600_000, 6_000_000}[g.dice.roll(5, "time")])
	g.leap()
	for range g.dice.roll(3, "timers") {
		before := g.core.txn
		if g.fire() && before.open && !g.core.txn.open {
			g.hit("transaction limit")
		}
	}
}

// leap moves the clock by more, now and then: over midnight, a month, or back.
func (g *game) leap() {
	hours := [...]int{1, 1, 5, 5, 11, 24, 40, 170, 800, -1, -1, -8}
	i := g.dice.roll(10*len(hours), "leap")
	if i >= len(hours) {
		return
	}
	g.setBack = g.setBack || hours[i] < 0
	by := messages.Timestamp(time.Duration(hours[i]) * time.Hour / time.Microsecond)
	g.now += by
	for j := range g.timers {
		g.timers[j].due += min(0, by) // a timer does not wait for longer because the clock was set back
	}
}

// lag lets the owner of a transaction that has ended write, flush or actualize.
func (g *game) lag() {
	if len(g.ended) == 0 {
		return
	}
	o := g.ended[len(g.ended)-1-g.dice.roll(min(5, len(g.ended)), "owner")]
	if o == g.open || o.cancelled {
		return
	}
	if !g.inLog(o.token) && g.dice.roll(2, "write") == 0 && g.write(o) {
		g.hit("written after the end")
	}
	initializing := g.core.state == messages.StateInitializing
	if g.dice.roll(4, "what") == 0 {
		if _, ok := g.actualize(o).reply.(*messages.Actualizing); ok {
			g.hit("actualized again")
		}
		return
	}
	g.flush(o)
	if initializing {
		g.hit("late flush while actualizing")
	}
}

// pretend uses a token that nobody has.
func (g *game) pretend() {
	o := &owner{ws: 1, kind: kindWide}
	if g.open != nil {
		o.token = g.open.token
	}
	switch g.dice.roll(4, "token") {
	case 0:
		o.token.Serial += 1000
	case 1:
		o.token.Partition++
	case 2:
		o.token.Epoch += 7
	case 3:
		o.token.PLogOffset++
	}
	var c *call
	switch g.dice.roll(4, "message") {
	case 0:
		c = g.next(o, seqPlain)
	case 1:
		c = g.raise(o, seqPlain, 5)
	case 2:
		c = g.cancel(o)
	case 3:
		c = g.actualize(o)
	}
	if c.reply == nil {
		g.t.Fatalf("%T with a wrong token was not answered", c.message)
	}
	if refusalOf(c) != nil {
		g.hit("wrong token")
	}
}

// fault breaks the store, or mends it.
func (g *game) fault() {
	switch g.dice.roll(16, "fault") {
	case 0, 1:
		g.flushMode = flushFails
	case 2:
		g.flushMode = flushLies
	case 3, 4, 5, 10, 11, 12:
		g.flushMode = flushWorks
	case 6:
		g.failLoads = 1 + g.dice.roll(2, "loads")
	case 7:
		g.failReplays = 1 + g.dice.roll(3, "replays")
	case 8:
		g.failFind = 1
	case 9:
		g.diverge = true
	}
}

// rare does what would end a run too soon if it came often.
func (g *game) rare() {
	switch g.dice.roll(50, "rare") {
	case 0:
		g.hit("crash")
		g.crash()
	case 1, 2:
		g.hit("restart")
		g.hitIf(g.core.batch.underWay, "restart while writing")
		g.restart()
	case 3, 4, 5:
		g.hitStop()
		g.stop()
	case 6, 7:
		g.hit("reconfigured")
		g.config.Settings = randomSettings(g.dice)
		g.ask(nil, &messages.Reconfigure{Settings: g.config.Settings})
		g.repeatWritten(g.core.settings.BatchEvents + 1)
	case 8:
		g.breakFlush = g.dice.roll(3, "break") == 0
	case 9:
		g.breakReplay = g.dice.roll(3, "break") == 0
	case 10:
		g.hit("taken over")
		g.usurp()
	}
}

func (g *game) hitStop() {
	c := g.core
	for what, holds := range map[string]bool{
		"stop while actualizing":  c.state == messages.StateInitializing,
		"stop while failed":       c.state == messages.StateFailed,
		"stop while open":         c.txn.open,
		"stop while flushing":     c.flight.pending != nil && c.state != messages.StateInitializing,
		"stop while loading":      len(c.loads) > 0,
		"stop while writing":      c.batch.underWay,
		"stop while in doubt":     c.doubt.first != 0,
		"stop while searching":    len(c.searches) > 0,
		"stop while appends wait": c.queue.len() > c.queue.starts,
		"stop while idle":         c.state == messages.StateNormal && !c.txn.open && c.flight.pending == nil,
	} {
		if holds {
			g.hit(what)
		}
	}
}
