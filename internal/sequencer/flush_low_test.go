package sequencer

import (
	"slices"
	"testing"
	"time"

	"github.com/partita-go/partita/messages"
)

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
