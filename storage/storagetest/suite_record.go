package storagetest

import (
	"errors"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage"
)

var recordChecks = []check{
	{"NewRecordNeedsFreeKey", levelNone, checkNewRecordTaken},
	{"NewRecordIsPut", levelsPut, checkNewRecordPut},
	{"UpdateIsPut", eachLevel, checkUpdatePuts},
	{"RecordKeysOfSequencesAndWorkspacesDiffer", eachLevel, checkRecordKeys},
	{"LowExplicitIDLowersNothing", eachLevel, checkLowExplicit},
	{"ExplicitIDRaises", eachLevel, checkHighExplicit},
	{"GivenIsNotExplicit", eachLevel, checkHighGiven},
}

// checkNewRecordTaken: at trust level 0 the key of a new record must be free of
// whatever wrote it before, and the error names it.
func checkNewRecordTaken(e *env) {
	e.open()
	p := e.take(0)
	e.append(p, Spec{Workspace: 3, Create: []messages.SeqID{SeqOrder, SeqOrder}, Explicit: []messages.RecordID{{Seq: SeqOrder, Number: 9}}})
	e.append(p, Spec{Workspace: 3, Update: []messages.RecordID{{Seq: SeqInvoice, Number: 1}}})
	taken := []messages.RecordID{{Seq: SeqOrder, Number: 2}, {Seq: SeqOrder, Number: 9}, {Seq: SeqInvoice, Number: 1}}
	for _, where := range []string{"in the tail", "flushed", "reopened"} {
		for _, id := range taken {
			b := p.Build(Spec{Workspace: 3}, Spec{Workspace: 3, Explicit: []messages.RecordID{{Seq: SeqInvoice, Number: 5}, id}})
			err := e.put(e.Context(), b)
			e.refused("a new record that is "+where, err, storage.ErrConflict)
			e.isRecordConflict(err, &b.Events[1], id)
		}
		if where == "in the tail" {
			e.flushAll(p)
		} else {
			e.reopen()
		}
	}
	id := messages.RecordID{Seq: SeqOrder, Number: 30}
	b := p.Build(Spec{Workspace: 3, Explicit: []messages.RecordID{id}}, Spec{Workspace: 3, Explicit: []messages.RecordID{id}})
	err := e.put(e.Context(), b)
	e.refused("a record created twice in a batch", err, storage.ErrConflict)
	e.isRecordConflict(err, &b.Events[1], id)
	b = p.Build(Spec{Workspace: 3, Update: []messages.RecordID{id}}, Spec{Workspace: 3, Explicit: []messages.RecordID{id}})
	e.refused("a record created behind an update in a batch", e.put(e.Context(), b), storage.ErrConflict)
	e.append(p, Spec{Workspace: 3, Explicit: []messages.RecordID{id}})
}

// isRecordConflict fails the test unless the error names the record and the
// event that wanted it.
func (e *env) isRecordConflict(err error, wanted *messages.Event, id messages.RecordID) {
	e.Helper()
	var c *storage.ConflictError
	if !errors.As(err, &c) {
		e.Fatalf("got %T, want a ConflictError", err)
	}
	if c.Place != storage.PlaceRecord || c.Partition != wanted.Partition || c.PLogOffset != wanted.PLogOffset ||
		c.Workspace != wanted.Workspace || c.Record != id {
		e.Fatalf("got conflict %+v, want record %v of workspace %d, wanted by offset %d", *c, id, wanted.Workspace, wanted.PLogOffset)
	}
}

// checkNewRecordPut: at the other levels the last write stands.
func checkNewRecordPut(e *env) {
	e.open()
	p := e.take(0)
	again := Spec{Workspace: 3, Explicit: []messages.RecordID{{Seq: SeqOrder, Number: 5}}}
	e.append(p, again)
	e.append(p, again, again)
	e.same("after the tail's record was put again")
	e.flushAll(p)
	e.append(p, again)
	e.same("after a flushed record was put again")
	e.flushAll(p)
}

