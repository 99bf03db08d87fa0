//go:build !nopeers

package trio

import (
	"context"
	"errors"
	"time"
)

// againDelay is how long a caller of a peer waits before it tries again.
const againDelay = 5 * time.Millisecond

// errWrong is an answer that no try mends.
var errWrong = errors.New("wrong")

// again tries until the answer is nil, each time for so long at most, if it may be repeated; else once.
func again(ctx context.Context, limit time.Duration, repeatable bool, try func(context.Context) error) error {
	if !repeatable {
		return try(ctx)
	}
	for {
		limited, cancel := context.WithTimeout(ctx, limit)
		err := try(limited)
		cancel()
		if err == nil || errors.Is(err, errWrong) {
			return err
		}
		select {
		case <-time.After(againDelay):
		case <-ctx.Done():
			return err
		}
	}
}
