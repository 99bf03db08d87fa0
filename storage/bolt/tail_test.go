package bolt

import (
	"testing"

	"github.com/partita-go/partita/messages"
)

// TestTailBytes: whatever an event has more takes more.
func TestTailBytes(t *testing.T) {
	for _, more := range []int64{
		tailBytes(1, 0, false) - tailBytes(0, 0, false), tailBytes(3, 2, false) - tailBytes(3, 1, false), tailBytes(2, 2, true) - tailBytes(2, 2, false),
		tailBytes(0, 0, false),
	} {
		if more < 16 {
			t.Errorf("got %d bytes, want those of a number, a record, an id or an entry", more)
		}
	}
}

// A tail that is never empty keeps nothing of what has left it.
func TestTailLetsGo(t *testing.T) {
	s := open(t, t.TempDir(), testDescriptor(1, messages.TrustNone), Options{})
	w := takeOver(t, s, 0)
	w.append(1, 2)
	f := w.pending()
	w.append(1)
	noError(t, s.Flush(t.Context(), f))
	tail := &s.partitions[0].tail
	equal(t, []int{1, 2, 2}, []int{tail.len(), tail.numbers.len(), tail.records.len()})
}
