package sequencer

import (
	"errors"
	"math/rand/v2"
	"strings"
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

// catchingUp returns a world whose new core is to replay one event each of n new workspaces,
// two keys each. The checkpoint is at the beginning.
func catchingUp(t *testing.T, n, piece int, s messages.Settings) *world {
	t.Helper()
	w := up(t, messages.Settings{FlushInterval: never})
	for i := range n {
		w.event(messages.WSID(2*i+1), kindWide)
	}
	w.piece = piece
	w.config.Settings = s.WithDefaults()
	w.crash()
	return w
}

// readOn lets the actualizer do one job and answer.
func (w *world) readOn() {
	w.work(actualizerLeaf)
	w.deliver(actualizerLeaf)
}

// TestDamagedTailIsNotReadOn: what fails a partition names what was wanted, and no further piece
// is asked for.
func TestDamagedTailIsNotReadOn(t *testing.T) {
	for name, test := range map[string]struct {
		piece func(w *world) []messages.Numbering
		want  string
	}{
		"nothing": {func(*world) []messages.Numbering { return nil }, "want events up to 3"},
		"hole": {func(w *world) []messages.Numbering {
			return []messages.Numbering{w.log[0].Numbering(), w.log[2].Numbering()}
		}, "got offset 3, want 2"},
		"epoch of this incarnation": {func(w *world) []messages.Numbering {
			n := w.log[0].Numbering()
			n.Epoch = w.epoch
			return []messages.Numbering{n}
		}, "got epoch 2, want at least 0 and below 2"},
	} {
		t.Run(name, func(t *testing.T) {
			w := catchingUp(t, 3, 1, messages.Settings{})
			w.readOn()
			w.work(actualizerLeaf)
			w.leaves[actualizerLeaf].answers = nil
			w.tell(&messages.Replayed{Generation: w.core.generation, Events: test.piece(w)})
			w.mustBe(messages.StateFailed)
			if err := w.core.Status().Err; !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %q, want %q in it", err, test.want)
			}
			jobs := w.leaves[actualizerLeaf].jobs
			if len(jobs) != 1 {
				t.Fatalf("got jobs %v, want EndReplay alone", jobs)
			}
			if _, ok := jobs[0].(*messages.EndReplay); !ok {
				t.Errorf("got %T, want EndReplay", jobs[0])
			}
		})
	}
}

// TestOldRetryTimer: the timer of a replay that failed fires after another reason has begun a new
// one, which goes on undisturbed.
func TestOldRetryTimer(t *testing.T) {
	w := catchingUp(t, 40, 10, messages.Settings{FlushThreshold: 1, BusyLimit: 20})
	w.readOn()
	w.readOn()
	w.failReplays = 1
	w.readOn()
	w.diverge = true
	w.work(flusherLeaf)
	w.deliver(flusherLeaf)
	begun := w.core.Status().Actualizations
	if begun != 2 {
		t.Fatalf("got %d actualizations, want one more because of the flush", begun)
	}
	w.tell(&messages.TimerFired{Timer: messages.TimerActualizeRetry})
	if got := w.core.Status().Actualizations; got != begun {
		t.Errorf("got %d actualizations, want %d", got, begun)
	}
}

// TestReplayIsRetriedDuringAFlush: a flush of a try that failed is not waited for, and what it
// wrote is not flushed again.
func TestReplayIsRetriedDuringAFlush(t *testing.T) {
	w := catchingUp(t, 25, 5, messages.Settings{FlushInterval: never, BusyLimit: 20})
	w.readOn()
	w.readOn()
	w.readOn()
	w.work(flusherLeaf) // it is written, the answer comes too late
	w.readOn()
	w.failReplays = 1
	w.readOn()
	w.advance(time.Second)
	w.mustBe(messages.StateNormal)
	s := w.stop()
	w.quiesce()
	w.mustStop(s, true)
	for _, f := range w.flushes[1:] {
		for _, n := range f.Numbers {
			if at := messages.PLogOffset(n.Workspace/2 + 1); at < f.Expected || at >= f.Checkpoint {
				t.Errorf("flush from %d to %d: got workspace %d, whose event is at %d", f.Expected, f.Checkpoint, n.Workspace, at)
			}
		}
	}
}

// The register says where the log ends. What a piece of the tail has behind that is
// not taken: it was not there when the epoch was.
func TestReplayEndsAtTheRegister(t *testing.T) {
	core := New(Config{
		Descriptor: messages.Descriptor{Application: "end", Partitions: 1, Kinds: []messages.Kind{{ID: 1, Name: "one"}}},
		Settings:   messages.Settings{}.WithDefaults(),
	})
	core.Begin(1)
	core.Step(nil, &messages.Taken{Generation: 1, Register: messages.Register{Epoch: 2, Last: 1, Checkpoint: 1}}, 1)
	var events []messages.Numbering
	for o := range messages.PLogOffset(2) {
		events = append(events, messages.Numbering{
			Epoch: 1, PLogOffset: o + 1, Workspace: 1, WorkspaceKind: 1, WLogOffset: messages.WLogOffset(o + 1), RegisteredAt: 1,
		})
	}
	core.Step(nil, &messages.Replayed{Generation: 1, Events: events}, 1)
	if s := core.Status(); s.State != messages.StateNormal || s.Last != 1 {
		t.Errorf("got %v at offset %d, want %v at 1", s.State, s.Last, messages.StateNormal)
	}
}
