package bolt

import "testing"

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
