package metrics

import (
	"testing"
	"time"
)

// TestExamplesAreFew: a kind of message gives an example at first, then one in 100 ms, and each that is slow.
func TestExamplesAreFew(t *testing.T) {
	var c cell
	for _, each := range []struct {
		took, at time.Duration
		want     bool
	}{
		{time.Microsecond, 5 * time.Millisecond, true},
		{time.Microsecond, 104 * time.Millisecond, false},
		{time.Millisecond, 104 * time.Millisecond, true},
		{time.Microsecond, 105 * time.Millisecond, true},
		{time.Microsecond, 106 * time.Millisecond, false},
		{time.Microsecond, 205 * time.Millisecond, true},
	} {
		if got := c.wantsExample(int64(each.took), int64(each.at)); got != each.want {
			t.Errorf("%s, at %s: got %v, want %v", each.took, each.at, got, each.want)
		}
	}
}
