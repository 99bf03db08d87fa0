package storagetest

import (
	"github.com/partita-go/partita/messages"
)

var epochChecks = []check{
	{"EpochGrows", eachLevel, checkEpochGrows},
	{"EpochIsDurable", eachLevel, checkEpochDurable},
	{"TakeEpochReturnsRegister", anyLevel, checkEpochRegister},
	{"EpochFencesAppend", eachLevel, checkEpochFencesAppend},
	{"EpochFencesFlush", eachLevel, checkEpochFencesFlush},
	{"NewEpochGoesOn", eachLevel, checkNewEpochGoesOn},
}

// checkEpochGrows: each partition has epochs of its own.
func checkEpochGrows(e *env) {
	e.open()
	for range 3 {
		e.take(0)
		e.same("after TakeEpoch")
	}
	e.take(2)
	e.same("after TakeEpoch of another partition")
}

// checkEpochDurable: an epoch survives reopening, with and without events.
func checkEpochDurable(e *env) {
	e.open()
	e.take(0)
	e.take(0)
	e.append(e.take(1), Spec{Workspace: 1})
	e.reopen()
	e.same("after reopening")
	e.take(0)
	e.take(1)
	if e.crash() {
		e.same("after a crash")
	}
}

// checkEpochRegister: TakeEpoch says where the log and the projections stand.
func checkEpochRegister(e *env) {
	e.open()
	p := e.take(0)
	e.append(p, mixed(0)...)
	e.flush(p, 3)
	got, err := e.store.TakeEpoch(e.Context(), 0)
	if err != nil {
		e.Fatalf("TakeEpoch: %v", err)
	}
	e.model.partitions[0].epoch = got.Epoch
	if want := e.model.register(0); got != want {
		e.Fatalf("TakeEpoch returned %+v, want %+v", got, want)
	}
}

// checkEpochFencesAppend: no epoch but the current one can append, also one from
// the future, also after reopening.
func checkEpochFencesAppend(e *env) {
	e.open()
	old := e.take(0)
	e.append(old, Spec{Workspace: 3})
	e.take(0)
	stale := func() error { return e.put(e.Context(), old.Build(Spec{Workspace: 3})) }
	e.refused("an append under a stale epoch", stale(), messages.ErrFenced)

	b := e.parts[0].Build(Spec{Workspace: 3})
	b.Epoch++
	b.Events[0].Epoch++
	e.refused("an append under an epoch that nobody took", e.put(e.Context(), b), messages.ErrFenced)

	e.reopen()
	old.store = e.store
	e.refused("an append under a stale epoch after reopening", stale(), messages.ErrFenced)
	e.append(e.parts[0], Spec{Workspace: 3})
	e.refused("an append under a stale epoch behind the new one's", stale(), messages.ErrFenced)
}

// checkEpochFencesFlush: the same for flushes, also for the repetition of one
// that has happened.
func checkEpochFencesFlush(e *env) {
	e.open()
	old := e.take(0)
	e.append(old, mixed(0)...)
	done := old.BuildFlush(3)
	e.flush(old, 3)
	next := old.BuildFlush(4)
	p := e.take(0)
	e.refused("a flush under a stale epoch", e.store.Flush(e.Context(), next), messages.ErrFenced)
	e.refused("a repeated flush under a stale epoch", e.store.Flush(e.Context(), done), messages.ErrFenced)
	e.reopen()
	e.refused("a flush under a stale epoch after reopening", e.store.Flush(e.Context(), next), messages.ErrFenced)
	future := p.BuildFlush(4)
	future.Epoch++
	e.refused("a flush under an epoch that nobody took", e.store.Flush(e.Context(), future), messages.ErrFenced)
}

// checkNewEpochGoesOn: the new owner flushes what the old one wrote, and goes on
// with its offsets, numbers and time.
func checkNewEpochGoesOn(e *env) {
	e.open()
	for range 3 {
		p := e.take(0)
		e.append(p, plain(0)...)
		e.append(p, Spec{Workspace: 3, Create: []messages.SeqID{SeqOrder}})
		e.flush(p, p.last)
	}
	e.same("after three owners")
	var epochs []messages.Epoch
	for ev, err := range e.store.PLog(e.Context(), 0, 1) {
		if err != nil {
			e.Fatalf("PLog: %v", err)
		}
		epochs = append(epochs, ev.Epoch)
	}
	if epochs[0] >= epochs[len(epochs)-1] {
		e.Fatalf("epochs along the log: got %v, want them to grow", epochs)
	}
}

var takeoverChecks = []check{
	{"TakenOverNumbersAreProjected", eachLevel, checkTakenOver},
	{"AppendRefusesWrongMoves", anyLevel, checkMovesRefused},
}

