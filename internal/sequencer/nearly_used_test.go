package sequencer

import (
	"reflect"
	"testing"

	"github.com/partita-go/partita/messages"
)

// TestNearlyUsedIsLoaded: a workspace's sequence that was used before is noticed with its next event, whatever that is.
func TestNearlyUsedIsLoaded(t *testing.T) {
	w := up(t, messages.Settings{})
	w.seqData[1] = storedOf(kindWide, map[messages.SeqID]messages.Number{messages.SeqWLogOffset: 1, seqNarrow: narrowLargest})
	w.request(messages.Start{Workspace: 1, Kind: kindWide})
	w.truth[1] = w.seqData[1]
	w.settle()
	wantNearlyUsed(w, messages.NearlyUsed{Workspace: 1, Seq: seqNarrow, Name: "last3", Last: 100, Largest: 100})
}

// TestNearlyUsedIsNoticed: when a number is given out, also if the tail of the log has it; and not before the number is
// durable.
func TestNearlyUsedIsNoticed(t *testing.T) {
	w := up(t, messages.Settings{})
	w.event(1, kindWide, seqNarrow, seqNarrow, seqPlain)
	wantNearlyUsed(w)
	o := w.begun(1, kindWide)
	w.given(w.next(o, seqNarrow))
	w.cancel(o)
	wantNearlyUsed(w)
	w.event(1, kindWide, seqNarrow)
	used := messages.NearlyUsed{Workspace: 1, Seq: seqNarrow, Name: "last3", Last: 100, Largest: 100}
	wantNearlyUsed(w, used)
	w.event(1, kindWide, seqPlain)
	wantNearlyUsed(w, used)

	w.restart() // the tail has it, if it is not flushed yet
	w.settle()
	wantNearlyUsed(w)
	w.event(1, kindWide, seqPlain)
	wantNearlyUsed(w, used)
}

// TestNearlyUsedIsBounded: of many sequences the status has the first.
func TestNearlyUsedIsBounded(t *testing.T) {
	w := up(t, messages.Settings{})
	for i := range messages.WSID(messages.MaxNearlyUsed + 3) {
		w.event(1+testPartitions*i, kindWide, seqNarrow, seqNarrow, seqNarrow)
	}
	all := w.core.Status().NearlyUsed
	if len(all) != messages.MaxNearlyUsed || all[0].Workspace != 1 || all[len(all)-1].Workspace != 1+testPartitions*(messages.MaxNearlyUsed-1) {
		t.Errorf("got %+v", all)
	}
}

func wantNearlyUsed(w *world, want ...messages.NearlyUsed) {
	w.t.Helper()
	if got := w.core.Status().NearlyUsed; len(got)+len(want) > 0 && !reflect.DeepEqual(got, want) {
		w.t.Fatalf("got %+v, want %+v", got, want)
	}
}
