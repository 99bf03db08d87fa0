package load

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// fakeWatch has seen enough after some time.
type fakeWatch struct {
	enough     time.Duration
	begin, end error

	start             time.Time
	asked             int
	began, ended      time.Duration
	beginnings, halts int
}

func (w *fakeWatch) Begin() error {
	w.began, w.beginnings = time.Since(w.start), w.beginnings+1
	return w.begin
}

func (w *fakeWatch) Enough() bool {
	w.asked++
	return time.Since(w.start) >= w.enough
}

func (w *fakeWatch) End() error {
	w.ended, w.halts = time.Since(w.start), w.halts+1
	return w.end
}

// watched runs a load of two callers that call each millisecond.
func watched(t *testing.T, w *fakeWatch, l Load) (Outcome, error) {
	t.Helper()
	w.start, l.Callers, l.Watch = time.Now(), 2, w
	return l.Run(t.Context(), func(ctx context.Context, _ int) error { return Pause(ctx, time.Millisecond) })
}

func TestWindowLastsUntilTheWatchHasSeenEnough(t *testing.T) {
	for name, tt := range map[string]struct{ enough, want time.Duration }{
		"before the window ends": {time.Second, 4 * time.Second},
		"after it":               {7*time.Second + 50*time.Millisecond, 6*time.Second + 60*time.Millisecond},
		"never":                  {time.Hour, 20 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := &fakeWatch{enough: tt.enough}
				outcome, err := watched(t, w, Load{Warmup: time.Second, Window: 4 * time.Second, Longest: 20 * time.Second, Grace: time.Second})
				if err != nil {
					t.Fatal(err)
				}
				if outcome.Window != tt.want || w.began != time.Second || w.ended != time.Second+tt.want || w.beginnings != 1 || w.halts != 1 {
					t.Errorf("got a window of %v, watched %d and %d times from %v to %v, want %v, once, from 1s on", outcome.Window, w.beginnings, w.halts, w.began, w.ended, tt.want)
				}
				if rate := outcome.Rate(); rate < 1990 || rate > 2010 {
					t.Errorf("got %.0f/s, want 2000/s", rate)
				}
				if n := len(outcome.PerSecond); n != seconds(tt.want) || outcome.PerSecond[0] != 2000 {
					t.Errorf("got %v in each of %d seconds, want 2000 in %d", outcome.PerSecond, n, seconds(tt.want))
				}
			})
		})
	}
}

func TestWatchThatIsNotAskedForMore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &fakeWatch{}
		outcome, err := watched(t, w, Load{Window: time.Second, Grace: time.Second})
		if err != nil || outcome.Window != time.Second || w.asked != 0 || w.halts != 1 {
			t.Errorf("got %v, %v, asked %d times, ended %d times, want 1s, never, once", outcome.Window, err, w.asked, w.halts)
		}
	})
}

func TestWatchThatFails(t *testing.T) {
	broken := errors.New("broken")
	for name, w := range map[string]*fakeWatch{"begin": {begin: broken}, "end": {end: broken}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				_, err := watched(t, w, Load{Warmup: time.Second, Window: time.Minute, Grace: time.Second})
				if !errors.Is(err, broken) {
					t.Errorf("got %v, want %v", err, broken)
				}
				if took := time.Since(w.start); name == "begin" && took > 2*time.Second {
					t.Errorf("got %v, want an end at once", took)
				}
			})
		})
	}
}

func TestContextEndsTheWatch(t *testing.T) {
	for name, at := range map[string]time.Duration{"warm-up": 500 * time.Millisecond, "window": 5 * time.Second} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), at)
				defer cancel()
				w := &fakeWatch{start: time.Now(), enough: time.Hour}
				l := Load{Callers: 1, Warmup: time.Second, Window: time.Minute, Longest: time.Hour, Grace: time.Second, Watch: w}
				_, err := l.Run(ctx, func(ctx context.Context, _ int) error { return Pause(ctx, time.Millisecond) })
				if !errors.Is(err, context.DeadlineExceeded) || time.Since(w.start) != at || w.halts != w.beginnings {
					t.Errorf("got %v after %v, begun %d times and ended %d times", err, time.Since(w.start), w.beginnings, w.halts)
				}
			})
		})
	}
}
