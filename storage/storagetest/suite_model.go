package storagetest

import (
	"cmp"
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/partita-go/partita/calendar"
	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage"
)

const modelCheck = "RandomOperationsAgreeWithModel"

var modelChecks = []check{{modelCheck, eachLevel, func(e *env) { checkModel(e.TB, e.factory, e.desc.TrustLevel) }}}

// checkModel runs random operations against stores of any of the levels and the model, and
// compares all that can be read after each. The flags of rapid say how many.
func checkModel(tb testing.TB, f Factory, levels ...messages.TrustLevel) {
	rapid.Check(tb, func(t *rapid.T) {
		d := Descriptor(rapid.SampledFrom(levels).Draw(t, "trust"))
		m := &machine{
			env:   &env{TB: rapidTB{TB: tb, t: t}, factory: f, desc: d, parts: make(map[messages.PartitionID]*Partition)},
			stale: make(map[messages.PartitionID]*Partition),
		}
		m.env.open()
		t.Cleanup(m.env.close)
		for id := range messages.PartitionID(d.Partitions) {
			m.env.take(id)
		}
		t.Repeat(map[string]func(*rapid.T){
			"":                 func(*rapid.T) { m.env.same("after a random operation") },
			"append":           m.append,
			"append spoilt":    m.appendSpoilt,
			"append stale":     m.appendStale,
			"flush":            m.flush,
			"flush again":      m.flushAgain,
			"flush too far":    m.flushTooFar,
			"take epoch":       m.takeEpoch,
			"reopen":           func(*rapid.T) { m.env.reopen() },
			"crash":            func(*rapid.T) { m.env.crash() },
			"copy":             m.copy,
			"flush to the end": func(t *rapid.T) { m.env.flushAll(m.partition(t)) },
		})
		Verify(m.env, m.env.store)
	})
}

// rapidTB reports failures to rapid, which then looks for a shorter run, and
// leaves all else to the test.
type rapidTB struct {
	testing.TB
	t *rapid.T
}

func (r rapidTB) Helper()                           { r.t.Helper() }
func (r rapidTB) Error(args ...any)                 { r.t.Error(args...) }
func (r rapidTB) Errorf(format string, args ...any) { r.t.Errorf(format, args...) }
func (r rapidTB) Fatal(args ...any)                 { r.t.Fatal(args...) }
func (r rapidTB) Fatalf(format string, args ...any) { r.t.Fatalf(format, args...) }
func (r rapidTB) Fail()                             { r.t.Fail() }
func (r rapidTB) FailNow()                          { r.t.FailNow() }
func (r rapidTB) Failed() bool                      { return r.t.Failed() }

// machine is one run of random operations.
type machine struct {
	env *env
	// stale are the drivers that were fenced last.
	stale map[messages.PartitionID]*Partition
	// flushed is the last flush that was accepted.
	flushed *storage.Flush
}

func (m *machine) partition(t *rapid.T) *Partition {
	id := rapid.Uint32Range(0, m.env.desc.Partitions-1).Draw(t, "partition")
	return m.env.parts[messages.PartitionID(id)]
}

// batch draws one to three events.
func (m *machine) batch(t *rapid.T, p *Partition) storage.Batch {
	specs := make([]Spec, rapid.IntRange(1, 3).Draw(t, "events"))
	kinds := make(map[messages.WSID]messages.WSKind)
	for i := range specs {
		ws := rapid.SampledFrom([]messages.WSID{0, 3, 1<<63 + 1}).Draw(t, "workspace") + messages.WSID(p.id)
		if kinds[ws] == 0 {
			kinds[ws] = p.Numbers(ws).Kind
		}
		if kinds[ws] == 0 {
			kinds[ws] = rapid.SampledFrom([]messages.WSKind{KindPerson, KindCompany}).Draw(t, "kind")
		}
		specs[i] = drawSpec(t, ws, kinds[ws])
	}
	drawTogether(t, specs)
	b := p.Build(specs...)
	for i := range b.Events {
		if createsWritten(b.Events[i].Records) {
			t.Skip("an event creates a record that it has written")
		}
	}
	return b
}

