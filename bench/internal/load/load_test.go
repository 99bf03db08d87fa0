package load

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

func TestRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := Load{Callers: 4, Warmup: time.Second, Window: 10 * time.Second, Grace: time.Second}
		outcome, err := l.Run(t.Context(), func(ctx context.Context, _ int) error {
			return Pause(ctx, 10*time.Millisecond)
		})
		if err != nil {
			t.Fatal(err)
		}
		if outcome.Count != 4000 || outcome.Rate() != 400 || outcome.Acknowledged != 4400 || outcome.Failed != 0 {
			t.Errorf("got %d calls, %.0f/s, %d acknowledged, %d failed, want 4000, 400/s, 4400, 0",
				outcome.Count, outcome.Rate(), outcome.Acknowledged, outcome.Failed)
		}
		if len(outcome.PerSecond) != 10 || outcome.PerSecond[3] != 400 {
			t.Errorf("per second: got %v, want 400 in each of 10", outcome.PerSecond)
		}
		for _, p := range []time.Duration{outcome.P50, outcome.P99, outcome.P999, outcome.Max} {
			if p < 9900*time.Microsecond || p > 10100*time.Microsecond {
				t.Errorf("percentile: got %v, want 10ms", p)
			}
		}
	})
}

func TestPercentiles(t *testing.T) {
	start := time.Now()
	r := newRecorder(start, time.Second)
	for i := range 10_000 {
		d := time.Millisecond
		switch {
		case i >= 9_995:
			d = time.Second
		case i >= 9_950:
			d = 100 * time.Millisecond
		case i >= 9_800:
			d = 10 * time.Millisecond
		}
		if err := r.record(i, start, start.Add(d)); err != nil {
			t.Fatal(err)
		}
	}
	l := r.latencies(time.Second)
	for _, tt := range []struct{ got, want time.Duration }{
		{l.P50, time.Millisecond}, {l.P99, 10 * time.Millisecond}, {l.P999, 100 * time.Millisecond}, {l.Max, time.Second},
	} {
		if off := (tt.got - tt.want).Abs(); off > tt.want/500 {
			t.Errorf("got %v, want %v", tt.got, tt.want)
		}
	}
	if l.Count != 10_000 {
		t.Errorf("got %d, want 10000", l.Count)
	}
}

func TestErrorsAreCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var calls atomic.Int64
		refused := errors.New("refused")
		l := Load{Callers: 2, Window: time.Second, Grace: time.Second}
		outcome, err := l.Run(t.Context(), func(ctx context.Context, _ int) error {
			if calls.Add(1)%10 == 0 {
				return refused
			}
			return Pause(ctx, time.Millisecond)
		})
		if err != nil {
			t.Fatal(err)
		}
		if outcome.Failed == 0 || !errors.Is(outcome.FirstError, refused) || outcome.Failed+outcome.Acknowledged != uint64(calls.Load()) {
			t.Errorf("got %d failed (%v) and %d acknowledged of %d", outcome.Failed, outcome.FirstError, outcome.Acknowledged, calls.Load())
		}
	})
}

func TestTooManyErrors(t *testing.T) {
	l := Load{Callers: 2, Window: time.Minute, Grace: time.Second}
	_, err := l.Run(t.Context(), func(context.Context, int) error { return errors.New("refused") })
	if !errors.Is(err, errTooMany) {
		t.Errorf("got %v, want %v", err, errTooMany)
	}
}

func TestHangingCallsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := Load{Callers: 2, Window: time.Second, Grace: time.Second}
		began := time.Now()
		outcome, err := l.Run(t.Context(), func(ctx context.Context, _ int) error {
			<-ctx.Done()
			return ctx.Err()
		})
		if err == nil || outcome.Failed != 2 {
			t.Errorf("got %v and %d failed, want an error and 2", err, outcome.Failed)
		}
		if took := time.Since(began); took != 2*time.Second {
			t.Errorf("took %v, want 2s", took)
		}
	})
}

func TestContextEndsTheLoad(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	l := Load{Callers: 1, Window: time.Minute}
	_, err := l.Run(ctx, func(context.Context, int) error {
		cancel()
		return nil
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want %v", err, context.Canceled)
	}
}
