package sequencer

import (
	"testing"
	"time"

	"github.com/partita-go/partita/messages"
)

// TestBusyTimes: a partition is busy from the first request that it has refused until a flush has made room, and says for
// the how manieth time.
func TestBusyTimes(t *testing.T) {
	w := up(t, messages.Settings{BusyEvents: 1, FlushThreshold: 1})
	for want := range uint64(3) {
		w.flushMode = flushFails
		w.event2(1)
		w.settle()
		if times, _, _ := w.core.Busy(); times != 0 {
			t.Errorf("got %d before anybody was refused", times)
		}
		for range 2 {
			w.request(messages.Start{Workspace: 1, Kind: kindWide})
			if times, events, keys := w.core.Busy(); times != want+1 || events != 1 || keys == 0 {
				t.Errorf("got the %d. time, %d events, %d keys, want the %d., 1 event", times, events, keys, want+1)
			}
		}
		w.flushMode = flushWorks
		w.advance(time.Minute)
		if times, events, keys := w.core.Busy(); times != 0 || events != 0 || keys != 0 {
			t.Errorf("got %d, %d events, %d keys behind the flush", times, events, keys)
		}
	}
	w.finish()
}
