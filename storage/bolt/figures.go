package bolt

import (
	"context"
	"errors"
	"io/fs"
	"math/bits"
	"sync/atomic"
	"time"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage"
	"github.com/partita-go/partita/storage/bolt/internal/boltfile"
	"github.com/partita-go/partita/storage/bolt/internal/format"
)

var _ storage.Measured = (*Store)(nil)

// Figures implements [storage.Measured].
func (s *Store) Figures(ctx context.Context) (storage.Figures, error) {
	f := storage.Figures{
		Events:          messages.LSN(s.lastLSN.Load()),
		UnflushedEvents: s.tails.events.Load(),
		UnflushedBytes:  s.tails.bytes.Load(),
		Oldest:          s.oldest(),
		CommitTime:      s.counts.commitTime.spread(time.Microsecond.Seconds()),
		CommitEvents:    s.counts.commitEvents.spread(1),
		CommitBytes:     s.counts.commitBytes.spread(1),
		FlushTime:       s.counts.flushTime.spread(time.Microsecond.Seconds()),
		FlushEvents:     s.counts.flushEvents.spread(1),
	}
	if err := s.enter(ctx); err != nil {
		return f, err
	}
	var err error
	f.Files, err = s.fileFigures()
	return f, err
}

// oldest returns when the first event was registered that the projections have not, 0 if they have all.
func (s *Store) oldest() (oldest messages.Timestamp) {
	if s.tails.events.Load() == 0 {
		return 0
	}
	for i := range s.partitions {
		if at := s.partitions[i].oldest(); at != 0 && (oldest == 0 || at < oldest) {
			oldest = at
		}
	}
	return oldest
}

func (p *partition) oldest() messages.Timestamp {
	p.mu.RLock()
	defer p.mu.RUnlock()
	first := max(p.checkpoint, p.tail.first())
	if first >= p.tail.end() {
		return 0
	}
	return p.tail.at(first).at
}

func (s *Store) fileFigures() ([]storage.FileFigures, error) {
	var all []storage.FileFigures
	for _, f := range []struct {
		file *boltfile.File
		role format.Role
	}{{s.log.File, format.RoleLog}, {s.state, format.RoleState}, {s.files.Subscriptions.Load(), format.RoleSubscriptions}} {
		if f.file == nil {
			continue
		}
		in, err := f.file.Inspect(f.role)
		if err != nil {
			return all, err
		}
		all = append(all, storage.FileFigures{Name: in.Name, Size: in.Size, Pages: in.Pages, FreePages: in.FreePage})
	}
	info, err := s.files.Directory.Stat(format.WALFileName)
	switch {
	case err == nil:
		all = append(all, storage.FileFigures{Name: format.WALFileName, Size: info.Size()})
	case !errors.Is(err, fs.ErrNotExist):
		return all, err
	}
	return all, nil
}

// spreadBounds is how many bounds a spread has: 1, 2, 4 … in whole units. So times in microseconds go up to 16 s,
// sizes in bytes up to 16 MiB.
const spreadBounds = 25

// spread counts values by their size. It is safe for concurrent use.
type spread struct {
	counts [spreadBounds + 1]atomic.Uint64
	sum    atomic.Uint64
}

func (s *spread) add(value uint64) {
	bound := 0
	if value > 1 {
		bound = min(bits.Len64(value-1), spreadBounds)
	}
	s.sum.Add(value)
	s.counts[bound].Add(1)
}

// spread returns the values, which were counted in a unit.
func (s *spread) spread(unit float64) storage.Spread {
	out := storage.Spread{Sum: float64(s.sum.Load()) * unit}
	for i := range spreadBounds {
		out.Count += s.counts[i].Load()
		out.Bounds = append(out.Bounds, float64(uint64(1)<<i)*unit)
		out.AtMost = append(out.AtMost, out.Count)
	}
	out.Count += s.counts[spreadBounds].Load()
	return out
}

// countCommit counts a commit that has succeeded.
func (c *counts) countCommit(values [][]byte, took time.Duration) {
	c.commits.Add(1)
	bytes := 0
	for _, v := range values {
		bytes += len(v)
	}
	c.commitEvents.add(uint64(len(values)))
	c.commitBytes.add(uint64(bytes))
	c.commitTime.add(uint64(took.Microseconds()))
}

// countFlush counts what a group of flushes has written, unless all were refused.
func (c *counts) countFlush(group []*flushRequest, took time.Duration) {
	events := uint64(0)
	for _, r := range group {
		if r.refusal == nil {
			events += uint64(r.to - r.from)
		}
	}
	if events > 0 {
		c.flushEvents.add(events)
		c.flushTime.add(uint64(took.Microseconds()))
	}
}
