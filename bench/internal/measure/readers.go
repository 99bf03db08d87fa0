package measure

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/partita-go/partita/bench/internal/audit"
	"github.com/partita-go/partita/bench/internal/load"
	"github.com/partita-go/partita/bench/internal/report"
)

// readers read a row while it is loaded.
type readers struct {
	row    Followed
	abort  context.CancelCauseFunc // ends the load
	writes *audit.Writes
	calls  []uint64 // of each caller
	all    []*audit.Reader

	live    context.Context // of the readers: it outlives the load
	stop    context.CancelCauseFunc
	written context.Context // ends when the writers have ended
	ended   context.CancelFunc
	running sync.WaitGroup
	errs    []error // of each reader
}

// errNotAtTheEnd is why a reader is stopped that goes on for too long.
var errNotAtTheEnd = fmt.Errorf("it has not come to the end within %v after the writers", readLimit)

// startReaders starts the readers of a row, and returns the context of its load. They tell
// the lags of what is acknowledged from a time on.
func startReaders(ctx context.Context, row Followed, result *report.Result, from time.Time) (context.Context, *readers) {
	r := &readers{
		row:    row,
		writes: audit.NewWrites(result.Callers),
		calls:  make([]uint64, result.Callers),
		errs:   make([]error, result.Readers),
	}
	for range result.Readers {
		r.all = append(r.all, audit.NewReader(r.writes, from))
	}
	r.live, r.stop = context.WithCancelCause(ctx)
	r.written, r.ended = context.WithCancel(r.live)
	loading, abort := context.WithCancelCause(ctx)
	r.abort = abort
	for i := range r.all {
		r.running.Go(func() { r.follow(i) })
	}
	return loading, r
}

func (r *readers) follow(reader int) {
	err := r.row.Follow(r.live, r.written, reader, func(e audit.Event) error {
		return r.all[reader].See(e, time.Now())
	})
	if err == nil && r.written.Err() == nil {
		err = errors.New("it ended before the writers")
	}
	if err != nil {
		r.errs[reader] = fmt.Errorf("reader %d: %w", reader, errors.Join(context.Cause(r.live), err))
		r.abort(r.errs[reader])
	}
}

// writing returns a call that notes when its event was acknowledged.
func (r *readers) writing(do call) call {
	return func(ctx context.Context, caller int) error {
		r.calls[caller]++
		if err := do(ctx, caller); err != nil {
			return err
		}
		return r.writes.Acknowledge(caller, r.calls[caller], time.Now())
	}
}

// end lets the readers read to the end, and returns what they have seen.
func (r *readers) end(failed uint64) (*report.Reading, error) {
	defer r.abort(nil)
	defer r.stop(nil)
	r.ended()
	limit := time.AfterFunc(readLimit, func() { r.stop(errNotAtTheEnd) })
	r.running.Wait()
	limit.Stop()
	if err := errors.Join(r.errs...); err != nil {
		return nil, err
	}
	return r.reading(failed)
}

func (r *readers) reading(failed uint64) (*report.Reading, error) {
	reading := new(report.Reading)
	all := load.NewHistogram()
	for i, reader := range r.all {
		o, err := reader.Outcome(failed)
		if err != nil {
			return nil, fmt.Errorf("reader %d: %w", i, err)
		}
		all.Merge(o.Lags)
		reading.Readers = append(reading.Readers, report.Reader{
			Seen: o.Seen, Skipped: o.Skipped, Twice: o.Twice, OutOfOrder: o.OutOfOrder,
			Lag: lagOf(load.Percentiles(o.Lags)),
		})
	}
	reading.Lag = lagOf(load.Percentiles(all))
	return reading, nil
}

func lagOf(l load.Latencies) report.Lag { return report.Lag{P50: l.P50, P99: l.P99, Max: l.Max} }
