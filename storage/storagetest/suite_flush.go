package storagetest

import (
	"errors"
	"slices"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage"
)

var flushChecks = []check{
	{"FlushMovesCheckpoint", eachLevel, checkFlushSteps},
	{"FlushRepeatedIsHarmless", anyLevel, checkFlushRepeat},
	{"FlushOfNothing", anyLevel, checkFlushNothing},
	{"FlushRefusesWrongCheckpoints", eachLevel, checkFlushCheckpoints},
	{"FlushRefusesWrongNumbers", eachLevel, checkFlushNumbers},
	{"FlushMayListLowNumbers", eachLevel, checkFlushLowNumbers},
	{"NumbersAreAsOfCheckpoint", eachLevel, checkNumbersAtCheckpoint},
}

// checkFlushSteps: at every checkpoint the projections hold exactly the events
// before it, and survive reopening there.
func checkFlushSteps(e *env) {
	e.open()
	p := e.take(0)
	e.append(p, mixed(0)...)
	e.append(p, Spec{Workspace: 3, Create: []messages.SeqID{SeqOrder}})
	for checkpoint := messages.PLogOffset(2); checkpoint <= p.last+1; checkpoint++ {
		e.flush(p, checkpoint)
		e.same("after a flush")
		e.reopen()
		e.same("after a flush and reopening")
	}
	e.append(p, plain(0)[3])
	e.append(p, Spec{Workspace: 3, Give: []messages.SeqID{SeqOrder}}, Spec{Workspace: 9})
	e.flushAll(p)
	e.same("after a flush of several events")
}

// checkFlushRepeat: the last flush may be repeated, whatever was appended since,
// and an older one is refused.
func checkFlushRepeat(e *env) {
	e.open()
	p := e.take(0)
	e.append(p, mixed(0)...)
	first := p.BuildFlush(3)
	e.flush(p, 3)
	second := p.BuildFlush(5)
	e.flush(p, 5)
	repeat := func(when string) {
		if err := e.store.Flush(e.Context(), second); err != nil {
			e.Fatalf("repeat the last flush %s: %v", when, err)
		}
		e.same("after the last flush was repeated " + when)
		e.refused("an older flush repeated "+when, e.store.Flush(e.Context(), first), storage.ErrCheckpoint)
	}
	repeat("at once")
	e.append(p, plain(0)[2:]...)
	repeat("behind an append")
	e.reopen()
	repeat("after reopening")
	e.flushAll(p)
}

// checkFlushNothing: a flush may cover no event.
func checkFlushNothing(e *env) {
	e.open()
	p := e.take(0)
	e.flushAll(p)
	e.append(p, Spec{Workspace: 3})
	e.flush(p, 1)
	e.flushAll(p)
	e.flushAll(p)
}

// checkFlushCheckpoints: the expected checkpoint must be the stored one, the new
// one must neither fall nor lie beyond the log.
func checkFlushCheckpoints(e *env) {
	e.open()
	p := e.take(0)
	e.append(p, mixed(0)...)
	e.flush(p, 3)
	good := p.BuildFlush(5)
	for _, c := range []struct {
		what            string
		expected, after messages.PLogOffset
	}{
		{"an expected checkpoint too low", 2, 5},
		{"expected checkpoint 0", 0, 5},
		{"an expected checkpoint too high", 4, 5},
		{"a falling checkpoint", 3, 2},
		{"checkpoint 0", 3, 0},
		{"a checkpoint that falls to the stored one", 4, 3},
		{"a checkpoint one beyond the log", 3, p.last + 2},
		{"a checkpoint far beyond the log", 3, 1 << 62},
	} {
		f := good
		f.Expected, f.Checkpoint = c.expected, c.after
		e.refused(c.what, e.store.Flush(e.Context(), f), storage.ErrCheckpoint)
	}
	e.flush(p, 5)
}

// checkFlushNumbers: numbers that the log does not bear out are refused, with an
// error that names the first.
func checkFlushNumbers(e *env) {
	e.open()
	p := e.take(0)
	e.append(p, mixed(0)...)
	e.append(p, Spec{Workspace: 9})
	for _, checkpoint := range []messages.PLogOffset{5, p.last + 1} {
		e.refuseWrongNumbers(p, checkpoint)
		e.flush(p, checkpoint)
	}
}