var modelDays = []calendar.Date{20260101, 20260228, 20260301, 20260302, 20260303, 20260304, 20260310}

func drawSpec(t *rapid.T, ws messages.WSID, kind messages.WSKind) Spec {
	seqs := []messages.SeqID{messages.SeqCRecordID, messages.SeqOWRecordID, SeqOrder, SeqInvoice}
	if kind == KindCompany {
		seqs[3] = SeqStaff
	}
	some := rapid.SliceOfN(rapid.SampledFrom(seqs), 0, 2)
	given := rapid.SliceOfN(rapid.SampledFrom(append(slices.Clip(seqs), SeqReceipt, SeqReceipt, SeqCase)), 0, 3)
	ids := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) messages.RecordID {
		return messages.RecordID{
			Seq:    rapid.SampledFrom(seqs).Draw(t, "sequence"),
			Number: rapid.SampledFrom([]messages.Number{1, 2, 3, 5, 49, 50, 52, 999, 1000, 1003}).Draw(t, "number"),
		}
	}), 0, 1)
	dated := rapid.Bool().Draw(t, "dated")
	ahead := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) Ahead {
		to := Ahead{Seq: rapid.SampledFrom(append(slices.Clip(seqs), SeqReceipt, SeqCase)).Draw(t, "sequence")}
		to.By = messages.Number(rapid.IntRange(0, 3).Draw(t, "by"))
		if !dated {
			to.Day = rapid.SampledFrom(modelDays).Draw(t, "day")
		}
		return to
	}), 0, 2)
	return Spec{
		Workspace: ws, Kind: kind,
		Bring:    ahead.Draw(t, "bring"),
		Move:     ahead.Draw(t, "move"),
		Give:     given.Draw(t, "give"),
		Create:   some.Draw(t, "create"),
		Explicit: ids.Draw(t, "explicit"),
		Update:   ids.Draw(t, "update"),
		Body:     rapid.SliceOfN(rapid.Byte(), 0, 3).Draw(t, "body"),
		Day:      rapid.SampledFrom(modelDays).Draw(t, "day"),
		Dated:    dated,
		Zone:     rapid.SampledFrom([]string{"", "", "", "Europe/Zurich", "Asia/Tokyo", "Mars/Olympus_Mons"}).Draw(t, "zone"),
		DedupID:  rapid.SampledFrom([]messages.DedupID{{}, {}, {1}, {2}, {3}, {15: 4}, {15: 5}}).Draw(t, "id"),
	}
}

// drawTogether may let the first event be appended together with those that can
// stand behind it.
func drawTogether(t *rapid.T, specs []Spec) {
	n := uint32(0)
	for _, s := range specs[1:] {
		if s.Workspace != specs[0].Workspace || !s.DedupID.IsZero() {
			break
		}
		n++
	}
	specs[0].Together = rapid.Uint32Range(0, n).Draw(t, "together")
}

func createsWritten(records []messages.Record) bool {
	seen := make(map[messages.RecordID]bool)
	for _, r := range records {
		if r.New && seen[r.ID] {
			return true
		}
		seen[r.ID] = true
	}
	return false
}

// conflicts says whether the batch creates a record that is there already, where
// that matters.
func (m *machine) conflicts(b storage.Batch) bool {
	if m.env.desc.TrustLevel != messages.TrustNone {
		return false
	}
	there := make(map[rowKey]bool)
	for _, e := range slices.Concat(m.env.model.partitions[b.Partition].events, b.Events) {
		for _, r := range e.Records {
			key := rowKey{workspace: e.Workspace, id: r.ID}
			if r.New && there[key] && e.PLogOffset >= b.Events[0].PLogOffset {
				return true
			}
			there[key] = true
		}
	}
	return false
}

// duplicates lists the events of the batch whose ids are there already.
func (m *machine) duplicates(b storage.Batch) []storage.Duplicate {
	first := make(map[messages.WSID]map[messages.DedupID]messages.WLogOffset)
	var list []storage.Duplicate
	for _, e := range slices.Concat(m.env.model.partitions[b.Partition].events, b.Events) {
		if first[e.Workspace] == nil {
			first[e.Workspace] = make(map[messages.DedupID]messages.WLogOffset)
		}
		at, there := first[e.Workspace][e.DedupID]
		switch {
		case e.DedupID == messages.DedupID{}:
		case there:
			list = append(list, duplicateOf(&e, at))
		default:
			first[e.Workspace][e.DedupID] = e.WLogOffset
		}
	}
	return list
}

