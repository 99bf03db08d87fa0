package bolt

import (
	"errors"
	"iter"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage"
	"github.com/partita-go/partita/storage/bolt/internal/expect"
	"github.com/partita-go/partita/storage/bolt/internal/format"
	"github.com/partita-go/partita/storage/bolt/internal/tail"
)

// forgetEnds makes the store look into state.db again, as after it was opened:
// nobody else can have written there meanwhile but a test.
func forgetEnds(s *Store) {
	for i := range s.partitions {
		p := &s.partitions[i]
		p.mu.Lock()
		p.ends = ends{}
		p.mu.Unlock()
	}
}

// coveredNow reports whether an event needs no look into state.db.
func coveredNow(s *Store, events ...messages.Event) bool {
	r := &writeRequest{partition: &s.partitions[events[0].Partition], events: make([]newEvent, len(events))}
	b := batchCheck{Batch: &storage.Batch{Partition: events[0].Partition, Epoch: events[0].Epoch, Events: events}}
	for i := range events {
		if err := r.events[i].prepare(s.schema, i, &b, new(batchCopies)); err != nil {
			return false
		}
	}
	_, covered := r.coveredAt(s.schema.Trust)
	return covered
}

// The first event of a workspace looks where its keys end; later ones need not, in
// the tail and flushed, until the store is opened again.
func TestEndsAreRemembered(t *testing.T) {
	dir, d := t.TempDir(), testDescriptor(1, messages.TrustNone)
	s := open(t, dir, d, Options{})
	w := takeOver(t, s, 0)
	for round := range 3 {
		if got := coveredNow(s, w.event(2)); got != (round > 0) {
			t.Errorf("round %d: covered is %v", round, got)
		}
		w.append(2)
		w.flush()
	}
	if coveredNow(s, w.event(4)) {
		t.Error("a workspace that nobody has looked at is covered")
	}
	closeStore(t, s)
	s = open(t, dir, d, Options{})
	w = takeOver(t, s, 0)
	if coveredNow(s, w.event(2)) {
		t.Error("covered at once after opening")
	}
}

// Whoever has read a workspace's numbers need not look where its keys end, also if it has none yet.
func TestEndsOfNumbersAreRemembered(t *testing.T) {
	for _, trust := range allLevels {
		dir, d := t.TempDir(), testDescriptor(1, trust)
		s := open(t, dir, d, Options{})
		w := takeOver(t, s, 0)
		w.append(2)
		w.flush()
		closeStore(t, s)
		w.s = open(t, dir, d, Options{})
		w = takeOver(t, w.s, 0)
		w.append(9) // whether the partition's log is free is looked at once
		for _, ws := range []messages.WSID{2, 4} {
			want := trust == messages.TrustAll
			for range 3 {
				if trust < messages.TrustAll && coveredNow(w.s, w.event(ws)) != want {
					t.Errorf("trust level %d, workspace %d: want covered: %v", trust, ws, want)
				}
				if want {
					w.append(ws)
					continue
				}
				_, err := w.s.Numbers(t.Context(), ws)
				expect.NoError(t, err)
				want = true
			}
			if e := w.s.partitions[0].ends.find(ws); trust < messages.TrustAll {
				expect.Equal(t, map[messages.TrustLevel]int{messages.TrustNone: 2}[trust], e.size()-1, "sequences")
			}
		}
	}
}

// A head that does not end where the log does teaches nothing: whoever appends meets it.
func TestEndsOfForeignHeads(t *testing.T) {
	s := open(t, t.TempDir(), testDescriptor(1, messages.TrustNone), Options{})
	w := takeOver(t, s, 0)
	w.append(9)
	w.append(3)
	w.flush()
	plant(t, s, storage.PlaceWLog, &messages.Event{Workspace: 2, WLogOffset: 4})
	changeHead(t, s, 3, func(h *format.Head) { h.LSNs[0] = foreignLSN })
	forgetEnds(s)
	w.append(9)
	for _, ws := range []messages.WSID{2, 3} {
		_, err := s.Numbers(t.Context(), ws)
		expect.NoError(t, err)
		if err := w.try(w.event(ws)); !conflictAt(err, storage.PlaceWLog) {
			t.Errorf("workspace %d: got %v, want a conflict", ws, err)
		}
	}
}

