package backoff_test

import (
	"testing"
	"time"

	"github.com/partita-go/partita/internal/backoff"
)

func TestDelay(t *testing.T) {
	for _, tt := range []struct {
		first, largest time.Duration
		failures       int
		jitter         float64
		want           time.Duration
	}{
		{10, 1000, 0, 0, 5},
		{10, 1000, 1, 0, 5},
		{10, 1000, 1, 0.5, 7},
		{10, 1000, 2, 0, 10},
		{10, 1000, 3, 0.5, 30},
		{10, 1000, 7, 0, 320},
		{10, 1000, 8, 0, 500},
		{10, 1000, 8, 0.5, 750},
		{10, 1000, 1 << 30, 0.999, 999},
		{10, 4, 1, 0.5, 3},
		{time.Hour, 1 << 62, 100, 0, 1 << 61},
	} {
		if got := backoff.Delay(tt.first, tt.largest, tt.failures, tt.jitter); got != tt.want {
			t.Errorf("%+v: got %v", tt, got)
		}
	}
}
