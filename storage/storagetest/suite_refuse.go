package storagetest

import (
	"errors"
	"fmt"
	"slices"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage"
)

var refusalChecks = []check{
	{"AppendRefusesAndLeavesNothing", eachLevel, checkRefusals},
	{"AppendRefusesTakenLogEntries", eachLevel, checkTakenLogEntries},
}

// flaw makes an event wrong.
type flaw struct {
	name  string
	spoil func(*messages.Event)
	want  []error
}

// flaws are refused at every trust level. The event is one of workspace 3, a
// person, of which the tail knows events.
var flaws = []flaw{
	{"a PLog offset that is taken", func(e *messages.Event) { e.PLogOffset-- }, []error{storage.ErrOutOfOrder}},
	{"a PLog offset too high", func(e *messages.Event) { e.PLogOffset++ }, []error{storage.ErrOutOfOrder}},
	{"PLog offset 0", func(e *messages.Event) { e.PLogOffset = 0 }, []error{storage.ErrOutOfOrder, storage.ErrInvalidEvent}},
	{"a WLog offset that is taken", func(e *messages.Event) { e.WLogOffset-- }, []error{storage.ErrOutOfOrder, storage.ErrConflict}},
	{"a WLog offset too high", func(e *messages.Event) { e.WLogOffset++ }, []error{storage.ErrOutOfOrder}},
	{"WLog offset 0", func(e *messages.Event) { e.WLogOffset = 0 }, []error{storage.ErrOutOfOrder, storage.ErrInvalidEvent}},
	{"a time that falls", func(e *messages.Event) { e.RegisteredAt = 1 }, []error{storage.ErrTimeFell}},
	{"a workspace of another partition", func(e *messages.Event) { e.Workspace++ }, invalid},
	{"another partition than the batch", func(e *messages.Event) { e.Partition++ }, invalid},
	{"another epoch than the batch", func(e *messages.Event) { e.Epoch-- }, []error{storage.ErrInvalidEvent, messages.ErrFenced}},
	{"an unknown kind", func(e *messages.Event) { e.WorkspaceKind = 999 }, invalid},
	{"kind 0", func(e *messages.Event) { e.WorkspaceKind = 0 }, invalid},
	{"another kind than the workspace", func(e *messages.Event) { e.WorkspaceKind = KindCompany },
		[]error{storage.ErrInvalidEvent, messages.ErrKindMismatch}},
	{"what is no trace id", func(e *messages.Event) { e.Trace = 1 << 63 }, invalid},
	{"a number of an unknown sequence", func(e *messages.Event) { give(e, 999, 1) }, invalid},
	{"a number of another kind's sequence", func(e *messages.Event) { give(e, SeqStaff, InitialStaff) }, invalid},
	{"the WLog offset among the numbers", func(e *messages.Event) { give(e, messages.SeqWLogOffset, 9) }, invalid},
	{"a number above its sequence's end", func(e *messages.Event) {
		give(e, messages.SeqOWRecordID, messages.InitialCRecordID)
	}, invalid},
	{"a number above the largest", func(e *messages.Event) { give(e, SeqBadge, LargestBadge+1) }, invalid},
	{"a record above the largest number", func(e *messages.Event) { write(e, SeqBadge, LargestBadge+1, false) }, invalid},
	{"a number below its sequence's beginning", func(e *messages.Event) { give(e, SeqInvoice, InitialInvoice-1) }, invalid},
	{"a new record of an unknown sequence", func(e *messages.Event) { write(e, 999, 1, true) }, invalid},
	{"an update of an unknown sequence", func(e *messages.Event) { write(e, 999, 1, false) }, invalid},
	{"an explicit id above the cap", func(e *messages.Event) {
		write(e, SeqInvoice, (&messages.Sequence{ID: SeqInvoice, Initial: InitialInvoice}).MaxExplicit()+1, true)
	}, invalid},
	{"the largest explicit id", func(e *messages.Event) { write(e, SeqOrder, 1<<64-1, true) }, invalid},
	{"an OWRecordID among the CRecordIDs", func(e *messages.Event) {
		write(e, messages.SeqOWRecordID, messages.InitialCRecordID, true)
	}, invalid},
}

