package storagetest

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/partita-go/partita/calendar"
	"github.com/partita-go/partita/ids"
	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage"
)

// Partition is the only writer of a partition in a test: it keeps the offsets,
// numbers and time that make the next event valid, as the sequencer would. It is
// not safe for concurrent use.
//
//	p := storagetest.Take(t, store, 0)
//	p.Append(t, storagetest.Spec{Workspace: 3, Create: []messages.SeqID{16}})
//	p.FlushAll(t)
type Partition struct {
	store storage.Store
	desc  messages.Descriptor
	id    messages.PartitionID
	epoch messages.Epoch

	last messages.PLogOffset
	time messages.Timestamp
	now  ledger

	checkpoint messages.PLogOffset
	// flushed is as of the checkpoint, pending are the events from there on.
	flushed ledger
	pending []messages.Numbering
}

// Spec says what an event shall be like. Everything that it leaves out is chosen
// so that the event is valid.
type Spec struct {
	Workspace messages.WSID
	// Kind is used for the first event of the workspace. Zero means the
	// descriptor's first kind.
	Kind messages.WSKind
	// Bring lists numbers that the event brings along, before those of Give, and Move sequences that it moves
	// behind everything else.
	Bring, Move []Ahead
	// Give lists the sequences of which the event gets a number.
	Give []messages.SeqID
	// Create lists the sequences of which the event gets a number that it creates
	// a record with, after those of Give.
	Create []messages.SeqID
	// Explicit are new records with ids that the event brings along.
	Explicit []messages.RecordID
	// Update are records that the event puts.
	Update []messages.RecordID
	Body   []byte
	// Sections are optional data.
	Sections []messages.Section
	// DedupID, Together and Trace are the event's.
	DedupID  messages.DedupID
	Together uint32
	Trace    ids.TraceID
	// Day is the local day of the event, which decides in which period the numbers of sequences
	// that restart are. Zero means [FirstDay]. Dated says that it is the event's business date; it is one
	// in any case if the event is given a number of a period in which its registration time can't be.
	Day   calendar.Date
	Dated bool
	// Zone is the time zone that the event gives its workspace.
	Zone string
	// At is the registration time. Zero means a microsecond after the event before.
	At messages.Timestamp
}

// Take takes an epoch of the partition and reads its whole log, so that the next
// event continues it.
func Take(t testing.TB, s storage.Store, id messages.PartitionID) *Partition {
	t.Helper()
	r, err := s.TakeEpoch(t.Context(), id)
	if err != nil {
		t.Fatalf("take epoch of partition %d: %v", id, err)
	}
	p := NewPartition(s, id, r.Epoch)
	for e, err := range s.PLog(t.Context(), id, 1) {
		if err != nil {
			t.Fatalf("read log of partition %d: %v", id, err)
		}
		p.Learn(e)
	}
	p.Flushed(r.Checkpoint)
	return p
}

// NewPartition returns a driver of a partition without events, under an epoch
// that somebody has taken.
func NewPartition(s storage.Store, id messages.PartitionID, epoch messages.Epoch) *Partition {
	return &Partition{
		store: s, desc: s.Descriptor(), id: id, epoch: epoch,
		now: make(ledger), flushed: make(ledger), checkpoint: 1,
	}
}

// Last returns the offset of the last event that the driver knows.
func (p *Partition) Last() messages.PLogOffset { return p.last }

// Numbers returns the last numbers given out to a workspace by all events that
// the driver knows, flushed or not.
func (p *Partition) Numbers(ws messages.WSID) storage.WorkspaceNumbers { return p.now.numbers(ws) }

