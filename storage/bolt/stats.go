package bolt

import (
	"sync/atomic"

	"github.com/partita-go/partita/messages"
)

// Stats are counters of a store since it was opened, and sizes as they are.
type Stats struct {
	// Events is how many events the log has, which is its last LSN.
	Events messages.LSN
	// Scanned is how many entries of the log Open read.
	Scanned uint64
	// Rebuilt is how many events Open projected.
	Rebuilt uint64
	// Commits counts transactions of log.db, Flushes those of state.db. Each may
	// serve many requests.
	Commits, Flushes uint64
	// TailEvents and TailBytes are what the tails hold; bytes are an estimate.
	TailEvents, TailBytes int64
	// StuckMerges is how many merges of runs of deduplication ids have met damage in
	// state.db. Their runs stay apart until that file is deleted and rebuilt.
	StuckMerges int64
	// LogSize and StateSize are the files' sizes in bytes, 0 if unknown.
	LogSize, StateSize int64
}

type counts struct {
	scanned, rebuilt, commits, flushes atomic.Uint64
	stuckMerges                        atomic.Int64
}

// Stats returns the store's counters and sizes.
func (s *Store) Stats() Stats {
	return Stats{
		Events:      messages.LSN(s.lastLSN.Load()),
		Scanned:     s.counts.scanned.Load(),
		Rebuilt:     s.counts.rebuilt.Load(),
		Commits:     s.counts.commits.Load(),
		Flushes:     s.counts.flushes.Load(),
		TailEvents:  s.tailEvents.Load(),
		TailBytes:   s.tailBytes.Load(),
		StuckMerges: s.counts.stuckMerges.Load(),
		LogSize:     s.log.File.Size(),
		StateSize:   s.state.Size(),
	}
}
