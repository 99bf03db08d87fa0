package sequencer

import (
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/partita-go/partita/calendar"
	"github.com/partita-go/partita/messages"
)

// append asks for a whole transaction; mostly as a shell does, which holds the lane.
func (g *game) append() {
	held := !g.core.TakesRequests()
	if held {
		g.hitHeld()
		if g.dice.roll(4, "unheld") > 0 {
			return
		}
	}
	m, wrong := g.message()
	before := len(g.appends)
	initializing := g.core.state == messages.StateInitializing
	c := g.world.appendWrong(m, wrong)
	g.hitIf(initializing && c.reply == nil, "append while actualizing")
	g.hitIf(len(g.appends) > before && c.reply == nil && g.core.txn.open, "append behind a transaction")
	if c.reply == nil && g.core.loads[m.Workspace] != nil {
		c.waited = "appended after a load"
	}
}

// burst sends several at once, which become a batch.
func (g *game) burst() {
	if g.dice.roll(8, "written") == 0 {
		g.repeatWritten(1)
		return
	}
	again := g.dice.roll(4, "again") == 0
	for range 1 + g.dice.roll(8, "burst") {
		m := g.earlier()
		if !again || m == nil || !g.core.TakesRequests() {
			g.append()
			continue
		}
		g.world.append(g.repeat(m))
	}
}

// repeatWritten sends Appends of at least so many drafts again that are in the log: those that the core does not
// remember are refused by the store, several of one batch.
func (g *game) repeatWritten(drafts int) {
	back := g.appends[len(g.appends)-min(40, len(g.appends)):]
	for _, c := range back {
		m := c.message.(*messages.Append)
		if len(m.Drafts) < drafts || m.DedupID == (messages.DedupID{}) || c.wrong != nil || g.findID(m.Workspace, m.DedupID) == nil {
			continue
		}
		if !g.core.TakesRequests() {
			return
		}
		again := *m
		again.Deadline = 0
		g.hitIf(len(m.Drafts) > g.core.settings.BatchEvents, "repeated beyond the batch limit")
		g.world.append(again)
	}
}

func (g *game) hitHeld() {
	c := g.core
	g.hitIf(c.inFlight.events >= c.settings.InFlightEvents, "held by events in flight")
	g.hitIf(c.inFlight.events < c.settings.InFlightEvents && c.inFlight.bytes >= c.settings.InFlightBytes, "held by bytes in flight")
	g.hitIf(c.queue.starts > 0 && c.batch.underWay, "held by a Start behind a batch")
}

// message makes an Append, and says what is wrong with it whatever the state.
func (g *game) message() (messages.Append, error) {
	if again := g.earlier(); again != nil && g.dice.roll(3, "again") == 0 {
		g.hitIf(len(again.Drafts) > g.core.settings.BatchEvents && g.findID(again.Workspace, again.DedupID) != nil, "repeated beyond the batch limit")
		return g.repeat(again), nil
	}
	m := messages.Append{Workspace: g.workspace()}
	m.Kind = g.kindOf(m.Workspace)
	if kind := g.truth[m.Workspace].kind; kind != 0 {
		m.Kind = kind
	}
	if g.dice.roll(8, "kind") == 0 {
		m.Kind = messages.WSKind(1 + g.dice.roll(4, "kind"))
	}
	drafts := 1
	if g.dice.roll(4, "group") == 0 {
		drafts = 1 + g.dice.roll(4, "drafts")
	}
	numbers := 0
	for i := range drafts {
		m.Drafts = append(m.Drafts, g.draft(&m, i, &numbers))
	}
	if g.dice.roll(2, "id") == 0 {
		binary.BigEndian.PutUint64(m.DedupID[:], uint64(g.dice.roll(2000, "id"))+1)
	}
	if g.dice.roll(5, "expected") == 0 {
		m.Expected = g.expected(m.Workspace)
	}
	switch g.dice.roll(8, "deadline") {
	case 0:
		m.Deadline = g.now + messages.Timestamp(g.dice.roll(100_000, "until"))
	case 1:
		m.Deadline = g.now - 1
	}
	return g.spoil(m)
}

// expected is where the workspace is, or will soon be, or was.
func (g *game) expected(ws messages.WSID) *messages.WLogOffset {
	at := messages.WLogOffset(g.truth[ws].last(messages.SeqWLogOffset)) + messages.WLogOffset(g.dice.roll(3, "ahead"))
	at -= min(at, messages.WLogOffset(g.dice.roll(2, "behind")))
	return &at
}

