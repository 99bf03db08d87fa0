package storagetest

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"sync/atomic"
	"time"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage"
)

var appendChecks = []check{
	{"AppendIsCompleteAtAcknowledgement", eachLevel, checkAppendComplete},
	{"AppendSameTime", anyLevel, checkAppendSameTime},
	{"AppendKeepsBodiesAndSections", anyLevel, checkBodies},
	{"AppendLeavesSlicesToTheCaller", anyLevel, checkCallerSlices},
	{"AppendManyWorkspaces", anyLevel, checkManyWorkspaces},
	{"AppendHugeWorkspaceIDs", anyLevel, checkHugeIDs},
	{"TailFull", anyLevel, checkTailFull},
}

// checkAppendComplete: from its acknowledgement on an event is in the logs, the
// tail and the register, and its records are there, flushed or not.
func checkAppendComplete(e *env) {
	e.open()
	var parts []*Partition
	for id := range messages.PartitionID(3) {
		parts = append(parts, e.take(id))
	}
	for i, s := range mixed(0) {
		for _, p := range parts {
			s.Workspace = (s.Workspace/3)*3 + messages.WSID(p.id)
			e.append(p, s)
			e.same("after an append")
		}
		if i == 2 {
			e.flushAll(parts[0])
		}
	}
	e.append(parts[1], plain(1)...)
	e.same("after an append of a batch")
}

// checkAppendSameTime: the time may stand still, within a batch and between two.
func checkAppendSameTime(e *env) {
	e.open()
	p := e.take(0)
	e.append(p, Spec{Workspace: 3, At: 1000}, Spec{Workspace: 3, At: 1000})
	e.append(p, Spec{Workspace: 3, At: 1000})
}

// checkBodies: empty and big bodies, empty and big records, sections.
func checkBodies(e *env) {
	e.open()
	p := e.take(0)
	big := bytes.Repeat([]byte("0123456789abcdef"), 1<<16)
	e.append(p, Spec{Workspace: 3, Body: nil}, Spec{Workspace: 3, Body: []byte{}})
	e.append(p, Spec{Workspace: 3, Body: big})
	e.append(p, Spec{Workspace: 3, Sections: []messages.Section{
		{Tag: 16, Data: []byte("one")}, {Tag: 65535, Data: bytes.Repeat([]byte{1}, 5000)}, {Tag: 16, Data: nil},
	}})
	b := p.Build(Spec{Workspace: 3, Create: []messages.SeqID{SeqOrder, SeqOrder}})
	b.Events[0].Records[0].Data = nil
	b.Events[0].Records[1].Data = big
	if err := e.put(e.Context(), b); err != nil {
		e.Fatalf("append of records with empty and big data: %v", err)
	}
	p.Learn(b.Events...)
	e.model.append(b.Events...)
	e.same("before the flush")
	e.flushAll(p)
	e.same("after the flush")
	e.reopen()
}

// checkCallerSlices: the store changes nothing and keeps nothing of what it was
// given.
func checkCallerSlices(e *env) {
	e.open()
	p := e.take(0)
	b := p.Build(mixed(0)...)
	given := cloneEvents(b.Events)
	if err := e.put(e.Context(), b); err != nil {
		e.Fatalf("append: %v", err)
	}
	if !reflect.DeepEqual(b.Events, given) {
		e.Fatalf("append changed the caller's events: got %+v, want %+v", b.Events, given)
	}
	p.Learn(b.Events...)
	e.model.append(b.Events...)
	for i := range b.Events {
		scribble(&b.Events[i])
	}
	clear(b.Events)
	e.same("after the caller changed its batch")

	f := p.BuildFlush(4)
	if err := e.store.Flush(e.Context(), f); err != nil {
		e.Fatalf("flush: %v", err)
	}
	for _, w := range f.Numbers {
		clear(w.Numbers)
	}
	clear(f.Numbers)
	p.Flushed(4)
	e.model.partitions[0].checkpoint = 4
	e.same("after the caller changed its flush")
}

// scribble overwrites all that an event refers to.
func scribble(e *messages.Event) {
	fill := func(b []byte) {
		for i := range b {
			b[i] = 'X'
		}
	}
	for i := range e.Numbers {
		e.Numbers[i] = messages.SequenceNumber{Seq: 99, Number: 99}
	}
	fill(e.Body)
	for i := range e.Records {
		fill(e.Records[i].Data)
		e.Records[i] = messages.Record{}
	}
	for i := range e.Sections {
		fill(e.Sections[i].Data)
		e.Sections[i] = messages.Section{}
	}
}

// checkManyWorkspaces: the workspaces of a partition do not disturb each other.
func checkManyWorkspaces(e *env) {
	e.open()
	p := e.take(1)
	for round := range 3 {
		var specs []Spec
		for i := range 200 {
			specs = append(specs, Spec{
				Workspace: messages.WSID(1 + 3*i), Kind: KindPerson + messages.WSKind(i%2),
				Create: []messages.SeqID{SeqOrder, messages.SeqCRecordID},
			})
		}
		e.append(p, specs...)
		if round > 0 {
			e.flush(p, p.last-77)
		}
	}
	e.same("with 200 workspaces")
}

// checkHugeIDs: every WSID is legal.
func checkHugeIDs(e *env) {
	e.open()
	for _, ws := range []messages.WSID{0, 1<<63 - 1, 1 << 63, 1<<64 - 1, 1<<64 - 2} {
		id := messages.PartitionOf(ws, e.desc.Partitions)
		p := e.parts[id]
		if p == nil {
			p = e.take(id)
		}
		e.append(p, Spec{Workspace: ws, Create: []messages.SeqID{SeqOrder}})
	}
	e.same("before the flush")
	for _, p := range e.parts {
		e.flushAll(p)
	}
}

