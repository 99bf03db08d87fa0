package sequencer

import (
	"errors"
	"testing"
	"time"

	"github.com/partita-go/partita/messages"
)

// TestActualizationWhileWriting, for another reason: the old answer is ignored, and
// the tail tells. The appender writes before the epoch is taken, or is fenced.
func TestActualizationWhileWriting(t *testing.T) {
	for name, order := range map[string][]int{
		"written first": {appenderLeaf, actualizerLeaf},
		"epoch first":   {actualizerLeaf, appenderLeaf},
	} {
		for reply, answers := range map[string][]int{
			"old answer first": {appenderLeaf, actualizerLeaf},
			"old answer last":  {actualizerLeaf, appenderLeaf},
		} {
			t.Run(name+", "+reply, func(t *testing.T) {
				w := up(t, messages.Settings{FlushThreshold: 2, FlushInterval: never})
				w.event(1, kindWide, seqPlain)
				calls := []*call{w.append(w.one(1, kindWide, seqPlain)), w.append(w.one(1, kindWide, seqPlain))}
				w.diverge = true
				w.work(flusherLeaf)
				w.deliver(flusherLeaf)
				w.mustBe(messages.StateInitializing)
				for _, leaf := range order {
					w.work(leaf)
				}
				for _, leaf := range answers {
					w.deliver(leaf)
				}
				w.mustWait(calls...)
				w.settle()
				for i, c := range calls {
					if r := w.mustAppend(c); r.Numbers[0].Number != messages.Number(i+2) {
						t.Fatalf("got %+v", r)
					}
				}
				w.finish()
			})
		}
	}
}

// TestOldBatchIsLeftAlone: the appender of the old epoch may still read its batch
// when the next one is formed. The world compares it with what was handed over.
func TestOldBatchIsLeftAlone(t *testing.T) {
	w := up(t, messages.Settings{FlushThreshold: 2, FlushInterval: never})
	w.event(1, kindWide, seqPlain)
	c := w.append(w.one(1, kindWide, seqPlain))
	w.diverge = true
	w.work(flusherLeaf)
	w.deliver(flusherLeaf)
	w.settleBut(appenderLeaf)
	if jobs := w.leaves[appenderLeaf].jobs; len(jobs) != 2 || jobs[0].(*writing).message == jobs[1].(*writing).message {
		t.Fatalf("got %d batches", len(jobs))
	}
	w.done(c)
	w.finish()
}

// TestDoubtOverSeveralTries: reading the tail fails after the batch was seen, and
// checkpoints were written behind it: what was seen once stays so.
func TestDoubtOverSeveralTries(t *testing.T) {
	for name, lands := range map[string]bool{"landed": true, "lost": false} {
		t.Run(name, func(t *testing.T) {
			w := warm(t, messages.Settings{FlushInterval: never, CatchUpCheckpoint: time.Second})
			calls := w.batched(w.one(1, kindWide, seqPlain), w.one(3, kindWide, seqPlain))
			w.writeFault = writeVanishes
			if lands {
				w.writeFault = writeLies
			}
			w.write1()
			w.piece = 1
			for w.core.doubt.verdict == open {
				w.work(actualizerLeaf)
				w.deliver(actualizerLeaf)
			}
			// A checkpoint behind the first event of the batch.
			w.now += 1_000_000
			for w.fire() {
			}
			w.work(flusherLeaf)
			w.deliver(flusherLeaf)
			if first := w.core.doubt.first; lands != (w.checkpoint > first) {
				t.Fatalf("the checkpoint is %d, the batch begins at %d", w.checkpoint, first)
			}
			w.failReplays = 1
			w.advance(10 * time.Second)
			for _, c := range calls {
				r := w.mustAppend(c)
				if old := w.log[r.PLogOffset-1].Epoch == 1; old != lands {
					t.Fatalf("written under epoch 1: %v", old)
				}
			}
			w.finish()
		})
	}
}

// TestBatchIsCut: the log has the first event of a batch, but not all of it.
func TestBatchIsCut(t *testing.T) {
	w := warm(t, messages.Settings{FlushInterval: never})
	calls := w.batched(w.one(1, kindWide), w.one(1, kindWide))
	w.writeFault = writeLies
	w.work(appenderLeaf)
	w.log = w.log[:len(w.log)-1]
	w.deliver(appenderLeaf)
	w.settle()
	w.mustBe(messages.StateFailed)
	for _, c := range calls {
		w.mustRefuse(c, messages.ErrOutcomeUnknown)
		w.mustRefuse(c, messages.ErrBrokenLog)
	}
}

// TestDoubtEnds: the partition fails, stops or is aborted before the tail has told.
func TestDoubtEnds(t *testing.T) {
	for name, test := range map[string]struct {
		end    func(w *world)
		cause  error
		others error
	}{
		"failed": {func(w *world) { w.breakReplay = true; w.settle() }, messages.ErrPartitionFailed, messages.ErrPartitionFailed},
		"stop limit": {func(w *world) {
			w.stop()
			w.now += 30_000_000
			for w.fire() {
			}
		}, messages.ErrStopped, messages.ErrBusy},
		"aborted": {func(w *world) { w.restart() }, messages.ErrInterrupted, messages.ErrInterrupted},
	} {
		t.Run(name, func(t *testing.T) {
			w := warm(t, messages.Settings{})
			m := w.withID(1, 1)
			two := messages.WLogOffset(1)
			rests := w.one(1, kindWide)
			rests.Expected = &two
			calls := w.batched(m, m, rests)
			behind, cold := w.append(w.one(1, kindWide)), w.append(w.one(7, kindWide))
			w.writeFault = writeLies
			w.write1()
			test.end(w)
			for _, c := range calls[:2] {
				w.mustRefuse(c, messages.ErrOutcomeUnknown)
				w.mustRefuse(c, test.cause)
			}
			for _, c := range []*call{calls[2], behind, cold} {
				w.mustRefuse(c, test.others)
				if errors.Is(refusalOf(c), messages.ErrOutcomeUnknown) {
					t.Fatalf("got %v", refusalOf(c))
				}
			}
			w.finish()
		})
	}
}

// TestDoubtEndsWhileStopping: the stop waits for what the tail says.
func TestDoubtEndsWhileStopping(t *testing.T) {
	for name, fault := range map[string]writeFault{"landed": writeLies, "lost": writeVanishes} {
		t.Run(name, func(t *testing.T) {
			w := warm(t, messages.Settings{})
			m := w.withID(1, 1)
			calls := w.batched(m, m)
			behind := w.append(w.one(1, kindWide))
			w.writeFault = fault
			w.write1()
			s := w.stop()
			w.mustBusy(behind, messages.BusyStopping)
			w.settle()
			w.mustStop(s, true)
			if fault == writeLies {
				w.mustRepeat(calls[1], w.mustAppend(calls[0]))
			} else {
				w.mustBusy(calls[0], messages.BusyStopping)
				w.mustBusy(calls[1], messages.BusyStopping)
			}
			w.finish()
		})
	}
}
