package storagetest

import (
	"bytes"
	"reflect"
	"slices"

	"github.com/partita-go/partita/messages"
)

var openChecks = []check{
	{"EmptyStore", eachLevel, checkEmptyStore},
	{"DescriptorNormalized", eachLevel, checkDescriptor},
	{"NoSuchPartition", anyLevel, checkNoSuchPartition},
	{"ReopenKeepsEverything", eachLevel, checkReopen},
	{"CrashKeepsAcknowledged", eachLevel, checkCrash},
}

// checkEmptyStore: nothing is there, and nobody may write before taking an epoch.
func checkEmptyStore(e *env) {
	e.open()
	e.same("in an empty store")
	for _, epoch := range []messages.Epoch{0, 1} {
		p := NewPartition(e.store, 0, epoch)
		e.refused("an append before any TakeEpoch", e.put(e.Context(), p.Build(Spec{Workspace: 3})), messages.ErrFenced)
		e.refused("a flush before any TakeEpoch", e.store.Flush(e.Context(), p.BuildFlush(1)), messages.ErrFenced)
	}
}

// checkDescriptor: the store keeps a normalized copy of its own.
func checkDescriptor(e *env) {
	want := e.desc.Normalized()
	given := e.desc.Normalized()
	slices.Reverse(given.Kinds)
	for i := range given.Kinds {
		slices.Reverse(given.Kinds[i].Sequences)
	}
	e.use(e.factory.Open(e, given))
	given.Kinds[0].Name = "changed by the caller"
	if got := e.store.Descriptor(); !reflect.DeepEqual(got, want) {
		e.Fatalf("descriptor: got %+v, want %+v", got, want)
	}
	got := e.store.Descriptor()
	got.Kinds[0].Sequences[0].Initial = 77
	if got := e.store.Descriptor(); !reflect.DeepEqual(got, want) {
		e.Fatalf("descriptor after the caller changed the one returned: got %+v, want %+v", got, want)
	}
	e.reopen()
	if got := e.store.Descriptor(); !reflect.DeepEqual(got, want) {
		e.Fatalf("descriptor after reopening: got %+v, want %+v", got, want)
	}
}

// checkNoSuchPartition: a partition that the application does not have is
// refused, whatever is asked of it.
func checkNoSuchPartition(e *env) {
	e.open()
	id := messages.PartitionID(e.desc.Partitions)
	p := NewPartition(e.store, id, 1)
	_, takeErr := e.store.TakeEpoch(e.Context(), id)
	_, registerErr := e.store.Register(e.Context(), id)
	_, tailErr := e.store.Tail(e.Context(), id, 1, 1)
	_, logErr := collectEvents(e.store.PLog(e.Context(), id, 1))
	for what, err := range map[string]error{
		"TakeEpoch": takeErr, "Register": registerErr, "Tail": tailErr, "PLog": logErr,
		"AwaitPLog": e.store.AwaitPLog(e.Context(), id, 1),
		"Append":    e.put(e.Context(), p.Build(Spec{Workspace: 3})),
		"Flush":     e.store.Flush(e.Context(), p.BuildFlush(1)),
	} {
		if err == nil {
			e.Errorf("%s of partition %d of %d: got no error", what, id, e.desc.Partitions)
		}
	}
	e.same("after calls to a partition that does not exist")
}

// mixed is a batch with everything in it: numbers, records old and new, sections,
// bodies, two kinds.
func mixed(p messages.PartitionID) []Spec {
	a, b := messages.WSID(p)+3, messages.WSID(p)+6
	return []Spec{
		{Workspace: a, Create: []messages.SeqID{SeqOrder, messages.SeqCRecordID}, Body: []byte("first")},
		{Workspace: b, Kind: KindCompany, Give: []messages.SeqID{SeqStaff, SeqStaff}, Create: []messages.SeqID{messages.SeqOWRecordID}},
		{
			Workspace: a, Create: []messages.SeqID{SeqInvoice}, Update: []messages.RecordID{{Seq: SeqOrder, Number: 1}},
			Sections: []messages.Section{{Tag: 17, Data: []byte("seven")}, {Tag: 40000, Data: nil}},
		},
		{Workspace: b, Kind: KindCompany, Explicit: []messages.RecordID{{Seq: SeqStaff, Number: 70}, {Seq: SeqStaff, Number: 3}}},
		{Workspace: b, Kind: KindCompany, Give: []messages.SeqID{SeqStaff}, Body: bytes.Repeat([]byte{0, 255}, 500)},
	}
}

// plain is mixed without the event that brings explicit ids, so that it can be
// appended again and again.
func plain(p messages.PartitionID) []Spec {
	specs := mixed(p)
	return append(specs[:3], specs[4])
}

// checkReopen: a clean close and open loses nothing and changes nothing, with
// projections that lag by all, some and no events.
func checkReopen(e *env) {
	e.open()
	for id := range messages.PartitionID(3) {
		p := e.take(id)
		e.append(p, mixed(id)...)
		e.flush(p, 1+messages.PLogOffset(id)*2)
	}
	e.same("before reopening")
	for range 2 {
		e.reopen()
		e.same("after reopening")
		for _, p := range e.parts {
			e.append(p, Spec{Workspace: messages.WSID(p.id) + 3, Create: []messages.SeqID{SeqOrder}})
		}
		e.same("after appending to a reopened store")
	}
	for _, p := range e.parts {
		e.flushAll(p)
	}
	e.reopen()
	e.same("after reopening with nothing in the tail")
}

// checkCrash: what was acknowledged survives the loss of the process.
func checkCrash(e *env) {
	e.open()
	p := e.take(0)
	e.append(p, mixed(0)...)
	e.flush(p, 3)
	if !e.crash() {
		return
	}
	e.same("after a crash")
	e.append(p, Spec{Workspace: 3, Create: []messages.SeqID{SeqOrder}})
	e.flushAll(p)
	e.crash()
	e.same("after a crash behind a flush")
	e.take(0)
}
