package storagetest

import "github.com/partita-go/partita/messages"

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