func (m *machine) append(t *rapid.T) {
	p := m.partition(t)
	b := m.batch(t, p)
	if duplicates := m.duplicates(b); duplicates != nil {
		m.env.duplicate("append of an id that is there", b, duplicates...)
		return
	}
	err := m.env.put(m.env.Context(), b)
	if m.conflicts(b) {
		m.env.isOneOf("append of a record that exists", err, storage.ErrConflict)
		return
	}
	if err != nil {
		t.Fatalf("append %+v: %v", b, err)
	}
	p.Learn(b.Events...)
	m.env.model.append(b.Events...)
}

// appendSpoilt appends a batch with one wrong event among right ones.
func (m *machine) appendSpoilt(t *rapid.T) {
	b := m.batch(t, m.partition(t))
	if m.conflicts(b) {
		t.Skip("wrong for two reasons")
	}
	e := &b.Events[rapid.IntRange(0, len(b.Events)-1).Draw(t, "which")]
	spoil := rapid.SampledFrom([]func(){
		func() { e.PLogOffset++ }, func() { e.PLogOffset-- }, func() { e.RegisteredAt = -1 },
		func() { e.Workspace++ }, func() { e.WorkspaceKind = 999 }, func() { give(e, 999, 1) },
	}).Draw(t, "flaw")
	spoil()
	if err := m.env.put(m.env.Context(), b); err == nil {
		t.Fatalf("append %+v: got no error", b)
	}
}

func (m *machine) appendStale(t *rapid.T) {
	p := m.stale[m.partition(t).id]
	if p == nil {
		t.Skip("nobody was fenced yet")
	}
	m.env.isOneOf("append under a stale epoch", m.env.put(m.env.Context(), m.batch(t, p)), messages.ErrFenced)
	m.env.isOneOf("flush under a stale epoch", m.env.store.Flush(m.env.Context(), p.BuildFlush(p.last+1)), messages.ErrFenced)
}

func (m *machine) flush(t *rapid.T) {
	p := m.partition(t)
	checkpoint := messages.PLogOffset(rapid.Uint64Range(uint64(p.checkpoint), uint64(p.last+1)).Draw(t, "checkpoint"))
	f := p.BuildFlush(checkpoint)
	m.env.flush(p, checkpoint)
	m.flushed = &f
}

func (m *machine) flushAgain(t *rapid.T) {
	if m.flushed == nil {
		t.Skip("nothing was flushed yet")
	}
	now := m.env.model.register(m.flushed.Partition)
	err := m.env.store.Flush(m.env.Context(), *m.flushed)
	switch {
	case now.Epoch != m.flushed.Epoch:
		m.env.isOneOf("a repeated flush under a stale epoch", err, messages.ErrFenced)
	case now.Checkpoint != m.flushed.Checkpoint:
		m.env.isOneOf("an older flush repeated", err, storage.ErrCheckpoint)
	case err != nil:
		t.Fatalf("the last flush repeated: %v", err)
	}
}

func (m *machine) flushTooFar(t *rapid.T) {
	p := m.partition(t)
	f := p.BuildFlush(p.last + 1)
	f.Checkpoint += messages.PLogOffset(rapid.IntRange(1, 3).Draw(t, "too far"))
	m.env.isOneOf(fmt.Sprintf("flush to %d", f.Checkpoint), m.env.store.Flush(m.env.Context(), f), storage.ErrCheckpoint)
}

// copy goes on in a copy, which is written from then on. It takes long, and so is done
// less often than the rest.
func (m *machine) copy(t *rapid.T) {
	copies := m.env.copies()
	if len(copies) == 0 {
		t.Skip("the factory makes none")
	}
	if rapid.IntRange(0, 2).Draw(t, "copy") > 0 {
		t.Skip("another time")
	}
	way := rapid.SampledFrom(copies).Draw(t, "way")
	m.env.goOnIn(way)
	if way.Projected {
		m.flushed = nil
	}
}