// Build returns the next events as a batch. The driver stays as it is, until it
// is told with Learn that they are durable.
func (p *Partition) Build(specs ...Spec) storage.Batch {
	b := storage.Batch{Partition: p.id, Epoch: p.epoch}
	draft := make(ledger)
	at := p.time
	for i := range specs {
		a := p.draft(draft, &specs[i])
		at++
		if specs[i].At != 0 {
			at = specs[i].At
		}
		e := messages.Event{
			Kind:          messages.EventBusiness,
			Epoch:         p.epoch,
			Partition:     p.id,
			PLogOffset:    p.last + 1 + messages.PLogOffset(i),
			Workspace:     specs[i].Workspace,
			WorkspaceKind: a.kind.ID,
			WLogOffset:    messages.WLogOffset(a.next(messages.SeqWLogOffset, 0).Number),
			RegisteredAt:  at,
			Body:          slices.Clone(specs[i].Body),
			Sections:      specs[i].Sections,
			DedupID:       specs[i].DedupID,
			Together:      specs[i].Together,
			Trace:         specs[i].Trace,
			Zone:          specs[i].Zone,
		}
		fill(&e, &specs[i], a)
		b.Events = append(b.Events, e)
	}
	return b
}

// draft returns the workspace's account within a batch under construction.
func (p *Partition) draft(draft ledger, s *Spec) *account {
	if a := draft[s.Workspace]; a != nil {
		return a
	}
	var a *account
	if known := p.now[s.Workspace]; known != nil {
		a = known.clone()
	} else {
		kind := p.desc.Kinds[0]
		if k, ok := p.desc.Kind(s.Kind); ok {
			kind = k
		}
		a = newAccount(kind)
	}
	draft[s.Workspace] = a
	return a
}

// fill gives the event its numbers and records.
func fill(e *messages.Event, s *Spec, a *account) {
	day := cmp.Or(s.Day, FirstDay)
	if s.Dated || slices.ContainsFunc(slices.Concat(s.Give, s.Create), func(seq messages.SeqID) bool { return a.isFar(e, seq, day) }) {
		e.Date = day
	}
	e.Brought = uint32(len(s.Bring))
	for _, ahead := range s.Bring {
		e.Numbers = append(e.Numbers, a.ahead(ahead, day, e.Date))
	}
	for _, seq := range s.Give {
		e.Numbers = append(e.Numbers, a.next(seq, day))
	}
	for _, seq := range s.Create {
		n := a.next(seq, day)
		e.Numbers = append(e.Numbers, n)
		e.Records = append(e.Records, record(e, n.Record(), true))
	}
	for _, id := range s.Explicit {
		a.raise(id.SequenceNumber())
		e.Records = append(e.Records, record(e, id, true))
	}
	for _, id := range s.Update {
		e.Records = append(e.Records, record(e, id, false))
	}
	for _, ahead := range s.Move {
		e.Moves = append(e.Moves, a.ahead(ahead, day, e.Date))
	}
}

// isFar reports whether the registration time of an event can't be in a sequence's period of a day.
func (a *account) isFar(e *messages.Event, seq messages.SeqID, day calendar.Date) bool {
	def, _ := a.sequence(seq)
	return def.Restarts() && def.CheckDecided(e.RegisteredAt, def.Restart.PeriodOf(day)) != nil
}

// record returns a record whose data tells which event wrote it.
func record(e *messages.Event, id messages.RecordID, isNew bool) messages.Record {
	return messages.Record{ID: id, New: isNew, Data: fmt.Appendf(nil, "%v by event %d", id, e.PLogOffset)}
}

// Learn takes over events that are durable.
func (p *Partition) Learn(events ...messages.Event) {
	for i := range events {
		n := events[i].Numbering()
		n.Numbers = slices.Clone(n.Numbers)
		p.last, p.time = n.PLogOffset, n.RegisteredAt
		p.now.merge(&p.desc, n)
		p.pending = append(p.pending, n)
	}
}

// Append appends the events that the specs describe in one batch, and returns them.
func (p *Partition) Append(t testing.TB, specs ...Spec) []messages.Event {
	t.Helper()
	b := p.Build(specs...)
	if err := p.store.Append(t.Context(), b); err != nil {
		t.Fatalf("append %d events at offset %d of partition %d: %v", len(specs), p.last+1, p.id, err)
	}
	p.Learn(b.Events...)
	return b.Events
}

// BuildFlush returns the Flush that moves the driver's checkpoint to the given
// one, which must not lie before it or beyond the log.
func (p *Partition) BuildFlush(checkpoint messages.PLogOffset) storage.Flush {
	return storage.Flush{
		Partition:  p.id,
		Epoch:      p.epoch,
		Expected:   p.checkpoint,
		Checkpoint: checkpoint,
		Numbers:    p.ledgerAt(checkpoint).changesSince(p.flushed),
	}
}