var invalid = []error{storage.ErrInvalidEvent}

func give(e *messages.Event, seq messages.SeqID, n messages.Number) {
	e.Numbers = append(e.Numbers, messages.SequenceNumber{Seq: seq, Number: n})
}

func write(e *messages.Event, seq messages.SeqID, n messages.Number, isNew bool) {
	e.Records = append(e.Records, messages.Record{ID: messages.RecordID{Seq: seq, Number: n}, New: isNew, Data: []byte("never stored")})
}

// checkRefusals: a batch with one wrong event, be it the first, one in the middle
// or the last, is refused whole; afterwards a right one is accepted.
func checkRefusals(e *env) {
	e.open()
	p := e.take(0)
	e.append(p, mixed(0)...)
	e.flush(p, 3)
	e.append(p, Spec{Workspace: 3, Create: []messages.SeqID{SeqOrder}})
	list := flaws
	if e.desc.TrustLevel == messages.TrustNone {
		list = append(slices.Clip(list), flaw{"a new record that exists", func(e *messages.Event) {
			write(e, SeqOrder, 1, true)
		}, []error{storage.ErrConflict}})
	}
	create := Spec{Workspace: 3, Create: []messages.SeqID{SeqOrder}}
	for _, f := range list {
		for at := range 3 {
			b := p.Build(create, create, create)
			f.spoil(&b.Events[at])
			what := fmt.Sprintf("%s in event %d of 3", f.name, at+1)
			err := e.store.Append(e.Context(), b)
			e.refused(what, err, f.want...)
			e.names(what, err, b.Events[at].PLogOffset)
		}
		e.append(p, create)
	}
	nowhere := p.Build(create)
	nowhere.Partition = messages.PartitionID(e.desc.Partitions)
	e.refused("a batch of no partition", e.store.Append(e.Context(), nowhere), invalid...)
	e.reopen()
}

// names checks that an invalid event is named, so that those beside it can be
// written without it.
func (e *env) names(what string, err error, want messages.PLogOffset) {
	e.Helper()
	if !errors.Is(err, storage.ErrInvalidEvent) {
		return
	}
	if got, ok := errors.AsType[*storage.InvalidEventError](err); !ok || got.PLogOffset != want {
		e.Errorf("%s: got %#v, want an *InvalidEventError of offset %d", what, err, want)
	}
}

// checkTakenLogEntries: entries that the projections hold already are taken too.
// The PLog's is known from the register; the WLog's must be looked up, which
// trust level 2 leaves out.
func checkTakenLogEntries(e *env) {
	e.open()
	p := e.take(0)
	e.append(p, Spec{Workspace: 3}, Spec{Workspace: 3}, Spec{Workspace: 6})
	again := p.Build(Spec{Workspace: 3})
	e.flushAll(p)
	for _, when := range []string{"flushed", "reopened"} {
		for offset := range p.last {
			again.Events[0].PLogOffset = offset + 1
			e.refused(when+" PLog entry", e.store.Append(e.Context(), again), storage.ErrOutOfOrder)
		}
		if e.desc.TrustLevel != messages.TrustAll {
			e.refuseTakenWLog(p, when)
		}
		e.reopen()
	}
}

func (e *env) refuseTakenWLog(p *Partition, when string) {
	e.Helper()
	for _, offset := range []messages.WLogOffset{1, 2} {
		b := p.Build(Spec{Workspace: 3})
		b.Events[0].WLogOffset = offset
		err := e.store.Append(e.Context(), b)
		e.refused(fmt.Sprintf("%s WLog entry %d", when, offset), err, storage.ErrConflict, storage.ErrOutOfOrder)
	}
}
