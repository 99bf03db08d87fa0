package sequencer

import (
	"errors"
	"testing"

	"github.com/partita-go/partita/messages"
)

// everywhere has an Append wherever one can be: in the batch, following it, resting
// on it, queued behind it, behind a Start, waiting for a load, and searched for.
type everywhere struct {
	writes, follows, searched         *call
	rests, queued, behindStart, loads *call
	start, startLoads                 *owner
}

func (w *world) everywhere() (e everywhere) {
	w.t.Helper()
	again := w.withID(9, 3)
	w.done(w.append(again))
	e.searched = w.append(again)
	w.write1()
	m := w.withID(1, 1)
	stale := w.one(1, kindWide)
	stale.Expected = new(messages.WLogOffset)
	first := w.append(w.one(3, kindWide))
	e.writes, e.follows, e.rests = w.append(m), w.append(m), w.append(stale)
	w.write1()
	w.mustAppend(first)
	e.queued = w.append(w.one(3, kindWide))
	e.start = w.request(messages.Start{Workspace: 3, Kind: kindWide})
	e.behindStart = w.append(w.one(3, kindWide))
	e.loads = w.append(w.one(7, kindWide))
	e.startLoads = w.request(messages.Start{Workspace: 7, Kind: kindWide})
	w.mustWait(e.writes, e.follows, e.rests, e.queued, e.behindStart, e.loads, e.searched, e.start.start, e.startLoads.start)
	w.mustBatch(1)
	return e
}

func (e everywhere) waiting() []*call {
	return []*call{e.queued, e.behindStart, e.loads, e.start.start, e.startLoads.start}
}

// TestEverybodyIsAnswered: the world fails if somebody is answered twice.
func TestEverybodyIsAnswered(t *testing.T) {
	inFlight := func(e everywhere) []*call { return []*call{e.writes, e.follows, e.searched} }
	unknown := func(w *world, e everywhere, cause error) {
		w.t.Helper()
		for _, c := range inFlight(e) {
			w.mustRefuse(c, messages.ErrOutcomeUnknown)
			w.mustRefuse(c, cause)
		}
	}
	refused := func(w *world, e everywhere, with error) {
		w.t.Helper()
		for _, c := range append(e.waiting(), e.rests) {
			w.mustRefuse(c, with)
			if errors.Is(refusalOf(c), messages.ErrOutcomeUnknown) {
				w.t.Fatalf("got %v", refusalOf(c))
			}
		}
	}
	for name, end := range map[string]func(w *world, e everywhere){
		"aborted": func(w *world, e everywhere) {
			w.restart()
			unknown(w, e, messages.ErrInterrupted)
			refused(w, e, messages.ErrInterrupted)
		},
		"failed": func(w *world, e everywhere) {
			w.breakFlush = true
			w.now += 1_000_000
			w.fire()
			w.settleBut(appenderLeaf, readerLeaf)
			w.mustBe(messages.StateFailed)
			unknown(w, e, messages.ErrPartitionFailed)
			refused(w, e, messages.ErrPartitionFailed)
		},
		"stop limit": func(w *world, e everywhere) {
			w.stop()
			for _, c := range e.waiting() {
				w.mustBusy(c, messages.BusyStopping)
			}
			w.mustWait(e.writes, e.follows, e.rests, e.searched)
			w.now += 30_000_000
			for w.fire() {
			}
			w.mustBe(messages.StateTerminated)
			unknown(w, e, messages.ErrStopped)
			refused(w, e, messages.ErrBusy)
		},
		"stopped": func(w *world, e everywhere) {
			s := w.stop()
			w.mustBusy(w.append(w.one(1, kindWide)), messages.BusyStopping)
			w.settle()
			w.mustStop(s, true)
			w.mustRepeat(e.follows, w.mustAppend(e.writes))
			w.mustRefuse(e.rests, messages.ErrExpectedOffset)
			if !w.mustAppend(e.searched).Repeated {
				t.Fatal("not repeated")
			}
			for _, c := range e.waiting() {
				w.mustBusy(c, messages.BusyStopping)
			}
			w.mustRefuse(w.append(w.one(1, kindWide)), messages.ErrStopped)
		},
		"actualized": func(w *world, e everywhere) {
			w.diverge = true
			w.now += 1_000_000
			w.fire()
			w.settleBut(appenderLeaf, readerLeaf)
			w.mustBusy(e.start.start, messages.BusyActualizing)
			w.mustBusy(e.startLoads.start, messages.BusyActualizing)
			w.settle()
			w.mustRepeat(e.follows, w.mustAppend(e.writes))
			w.mustRefuse(e.rests, messages.ErrExpectedOffset)
			for _, c := range []*call{e.queued, e.behindStart, e.loads, e.searched} {
				w.mustAppend(c)
			}
		},
		"nothing": func(w *world, e everywhere) {
			w.settle()
			w.commit(e.start)
			w.settle()
			w.commit(e.startLoads)
			w.settle()
			for _, c := range []*call{e.writes, e.follows, e.queued, e.behindStart, e.loads, e.searched} {
				w.mustAppend(c)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := warm(t, messages.Settings{})
			end(w, w.everywhere())
			w.finish()
		})
	}
}

