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
