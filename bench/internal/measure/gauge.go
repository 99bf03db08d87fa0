package measure

import (
	"context"
	"fmt"
	"time"

	"github.com/partita-go/partita/bench/internal/report"
	"github.com/partita-go/partita/bench/internal/usage"
)

// gauge looks at what a row takes while it is loaded.
type gauge struct {
	row     Row
	dir     string
	pid     int
	of      string
	sampler *usage.Sampler
	// At the start. written, disk and processor are -1 if the system does not tell.
	written   int64
	disk      int64
	files     int64
	processor time.Duration
}

func startGauge(ctx context.Context, row Row, dir string) (*gauge, error) {
	g := &gauge{row: row, dir: dir}
	g.pid, g.of = processOf(row)
	sizes, err := row.Sizes()
	if err != nil {
		return nil, fmt.Errorf("sizes of the files: %w", err)
	}
	g.files = usage.Total(sizes)
	if g.written, err = usage.Written(g.pid); err != nil {
		g.written = -1
	}
	if g.disk, err = usage.DiskWritten(dir); err != nil {
		g.disk = -1
	}
	if g.processor, err = usage.Processor(g.pid); err != nil {
		g.processor = -1
	}
	g.sampler = usage.StartSampler(ctx, g.pid)
	return g, nil
}

// stop puts into the result what was seen.
func (g *gauge) stop(r *report.Result) error {
	r.Of = g.of
	if peak, err := g.sampler.Stop(); err == nil {
		r.PeakResident, r.PeakAnonymous = peak.Resident, peak.Anonymous
	}
	sizes, err := g.row.Sizes()
	if err != nil {
		return fmt.Errorf("sizes of the files: %w", err)
	}
	r.Files = sizes
	r.Written, r.WrittenFrom = g.writtenSince(usage.Total(sizes))
	if disk, err := usage.DiskWritten(g.dir); err == nil && g.disk >= 0 {
		r.Disk = disk - g.disk
	}
	if processor, err := usage.Processor(g.pid); err == nil && g.processor >= 0 {
		r.Processor = processor - g.processor
	}
	if r.Acknowledged > 0 {
		r.ProcessorPerEvent = r.Processor / time.Duration(r.Acknowledged)
		r.WrittenPerEvent = float64(r.Written) / float64(r.Acknowledged)
		r.DiskPerEvent = float64(r.Disk) / float64(r.Acknowledged)
	}
	return nil
}

// writtenSince is how much was written since the start. Where the system does not
// tell, the files' growth is the next best.
func (g *gauge) writtenSince(files int64) (written int64, from string) {
	now, err := usage.Written(g.pid)
	if err != nil || g.written < 0 {
		return files - g.files, report.WrittenAsGrowth
	}
	return now - g.written, report.WrittenByCalls
}
