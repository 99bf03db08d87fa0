package pace

import (
	"testing"
	"time"
)

// TestLimit: so many at once, then one an interval; a pause gives no more than that back.
func TestLimit(t *testing.T) {
	l := New(10, time.Second)
	allowed := func(at time.Duration) (n int) {
		for l.Allows(at) {
			n++
		}
		return n
	}
	for _, tt := range []struct {
		at   time.Duration
		want int
	}{{0, 10}, {99 * time.Millisecond, 1}, {100 * time.Millisecond, 0}, {350 * time.Millisecond, 3}, {time.Hour, 10}} {
		if got := allowed(tt.at); got != tt.want {
			t.Errorf("at %v: got %d, want %d", tt.at, got, tt.want)
		}
	}
	if one := New(1, 0); !one.Allows(0) || one.Allows(0) || !one.Allows(time.Second) {
		t.Error("one a second is not one a second")
	}
}
