package meter

import (
	"slices"
	"testing"

	"github.com/partita-go/partita/storage/bolt/internal/expect"
)

// TestSpread: a value is at most a bound if it is not above it.
func TestSpread(t *testing.T) {
	var s spread
	for _, v := range []uint64{0, 1, 2, 3, 4, 5, 1 << 24, 1<<24 + 1, 1 << 62} {
		s.add(v)
	}
	got := s.spread(0.5)
	expect.Equal(t, 9, got.Count)
	for bound, want := range map[float64]uint64{0.5: 2, 1: 3, 2: 5, 4: 6, 1 << 23: 7} {
		if at := slices.Index(got.Bounds, bound); at < 0 || got.AtMost[at] != want {
			t.Errorf("at most %v: got %v of %v, want %d", bound, got.AtMost, got.Bounds, want)
		}
	}
	if want := 0.5 * (15 + 1<<24 + 1<<24 + 1 + 1<<62); got.Sum != want {
		t.Errorf("got the sum %v, want %v", got.Sum, want)
	}
}