// checkTakenOver: numbers that events bring along, and sequences that they move, are in the logs, in the tail and
// in the projections, in each period, also when the store is opened again or its projections are made anew.
func checkTakenOver(e *env) {
	e.open()
	p := e.take(0)
	day := FirstDay
	e.append(p,
		Spec{Workspace: 3, Move: []Ahead{{Seq: SeqInvoice, By: 4000}, {Seq: messages.SeqCRecordID, By: 7}}},
		Spec{Workspace: 3, Bring: []Ahead{{Seq: SeqInvoice, By: 2}, {Seq: SeqInvoice, By: 5}}, Give: []messages.SeqID{SeqInvoice}},
		Spec{Workspace: 3, Create: []messages.SeqID{SeqInvoice, messages.SeqCRecordID}},
	)
	e.append(p,
		Spec{Workspace: 3, Move: []Ahead{{SeqReceipt, 9, day}, {SeqCase, 20, 20251201}, {SeqReceipt, 3, day + 1}, {SeqCase, 2, 20260101}}},
		Spec{Workspace: 3, Bring: []Ahead{{SeqCase, 1, 20251201}}, Move: []Ahead{{SeqCase, 1, 20260101}}},
		on(day, SeqReceipt, SeqCase), on(20260105, SeqCase),
		Spec{Workspace: 6, Kind: KindCompany, Bring: []Ahead{{Seq: SeqReceipt, By: 4}}, Move: []Ahead{{Seq: SeqStaff}}, Dated: true},
	)
	for checkpoint := range p.last + 1 {
		e.flush(p, checkpoint+1)
		e.same("after a flush")
		e.reopen()
		e.same("after reopening")
	}
	for _, way := range e.copies() {
		e.goOnIn(way)
		e.same("in a copy: " + way.Name)
	}
	e.append(p, Spec{Workspace: 3, Give: []messages.SeqID{SeqInvoice}, Move: []Ahead{{Seq: SeqOrder, By: 1}}})
	e.crash()
	e.same("after a crash")
	e.flushAll(p)
}

// moveFlaws are wrong moves of an event of workspace 3.
var moveFlaws = []flaw{
	{"a move of an unknown sequence", func(e *messages.Event) { moveTo(e, 999, 1) }, invalid},
	{"a move of another kind's sequence", func(e *messages.Event) { moveTo(e, SeqStaff, InitialStaff) }, invalid},
	{"a move of the WLog offset", func(e *messages.Event) { moveTo(e, messages.SeqWLogOffset, 9) }, invalid},
	{"a move above the largest number", func(e *messages.Event) { moveTo(e, SeqBadge, LargestBadge+1) }, invalid},
	{"a move below the first number", func(e *messages.Event) { moveTo(e, SeqInvoice, InitialInvoice-1) }, invalid},
	{"a move to nothing", func(e *messages.Event) { moveTo(e, SeqOrder, 0) }, invalid},
	{"a move without a period", func(e *messages.Event) { moveTo(e, SeqReceipt, 1) }, invalid},
	{"a period of a sequence that never restarts", func(e *messages.Event) {
		e.Moves = append(e.Moves, messages.SequenceNumber{Seq: SeqOrder, Period: FirstDay, Number: 9})
	}, invalid},
	{"another period than the business date's", func(e *messages.Event) {
		e.Date = 20260401
		e.Moves = append(e.Moves, messages.SequenceNumber{Seq: SeqReceipt, Period: FirstDay, Number: 9})
	}, invalid},
	{"more brought along than there are numbers", func(e *messages.Event) { e.Brought = uint32(len(e.Numbers)) + 1 }, invalid},
}

func moveTo(e *messages.Event, seq messages.SeqID, n messages.Number) {
	e.Moves = append(e.Moves, messages.SequenceNumber{Seq: seq, Number: n})
}

// checkMovesRefused: an event with a wrong move is refused, and leaves nothing.
func checkMovesRefused(e *env) {
	e.open()
	p := e.take(0)
	e.append(p, Spec{Workspace: 3, Move: []Ahead{{Seq: SeqInvoice, By: 5}}})
	for _, f := range moveFlaws {
		b := p.Build(Spec{Workspace: 3}, Spec{Workspace: 3, Give: []messages.SeqID{SeqOrder}})
		f.spoil(&b.Events[1])
		err := e.store.Append(e.Context(), b)
		e.refused(f.name, err, f.want...)
		e.names(f.name, err, b.Events[1].PLogOffset)
	}
	e.append(p, Spec{Workspace: 3, Give: []messages.SeqID{SeqInvoice}})
}
