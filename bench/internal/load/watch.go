package load

import (
	"context"
	"time"
)

// askPeriod is how often a watch is asked whether it has seen enough.
const askPeriod = 20 * time.Millisecond

// watch lets the watch of a load look at the window. It returns when the window has
// ended, or the callers have.
func (r *run) watch(ctx context.Context, l Load) error {
	if !waitUntil(ctx, r.start) {
		return nil
	}
	if err := l.Watch.Begin(); err != nil {
		r.abort(err)
		return err
	}
	for at := l.Window; waitUntil(ctx, r.start.Add(at)) && at < l.Longest; at = min(at+askPeriod, l.Longest) {
		if l.Watch.Enough() {
			r.window.Store(int64(time.Since(r.start)))
			break
		}
	}
	return l.Watch.End()
}

// Pause waits. If ctx ends first, it returns the cause.
func Pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// waitUntil reports whether the time came before the context ended.
func waitUntil(ctx context.Context, t time.Time) bool { return Pause(ctx, time.Until(t)) == nil }
