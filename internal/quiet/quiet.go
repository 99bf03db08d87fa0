// Package quiet makes actor systems for programs and tests that have a log of
// their own.
package quiet

import (
	"log/slog"
	"time"

	"github.com/asynkron/protoactor-go/actor"
)

// NewSystem returns an actor system that logs nothing. What it does for its log
// leaves no goroutine behind: Proto.Actor counts dead letters in one that lives
// for a second, or as long as is said here.
func NewSystem() *actor.ActorSystem {
	return actor.NewActorSystem(
		actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger { return slog.New(slog.DiscardHandler) }),
		actor.WithDeadLetterThrottleInterval(time.Millisecond))
}
