package sequencer

import (
	"errors"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/partita-go/partita/messages"
)

// TestLongRecovery: a Busy limit of 5 keys and tails of 0 to 50 events with many
// keys, each read by a new instance.
func TestLongRecovery(t *testing.T) {
	for events := range 51 {
		w := up(t, messages.Settings{FlushInterval: never})
		for i := range events {
			w.event(messages.WSID(2*(i%7)+1), kindWide, seqPlain, seqPlain, seqFrom, messages.SeqCRecordID)
		}
		w.piece = 1 + events%4
		w.config.Settings = messages.Settings{FlushThreshold: 5, BusyLimit: 5}.WithDefaults()
		for range 3 {
			w.crash()
			w.settle()
			w.mustBe(messages.StateNormal)
			// checkGiven compares the numbers with the log.
			w.event(1, kindWide, seqPlain, seqFrom, messages.SeqCRecordID)
			w.settle()
		}
		w.finish()
	}
}

// TestMultipleActualizes: 100 cycles at random; the numbers never fall back.
func TestMultipleActualizes(t *testing.T) {
	w := up(t, messages.Settings{FlushThreshold: 4})
	random := rand.New(rand.NewPCG(1, 2))
	epoch, last := messages.Epoch(0), messages.Number(0)
	for range 100 {
		for range random.IntN(4) {
			got := w.event(1, kindWide, seqPlain)
			if got[0] != last+1 {
				t.Fatalf("got %d after %d", got[0], last)
			}
			last = got[0]
		}
		o := w.begun(1, kindWide)
		w.given(w.next(o, seqPlain))
		if random.IntN(2) == 0 {
			w.write(o)
			last++
		}
		w.actualize(o)
		w.settle()
		if got := w.core.Status().Epoch; got <= epoch {
			t.Fatalf("got epoch %d after %d", got, epoch)
		}
		epoch = w.core.Status().Epoch
	}
	w.finish()
}

func TestDamagedTail(t *testing.T) {
	for name, test := range map[string]struct {
		damage func(*messages.Numbering)
		want   error
	}{
		"hole":                {func(e *messages.Numbering) { e.PLogOffset++ }, messages.ErrBrokenLog},
		"event twice":         {func(e *messages.Numbering) { e.PLogOffset-- }, messages.ErrBrokenLog},
		"epoch falls":         {func(e *messages.Numbering) { e.Epoch = 0 }, messages.ErrBrokenLog},
		"epoch of the future": {func(e *messages.Numbering) { e.Epoch = 99 }, messages.ErrBrokenLog},
		"time falls":          {func(e *messages.Numbering) { e.RegisteredAt = 1 }, messages.ErrBrokenLog},
		"unknown kind":        {func(e *messages.Numbering) { e.WorkspaceKind = 99 }, messages.ErrBrokenLog},
		"kind of fewer sequences": {func(e *messages.Numbering) {
			e.WorkspaceKind, e.Numbers = kindBare, nil
		}, messages.ErrBrokenLog},
		"kind of other sequences": {func(e *messages.Numbering) {
			e.WorkspaceKind, e.Numbers = kindOther, []messages.SequenceNumber{{Seq: seqOther, Number: 7}}
		}, messages.ErrBrokenLog},
		"workspace of another partition": {func(e *messages.Numbering) { e.Workspace = 2 }, messages.ErrBrokenLog},
		"no WLog offset":                 {func(e *messages.Numbering) { e.WLogOffset = 0 }, messages.ErrBrokenLog},
		"unknown sequence": {func(e *messages.Numbering) {
			e.Numbers = []messages.SequenceNumber{{Seq: 99, Number: 1}}
		}, messages.ErrBrokenLog},
		"WLog offset among the numbers": {func(e *messages.Numbering) {
			e.Numbers = []messages.SequenceNumber{{Seq: messages.SeqWLogOffset, Number: 1}}
		}, messages.ErrBrokenLog},
		"number above the end": {func(e *messages.Numbering) {
			e.Numbers = []messages.SequenceNumber{{Seq: messages.SeqOWRecordID, Number: messages.InitialCRecordID}}
		}, messages.ErrBrokenLog},
	} {
		t.Run(name, func(t *testing.T) {
			w := up(t, messages.Settings{FlushInterval: never})
			for range 4 {
				w.event(1, kindWide, seqPlain)
			}
			w.now += 10
			w.event(1, kindWide, seqPlain)
			w.damage = func(e *messages.Numbering) {
				if e.PLogOffset == 5 {
					test.damage(e)
				}
			}
			w.crash()
			w.settle()
			w.mustBeFailed(5, test.want)
			w.finish()
		})
	}
}

