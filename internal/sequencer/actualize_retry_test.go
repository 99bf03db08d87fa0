package sequencer

import (
	"strings"
	"testing"
	"time"

	"github.com/partita-go/partita/messages"
)

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

// TestCatchUpGivesWayAtTheLimit: exactly at the Busy limit, with a flush under way, it reads
// no further and lets others replay meanwhile.
func TestCatchUpGivesWayAtTheLimit(t *testing.T) {
	w := catchingUp(t, 40, 10, messages.Settings{FlushThreshold: 1, BusyLimit: 20})
	w.settleBut(flusherLeaf)
	w.mustBe(messages.StateInitializing)
	if keys := w.core.unflushedKeys(); keys != 40 {
		t.Errorf("got %d keys in flight and gathered, want twice the limit of 20", keys)
	}
	if w.permitted {
		t.Error("keeps the permit to replay while it waits for its flush")
	}
	w.settle()
	w.finish()
}

// TestCatchUpStartsTheInterval: what was replayed is flushed an interval after that, however old
// it is.
func TestCatchUpStartsTheInterval(t *testing.T) {
	w := catchingUp(t, 2, 1, messages.Settings{FlushInterval: 100 * time.Millisecond})
	w.readOn()
	w.readOn()
	w.now += 40_000
	w.settle()
	w.mustBe(messages.StateNormal)
	w.advance(59 * time.Millisecond)
	if len(w.flushes) != 0 {
		t.Fatal("flushed before the interval had passed since the first event was replayed")
	}
	w.advance(time.Millisecond)
	if len(w.flushes) != 1 {
		t.Fatalf("got %d flushes after the interval, want one", len(w.flushes))
	}
	w.finish()
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