// draft makes the next event of a message, with numbers and records.
func (g *game) draft(m *messages.Append, i int, numbers *int) messages.Draft {
	seqs := []messages.SeqID{messages.SeqCRecordID, messages.SeqOWRecordID}
	switch m.Kind {
	case kindWide:
		seqs = append(seqs, seqPlain, seqFrom, seqNarrow)
	case kindOther:
		seqs = append(seqs, seqPlain, seqOther)
	case kindTill:
		seqs = append(seqs, seqReceipt, seqReceipt, seqBill, seqBill, seqRound)
		if g.late {
			seqs = []messages.SeqID{messages.SeqCRecordID, seqBill, seqBill, seqBill}
		}
	}
	d := messages.Draft{Body: fmt.Appendf(nil, "%d/%d", len(g.appends), i), Date: g.date(m.Kind), Zone: g.zone(m.Kind)}
	switch g.dice.roll(30, "body") {
	case 0:
		d.Body = fmt.Appendf(nil, "%s %s", poison, d.Body)
	case 1, 2, 3:
		d.Body = append(d.Body, make([]byte, g.dice.roll(600, "length"))...)
	}
	g.takeOver(m, &d, seqs, numbers)
	for range g.dice.roll(4, "wanted") {
		wanted := messages.Wanted{Seq: seqs[g.dice.roll(len(seqs), "sequence")], Count: uint32(g.dice.roll(3, "count"))}
		d.Wanted = append(d.Wanted, wanted)
		*numbers += int(max(wanted.Count, 1))
	}
	for range g.dice.roll(3, "records") {
		r := messages.DraftRecord{New: g.dice.roll(2, "new") == 0, Data: []byte{byte(g.dice.roll(3, "data"))}}
		if *numbers > 0 && g.dice.roll(3, "explicit") > 0 {
			r.Number = g.dice.roll(*numbers, "number")
		} else {
			r.ID = g.explicit(m, seqs[g.dice.roll(len(seqs), "sequence")])
		}
		if g.isNoID(m, &d, &r) {
			continue
		}
		if !mentioned(m, &d, &r) {
			d.Records = append(d.Records, r)
		}
	}
	return d
}

// isNoID reports whether a row has the number of a sequence that restarts, but for a few.
func (g *game) isNoID(m *messages.Append, d *messages.Draft, r *messages.DraftRecord) bool {
	if r.ID != (messages.RecordID{}) {
		return g.restarts(m.Kind, r.ID.Seq)
	}
	given := givenSeqs(&messages.Append{Drafts: append(slices.Clone(m.Drafts), *d)})
	return g.restarts(m.Kind, given[r.Number]) && g.dice.roll(20, "no id") > 0
}

// mentioned reports whether a message has a row already.
func mentioned(m *messages.Append, d *messages.Draft, r *messages.DraftRecord) bool {
	for _, d := range append(slices.Clone(m.Drafts), *d) {
		for _, other := range d.Records {
			if other.ID == r.ID && other.Number == r.Number {
				return true
			}
		}
	}
	return false
}

// explicit is an id of a record below, at or above the sequence's last number.
func (g *game) explicit(m *messages.Append, seq messages.SeqID) messages.RecordID {
	last := g.truth[m.Workspace].last(seq)
	def := g.kinds()[m.Kind][seq]
	n := max(1, last) - min(max(1, last)-1, messages.Number(g.dice.roll(3, "below")))
	if g.dice.roll(2, "above") == 0 {
		n = max(last, def.Initial)
		n += min(messages.Number(g.dice.roll(3, "above")), maxOf(seq)-n)
	}
	return messages.RecordID{Seq: seq, Number: min(n, def.MaxExplicit())}
}

// earlier is an Append with an id that was sent before.
func (g *game) earlier() *messages.Append {
	if len(g.appends) == 0 {
		return nil
	}
	back := []int{5, 5, 40}[g.dice.roll(3, "back")]
	c := g.appends[len(g.appends)-1-g.dice.roll(min(back, len(g.appends)), "earlier")]
	if m := c.message.(*messages.Append); m.DedupID != (messages.DedupID{}) && c.wrong == nil {
		return m
	}
	return nil
}