// mustBeFailed checks that the partition says why and where it has failed.
func (w *world) mustBeFailed(offset messages.PLogOffset, want error) {
	w.t.Helper()
	w.mustBe(messages.StateFailed)
	w.settle()
	if w.permitted {
		w.t.Fatalf("failed, but others may wait for the permit to replay")
	}
	err := w.core.Status().Err
	fault, ok := errors.AsType[*messages.PartitionError](err)
	if !ok || fault.Partition != testPartition || fault.PLogOffset != offset || !errors.Is(err, want) {
		w.t.Fatalf("got %v, want partition %d, offset %d, %v", err, testPartition, offset, want)
	}
	c := w.request(messages.Start{Workspace: 1, Kind: kindWide}).start
	w.mustRefuse(c, messages.ErrPartitionFailed)
	w.mustRefuse(c, want)
}

func TestWrongRegister(t *testing.T) {
	for name, r := range map[string]messages.Register{
		"checkpoint 0":              {Epoch: 1},
		"checkpoint behind the end": {Epoch: 1, Last: 3, Checkpoint: 5},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, messages.Settings{})
			w.begin()
			w.tell(&messages.Taken{Generation: w.core.generation, Register: r})
			w.mustBeFailed(0, messages.ErrBrokenLog)
		})
	}
}

// TestTailEndsTooSoon: the register names an event that the tail does not have.
func TestTailEndsTooSoon(t *testing.T) {
	w := newWorld(t, messages.Settings{})
	w.begin()
	w.tell(&messages.Taken{Generation: w.core.generation, Register: messages.Register{Epoch: 1, Last: 3, Checkpoint: 1}})
	w.settleBut(actualizerLeaf)
	w.tell(&messages.Replayed{Generation: w.core.generation})
	w.mustBeFailed(1, messages.ErrBrokenLog)
}

// TestFailedReplayEndsIt: the actualizer of a partition that has failed lets others
// replay.
func TestFailedReplayEndsIt(t *testing.T) {
	w := up(t, messages.Settings{FlushInterval: never})
	w.event(1, kindWide)
	w.damage = func(e *messages.Numbering) { e.WLogOffset = 0 }
	w.crash()
	for w.core.state != messages.StateFailed {
		w.work(actualizerLeaf)
		w.deliver(actualizerLeaf)
	}
	jobs := w.leaves[actualizerLeaf].jobs
	if len(jobs) != 1 {
		t.Fatalf("got jobs %v, want EndReplay", jobs)
	}
	if end, ok := jobs[0].(*messages.EndReplay); !ok || end.Generation != w.incarnation<<32+1 {
		t.Fatalf("got %T %+v, want EndReplay", jobs[0], jobs[0])
	}
}

