package storagetest

import (
	"errors"
	"reflect"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage"
)

var dedupChecks = []check{
	{"DuplicateIsRefused", eachLevel, checkDuplicate},
	{"DuplicateIsRefusedInCopies", eachLevel, checkDuplicateCopied},
	{"DuplicatesAreAllNamed", eachLevel, checkDuplicatesNamed},
	{"DuplicateInItsBatch", eachLevel, checkDuplicateInBatch},
	{"DuplicateBeforeConflict", levelNone, checkDuplicateBeforeConflict},
	{"IDsAreTheWorkspacesOwn", eachLevel, checkIDsOfWorkspaces},
	{"RaceForAnID", eachLevel, checkIDRace},
	{"FindOfNothing", anyLevel, checkFindNothing},
	{"ManyIDsInManyFlushes", anyLevel, checkManyIDs},
	{"TogetherIsKept", anyLevel, checkTogetherKept},
	{"TogetherIsChecked", eachLevel, checkTogetherFlaws},
	{"ReservedSectionsAreRefused", eachLevel, checkReservedSections},
}

// named is an event with an id.
func named(ws messages.WSID, id byte) Spec { return Spec{Workspace: ws, DedupID: messages.DedupID{id}} }

// duplicate is refused because of the events listed, and leaves nothing.
func (e *env) duplicate(what string, b storage.Batch, want ...storage.Duplicate) {
	e.Helper()
	err := e.put(e.Context(), b)
	e.refused(what, err, storage.ErrDuplicate)
	got := (*storage.DuplicateError)(nil)
	if !errors.As(err, &got) || got.Partition != b.Partition || !reflect.DeepEqual(got.Duplicates, want) {
		e.Fatalf("%s: got %+v, want partition %d, duplicates %+v", what, err, b.Partition, want)
	}
	if err.Error() == "" {
		e.Fatalf("%s: the error says nothing", what)
	}
}

// duplicateOf names an event of a batch and where its id is.
func duplicateOf(ev *messages.Event, first messages.WLogOffset) storage.Duplicate {
	return storage.Duplicate{PLogOffset: ev.PLogOffset, Workspace: ev.Workspace, ID: ev.DedupID, First: first}
}

// checkDuplicate: an id is refused once it is in the log, wherever its event is by
// then, and Find finds it from the acknowledgement on.
func checkDuplicate(e *env) {
	e.open()
	p := e.take(0)
	e.append(p, Spec{Workspace: 3}, named(3, 1), Spec{Workspace: 6}, named(6, 2))
	e.same("in the tail")
	again := func(when string) {
		b := p.Build(named(3, 1))
		e.duplicate("an id "+when, b, duplicateOf(&b.Events[0], 2))
		b = p.Build(Spec{Workspace: 3}, named(6, 2), Spec{Workspace: 3})
		e.duplicate("an id among other events "+when, b, duplicateOf(&b.Events[1], 2))
	}
	again("in the tail")
	e.reopen()
	again("in the tail, reopened")
	e.flush(p, 3)
	again("of which one is flushed")
	e.flushAll(p)
	again("flushed")
	e.append(p, named(3, 3))
	again("flushed, with a tail")
	e.reopen()
	again("reopened")
	if e.crash() {
		again("after a crash")
	}
	p = e.take(0)
	again("under a new epoch")
	e.append(p, named(3, 4), named(6, 4))
}

// checkDuplicateCopied: the ids go along, or are rebuilt from the log.
func checkDuplicateCopied(e *env) {
	e.open()
	p := e.take(0)
	for i := range byte(20) {
		e.append(p, named(3, 2*i+1), named(6, i+1))
	}
	e.flush(p, 30)
	for _, c := range e.copies() {
		e.goOnIn(c)
		e.same(c.Name)
		for i := range byte(20) {
			b := p.Build(named(3, 2*i+1), named(6, 21+i), named(6, i+1))
			e.duplicate("an id in "+c.Name, b, duplicateOf(&b.Events[0], messages.WLogOffset(i)+1), duplicateOf(&b.Events[2], messages.WLogOffset(i)+1))
		}
	}
}

