package bolt

import (
	"slices"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage/bolt/internal/format"
	"github.com/partita-go/partita/storage/bolt/internal/tail"
)

// ends remembers of some workspaces where their keys end, so that the next ones need
// not be looked for in state.db: in it and in the tail together, no entry of a log and
// no record of a sequence lies above its end. This stays true without looking again,
// since nobody but this process writes the file, and it writes nothing there but
// what was appended. The partition's lock guards it.
//
// There are two generations: what is learned or appended to belongs to the young one, and
// when that has its share the old one is forgotten, so that what is in use stays.
type ends struct {
	young, old *generation
	// limit is how many the young generation may have.
	limit int
	// plogFree says that state.db has no entry behind the end of the partition's log.
	plogFree bool
}

// workspaceEnds is where the keys of a workspace end.
type workspaceEnds struct {
	// wlog is the last offset of its log, kind its kind if it has an event.
	wlog messages.WLogOffset
	kind messages.WSKind
	// records are the largest numbers of the records of some of its sequences; whole says that the others have none.
	records []messages.SequenceNumber
	whole   bool
}

// covers reports whether an event needs no look into state.db: its keys are free.
// Whether it continues its workspace's log, the committer sees.
func (d *ends) covers(n *newEvent, trust messages.TrustLevel) bool {
	e := d.find(n.ws)
	return e.known() && n.wlog > e.wlog && (trust > messages.TrustNone || e.areBelow(n.records))
}

// isBelow reports whether a record lies above the end of its sequence, which is known.
func (e *workspaceEnds) isBelow(r tail.Record) bool {
	for i := range e.records {
		if e.records[i].Seq == r.Seq {
			return r.Number > e.records[i].Number
		}
	}
	return e.whole
}

// raise takes a record in, if the end of its sequence is known.
func (e *workspaceEnds) raise(r tail.Record) {
	for i := range e.records {
		if e.records[i].Seq == r.Seq {
			e.records[i].Number = max(e.records[i].Number, r.Number)
			return
		}
	}
	if e.whole {
		e.records = append(e.records, messages.SequenceNumber{Seq: r.Seq, Number: r.Number})
	}
}

// raise takes an event in that was appended.
func (d *ends) raise(n *newEvent) {
	e := d.rejuvenate(n.ws)
	if !e.known() {
		return
	}
	// A foreign key may lie above it.
	e.wlog, e.kind = max(e.wlog, n.wlog), n.wsKind
	// What is remembered grows by the sequences that have had no records, as long as there is room.
	e.whole = e.whole && e.in == d.young && d.young.size() < d.limit
	for _, r := range n.records {
		e.raise(r)
	}
}

// find returns what is remembered of a workspace.
func (d *ends) find(ws messages.WSID) kept {
	if e := d.young.find(ws); e.known() {
		return e
	}
	return d.old.find(ws)
}

// rejuvenate is find for a workspace that is in use: it becomes young, if there is room.
func (d *ends) rejuvenate(ws messages.WSID) kept {
	e := d.old.find(ws)
	if !e.known() {
		return d.young.find(ws)
	}
	if d.young.size()+e.size() > d.limit {
		return e
	}
	delete(d.old.places, ws)
	young := d.put(ws, *e.keptEnds)
	for place := e.records; place != 0; place = e.in.records[place-1].next {
		r := &e.in.records[place-1]
		young.add(r.seq, r.number)
	}
	return young
}

// put makes a workspace young, without records.
func (d *ends) put(ws messages.WSID, e keptEnds) kept {
	if d.young == nil {
		d.young = new(generation)
	}
	return d.young.put(ws, e)
}

// makeRoom makes room for so many ends in the young generation, which may have as many as limit.
func (d *ends) makeRoom(size, limit int) {
	if d.limit = limit; d.young.size()+size > limit/2 {
		d.age()
	}
}

// age makes the young generation the old one.
func (d *ends) age() { d.old, d.young = d.young, nil }

// learned is what a look into state.db has shown.
type learned struct {
	of map[messages.WSID]*workspaceEnds
	// passed has the workspaces of which the request's first event teaches nothing. Neither do
	// those behind it: they were compared with the first one only.
	passed map[messages.WSID]bool
	// plogFree says that the partition's log has no entry in state.db at or behind from.
	plogFree bool
	from     messages.PLogOffset
}

