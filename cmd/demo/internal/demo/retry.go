package demo

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage"
)

const (
	// patience is how long something is tried again before it is given up.
	patience = 30 * time.Second
	// shortly is the delay before the next try where no hint is given.
	shortly = 10 * time.Millisecond
)

// retry calls try until it succeeds, gives up by itself, or patience ends. again
// says after which errors it is of use, and how long to wait before. It returns
// how often it was tried again.
func retry(ctx context.Context, again func(error) (time.Duration, bool), try func() error) (int, error) {
	var since time.Time
	for n := 0; ; n++ {
		err := try()
		if err == nil {
			return n, nil
		}
		delay, ok := again(err)
		switch {
		case !ok:
			return n, err
		case since.IsZero():
			since = time.Now()
		case time.Since(since) > patience:
			return n, fmt.Errorf("given up after %v: %w", patience, err)
		}
		timer := time.NewTimer(delay)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return n, context.Cause(ctx)
		}
	}
}

// refusedForNow: nothing was done, and it may succeed later.
func refusedForNow(err error) (time.Duration, bool) {
	if busy, ok := errors.AsType[*messages.BusyError](err); ok {
		return busy.RetryAfter, busy.RetryAfter > 0
	}
	for _, passing := range []error{
		messages.ErrFenced, messages.ErrInterrupted, messages.ErrDeadlineExceeded, messages.ErrNoTransaction,
		storage.ErrTailFull, context.DeadlineExceeded,
	} {
		if errors.Is(err, passing) && !errors.Is(err, messages.ErrOutcomeUnknown) {
			return shortly, true
		}
	}
	return 0, false
}

// refusedOrUnknown is for what is safe to do twice.
func refusedOrUnknown(err error) (time.Duration, bool) {
	if errors.Is(err, messages.ErrOutcomeUnknown) && !errors.Is(err, storage.ErrClosed) {
		return shortly, true
	}
	return refusedForNow(err)
}
