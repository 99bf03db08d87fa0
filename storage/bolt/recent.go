package bolt

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage"
)

var _ storage.MergedLog = (*Store)(nil)

// recent is what was read of the log's end, for all who follow it: the first one who wants
// it reads it for the others. Nobody waits for anybody.
type recent struct {
	// reading is held by who reads on behind the runs.
	reading sync.Mutex
	runs    atomic.Pointer[runs]
}

func (r *recent) load() runs {
	if p := r.runs.Load(); p != nil {
		return *p
	}
	return runs{}
}

// from returns the events from an LSN on, none if the runs do not have it, and whether that
// is because it is behind them.
func (r *recent) from(lsn messages.LSN) (events []messages.Event, behind bool) {
	runs := r.load()
	return runs.from(lsn), lsn >= runs.end()
}

// runs are the last two parts of the log that were read, so that who is a little late finds
// its place.
type runs [2]run

// from returns the events from an LSN on, none if the runs do not have it.
func (r *runs) from(lsn messages.LSN) []messages.Event {
	for i := range r {
		if first := r[i].first; lsn >= first && lsn < r[i].end() {
			return slices.Clip(r[i].events[lsn-first:])
		}
	}
	return nil
}

// end is the LSN behind the runs.
func (r *runs) end() messages.LSN { return r[1].end() }

// run is a part of the log. What it has is never changed; what follows is appended.
type run struct {
	first  messages.LSN
	events []messages.Event
	// bytes are about what the events hold.
	bytes int
}

func (r *run) end() messages.LSN { return r.first + messages.LSN(len(r.events)) }

func (r *run) isFull() bool { return len(r.events) >= maxReadChunk || r.bytes >= maxReadBytes }

func (r *run) add(events []messages.Event) {
	r.events = append(r.events, events...)
	for i := range events {
		r.bytes += events[i].Memory()
	}
}

// Since implements [storage.MergedLog].
func (s *Store) Since(ctx context.Context, seen uint64) ([]messages.Event, error) {
	if err := s.enter(ctx); err != nil {
		return nil, err
	}
	if seen >= s.lastLSN.Load() {
		return nil, nil
	}
	from := messages.LSN(seen) + 1
	events, behind := s.recent.from(from)
	if behind && s.recent.reading.TryLock() {
		defer s.recent.reading.Unlock()
		// Another one may have read it meanwhile.
		if events, behind = s.recent.from(from); behind {
			return s.readOn(from)
		}
	}
	if len(events) > 0 {
		return events, nil
	}
	// It is late, or another one is just reading.
	return s.readRun(from, maxReadChunk)
}

// readOn reads behind the runs, and adds to them. The caller holds the lock.
func (s *Store) readOn(from messages.LSN) ([]messages.Event, error) {
	if err := s.anyFailed(); err != nil {
		return nil, err
	}
	runs := s.recent.load()
	last := &runs[1]
	if from > last.end() || last.isFull() {
		runs[0], runs[1] = runs[1], run{first: from}
	}
	events, err := s.readRun(from, maxReadChunk-len(last.events))
	if err != nil {
		return nil, err
	}
	last.add(events)
	s.recent.runs.Store(&runs)
	return runs.from(from), nil
}

// readRun reads at most n events from an LSN on that the log has. If one cannot be read, it
// returns those before.
func (s *Store) readRun(from messages.LSN, n int) ([]messages.Event, error) {
	places := make([]place, min(uint64(n), s.lastLSN.Load()-uint64(from)+1))
	for i := range places {
		places[i].lsn = from + messages.LSN(i)
	}
	events, err := s.readEvents(places)
	if len(events) > 0 {
		return events, nil
	}
	return nil, err
}

// anyFailed returns why a partition has failed, nil if none has.
func (s *Store) anyFailed() error {
	for i := range s.partitions {
		p := &s.partitions[i]
		p.mu.RLock()
		failed := p.failed
		p.mu.RUnlock()
		if failed != nil {
			return failed
		}
	}
	return nil
}
