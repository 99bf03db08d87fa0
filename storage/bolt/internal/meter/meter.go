package meter

import (
	"sync/atomic"
	"time"

	"github.com/partita-go/partita/storage"
)

// Meter counts since the store was opened. It is safe for concurrent use.
type Meter struct {
	// Scanned is how many entries of the log Open has read, Rebuilt how many events it has projected.
	Scanned, Rebuilt atomic.Uint64
	// Commits counts those of the log, Flushes groups of flushes that are in state.db.
	Commits, Flushes atomic.Uint64
	// StuckMerges is how many merges of runs of deduplication ids have met damage.
	StuckMerges atomic.Int64

	// Times are in microseconds.
	commitTime, commitEvents, commitBytes, flushTime, flushEvents spread
}

// Commit counts a commit that has succeeded.
func (m *Meter) Commit(values [][]byte, took time.Duration) {
	m.Commits.Add(1)
	bytes := 0
	for _, v := range values {
		bytes += len(v)
	}
	m.commitEvents.add(uint64(len(values)))
	m.commitBytes.add(uint64(bytes))
	m.commitTime.add(uint64(took.Microseconds()))
}

// Flush counts what a group of flushes has written, unless all were refused.
func (m *Meter) Flush(events uint64, took time.Duration) {
	if events > 0 {
		m.flushEvents.add(events)
		m.flushTime.add(uint64(took.Microseconds()))
	}
}

// Tell fills in what was counted of commits and flushes.
func (m *Meter) Tell(f *storage.Figures) {
	f.CommitTime = m.commitTime.spread(time.Microsecond.Seconds())
	f.CommitEvents = m.commitEvents.spread(1)
	f.CommitBytes = m.commitBytes.spread(1)
	f.FlushTime = m.flushTime.spread(time.Microsecond.Seconds())
	f.FlushEvents = m.flushEvents.spread(1)
}
