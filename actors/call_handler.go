package actors

import (
	"fmt"

	"go.uber.org/zap"
)

// callHandler calls what users wrote and turns its panic into an error. It has a goroutine of
// its own: one that ends that, as a failed assertion does, must not take the actor with it.
func callHandler(logger *zap.Logger, key Key, users func() error) error {
	outcome := make(chan error, 1)
	go func() {
		err := ErrHandlerExit
		defer func() {
			if r := recover(); r != nil {
				logger.Error("handler panicked", zap.Stringer("actor", key), zap.Any("reason", r), zap.Stack("stack"))
				err = fmt.Errorf("%w: %v", ErrHandlerPanic, r)
			}
			outcome <- err
		}()
		err = users()
	}()
	return <-outcome
}
