package trio

import (
	"errors"
	"testing"
	"time"
)

// The longest pause is between two acknowledgements, or since the last one; what was before the mark does not count.
func TestLongestPause(t *testing.T) {
	began := time.Now()
	s := &steady{callers: make([]steadyCaller, 2)}
	at := func(d time.Duration) time.Time { return began.Add(d) }
	for i := range s.callers {
		s.callers[i].last = began
	}
	one, other := &s.callers[0], &s.callers[1]
	one.note(at(-time.Hour), nil) // a clock that goes back makes no pause
	one.last = began
	one.note(at(900*time.Millisecond), nil)
	other.note(at(900*time.Millisecond), nil)
	s.mark()
	one.note(at(1*time.Second), nil)
	one.note(at(3*time.Second), nil)
	one.note(at(4*time.Second), nil)
	if got := one.waited(at(4 * time.Second)); got != 2*time.Second {
		t.Errorf("between two: got %v, want 2 s", got)
	}
	if got := one.waited(at(7 * time.Second)); got != 3*time.Second {
		t.Errorf("since the last one: got %v, want 3 s", got)
	}
	if got := other.waited(at(1 * time.Second)); got != 100*time.Millisecond {
		t.Errorf("since before the mark: got %v, want 100 ms", got)
	}
	other.note(at(2*time.Second), errors.New("lost"))
	if other.err == nil || other.acknowledged != 1 || one.acknowledged != 5 {
		t.Errorf("got %d and %d acknowledged, %v", one.acknowledged, other.acknowledged, other.err)
	}
}
