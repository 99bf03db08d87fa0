package storage

import (
	"context"

	"github.com/partita-go/partita/messages"
)

// MergedLog is implemented by stores that keep the events of all partitions in one log, and
// read its end once for all who follow it.
type MergedLog interface {
	// Since returns events behind the first seen ones of the store, counted as by
	// [Watcher.AwaitAny], in the order of their commits, which never changes: some if there are
	// any, else none, also for who has seen more than there are. It does not wait. What it
	// returns is shared: neither the slice nor what its events point to may be changed. Like all
	// methods of a [Store] it may be called concurrently, obeys its context, and returns
	// ErrClosed when the store is closed.
	//
	// While a partition has failed it may return the reason instead. Its errors need not say
	// whose event cannot be read: those of [Reader] do.
	Since(ctx context.Context, seen uint64) ([]messages.Event, error)
}