// refuseWrongNumbers tries all kinds of wrong numbers. The first workspace listed
// is 3 and changes at least its WLog offset.
func (e *env) refuseWrongNumbers(p *Partition, checkpoint messages.PLogOffset) {
	e.Helper()
	good := p.BuildFlush(checkpoint)
	for what, spoil := range map[string]func([]storage.WorkspaceNumbers) []storage.WorkspaceNumbers{
		"a number too high": func(l []storage.WorkspaceNumbers) []storage.WorkspaceNumbers { l[0].Numbers[0].Number++; return l },
		"a number too low":  func(l []storage.WorkspaceNumbers) []storage.WorkspaceNumbers { l[0].Numbers[0].Number--; return l },
		"a sequence missing": func(l []storage.WorkspaceNumbers) []storage.WorkspaceNumbers {
			l[0].Numbers = l[0].Numbers[1:]
			return l
		},
		"a sequence too many":     addSequence,
		"a workspace missing":     func(l []storage.WorkspaceNumbers) []storage.WorkspaceNumbers { return l[1:] },
		"the last one missing":    func(l []storage.WorkspaceNumbers) []storage.WorkspaceNumbers { return l[:len(l)-1] },
		"a workspace too many":    addWorkspace,
		"another kind":            func(l []storage.WorkspaceNumbers) []storage.WorkspaceNumbers { l[0].Kind = 777; return l },
		"no numbers at all":       func([]storage.WorkspaceNumbers) []storage.WorkspaceNumbers { return nil },
		"the last number too low": lowerLast,
	} {
		f := good
		f.Numbers = spoil(cloneNumbers(good.Numbers))
		err := e.store.Flush(e.Context(), f)
		e.refused("a flush with "+what, err, storage.ErrNumbers)
		var n *storage.NumbersError
		if !errors.As(err, &n) || n.Partition != p.id || n.Checkpoint != checkpoint || n.Got == n.Want && n.Seq != 0 {
			e.Fatalf("a flush with %s: got error %v, want a NumbersError that names partition %d, checkpoint %d and a difference",
				what, err, p.id, checkpoint)
		}
	}
}

func cloneNumbers(list []storage.WorkspaceNumbers) []storage.WorkspaceNumbers {
	list = slices.Clone(list)
	for i := range list {
		list[i].Numbers = slices.Clone(list[i].Numbers)
	}
	return list
}

func addSequence(l []storage.WorkspaceNumbers) []storage.WorkspaceNumbers {
	last := &l[len(l)-1]
	last.Numbers = append(last.Numbers, messages.SequenceNumber{Seq: 60000, Number: 1})
	return l
}

func addWorkspace(l []storage.WorkspaceNumbers) []storage.WorkspaceNumbers {
	return append(l, storage.WorkspaceNumbers{
		Workspace: 999, Kind: KindPerson, Numbers: []messages.SequenceNumber{{Seq: messages.SeqWLogOffset, Number: 1}},
	})
}

func lowerLast(l []storage.WorkspaceNumbers) []storage.WorkspaceNumbers {
	numbers := l[len(l)-1].Numbers
	numbers[len(numbers)-1].Number--
	return l
}

// checkFlushLowNumbers: whoever replays the tail meets explicit ids without
// knowing the stored numbers, so that its flush lists the largest id of the tail,
// though it is below the stored number. That is harmless and lowers nothing. So is
// listing a stored number that did not change.
func checkFlushLowNumbers(e *env) {
	e.open()
	p := e.take(0)
	e.append(p, Spec{Workspace: 3, Give: []messages.SeqID{SeqInvoice, SeqInvoice, SeqInvoice, SeqInvoice}})
	e.flushAll(p)
	for _, c := range []struct{ brought, listed messages.Number }{
		{InitialInvoice + 1, InitialInvoice + 1},
		{InitialInvoice + 2, InitialInvoice + 3},
	} {
		e.append(p, Spec{Workspace: 3, Explicit: []messages.RecordID{{Seq: SeqInvoice, Number: c.brought}}})
		f := p.BuildFlush(p.last + 1)
		f.Numbers[0].Numbers = append(f.Numbers[0].Numbers, messages.SequenceNumber{Seq: SeqInvoice, Number: c.listed})
		if err := e.store.Flush(e.Context(), f); err != nil {
			e.Fatalf("flush that lists %d, which did not change: %v", c.listed, err)
		}
		p.Flushed(f.Checkpoint)
		e.model.partitions[0].checkpoint = f.Checkpoint
		e.same("after a flush that lists a number that did not change")
	}
	e.append(p, Spec{Workspace: 3, Create: []messages.SeqID{SeqInvoice}})
	e.flushAll(p)
}

// checkNumbersAtCheckpoint: Numbers knows nothing of the tail, neither before
// nor after reopening, and nothing of a flush that was refused.
func checkNumbersAtCheckpoint(e *env) {
	e.open()
	p := e.take(0)
	create := Spec{Workspace: 3, Create: []messages.SeqID{SeqOrder, SeqInvoice}}
	e.append(p, create, create, create)
	e.same("before the first flush")
	e.flush(p, 2)
	e.append(p, create, Spec{Workspace: 6})
	e.same("with a tail")
	e.reopen()
	e.same("with a tail after reopening")
	e.append(p, create)
	e.flush(p, 4)
	e.same("with the checkpoint in the middle")
}