// TestReplayRetries: reading the tail fails now and then; it is tried again under a
// new epoch, with a delay.
func TestReplayRetries(t *testing.T) {
	w := up(t, messages.Settings{FlushInterval: never})
	for range 5 {
		w.event(1, kindWide, seqPlain)
	}
	w.piece = 1
	w.crash()
	w.work(actualizerLeaf)
	w.deliver(actualizerLeaf)
	w.failReplays = 10
	w.settle()
	w.mustBe(messages.StateInitializing)
	if s := w.core.Status(); !errors.Is(s.Err, errDown) {
		t.Fatalf("status: %+v", s)
	}
	before := w.now
	for w.core.state == messages.StateInitializing {
		due, some := w.nextDue()
		if !some {
			t.Fatal("nothing will try again")
		}
		w.now = due
		w.fire()
		w.settle()
	}
	if waited := w.now - before; waited < 1_000_000 {
		t.Fatalf("ten tries took %d us only", waited)
	}
	if got := w.event(1, kindWide, seqPlain); got[0] != 6 {
		t.Fatalf("got %v, want 6", got)
	}
	w.finish()
}

// TestOldAnswersAreIgnored: of an earlier generation, in each state that takes such
// an answer.
func TestOldAnswersAreIgnored(t *testing.T) {
	w := up(t, messages.Settings{FlushThreshold: 1})
	w.event(1, kindWide, seqPlain)
	o := w.begun(1, kindWide)
	w.actualize(o)
	w.settle()
	w.tellOld(o.token)
	load := w.request(messages.Start{Workspace: 3, Kind: kindWide})
	w.tellOld(o.token)
	if load.start.reply != nil {
		t.Fatal("an old load is taken for the one under way")
	}
	w.settle()
	w.tellOld(o.token)
	w.commit(load)
	w.tellOld(o.token)
	w.mustBe(messages.StateNormal)
	w.event2(1)
	w.crash()
	w.tellOld(o.token)
	w.work(actualizerLeaf)
	w.deliver(actualizerLeaf)
	w.tellOld(o.token)
	w.mustBe(messages.StateInitializing)
	w.settle()
	w.mustBe(messages.StateNormal)
	w.finish()
}

// tellOld tells the core what would do harm if it believed it.
func (w *world) tellOld(t messages.Token) {
	generation := w.core.generation - 1
	w.tell(&messages.Taken{Generation: generation, Register: messages.Register{Epoch: 77, Last: 50, Checkpoint: 99}})
	w.tell(&messages.Replayed{Generation: generation, Events: []messages.Numbering{{PLogOffset: 99}}})
	w.tell(&messages.ReplayFailed{Generation: generation, Outcome: messages.Broken, Err: errDown})
	w.tell(&messages.Written{Generation: generation, Outcome: messages.Broken, Err: errDown, Checkpoint: 3})
	w.tell(&messages.Loaded{Generation: generation, Load: w.core.lastLoad, Numbers: messages.WorkspaceNumbers{Workspace: 3}})
	w.tell(&messages.Found{Generation: generation, Token: t, Present: true})
	w.tell(&messages.OwnerStopped{Token: t})
}

// TestRepeatedAnswersAreIgnored: pieces without credit and a second Taken.
func TestRepeatedAnswersAreIgnored(t *testing.T) {
	w := up(t, messages.Settings{FlushInterval: never})
	for range 3 {
		w.event(1, kindWide, seqPlain)
	}
	w.piece = 1
	w.crash()
	w.work(actualizerLeaf)
	taken := w.leaves[actualizerLeaf].answers[0]
	w.deliver(actualizerLeaf)
	w.tell(taken)
	w.work(actualizerLeaf)
	piece := w.leaves[actualizerLeaf].answers[0]
	w.deliver(actualizerLeaf)
	w.work(actualizerLeaf)
	w.deliver(actualizerLeaf)
	w.work(actualizerLeaf)
	w.deliver(actualizerLeaf)
	w.tell(piece)
	w.mustBe(messages.StateNormal)
	w.finish()
}