// checkDuplicatesNamed: the error lists all duplicates of a batch, in its order, and
// nothing of the batch is left: the ids that were new are still free.
func checkDuplicatesNamed(e *env) {
	e.open()
	p := e.take(0)
	e.append(p, named(3, 1), named(3, 2), named(6, 1))
	e.flush(p, 2)
	fresh := named(3, 9)
	fresh.Create = []messages.SeqID{SeqOrder}
	b := p.Build(named(3, 2), fresh, named(6, 1), Spec{Workspace: 3}, named(6, 8), named(6, 8), named(3, 1), named(3, 1))
	e.duplicate("four ids of the log and one twice", b,
		duplicateOf(&b.Events[0], 2), duplicateOf(&b.Events[2], 1), duplicateOf(&b.Events[5], 3),
		duplicateOf(&b.Events[6], 1), duplicateOf(&b.Events[7], 1))
	for _, id := range []byte{8, 9} {
		for _, ws := range []messages.WSID{3, 6} {
			if o, err := e.store.Find(e.Context(), ws, messages.DedupID{id}); o != 0 || err != nil {
				e.Fatalf("Find of an id that was refused: got %d, %v", o, err)
			}
		}
	}
	e.append(p, fresh, named(6, 8))
}

// checkDuplicateInBatch: an id that only the batch has twice is named with its first
// event in the batch.
func checkDuplicateInBatch(e *env) {
	e.open()
	p := e.take(0)
	e.append(p, Spec{Workspace: 3})
	b := p.Build(named(3, 1), named(6, 1), named(3, 1), named(3, 1))
	e.duplicate("an id three times in a batch", b, duplicateOf(&b.Events[2], 2), duplicateOf(&b.Events[3], 2))
	e.append(p, named(3, 1), named(6, 1))
}

// checkDuplicateBeforeConflict: an append that is repeated with its own record is
// told that it is a duplicate.
func checkDuplicateBeforeConflict(e *env) {
	e.open()
	p := e.take(0)
	brought := named(3, 1)
	brought.Explicit = []messages.RecordID{{Seq: SeqOrder, Number: 7}}
	e.append(p, brought, Spec{Workspace: 3})
	for _, when := range []string{"in the tail", "flushed"} {
		b := p.Build(Spec{Workspace: 3}, brought)
		e.duplicate("an append repeated, "+when, b, duplicateOf(&b.Events[1], 1))
		e.flushAll(p)
	}
	brought.DedupID = messages.DedupID{2}
	e.refused("another append of the record", e.put(e.Context(), p.Build(brought)), storage.ErrConflict)
}

// checkIDsOfWorkspaces: another workspace may use the same id, in the same partition
// or in another.
func checkIDsOfWorkspaces(e *env) {
	e.open()
	p, other := e.take(0), e.take(1)
	e.append(p, Spec{Workspace: 3}, named(3, 1), named(6, 1))
	e.flush(p, 3)
	e.append(p, named(9, 1))
	e.append(other, Spec{Workspace: 1}, Spec{Workspace: 1}, named(1, 1))
	e.same("with one id in four workspaces")
	e.flushAll(other)
	e.reopen()
}

// checkIDRace: the check is atomic with the write, also for batches that share a
// commit: of two with the same id the second never wins.
func checkIDRace(e *env) {
	e.open()
	p := e.take(0)
	for i := range 20 {
		e.oneAfterTheOther(p, p.Build(named(3, byte(i+1)), named(3, byte(i+1))), "append with an id", storage.ErrDuplicate)
	}
}

