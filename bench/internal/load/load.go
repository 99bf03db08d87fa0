// Package load lets a number of callers do the same thing for some time and
// measures how long each call takes.
package load

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

// Load is a closed load: each caller calls again as soon as its last call ended.
type Load struct {
	Callers int
	// Warmup comes first and is not measured.
	Warmup time.Duration
	// Window is how long is measured at least, Longest at most; less than Window means
	// as long as Window.
	Window, Longest time.Duration
	// Grace is how long calls may take that are under way when the window ends.
	Grace time.Duration
	// Watch looks at what is loaded; nil: nobody does.
	Watch Watch
}

// Watch looks at what is loaded while it is measured. Its methods are called by one
// goroutine.
type Watch interface {
	// Begin is called when the window begins.
	Begin() error
	// Enough is asked from time to time once Window has passed. The window ends when
	// the answer is yes, or when it is as long as it may be.
	Enough() bool
	// End is called when a window has ended that began.
	End() error
}

// maxErrors is how many failed calls end a load.
const maxErrors = 1000

// Outcome is what a load measured.
type Outcome struct {
	Latencies
	// Window is what was measured, from its first to its last moment.
	Window time.Duration
	// Acknowledged and Failed are the calls of the warm-up, the window and the grace.
	Acknowledged, Failed uint64
	// FirstError is nil if Failed is 0.
	FirstError error
}

// Rate is how many calls a second ended well in the window.
func (o Outcome) Rate() float64 {
	return float64(o.Count) / o.Window.Seconds()
}

// errTooMany ends a load.
var errTooMany = errors.New("too many calls failed")

// Run runs the load; do is called by all callers at once, each with its own
// index, from 0 on. It fails if the context ends, if the watch fails, if too many
// calls failed, or if none ended well in the window.
func (l Load) Run(ctx context.Context, do func(ctx context.Context, caller int) error) (Outcome, error) {
	l.Longest = max(l.Longest, l.Window)
	start := time.Now().Add(l.Warmup)
	r := &run{do: do, recorder: newRecorder(start, l.Longest), start: start}
	r.window.Store(int64(l.Longest))
	bounded, cancel := context.WithDeadline(ctx, start.Add(l.Longest+l.Grace))
	defer cancel()
	bounded, r.abort = context.WithCancelCause(bounded)
	defer r.abort(nil)

	var callers, watch sync.WaitGroup
	for caller := range l.Callers {
		callers.Go(func() { r.call(bounded, caller) })
	}
	if l.Watch != nil {
		watch.Go(func() { r.watched = r.watch(bounded, l) })
	}
	callers.Wait()
	cancel()
	watch.Wait()

	outcome := r.outcome
	outcome.Window = time.Duration(r.window.Load())
	outcome.Latencies = r.recorder.latencies(outcome.Window)
	return outcome, errors.Join(r.watched, r.failure(ctx, bounded, outcome))
}

// run is a load under way.
type run struct {
	do       func(ctx context.Context, caller int) error
	recorder *recorder
	start    time.Time
	window   atomic.Int64 // its length; it shrinks once, when the watch has seen enough
	abort    context.CancelCauseFunc
	watched  error // of the watch; read it when that has ended

	mu      sync.Mutex
	outcome Outcome // Acknowledged, Failed and FirstError
}

// over reports whether the window has ended at a time.
func (r *run) over(t time.Time) bool {
	return t.Sub(r.start) >= time.Duration(r.window.Load())
}

// call calls until the window ends.
func (r *run) call(ctx context.Context, caller int) {
	acknowledged := uint64(0)
	for began := time.Now(); !r.over(began) && ctx.Err() == nil; {
		err := r.do(ctx, caller)
		ended := time.Now()
		if err == nil {
			acknowledged++
			if !ended.Before(r.start) && !r.over(ended) {
				err = r.recorder.record(caller, began, ended)
			}
		}
		if err != nil {
			r.fail(err)
		}
		began = ended
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.outcome.Acknowledged += acknowledged
}

func (r *run) fail(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.outcome.Failed == 0 {
		r.outcome.FirstError = err
	}
	r.outcome.Failed++
	if r.outcome.Failed >= maxErrors {
		r.abort(errTooMany)
	}
}

// failure says why the outcome is none.
func (r *run) failure(ctx, bounded context.Context, outcome Outcome) error {
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.Is(context.Cause(bounded), errTooMany):
		return fmt.Errorf("%w: %d, the first one: %w", errTooMany, outcome.Failed, outcome.FirstError)
	case outcome.Count == 0:
		none := fmt.Errorf("no call ended well within %v, %d failed", outcome.Window, outcome.Failed)
		return errors.Join(none, outcome.FirstError)
	}
	return nil
}
