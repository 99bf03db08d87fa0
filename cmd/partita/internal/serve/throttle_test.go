package serve

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

// TestThrottle: whoever works rests for as long as his share wants, unless he has hardly worked, is told of a change,
// or is to end.
func TestThrottle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		changed := make(chan struct{})
		throttle := NewThrottle()
		rests := func(worked time.Duration, share int, want time.Duration) {
			t.Helper()
			time.Sleep(worked) //nolint:forbidigo // the bubble's time
			begun := time.Now()
			throttle.Rest(ctx, share, changed)
			if got := time.Since(begun); got != want {
				t.Errorf("worked for %v, with %d percent: got %v, want %v", worked, share, got, want)
			}
		}
		rests(10*time.Millisecond, 20, 40*time.Millisecond)
		rests(10*time.Millisecond, 100, 0)
		rests(4*time.Millisecond, 1, 0)
		rests(4*time.Millisecond, 50, 8*time.Millisecond)
		close(changed)
		rests(time.Second, 1, 0)
		changed = nil
		cancel()
		rests(time.Second, 1, 0)
	})
}
