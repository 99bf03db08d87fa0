package storage

import (
	"context"

	"github.com/partita-go/partita/messages"
)

// MergedLog is implemented by stores that keep the events of all partitions in one log, and
// read its end once for all who follow it.
type MergedLog interface {
	// Since returns events behind the first seen ones of the store, as many as
	// [Watcher.AwaitAny] counts, in the order of their commits: some if there are any. What it
	// returns is shared: neither the slice nor what its events point to may be changed.
	//
	// While a partition has failed it may return the reason instead. Its errors need not say
	// whose event cannot be read: those of [Reader] do.
	Since(ctx context.Context, seen uint64) ([]messages.Event, error)
}
