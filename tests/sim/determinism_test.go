package sim

import (
	"strings"
	"testing"
)

// TestSameSeedSameHistory runs seeds twice, the second time after others have used the
// same actor system: the histories are the same, byte for byte.
func TestSameSeedSameHistory(t *testing.T) {
	const seeds = 25
	system := newSystem()
	var first [seeds][32]byte
	for i := range seeds {
		first[i] = simulate(t, system, uint64(1000+i)).hash()
	}
	for i := range seeds {
		if again := simulate(t, system, uint64(1000+i)); again.hash() != first[i] {
			t.Errorf("seed %d has another history when it is run again", 1000+i)
		}
		if i > 0 && first[i] == first[0] {
			t.Errorf("seeds 1000 and %d have one history", 1000+i)
		}
	}
}

// TestFailureReplays plants a store that loses what it acknowledges: that is found, and
// the seed that finds it replays exactly.
func TestFailureReplays(t *testing.T) {
	system := newSystem()
	lie := func(s *sim) { s.lies = true }
	for seed := uint64(1); seed <= 20; seed++ {
		s := simulate(t, system, seed, lie)
		if s.failure == "" {
			continue
		}
		again := simulate(t, system, seed, lie)
		if again.failure != s.failure || again.hash() != s.hash() {
			t.Errorf("seed %d fails with %q, and then with %q", seed, s.failure, again.failure)
		}
		if end := "FAILURE: " + s.failure + "\n"; !strings.HasSuffix(s.history.String(), end) {
			t.Errorf("seed %d: the history does not end with %q", seed, end)
		}
		return
	}
	t.Error("20 seeds found nothing")
}