// What is remembered is never too low: whatever was appended, flushed and forgotten, a
// record that is there is in the way.
func TestEndsAreNeverTooLow(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		s := open(t, t.TempDir(), testDescriptor(1, messages.TrustNone), Options{})
		defer closeStore(t, s)
		w := takeOver(t, s, 0)
		taken := make(map[format.RecordKey]bool)
		for range rapid.IntRange(1, 40).Draw(rt, "steps") {
			switch rapid.IntRange(0, 8).Draw(rt, "step") {
			case 0:
				w.flush()
			case 1:
				forgetEnds(s)
			case 2:
				p := &s.partitions[0]
				p.mu.Lock()
				p.ends.age()
				p.mu.Unlock()
			case 3:
				_, err := s.Numbers(t.Context(), messages.WSID(rapid.IntRange(0, 2).Draw(rt, "read")))
				expect.NoError(t, err)
			default:
				// A record with an id near the end of its sequence, taken or not.
				e := w.event(messages.WSID(rapid.IntRange(0, 2).Draw(rt, "workspace")))
				seq := rapid.IntRange(0, 1).Draw(rt, "sequence")
				e.Numbers, e.Records = nil, e.Records[seq:seq+1]
				id, initial := &e.Records[0].ID, []messages.Number{messages.InitialCRecordID, 1000}[seq]
				id.Number = max(id.Number+messages.Number(rapid.IntRange(0, 6).Draw(rt, "from the end")), initial+3) - 3
				k := format.RecordKey{Workspace: e.Workspace, ID: *id}
				if taken[k] && coveredNow(s, e) {
					rt.Fatalf("%v is covered, but taken", k)
				}
				err := w.try(e)
				if taken[k] != errors.Is(err, storage.ErrConflict) || err != nil && !taken[k] {
					rt.Fatalf("%v: taken: %v, got %v", k, taken[k], err)
				}
				taken[k] = true
			}
		}
	})
}

// What was learned before a flush is not remembered after it: what the flush moved is
// in neither what was seen of state.db nor in the tail.
func TestEndsLearnedBeforeAFlush(t *testing.T) {
	s := open(t, t.TempDir(), testDescriptor(1, messages.TrustNone), Options{})
	w := takeOver(t, s, 0)
	e := w.event(2)
	r := requestOf(t, s, &storage.Batch{Partition: 0, Epoch: e.Epoch, Events: []messages.Event{e}})
	l := learnedOf(t, s, r, make([]foreknown, len(r.events)))
	w.append(2, 2)
	w.flush()
	forgetEnds(s)
	p := &s.partitions[0]
	p.mu.Lock()
	p.remember(l, 1, 100)
	p.mu.Unlock()
	if e := p.ends.find(2); e.known() {
		t.Errorf("remembered %+v", e)
	}
}

// A foreign entry further behind the end of a partition's log is met when the log
// comes there, though everything before it was covered.
func TestEndsBeforeAForeignPLogEntry(t *testing.T) {
	s := open(t, t.TempDir(), testDescriptor(1, messages.TrustNone), Options{})
	w := takeOver(t, s, 0)
	putList(t, s, 0, 4, foreignLSN)
	w.append(2, 2, 2)
	if err := w.try(w.event(2)); !conflictAt(err, storage.PlacePLog) {
		t.Errorf("got %v, want a conflict", err)
	}
}

// sizeOfEnds is how many ends are found in a generation.
func sizeOfEnds(g *generation) (n int) {
	for _, e := range g.all() {
		n += e.size()
	}
	return n
}

// all returns what is found in a generation.
func (g *generation) all() iter.Seq2[messages.WSID, kept] {
	return func(yield func(messages.WSID, kept) bool) {
		if g == nil {
			return
		}
		for ws := range g.places {
			if !yield(ws, g.find(ws)) {
				return
			}
		}
	}
}