// TestStopWaits for a batch and for a search, also if nothing else is left to do.
func TestStopWaits(t *testing.T) {
	w := up(t, messages.Settings{})
	m := w.withID(1, 1)
	first := w.done(w.append(m))
	w.quiesce()
	c := w.append(m)
	s := w.stop()
	w.settleBut(appenderLeaf)
	w.mustWait(c, s)
	w.write1()
	w.settleBut(readerLeaf)
	w.mustWait(c, s)
	w.settle()
	w.mustRepeat(c, first)
	w.mustStop(s, true)
	w.finish()
}

// TestStopWhileWriting: what was refused or lost is not tried again.
func TestStopWhileWriting(t *testing.T) {
	for name, test := range map[string]struct {
		fault func(w *world)
		// wants are for the two of the batch, in order.
		wants [2]error
		clean bool
	}{
		"done":       {func(*world) {}, [2]error{}, true},
		"refused":    {func(w *world) { w.taken[taken{1, messages.SeqWLogOffset, 2}] = true }, [2]error{errConflict, messages.ErrBusy}, true},
		"no space":   {func(w *world) { w.writeFault = writeNoSpace }, [2]error{errNoSpace, errNoSpace}, true},
		"tail full":  {func(w *world) { w.writeFault = writeTailFull }, [2]error{messages.ErrBusy, messages.ErrBusy}, true},
		"diverged":   {func(w *world) { w.writeFault = writeDiverges }, [2]error{messages.ErrBusy, messages.ErrBusy}, true},
		"fenced":     {func(w *world) { w.usurp() }, [2]error{messages.ErrFenced, messages.ErrFenced}, false},
		"landed":     {func(w *world) { w.writeFault = writeLies }, [2]error{}, true},
		"not landed": {func(w *world) { w.writeFault = writeVanishes }, [2]error{messages.ErrBusy, messages.ErrBusy}, true},
	} {
		t.Run(name, func(t *testing.T) {
			w := warm(t, messages.Settings{})
			calls := w.batched(w.one(1, kindWide), w.one(3, kindWide))
			test.fault(w)
			s := w.stop()
			w.write1()
			w.settle()
			w.mustStop(s, test.clean)
			for i, want := range test.wants {
				if want == nil {
					w.mustAppend(calls[i])
				} else {
					w.mustRefuse(calls[i], want)
				}
			}
			if len(w.leaves[appenderLeaf].jobs) > 0 {
				t.Fatal("writes again")
			}
			w.finish()
		})
	}
}

func TestAbortAnswersEverybody(t *testing.T) {
	w := up(t, messages.Settings{})
	w.event(1, kindWide)
	before := w.begun(1, kindWide)
	w.commit(before)
	w.event(1, kindWide)
	w.flush(before)
	w.request(messages.Start{Workspace: 3, Kind: kindWide})
	w.begun(1, kindWide)
	w.request(messages.Start{Workspace: 1, Kind: kindWide})
	w.flush(before)
	w.restart() // checks that nobody is left
	w.settle()
	o := w.begun(1, kindWide)
	w.stop()
	w.restart()
	w.mustRefuse(w.flushSettled(o), messages.ErrFenced)
	w.finish()
}
