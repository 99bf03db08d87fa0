package storage

import (
	"context"

	"github.com/partita-go/partita/messages"
)

// Measured is implemented by stores that count what they do.
type Measured interface {
	// Figures returns what the store has done since it was opened, and how large it is. It may read a page or two of
	// each file. With an error the figures are as far as they are known.
	Figures(ctx context.Context) (Figures, error)
}

// Figures are about a store since it was opened, and about its files as they are.
type Figures struct {
	// Events is how many events the log has.
	Events messages.LSN
	// UnflushedEvents is how many of them the projections have not yet, and UnflushedBytes what they take of memory, as
	// estimated. Oldest is when the first of them was registered, 0 if there is none.
	UnflushedEvents, UnflushedBytes int64
	Oldest                          messages.Timestamp
	// CommitTime is how long commits of the log took, in seconds, CommitEvents and CommitBytes how much was in each. A
	// commit may serve many requests.
	CommitTime, CommitEvents, CommitBytes Spread
	// FlushTime is how long it took to write projections, in seconds, FlushEvents of how many events they were. A flush
	// may serve many partitions.
	FlushTime, FlushEvents Spread
	// Files are those that there are.
	Files []FileFigures
}

// FileFigures are about a file.
type FileFigures struct {
	Name string
	// Size is in bytes.
	Size int64
	// Pages are all of the file, and FreePages those that are written again. Both are 0 if it has no pages.
	Pages, FreePages uint64
}

// Spread says how values were spread.
type Spread struct {
	// Count is how many there were, Sum what they are together.
	Count uint64
	Sum   float64
	// Bounds rise. AtMost says of each how many values were not above it; those above the last are in Count alone.
	Bounds []float64
	AtMost []uint64
}