// TestCheckpointsDuringCatchUp: while a long tail is replayed they are written by
// time and at the Busy limit, and not otherwise.
func TestCheckpointsDuringCatchUp(t *testing.T) {
	long := func(t *testing.T) *world {
		w := up(t, messages.Settings{FlushInterval: never})
		for i := range 40 {
			w.event(messages.WSID(2*i+1), kindWide)
		}
		w.piece = 4
		return w
	}
	step := func(w *world) {
		w.work(actualizerLeaf)
		w.deliver(actualizerLeaf)
		w.work(flusherLeaf)
		w.deliver(flusherLeaf)
	}
	t.Run("by time", func(t *testing.T) {
		w := long(t)
		w.config.Settings.CatchUpCheckpoint = time.Second
		w.crash()
		for range 10 {
			step(w)
			w.now += 400_000
			w.fire()
		}
		// 10 steps of 0.4 s: checkpoints after 1.2, 2.4 and 3.6 s at the latest.
		w.mustBe(messages.StateInitializing)
		if n := len(w.flushes); n < 2 || n > 4 {
			t.Fatalf("got %d checkpoints in 4 s, want one a second", n)
		}
		w.settle()
		w.finish()
	})
	t.Run("at the limit", func(t *testing.T) {
		w := long(t)
		// Each event makes a workspace: two keys.
		w.config.Settings = messages.Settings{FlushThreshold: 1, BusyLimit: 20}.WithDefaults()
		w.crash()
		for w.core.state == messages.StateInitializing {
			step(w)
			if keys := w.core.unflushed.keys; keys > 20+2*w.piece {
				t.Fatalf("got %d keys", keys)
			}
		}
		if n := len(w.flushes); n != 4 {
			t.Fatalf("got %d checkpoints for 80 keys, want 3 at 24 each and the first flush after", n)
		}
		w.settle()
		w.finish()
	})
	t.Run("limit while the flusher hangs", func(t *testing.T) {
		w := long(t)
		w.config.Settings = messages.Settings{FlushThreshold: 1, BusyLimit: 20}.WithDefaults()
		w.crash()
		w.settleBut(flusherLeaf)
		w.mustBe(messages.StateInitializing)
		// One batch in flight, another gathered: then no more credit.
		if keys := w.core.unflushedKeys(); keys != 48 {
			t.Fatalf("got %d keys, want 48", keys)
		}
		// When the first is written, the second is handed over and reading goes on.
		w.work(flusherLeaf)
		w.deliver(flusherLeaf)
		if len(w.leaves[flusherLeaf].jobs) != 1 || len(w.leaves[actualizerLeaf].jobs) != 1 {
			t.Fatal("flushing and reading wait for each other")
		}
		w.settle()
		w.finish()
	})
	t.Run("short", func(t *testing.T) {
		w := long(t)
		w.config.Settings.FlushThreshold = 1
		w.crash()
		for w.core.state == messages.StateInitializing {
			w.work(actualizerLeaf)
			w.deliver(actualizerLeaf)
		}
		if len(w.leaves[flusherLeaf].jobs) != 1 {
			t.Fatalf("want the first flush after the replay, got %d before", len(w.leaves[flusherLeaf].jobs))
		}
		w.finish()
	})
}

// TestActualizationDuringFlight: a flush is under way when the partition takes a new
// epoch. It has happened, or the new epoch refuses it; either is right.
func TestActualizationDuringFlight(t *testing.T) {
	for name, order := range map[string][]int{
		"flush first": {flusherLeaf, actualizerLeaf},
		"epoch first": {actualizerLeaf, flusherLeaf},
	} {
		t.Run(name, func(t *testing.T) {
			w := up(t, messages.Settings{FlushThreshold: 1, FlushInterval: never})
			w.event2(1)
			o := w.request(messages.Start{Workspace: 1, Kind: kindWide})
			w.given(w.next(o, seqPlain))
			w.write(o)
			w.actualize(o)
			for _, leaf := range order {
				w.work(leaf)
			}
			for _, leaf := range order {
				w.deliver(leaf)
			}
			w.settle()
			if got := w.event(1, kindWide, seqPlain); got[0] != 3 {
				t.Fatalf("got %v, want 3", got)
			}
			w.finish()
		})
	}
}
