package measure

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/partita-go/partita/bench/internal/load"
	"github.com/partita-go/partita/bench/internal/report"
)

// Plan is how long a row is loaded, and for how many workspaces.
type Plan struct {
	Warmup, Window time.Duration
	Workspaces     int
	// Memory is what a store of partita may take for events that are on their way, in bytes; 0: its default.
	Memory int64
	// Rounds is how many rounds of background work a row that has such work shall end
	// in its window, which is made up to maxStretch times as long for it.
	Rounds uint64
	// Profile is the file for a CPU profile of the window of such a row; empty: none.
	Profile string
}

const maxStretch = 5

// Limits of the steps besides the load.
const (
	setupLimit  = 5 * time.Minute // a row may append millions of events before it is measured
	graceLimit  = time.Minute
	readLimit   = time.Minute
	settleLimit = 5 * time.Minute
	checkLimit  = 5 * time.Minute
	closeLimit  = time.Minute
)

// Limit is the longest that a row can take.
func (p Plan) Limit() time.Duration {
	return setupLimit + p.Warmup + maxStretch*p.Window + graceLimit + readLimit + settleLimit + checkLimit + closeLimit
}

// Measure runs a row in an empty directory.
func (p Plan) Measure(ctx context.Context, spec Spec, dir string) report.Result {
	r := report.Result{
		Row: spec.Name, Callers: spec.Callers, Readers: spec.Readers, Workspaces: p.Workspaces,
		Warmup: p.Warmup, Window: p.Window,
	}
	row := spec.New(Settings{Callers: spec.Callers, Readers: spec.Readers, Workspaces: p.Workspaces, Memory: p.Memory})
	err := errors.Join(p.measure(ctx, row, dir, &r), within(context.WithoutCancel(ctx), closeLimit, "close", row.Close))
	switch {
	case errors.Is(err, ErrUnavailable):
		r.Unavailable = err.Error()
	case err != nil:
		r.Failed = err.Error()
	}
	return r
}

func (p Plan) measure(ctx context.Context, row Row, dir string, r *report.Result) error {
	setup := func(ctx context.Context) error { return row.Setup(ctx, dir) }
	if err := within(ctx, setupLimit, "setup", setup); err != nil {
		return err
	}
	r.Note = row.Note()
	gauging, stop := context.WithCancel(ctx)
	defer stop()
	g, err := startGauge(gauging, row, dir)
	if err != nil {
		return err
	}
	outcome, err := p.loadAndRead(ctx, row, r)
	if err != nil {
		return fmt.Errorf("load: %w", err)
	}
	if settler, ok := row.(Settler); ok {
		begin := time.Now()
		if err := within(ctx, settleLimit, "settle", settler.Settle); err != nil {
			return err
		}
		r.Drain = time.Since(begin)
	}
	if err := g.stop(r); err != nil {
		return err
	}
	return within(ctx, checkLimit, "check", func(ctx context.Context) error {
		compared, err := row.Check(ctx, outcome.Failed)
		if err == nil {
			r.Check = compared
		}
		return errors.Join(err, count(ctx, row, r))
	})
}

// count counts what is wrong with the numbers of a row whose numbers begin anew each day.
func count(ctx context.Context, row Row, r *report.Result) error {
	numbered, ok := row.(Numbered)
	if !ok {
		return nil
	}
	numbering, err := numbered.Numbering(ctx)
	if err == nil {
		r.Numbering = &numbering
	}
	return err
}

// call is what each caller does, again and again.
type call func(ctx context.Context, caller int) error

// loadAndRead loads the row, and lets readers read what it stores if it has any.
func (p Plan) loadAndRead(ctx context.Context, row Row, r *report.Result) (load.Outcome, error) {
	followed, ok := row.(Followed)
	if !ok {
		return p.load(ctx, row, row.Do, r)
	}
	ctx, readers := startReaders(ctx, followed, r, time.Now().Add(p.Warmup))
	outcome, err := p.load(ctx, row, readers.writing(row.Do), r)
	reading, readErr := readers.end(outcome.Failed)
	r.Reading = reading
	if readErr != nil {
		return outcome, fmt.Errorf("readers: %w", readErr)
	}
	return outcome, err
}

// load loads the row and puts the outcome into the result.
func (p Plan) load(ctx context.Context, row Row, do call, r *report.Result) (load.Outcome, error) {
	l := load.Load{Callers: r.Callers, Warmup: p.Warmup, Window: p.Window, Grace: graceLimit}
	background, ok := row.(Background)
	if !ok {
		outcome, err := l.Run(ctx, do)
		fill(r, outcome)
		return outcome, err
	}
	w := &watch{background: background, wanted: p.Rounds, profile: p.Profile}
	l.Watch, l.Longest = w, maxStretch*p.Window
	outcome, err := l.Run(ctx, do)
	fill(r, outcome)
	r.Rounds, r.RoundsWanted, r.Profile = w.rounds, w.wanted, w.profile
	return outcome, err
}

// fill puts the outcome of the load into the result.
func fill(r *report.Result, o load.Outcome) {
	r.Window = o.Window
	r.Events, r.EventsPerSecond, r.PerSecond = o.Count, o.Rate(), o.PerSecond
	r.P50, r.P99, r.P999, r.Max = o.P50, o.P99, o.P999, o.Max
	r.Acknowledged, r.Errors = o.Acknowledged, o.Failed
	if o.FirstError != nil {
		r.FirstError = o.FirstError.Error()
	}
}

// within takes a step in bounded time.
func within(ctx context.Context, limit time.Duration, name string, step func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	if err := step(ctx); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

// processOf returns whose usage counts.
func processOf(row Row) (pid int, of string) {
	if server, ok := row.(Server); ok {
		return server.PID(), report.OfServer
	}
	return os.Getpid(), report.OfProgram
}
