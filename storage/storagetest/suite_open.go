package storagetest

import (
	"bytes"
	"context"
	"errors"
	"reflect"
	"slices"
	"strings"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage"
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

var closeChecks = []check{
	{"CloseTwice", anyLevel, checkCloseTwice},
	{"ClosedStoreRefusesEverything", anyLevel, checkClosed},
	{"CloseWithEndedContext", anyLevel, checkCloseEnded},
	{"CloseAnswersPendingCalls", eachLevel, checkClosePending},
}

func checkCloseTwice(e *env) {
	e.half()
	e.close()
	e.close()
	e.reopen()
}

// checkClosed: every call gets ErrClosed and has done nothing.
func checkClosed(e *env) {
	p := e.half()
	batch, flush := p.Build(Spec{Workspace: 3}), p.BuildFlush(8)
	e.close()
	ctx := e.Context()
	_, takeErr := e.store.TakeEpoch(ctx, 0)
	_, numbersErr := e.store.Numbers(ctx, 3)
	_, registerErr := e.store.Register(ctx, 0)
	_, tailErr := e.store.Tail(ctx, 0, p.checkpoint, 1)
	_, findErr := e.store.Find(ctx, 3, messages.DedupID{1})
	results := map[string]error{
		"TakeEpoch": takeErr, "Numbers": numbersErr, "Register": registerErr, "Tail": tailErr, "Find": findErr,
		"Append": e.store.Append(ctx, batch), "Flush": e.store.Flush(ctx, flush),
	}
	for name, seq := range e.iterators(ctx) {
		for err := range seq {
			results[name] = errors.Join(results[name], err)
		}
	}
	for _, name := range []string{"TakeEpoch", "Append", "Flush", "Numbers", "Register", "Tail", "PLog", "WLog", "Records", "Find"} {
		e.isOneOf(name+" of a closed store", results[name], storage.ErrClosed)
	}
	for _, w := range e.eachWait(p) {
		_, err := w.tell(ctx)
		e.isOneOf(w.what+" of a closed store", err, storage.ErrClosed)
	}
	e.reopen()
}

// checkCloseEnded: Close with an ended context may return its error, and the
// store closes all the same.
func checkCloseEnded(e *env) {
	p := e.half()
	ctx, cancel := context.WithCancel(e.Context())
	cancel()
	if err := e.store.Close(ctx); err != nil {
		e.isOneOf("Close with an ended context", err, context.Canceled)
	}
	e.isOneOf("Append behind it", e.put(e.Context(), p.Build(Spec{Workspace: 3})), storage.ErrClosed)
	e.reopen()
}

// checkClosePending: calls that are under way while the store closes are either
// done or refused, and none hangs.
func checkClosePending(e *env) {
	e.open()
	var writers []*writer
	for id := range messages.PartitionID(e.desc.Partitions) {
		writers = append(writers, startWriter(e, e.take(id), storage.ErrClosed))
	}
	for _, w := range writers {
		<-w.started
	}
	err := e.store.Close(e.Context())
	for _, w := range writers {
		w.finish()
	}
	if err != nil {
		e.Fatalf("close: %v", err)
	}
	e.reopen()
}

var claimChecks = []check{
	{"ClaimedOnce", anyLevel, claimedOnce},
}

// claimedOnce: a store is one deployment's at a time.
func claimedOnce(e *env) {
	e.open()
	first := e.claim("first")
	e.claimed("first")
	first()
	second := e.claim("second")
	first() // what it took is another's now
	e.claimed("second")
	second()
	e.claim("third")()
}

func (e *env) claim(application string) (release func()) {
	e.Helper()
	release, err := e.store.Claim(application)
	if err != nil {
		e.Fatalf("Claim: %v", err)
	}
	return release
}

// claimed checks that the store is an application's.
func (e *env) claimed(by string) {
	e.Helper()
	_, err := e.store.Claim("another")
	e.refused("Claim", err, storage.ErrInUse)
	if !strings.Contains(err.Error(), by) {
		e.Fatalf("Claim: got %v, want it to name %q", err, by)
	}
}
