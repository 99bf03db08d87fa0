// Package quiet makes actor systems for programs and tests that have a log of
// their own.
package quiet

import (
	"log/slog"
	"slices"
	"time"

	"github.com/asynkron/protoactor-go/actor"
)

// NewSystem returns an actor system that logs nothing. What it does for its log
// leaves no goroutine behind: Proto.Actor counts dead letters in one that lives
// for a second, or as long as is said here.
func NewSystem() *actor.ActorSystem {
	system := actor.NewActorSystem(
		actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger { return slog.New(slog.DiscardHandler) }),
		actor.WithDeadLetterThrottleInterval(time.Millisecond))
	keepFewBuckets(system.ProcessRegistry.LocalPIDs)
	return system
}

// buckets is how many maps of 32 parts, each with a lock, a system has for the names of its actors. It is a power of two, as
// Proto.Actor's 1,024 are: those take 3 MB in 65,536 objects, which each garbage collection follows. Names are looked up
// once for each address.
const buckets = 8

// keepFewBuckets puts what is registered into the first buckets. Nobody else must know the system yet.
func keepFewBuckets(names *actor.SliceMap) {
	registered := make(map[string]any)
	for _, bucket := range names.LocalPIDs {
		bucket.IterCb(func(name string, process any) { registered[name] = process })
	}
	names.LocalPIDs = slices.Clone(names.LocalPIDs[:buckets])
	for name, process := range registered {
		names.GetBucket(name).Set(name, process)
	}
}