// checkTailFull: a full tail refuses and a flush makes room.
func checkTailFull(e *env) {
	limiter, ok := e.factory.(TailLimiter)
	if !ok {
		return
	}
	e.use(limiter.OpenLimited(e, e.desc, 4))
	p := e.take(0)
	e.append(p, slices.Repeat([]Spec{{Workspace: 3, Create: []messages.SeqID{SeqOrder}}}, 4)...)
	full := p.Build(Spec{Workspace: 3})
	e.refused("an append to a full tail", e.put(e.Context(), full), storage.ErrTailFull)
	e.append(e.take(1), Spec{Workspace: 1})
	e.flush(p, 2)
	e.append(p, Spec{Workspace: 3})
	e.refused("an append to a tail that is full again", e.put(e.Context(), p.Build(Spec{Workspace: 3})), storage.ErrTailFull)
}

// answerLimit is how long an answer to a submitted batch may take.
const answerLimit = 10 * time.Second

var submitChecks = []check{
	{"SubmitAnswersOnce", eachLevel, checkSubmit},
}

// put appends a batch: by Append, and every other time, if the store is a
// [storage.Submitter], by Submit. So whatever is promised of the one is checked of the other too.
func (e *env) put(ctx context.Context, b storage.Batch) error {
	e.Helper()
	s, ok := e.store.(storage.Submitter)
	if !ok || e.writes.Add(1)%2 == 0 {
		return e.store.Append(ctx, b)
	}
	_, err := e.submit(ctx, s, b)
	return err
}

// submit submits a batch, and waits for the answer. It reports whether the batch was taken at once, and fails the
// test if there is another answer, or one to a batch that was not handed over.
func (e *env) submit(ctx context.Context, s storage.Submitter, b storage.Batch) (taken bool, err error) {
	e.Helper()
	answers := make(chan error, 1)
	var count atomic.Int32
	rest := s.Submit(b, func(err error) {
		if count.Add(1) == 1 {
			answers <- err
			return
		}
		e.Errorf("a submitted batch was answered again: %v", err)
	})
	if rest != nil {
		if count.Load() > 0 {
			e.Errorf("a batch was answered that was not taken")
		}
		if err := rest(ctx); err != nil {
			if count.Load() > 0 {
				e.Errorf("a batch was answered that was refused: %v", err)
			}
			return false, err
		}
	}
	select {
	case err = <-answers:
		return rest == nil, err
	case <-time.After(answerLimit):
		e.Errorf("a submitted batch was not answered within %v", answerLimit)
		return rest == nil, errUnanswered
	}
}

// checkSubmit: a batch that is taken is durable when it is answered, or refused as
// Append would refuse it, also when the store closes meanwhile.
func checkSubmit(e *env) {
	p := e.half()
	s := optional[storage.Submitter](e)
	taken := 0
	for range 4 {
		b := p.Build(Spec{Workspace: 3, Create: []messages.SeqID{SeqInvoice}})
		ok, err := e.submit(e.Context(), s, b)
		if err != nil {
			e.Fatalf("submit: %v", err)
		}
		if ok {
			taken++
		}
		p.Learn(b.Events...)
		e.model.append(b.Events...)
		e.same("after it was submitted")
	}
	if taken == 0 {
		e.Error("the store takes no batch of a workspace that it has just written")
	}
	stale := p.Build(Spec{Workspace: 3})
	stale.Epoch--
	for i := range stale.Events {
		stale.Events[i].Epoch--
	}
	_, err := e.submit(e.Context(), s, stale)
	e.isOneOf("a batch submitted under a stale epoch", err, messages.ErrFenced)
	e.checkSubmitClosing(p, s)
}

// checkSubmitClosing hands batches over without waiting for their answers, while the
// store closes.
func (e *env) checkSubmitClosing(p *Partition, s storage.Submitter) {
	e.Helper()
	type outcome struct {
		event messages.Event
		err   error
	}
	const most = 512
	all := p.Build(slices.Repeat([]Spec{{Workspace: 3}}, most)...)
	outcomes := make(chan outcome, 2*most)
	closed := make(chan error, 1)
	sent := 0
	submit := func(event messages.Event) {
		b := storage.Batch{Partition: all.Partition, Epoch: all.Epoch, Events: []messages.Event{event}}
		if s.Submit(b, func(err error) { outcomes <- outcome{event, err} }) == nil {
			sent++
		}
	}
	for i, event := range all.Events[:most-1] {
		if i == 8 {
			go func() { closed <- e.store.Close(e.Context()) }()
		}
		submit(event)
	}
	if err := <-closed; err != nil {
		e.Fatalf("close: %v", err)
	}
	// However slow that was, one comes after it.
	submit(all.Events[most-1])
	var written []messages.Event
	for i := range sent {
		select {
		case o := <-outcomes:
			if o.err == nil {
				written = append(written, o.event)
				continue
			}
			e.isOneOf("a batch submitted while the store closes", o.err, storage.ErrClosed, storage.ErrOutOfOrder)
		case <-time.After(answerLimit):
			e.Fatalf("%d of %d batches submitted while the store closes were not answered", sent-i, sent)
		}
	}
	slices.SortFunc(written, func(a, b messages.Event) int { return cmp.Compare(a.PLogOffset, b.PLogOffset) })
	p.Learn(written...)
	e.model.append(written...)
	e.reopen()
}

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