// ledgerAt returns the workspaces that the pending events before the checkpoint
// touch, as of that checkpoint.
func (p *Partition) ledgerAt(checkpoint messages.PLogOffset) ledger {
	l := make(ledger)
	for _, n := range p.pending[:checkpoint-p.checkpoint] {
		if a := p.flushed[n.Workspace]; l[n.Workspace] == nil && a != nil {
			l[n.Workspace] = a.clone()
		}
		l.merge(&p.desc, n)
	}
	return l
}

// Flushed takes over a checkpoint that is durable.
func (p *Partition) Flushed(checkpoint messages.PLogOffset) {
	maps.Copy(p.flushed, p.ledgerAt(checkpoint))
	p.pending = p.pending[checkpoint-p.checkpoint:]
	p.checkpoint = checkpoint
}

// FlushTo moves the store's checkpoint to the given one.
func (p *Partition) FlushTo(t testing.TB, checkpoint messages.PLogOffset) {
	t.Helper()
	if err := p.store.Flush(t.Context(), p.BuildFlush(checkpoint)); err != nil {
		t.Fatalf("flush partition %d from %d to %d: %v", p.id, p.checkpoint, checkpoint, err)
	}
	p.Flushed(checkpoint)
}

// FlushAll moves the store's checkpoint behind the last event.
func (p *Partition) FlushAll(t testing.TB) {
	t.Helper()
	p.FlushTo(t, p.last+1)
}

// The kinds and sequences of [Descriptor].
const (
	KindPerson  messages.WSKind = 1
	KindCompany messages.WSKind = 2

	// SeqOrder is of both kinds, from 1.
	SeqOrder messages.SeqID = 16
	// SeqInvoice is a person's, from 1000.
	SeqInvoice messages.SeqID = 17
	// SeqStaff is a company's, from 50.
	SeqStaff messages.SeqID = 18
	// SeqBadge is a person's, from 1 to LargestBadge.
	SeqBadge messages.SeqID = 21
	// SeqReceipt is of both kinds and restarts each day. The two newest days keep their numbers, and
	// the day before the newest one in any case.
	SeqReceipt messages.SeqID = 19
	// SeqCase is of both kinds, from 100, and restarts each month. All months keep their numbers.
	SeqCase messages.SeqID = 20
)

// LargestBadge is the last number of SeqBadge.
const LargestBadge messages.Number = 5

// FirstDay is the day of events that say nothing of it.
const FirstDay calendar.Date = 20260329

// InitialInvoice and those below are the initial values of these sequences.
const (
	InitialInvoice messages.Number = 1000
	InitialStaff   messages.Number = 50
	InitialCase    messages.Number = 100
)

// Descriptor returns an application for tests: three partitions and two kinds.
// The workspaces of a partition p are those with WSID mod 3 = p.
func Descriptor(level messages.TrustLevel) messages.Descriptor {
	receipt := messages.Sequence{
		ID: SeqReceipt, Name: "receipt", Initial: 1, Restart: messages.Restart{Rule: calendar.Rule{Every: calendar.Day}, Keep: 2},
	}
	caseNumber := messages.Sequence{
		ID: SeqCase, Name: "case", Initial: InitialCase, Restart: messages.Restart{Rule: calendar.Rule{Every: calendar.Month}},
	}
	return messages.Descriptor{
		Application: "storagetest",
		Partitions:  3,
		TrustLevel:  level,
		Kinds: []messages.Kind{
			{ID: KindPerson, Name: "person", Sequences: []messages.Sequence{
				{ID: SeqOrder, Name: "order", Initial: 1},
				{ID: SeqInvoice, Name: "invoice", Initial: InitialInvoice},
				{ID: SeqBadge, Name: "badge", Initial: 1, Largest: LargestBadge},
				receipt, caseNumber,
			}},
			{ID: KindCompany, Name: "company", Sequences: []messages.Sequence{
				{ID: SeqOrder, Name: "order", Initial: 1},
				{ID: SeqStaff, Name: "staff", Initial: InitialStaff},
				receipt, caseNumber,
			}},
		},
	}
}