func newLearned(r *writeRequest) *learned {
	return &learned{of: make(map[messages.WSID]*workspaceEnds), from: r.events[0].offset}
}

// learnPLog takes whether the partition's log is free from where the request begins.
func (l *learned) learnPLog(free bool) {
	if l != nil {
		l.plogFree = free
	}
}

// pass passes over a workspace of which the first event needs no look.
func (l *learned) pass(ws messages.WSID) {
	if l != nil && l.of[ws] == nil {
		if l.passed == nil {
			l.passed = make(map[messages.WSID]bool)
		}
		l.passed[ws] = true
	}
}

// learn takes from its workspace's head where the keys of an event end. Its kind is what the
// event says, which was compared with what is stored.
func (l *learned) learn(n *newEvent, h *format.Head, trust messages.TrustLevel) {
	if l == nil || l.passed[n.ws] {
		return
	}
	e := l.of[n.ws]
	if e == nil {
		e = &workspaceEnds{wlog: h.Last, kind: n.wsKind}
		l.of[n.ws] = e
	}
	if trust > messages.TrustNone {
		return
	}
	for _, r := range n.records {
		if !e.knows(r.Seq) {
			last := messages.Number(0)
			if s := h.Find(r.Seq); s != nil {
				last = s.Top
			}
			e.records = append(e.records, messages.SequenceNumber{Seq: r.Seq, Number: last})
		}
	}
}

// knows reports whether a sequence has an end.
func (e *workspaceEnds) knows(seq messages.SeqID) bool {
	return slices.ContainsFunc(e.records, func(n messages.SequenceNumber) bool { return n.Seq == seq })
}

// remember takes over what was learned when the checkpoint was the one given, with
// what the tail has above it. The caller holds the partition's lock.
func (p *partition) remember(l learned, checkpoint messages.PLogOffset, limit int) {
	if p.checkpoint != checkpoint {
		return
	}
	d := &p.ends
	d.plogFree = d.plogFree || l.plogFree && l.from <= p.last+1
	d.makeRoom(l.size(), limit)
	for ws, e := range l.of {
		if d.young.size() >= limit {
			break
		}
		d.add(ws, e, &p.tail)
	}
}

func (l learned) size() (n int) {
	for _, e := range l.of {
		n += e.size()
	}
	return n
}

func (e *workspaceEnds) size() int { return 1 + len(e.records) }

// endsOf returns where a workspace's keys end by its head, with all its sequences; nil if the head does not end where the
// log does, or does not say of which kind the workspace is. Whoever appends will look at it then.
func endsOf(h *format.Head, trust messages.TrustLevel, end messages.LSN) *workspaceEnds {
	if h.LastLSN() > end || h.Last > 0 && h.Kind == 0 {
		return nil
	}
	e := &workspaceEnds{wlog: h.Last, kind: h.Kind}
	if trust > messages.TrustNone {
		return e
	}
	e.whole = true
	for i := range h.Sequences {
		if s := &h.Sequences[i]; s.Top > 0 {
			e.records = append(e.records, messages.SequenceNumber{Seq: s.Seq, Number: s.Top})
		}
	}
	return e
}

// rememberRead is remember for a workspace whose head was read by whoever wants its numbers: an append probably follows.
func (p *partition) rememberRead(ws messages.WSID, e *workspaceEnds, checkpoint messages.PLogOffset, limit int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.checkpoint != checkpoint {
		return
	}
	p.ends.makeRoom(e.size(), limit)
	p.ends.add(ws, e, &p.tail)
}

// add takes over what was learned of a workspace and is not known yet.
func (d *ends) add(ws messages.WSID, l *workspaceEnds, t *tail.Tail) {
	e := d.rejuvenate(ws)
	if !e.known() {
		now := keptEnds{wlog: l.wlog, kind: l.kind}
		if _, last := t.LastOf(ws); last != nil {
			if l.wlog > last.WLog {
				return // a foreign head lies ahead: that is not the log's end
			}
			now.wlog, now.kind = last.WLog, last.Kind
		} else {
			now.whole = l.whole
		}
		e = d.put(ws, now)
	}
	for _, end := range l.records {
		if e.end(end.Seq) != nil {
			continue
		}
		if n, ok := t.LastNumber(ws, end); ok {
			e.add(end.Seq, n)
		}
	}
}