// repeat sends an Append again, now and then with something else in it.
func (g *game) repeat(m *messages.Append) messages.Append {
	again := *m
	again.Deadline = 0
	if m.Expected == nil && g.dice.roll(4, "expected") == 0 {
		again.Expected = g.expected(m.Workspace)
	}
	if g.dice.roll(4, "other") > 0 {
		return again
	}
	again.Drafts = slices.Clone(m.Drafts)
	d := &again.Drafts[g.dice.roll(len(m.Drafts), "draft")]
	switch g.dice.roll(7, "other") {
	case 4:
		d.Moves = append(slices.Clone(d.Moves), messages.SequenceNumber{Seq: messages.SeqCRecordID, Number: 1 << 60})
	case 5:
		d.Brought = append([]messages.SequenceNumber{{Seq: messages.SeqCRecordID, Number: 1 << 60}}, d.Brought...)
	case 6:
		d.Zone = "Europe/Rome"
	case 3:
		d.Date = naiveAdd(calendar.Day, max(d.Date, 20260101), 1)
		d.Brought, d.Moves = unnamed(d.Brought), unnamed(d.Moves)
	case 0:
		d.Body = append(slices.Clone(d.Body), "another"...)
	case 1:
		d.Wanted = append(slices.Clone(d.Wanted), messages.Wanted{Seq: messages.SeqCRecordID})
	case 2:
		again.Drafts = append(again.Drafts, messages.Draft{Body: []byte("one more")})
	}
	return again
}

// spoil makes something wrong with a message now and then.
func (g *game) spoil(m messages.Append) (messages.Append, error) {
	d := &m.Drafts[len(m.Drafts)-1]
	switch g.dice.roll(80, "wrong") {
	case 9, 10:
		return m, g.spoilTaken(&m, d)
	case 7:
		d.Date = 20260230
		return m, messages.ErrDraft
	case 11:
		d.Zone = "Mars/Olympus_Mons"
		return m, calendar.ErrZone
	case 8:
		d.Records = append(d.Records, messages.DraftRecord{ID: messages.RecordID{Seq: seqReceipt, Number: 1}})
		return m, messages.ErrUnknownSequence
	case 0:
		m.Drafts = nil
	case 1:
		d.Records = append(d.Records, messages.DraftRecord{Number: 1000})
		return m, messages.ErrDraft
	case 2:
		d.Wanted = append(d.Wanted, messages.Wanted{Seq: 99})
		return m, messages.ErrUnknownSequence
	case 3:
		d.Wanted = append(d.Wanted, messages.Wanted{Seq: messages.SeqCRecordID, Count: messages.MaxEventNumbers + 1})
		return m, messages.ErrTooManyNumbers
	case 4:
		d.Records = append(d.Records, messages.DraftRecord{ID: messages.RecordID{Seq: messages.SeqCRecordID, Number: maxOf(messages.SeqCRecordID)}, New: true})
		return m, messages.ErrExplicitID
	case 5:
		m.Workspace++
		return m, messages.ErrWrongPartition
	case 6:
		m.Kind = 9
		return m, messages.ErrUnknownKind
	}
	return m, nil
}

// breakWrites breaks the appender, or puts something of somebody else's in the way.
func (g *game) breakWrites() {
	ws := messages.WSID(2*g.dice.roll(6, "workspace") + 1)
	switch n := g.dice.roll(14, "write"); n {
	case 0, 1, 2, 3, 4:
		g.writeFault = writeFault(1 + n)
	case 5, 6:
		g.writeFault, g.faultyWrites = writeDiverges, 1+g.dice.roll(6, "times")
	case 7, 8, 9:
		seqs := []messages.SeqID{messages.SeqWLogOffset, messages.SeqCRecordID, seqPlain}
		seq := seqs[g.dice.roll(3, "sequence")]
		for range 1 + g.dice.roll(3, "workspaces") { // several appends of one batch are refused then
			next := max(g.truth[ws].last(seq)+1, g.kinds()[kindWide][seq].Initial)
			g.taken[taken{ws, seq, next + messages.Number(g.dice.roll(3, "ahead"))}] = true
			ws = (ws + 2) % 12
		}
	case 10:
		clear(g.taken)
	case 11:
		g.failSearches = 1
	case 12:
		g.astray[ws] = true
	case 13:
		clear(g.astray)
	}
}
