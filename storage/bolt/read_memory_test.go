package bolt

import (
	"testing"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage/bolt/internal/expect"
)

// What is read at once is bounded by what it takes in memory: an event with as many numbers as
// one can have takes a few bytes in the file, and more than a chunk here.
func TestReadsAreBoundedInMemory(t *testing.T) {
	s := open(t, t.TempDir(), testDescriptor(1, messages.TrustNone), Options{})
	w := takeOver(t, s, 0)
	places := make([]place, 20)
	for i := range places {
		e := w.event(1)
		next := e.Numbers[1]
		for len(e.Numbers) < messages.MaxEventNumbers {
			next.Number++
			e.Numbers = append(e.Numbers, next)
		}
		expect.NoError(t, w.try(e))
		places[i].lsn = messages.LSN(i) + 1
	}
	if events, err := copyEvents(s.log, places); err != nil || len(events) != 1 {
		t.Errorf("got %d events and %v in a chunk, want 1", len(events), err)
	}
	if got := len(collectEvents(t, s.PLog(t.Context(), 0, 1))); got != len(places) {
		t.Errorf("got %d events, want %d", got, len(places))
	}
	closeStore(t, s)
}