// checkFindNothing: the zero id is nobody's, and what was never written has no ids.
func checkFindNothing(e *env) {
	e.open()
	p := e.take(0)
	find := func(when string) {
		for _, ws := range []messages.WSID{0, 3, 6, 1<<64 - 1} {
			for _, id := range []messages.DedupID{{}, {1}, {15: 1}} {
				if o, err := e.store.Find(e.Context(), ws, id); o != 0 || err != nil {
					e.Fatalf("Find of id %v of workspace %d %s: got %d, %v", id, ws, when, o, err)
				}
			}
		}
	}
	find("in an empty store")
	e.append(p, Spec{Workspace: 3}, Spec{Workspace: 3})
	e.append(p, Spec{Workspace: 3})
	find("in the tail")
	e.append(p, Spec{Workspace: 3, DedupID: messages.DedupID{14: 1}})
	e.flushAll(p)
	find("flushed")
}

// checkManyIDs: flushes of all sizes, with more ids than fit one piece of any
// projection.
func checkManyIDs(e *env) {
	e.open()
	p := e.take(0)
	id := func(n int) messages.DedupID { return messages.DedupID{0: byte(n), 1: byte(n >> 8), 9: 1} }
	next := 0
	for round := range 40 {
		var specs []Spec
		for range 1 + round*round%97 {
			specs = append(specs, Spec{Workspace: messages.WSID(3 * (next % 5)), DedupID: id(next)})
			next++
		}
		e.append(p, specs...)
		e.flush(p, p.last+1-messages.PLogOffset(round%3))
		if round%13 == 12 {
			e.reopen()
		}
	}
	e.same("with many ids")
	for n := 0; n < next; n += 7 {
		b := p.Build(Spec{Workspace: messages.WSID(3 * (n % 5)), DedupID: id(n)})
		if err := e.put(e.Context(), b); !errors.Is(err, storage.ErrDuplicate) {
			e.Fatalf("id %d of %d again: got %v", n, next, err)
		}
	}
}

// checkTogetherKept: events keep what they were appended together with, and their
// ids, in both logs.
func checkTogetherKept(e *env) {
	e.open()
	p := e.take(0)
	first := named(3, 1)
	first.Together = 2
	alone := Spec{Workspace: 3, Together: 1}
	e.append(p, Spec{Workspace: 6}, first, Spec{Workspace: 3}, Spec{Workspace: 3}, alone, Spec{Workspace: 3})
	e.same("in the tail")
	e.flush(p, 4)
	e.same("half of it flushed")
	e.reopen()
	e.same("reopened")
}

// checkTogetherFlaws: an event that was appended together with others is followed by
// them in its batch, else the batch is refused.
func checkTogetherFlaws(e *env) {
	e.open()
	p := e.take(0)
	e.append(p, Spec{Workspace: 3})
	first := named(3, 1)
	first.Together = 2
	within := Spec{Workspace: 3, Together: 1}
	plain := Spec{Workspace: 3}
	for what, specs := range map[string][]Spec{
		"no event behind it":                {first},
		"one event too few behind it":       {plain, first, plain},
		"another workspace among them":      {first, plain, {Workspace: 6}},
		"an id among them":                  {first, named(3, 2), plain},
		"an append within the append":       {first, plain, within, plain},
		"a number beyond all batches":       {{Workspace: 3, Together: 1<<32 - 1}, plain, plain},
		"one event too few at the very end": {first, plain, plain, within},
	} {
		e.refused(what, e.put(e.Context(), p.Build(specs...)), storage.ErrInvalidEvent)
	}
	e.append(p, first, plain, plain, named(3, 2), within, plain)
}

// checkReservedSections: tags that the runtime keeps for itself are refused.
func checkReservedSections(e *env) {
	e.open()
	p := e.take(0)
	for _, tag := range []uint16{1, 2, messages.MaxReservedTag} {
		b := p.Build(Spec{Workspace: 3}, Spec{Workspace: 3, Sections: []messages.Section{{Tag: 100}, {Tag: tag, Data: []byte("0123456789abcdef")}}})
		e.refused("a reserved tag", e.put(e.Context(), b), storage.ErrInvalidEvent)
	}
	e.append(p, Spec{Workspace: 3, Sections: []messages.Section{{Tag: 0, Data: []byte("zero")}, {Tag: messages.MaxReservedTag + 1}}})
}