// endsModel is what a partition has, and what it remembers of it with little room.
type endsModel struct {
	partition
	limit int
	// heads is what state.db has, all what it and the tail have.
	heads, all map[messages.WSID]*workspaceEnds
}

func (m *endsModel) headOf(ws messages.WSID) *workspaceEnds {
	if m.heads[ws] == nil {
		return &workspaceEnds{whole: true}
	}
	return m.heads[ws]
}

// learn takes the ends of some sequences from a head, as whoever appends does.
func (m *endsModel) learn(ws messages.WSID, sequences []messages.SeqID) {
	head := m.headOf(ws)
	e := &workspaceEnds{wlog: head.wlog, kind: head.kind}
	for _, seq := range sequences {
		e.records = append(e.records, messages.SequenceNumber{Seq: seq, Number: head.last(seq)})
	}
	m.remember(learned{of: map[messages.WSID]*workspaceEnds{ws: e}}, m.checkpoint, m.limit)
}

// last returns the end of a sequence, 0 if it has none.
func (e *workspaceEnds) last(seq messages.SeqID) messages.Number {
	for _, n := range e.records {
		if n.Seq == seq {
			return n.Number
		}
	}
	return 0
}

func (m *endsModel) append(ws messages.WSID, records []tail.Record) {
	if m.all[ws] == nil {
		m.all[ws] = &workspaceEnds{kind: testKind, whole: true}
	}
	e := m.all[ws]
	e.wlog++
	for _, rec := range records {
		at := slices.IndexFunc(e.records, func(n messages.SequenceNumber) bool { return n.Seq == rec.Seq })
		if at < 0 {
			at = len(e.records)
			e.records = append(e.records, messages.SequenceNumber{Seq: rec.Seq})
		}
		e.records[at].Number = max(e.records[at].Number, rec.Number)
	}
	m.tail.Push(tail.Entry{Workspace: ws, WLog: e.wlog, Kind: e.kind}, messages.DedupID{}, nil, records)
	m.ends.raise(&newEvent{ws: ws, wsKind: e.kind, wlog: e.wlog, records: records})
}

func (m *endsModel) flush() {
	for ws, e := range m.all {
		m.heads[ws] = &workspaceEnds{wlog: e.wlog, kind: e.kind, records: slices.Clone(e.records), whole: true}
	}
	m.checkpoint = m.tail.End()
	m.tail.Drop(m.checkpoint)
}

// check makes sure that nothing is above what is remembered, and that this is not too much.
func (m *endsModel) check(t expect.T, most int) {
	for _, g := range []*generation{m.ends.young, m.ends.old} {
		for ws, got := range g.all() {
			all := m.all[ws]
			if all == nil {
				all = new(workspaceEnds)
			}
			expect.Equal(t, all.wlog, got.wlog, "log of workspace", ws)
			for _, n := range all.records {
				if next := (tail.Record{Seq: n.Seq, Number: n.Number}); got.isBelow(next) {
					t.Fatalf("workspace %d: got %+v, but %+v is taken", ws, got, next)
				}
			}
		}
	}
	young, old := sizeOfEnds(m.ends.young), sizeOfEnds(m.ends.old)
	if young != m.ends.young.size() || young > most || old > 2*most {
		t.Fatalf("got %d young ones, counted as %d, and %d old ones, want at most %d", young, m.ends.young.size(), old, most)
	}
}