func (m *machine) takeEpoch(t *rapid.T) {
	p := m.partition(t)
	m.stale[p.id] = p
	m.env.take(p.id)
}

// model is the naive store: nothing but the events that were acknowledged, the
// epochs and the checkpoints. All else is looked up by scanning the events.
type model struct {
	desc       messages.Descriptor
	partitions []modelPartition
}

type modelPartition struct {
	epoch      messages.Epoch
	checkpoint messages.PLogOffset
	events     []messages.Event
}

func newModel(d messages.Descriptor) *model {
	m := &model{desc: d, partitions: make([]modelPartition, d.Partitions)}
	for i := range m.partitions {
		m.partitions[i].checkpoint = 1
	}
	return m
}

func (m *model) append(events ...messages.Event) {
	for _, e := range events {
		p := &m.partitions[e.Partition]
		p.events = append(p.events, canonicalEvent(e))
	}
}

func (m *model) register(id messages.PartitionID) storage.Register {
	p := &m.partitions[id]
	r := storage.Register{Epoch: p.epoch, Last: messages.PLogOffset(len(p.events)), Checkpoint: p.checkpoint}
	if r.Last > 0 {
		r.LastRegisteredAt = p.events[r.Last-1].RegisteredAt
	}
	return r
}

// observe returns what the store must show.
func (m *model) observe(others []messages.WSID) observed {
	o := observed{Workspaces: make(map[messages.WSID]observedWorkspace)}
	for _, ws := range others {
		o.Workspaces[ws] = m.workspace(ws)
	}
	for id := range m.partitions {
		p := &m.partitions[id]
		o.Registers = append(o.Registers, m.register(messages.PartitionID(id)))
		o.PLogs = append(o.PLogs, canonical(slices.Clone(p.events)))
		o.Tails = append(o.Tails, tailOf(p.events[p.checkpoint-1:]))
		for _, e := range p.events {
			if _, ok := o.Workspaces[e.Workspace]; !ok {
				o.Workspaces[e.Workspace] = m.workspace(e.Workspace)
			}
		}
	}
	return o
}

func tailOf(events []messages.Event) []messages.Numbering {
	var tail []messages.Numbering
	for i := range events {
		n := events[i].Numbering()
		n.Numbers = canonical(slices.Clone(n.Numbers))
		tail = append(tail, n)
	}
	return tail
}

func (m *model) workspace(ws messages.WSID) observedWorkspace {
	p := &m.partitions[messages.PartitionOf(ws, m.desc.Partitions)]
	w := observedWorkspace{Numbers: m.numbers(ws, p.events[:p.checkpoint-1]), IDs: make(map[messages.DedupID]messages.WLogOffset)}
	for _, e := range p.events {
		if e.Workspace == ws {
			w.WLog = append(w.WLog, e)
			w.Rows = putRows(w.Rows, &e)
			if !e.DedupID.IsZero() {
				w.IDs[e.DedupID] = e.WLogOffset
			}
		}
	}
	slices.SortFunc(w.Rows, func(a, b storage.Row) int {
		return cmp.Or(cmp.Compare(a.ID.Seq, b.ID.Seq), cmp.Compare(a.ID.Number, b.ID.Number))
	})
	return w
}

// numbers merges all that the events say about a workspace.
func (m *model) numbers(ws messages.WSID, events []messages.Event) storage.WorkspaceNumbers {
	l := make(ledger)
	for i := range events {
		if events[i].Workspace == ws {
			l.merge(&m.desc, events[i].Numbering())
		}
	}
	return l.numbers(ws)
}

// putRows replaces or adds the rows that an event writes.
func putRows(rows []storage.Row, e *messages.Event) []storage.Row {
	for _, r := range e.Records {
		row := storage.Row{ID: r.ID, Data: r.Data, Partition: e.Partition, PLogOffset: e.PLogOffset}
		i := slices.IndexFunc(rows, func(old storage.Row) bool { return old.ID == r.ID })
		if i < 0 {
			rows = append(rows, row)
		} else {
			rows[i] = row
		}
	}
	return rows
}
