package storagetest

import (
	"bytes"
	"reflect"
	"slices"

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