// What is remembered is never too low and never too much, with many sequences and little room.
func TestEndsOfManySequences(t *testing.T) {
	const sequences, records = 30, 3
	rapid.Check(t, func(rt *rapid.T) {
		m := endsModel{limit: 12, heads: map[messages.WSID]*workspaceEnds{}, all: map[messages.WSID]*workspaceEnds{}}
		m.checkpoint = 1
		m.tail.Restart(1)
		seq := rapid.Map(rapid.IntRange(1, sequences), func(n int) messages.SeqID { return messages.SeqID(n) })
		record := rapid.Custom(func(rt *rapid.T) tail.Record {
			return tail.Record{Seq: seq.Draw(rt, "sequence"), Number: messages.Number(rapid.IntRange(1, 9).Draw(rt, "number"))}
		})
		for range rapid.IntRange(1, 100).Draw(rt, "steps") {
			ws := messages.WSID(rapid.IntRange(1, 5).Draw(rt, "workspace"))
			switch rapid.IntRange(0, 9).Draw(rt, "step") {
			case 0:
				m.flush()
			case 1:
				m.ends.age()
			case 2:
				m.learn(ws, rapid.SliceOfNDistinct(seq, 0, records, rapid.ID).Draw(rt, "sequences"))
			case 3:
				m.rememberRead(ws, m.headOf(ws), m.checkpoint, m.limit)
			default:
				m.append(ws, rapid.SliceOfN(record, 0, records).Draw(rt, "records"))
			}
			m.check(rt, m.limit+1+sequences) // one workspace more than there was room for
		}
	})
}

// TestEndsAreBounded: what is remembered does not grow with the workspaces that are in use.
func TestEndsAreBounded(t *testing.T) {
	const limit = 64
	p := &partition{checkpoint: 1}
	ws := messages.WSID(0)
	for lot := 1; lot <= 50; lot++ {
		for range limit / 2 {
			ws++
			p.remember(learned{of: map[messages.WSID]*workspaceEnds{ws: {whole: ws%2 == 0}}}, 1, limit)
		}
		for w := messages.WSID(1); w <= ws; w++ {
			record := tail.Record{Seq: messages.SeqID(lot), Number: 1}
			p.ends.raise(&newEvent{ws: w, wlog: messages.WLogOffset(lot), records: []tail.Record{record}})
		}
		if young, old := sizeOfEnds(p.ends.young), sizeOfEnds(p.ends.old); young > limit || old > limit {
			t.Fatalf("lot %d: got %d young ones and %d old ones, want at most %d each", lot, young, old, limit)
		}
	}
	many := learned{of: make(map[messages.WSID]*workspaceEnds)}
	for w := range messages.WSID(10 * limit) {
		many.of[w+ws] = &workspaceEnds{}
	}
	if p.remember(many, 1, limit); p.ends.young.size() > limit {
		t.Errorf("got %d at once, want at most %d", p.ends.young.size(), limit)
	}
}

// What is remembered has room for just as much as its limit says.
func TestEndsInUseStayYoung(t *testing.T) {
	for size, young := range map[int]bool{6: true, 7: false} {
		d := ends{limit: 10}
		e := d.put(1, keptEnds{wlog: 4, kind: testKind, whole: true})
		for seq := range messages.SeqID(3) {
			e.add(seq, 7)
		}
		want := e.appendTo(nil)
		d.age()
		for range size {
			d.put(2, keptEnds{})
		}
		e = d.rejuvenate(1)
		expect.Equal(t, young, e.in == d.young, size)
		got := e.appendTo(nil)
		slices.SortFunc(got, messages.SequenceNumber.ComparePlace)
		slices.SortFunc(want, messages.SequenceNumber.ComparePlace)
		expect.Equal(t, want, got, "sequences")
		expect.Equal(t, messages.WLogOffset(4), e.wlog)
		expect.Equal(t, true, e.whole && e.kind == testKind)
	}
}

// The end of a sequence is looked for in so many events of the tail, not in all of them.
func TestTailWalkIsBounded(t *testing.T) {
	s := open(t, t.TempDir(), testDescriptor(1, messages.TrustNone), Options{})
	w := takeOver(t, s, 0)
	w.appendMany(tail.WalkLimit, 1)
	end := messages.SequenceNumber{Seq: testSeq, Number: 7}
	n, ok := s.partitions[0].tail.LastNumber(1, end)
	expect.Equal(t, w.last[numberKey{1, testSeq}], n)
	expect.Equal(t, true, ok)
	w.append(1)
	_, ok = s.partitions[0].tail.LastNumber(1, end)
	expect.Equal(t, false, ok)
}
