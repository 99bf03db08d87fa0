package sequencer

import (
	"slices"
	"testing"
	"time"

	"github.com/partita-go/partita/messages"
)

// TestNeedsTime: the end of a transaction begins the interval if nothing else waits to be
// flushed.
func TestNeedsTime(t *testing.T) {
	w := up(t, messages.Settings{})
	o := w.begun(1, kindWide)
	if !w.core.NeedsTime() {
		t.Error("needs no time, though its event begins the interval")
	}
	w.commit(o)
	o = w.begun(1, kindWide)
	if w.core.NeedsTime() {
		t.Error("needs the time, though the interval has begun")
	}
	w.commit(o)
	w.finish()
}

// TestRetryTimerFiresTwice: a flush that is being tried again is not handed over once more.
func TestRetryTimerFiresTwice(t *testing.T) {
	w := up(t, messages.Settings{FlushThreshold: 1})
	w.flushMode = flushFails
	w.event2(1)
	w.settle()
	for range 2 {
		w.tell(&messages.TimerFired{Timer: messages.TimerFlushRetry})
		if jobs := w.leaves[flusherLeaf].jobs; len(jobs) != 1 {
			t.Fatalf("got %d flushes under way, want one", len(jobs))
		}
	}
}

// TestRetiredKeysCount: what a finished flush holds for loads under way is memory too, which the
// Busy limit bounds.
func TestRetiredKeysCount(t *testing.T) {
	w := up(t, messages.Settings{FlushThreshold: 2})
	w.event(1, kindWide)
	w.request(messages.Start{Workspace: 3, Kind: kindWide})
	w.settleBut(readerLeaf)
	if got := w.core.unflushedKeys(); len(w.flushes) != 1 || got != 2 {
		t.Errorf("got %d keys after %d flushes, want the 2 of one that a load may have missed", got, len(w.flushes))
	}
	w.settle()
	if got := w.core.unflushedKeys(); got != 0 {
		t.Errorf("got %d keys when the load had returned, want none", got)
	}
	w.finish()
}

func TestRetryDelaysGrow(t *testing.T) {
	const largest = 400 * time.Millisecond
	c := New(Config{Descriptor: testDescriptor(), Settings: messages.Settings{RetryDelay: largest}.WithDefaults()})
	distinct := make(map[time.Duration]bool)
	for failures, want := 1, largest/100; failures < 100; failures, want = failures+1, min(2*want, largest) {
		for range 20 {
			got := c.retryDelay(failures)
			if got < want/2 || got > want {
				t.Fatalf("failure %d: got %v, want %v to %v", failures, got, want/2, want)
			}
			distinct[got] = true
		}
	}
	if len(distinct) < 1000 {
		t.Fatalf("the delays have no jitter: %d are distinct", len(distinct))
	}
}

// TestFlushOfLowIDsAroundAReplay: of a sequence that did not change, a store takes its last
// number or the largest that the events of the flush say. A replay knows the id of one event
// only, which must not stay when a larger one comes that does not lift the sequence either.
func TestFlushOfLowIDsAroundAReplay(t *testing.T) {
	const initial = messages.InitialCRecordID
	w := up(t, messages.Settings{FlushInterval: time.Second})
	insert := func(n messages.Number) {
		m := w.one(1, kindBare)
		m.Drafts[0].Records = []messages.DraftRecord{{ID: messages.RecordID{Seq: messages.SeqCRecordID, Number: n}, New: true}}
		w.done(w.append(m))
	}
	insert(initial + 90)
	w.advance(time.Second)
	insert(initial + 50)
	w.crash()
	w.settle()
	insert(initial + 80)
	w.advance(time.Second)
	if len(w.flushes) != 2 {
		t.Fatalf("got %d flushes, want 2", len(w.flushes))
	}
	said := w.flushes[1].Numbers[0].Numbers
	i := slices.IndexFunc(said, func(n messages.SequenceNumber) bool { return n.Seq == messages.SeqCRecordID })
	if i >= 0 && said[i].Number != initial+90 && said[i].Number != initial+80 {
		t.Errorf("the flush says %d, want the last number, %d, or the largest of its events, %d", said[i].Number, initial+90, initial+80)
	}
	w.finish()
}