// checkUpdatePuts: an update is written whether the row exists or not, in the
// tail and in the projections, and the last one stands.
func checkUpdatePuts(e *env) {
	e.open()
	p := e.take(0)
	e.append(p, Spec{Workspace: 3, Create: []messages.SeqID{SeqOrder, SeqOrder}})
	update := Spec{Workspace: 3, Update: []messages.RecordID{{Seq: SeqOrder, Number: 1}, {Seq: SeqOrder, Number: 77}}}
	for range 3 {
		e.append(p, update)
		e.same("after an update")
		e.append(p, update, update)
		e.flush(p, p.last)
		e.same("after an update was flushed")
	}
}

// checkRecordKeys: a record's key is workspace, sequence and number, all three.
func checkRecordKeys(e *env) {
	e.open()
	p := e.take(0)
	for _, ws := range []messages.WSID{3, 6} {
		for _, seq := range []messages.SeqID{SeqOrder, SeqInvoice, messages.SeqCRecordID, messages.SeqOWRecordID} {
			e.append(p, Spec{Workspace: ws, Explicit: []messages.RecordID{{Seq: seq, Number: 20}}})
		}
	}
	e.same("before the flush")
	e.flushAll(p)
}

// checkLowExplicit: an explicit id below the initial value is no number of the
// sequence, and one below the last number given out changes nothing. The flush
// does not list what did not change.
func checkLowExplicit(e *env) {
	e.open()
	p := e.take(0)
	low := Spec{Workspace: 3, Explicit: []messages.RecordID{{Seq: SeqInvoice, Number: 7}, {Seq: messages.SeqCRecordID, Number: 65536}}}
	e.append(p, low)
	e.flushAll(p)
	e.same("with a low id only")
	e.append(p, Spec{Workspace: 3, Give: []messages.SeqID{SeqInvoice, SeqInvoice, SeqInvoice, SeqInvoice}})
	e.flushAll(p)
	e.same("with the first numbers given out")
	low.Explicit = []messages.RecordID{{Seq: SeqInvoice, Number: 8}, {Seq: SeqInvoice, Number: InitialInvoice + 1}}
	e.append(p, low)
	e.flushAll(p)
	e.same("with low ids behind the numbers")
	e.append(p, Spec{Workspace: 3, Create: []messages.SeqID{SeqInvoice}})
	e.flushAll(p)
	if n := e.model.numbers(3, e.model.partitions[0].events).Numbers; n[len(n)-1].Number != InitialInvoice+4 {
		e.Fatalf("the check is wrong: numbers are %v", n)
	}
}

// checkHighGiven: what an event of the batch before it was given for the workspace is
// no explicit id, however high.
func checkHighGiven(e *env) {
	e.open()
	p := e.take(0)
	ids := messages.Kind{}.All()[2]
	high := messages.RecordID{Seq: ids.ID, Number: ids.MaxExplicit() + 1}
	raise := Spec{Workspace: 3, Explicit: []messages.RecordID{{Seq: ids.ID, Number: ids.MaxExplicit()}}}
	give := Spec{Workspace: 3, Give: []messages.SeqID{ids.ID}}
	create := Spec{Workspace: 3, Explicit: []messages.RecordID{high}}
	e.append(p, raise, give, Spec{Workspace: 6}, create)
	e.same("created under an earlier number")
	e.flushAll(p)
	e.same("created under an earlier number, flushed")

	high.Number++
	create.Explicit = []messages.RecordID{high}
	e.refused("created before its number", e.store.Append(e.Context(), p.Build(create, give)), invalid...)
	other := create
	other.Workspace = 6
	e.refused("created under another workspace's number", e.store.Append(e.Context(), p.Build(give, other)), invalid...)
	e.append(p, give)
	e.refused("created in another batch", e.store.Append(e.Context(), p.Build(create)), invalid...)
	e.same("after the refusals")
}

// checkHighExplicit: the sequence goes on above an explicit id, up to the cap.
func checkHighExplicit(e *env) {
	e.open()
	p := e.take(0)
	for _, s := range []messages.Sequence{{ID: SeqOrder, Initial: 1}, messages.Kind{}.All()[2]} {
		for _, id := range []messages.Number{s.Initial + 10, s.MaxExplicit()} {
			e.append(p,
				Spec{Workspace: 3, Explicit: []messages.RecordID{{Seq: s.ID, Number: id}}},
				Spec{Workspace: 3, Create: []messages.SeqID{s.ID}})
			e.same("after an explicit id")
			e.flush(p, p.last)
		}
	}
}
