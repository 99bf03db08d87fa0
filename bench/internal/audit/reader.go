package audit

import (
	"fmt"
	"slices"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/partita-go/partita/bench/internal/ledger"
	"github.com/partita-go/partita/bench/internal/load"
)

// Event is what a reader has of an event.
type Event struct {
	// Log is the log that it was read from, from 0 on. The order of events of different
	// logs means nothing.
	Log int
	// Position is what a reader of that log remembers to go on behind the event.
	Position Position
	// Writer and Number say who wrote the event, and as which one of its events.
	Writer int
	Number uint64
}

// Position is a place in a log. Positions compare element by element.
type Position [2]int64

// Reader follows what one reader sees. It is not safe for concurrent use.
type Reader struct {
	writes *Writes
	// from is when the window begins, whose lags are told.
	from  time.Time
	seen  []ledger.Numbers // of each writer
	ends  map[int]*end     // of each log
	twice uint64
	// outOfOrder counts events behind which the reader had come before it saw them.
	outOfOrder uint64
	lags       *hdrhistogram.Histogram
}

// end is how far a reader has come in a log.
type end struct {
	position Position
	numbers  []uint64 // the largest one of each writer
}

// NewReader returns a reader that has seen nothing. It tells the lags of events that are
// acknowledged from a time on.
func NewReader(writes *Writes, from time.Time) *Reader {
	return &Reader{
		writes: writes,
		from:   from,
		seen:   make([]ledger.Numbers, len(writes.writers)),
		ends:   make(map[int]*end),
		lags:   load.NewHistogram(),
	}
}

// See notes an event that the reader has at a time.
func (r *Reader) See(e Event, at time.Time) error {
	if e.Writer < 0 || e.Writer >= len(r.seen) {
		return fmt.Errorf("seen: got an event of writer %d, want one below %d", e.Writer, len(r.seen))
	}
	isNew, err := r.seen[e.Writer].Add(e.Number)
	if err != nil {
		return fmt.Errorf("seen: writer %d: %w", e.Writer, err)
	}
	if !isNew {
		r.twice++
		return nil
	}
	if !r.endOf(e.Log).passes(e) {
		r.outOfOrder++
	}
	return r.noteLag(e, at)
}

func (r *Reader) endOf(log int) *end {
	known := r.ends[log]
	if known == nil {
		known = &end{numbers: make([]uint64, len(r.seen))}
		r.ends[log] = known
	}
	return known
}

// passes moves the end behind an event, and reports whether it was before it: by
// position, and by what its writer had written before, which was acknowledged when it
// began to write this one.
func (l *end) passes(e Event) bool {
	ordered := slices.Compare(l.position[:], e.Position[:]) < 0 && l.numbers[e.Writer] < e.Number
	if slices.Compare(l.position[:], e.Position[:]) < 0 {
		l.position = e.Position
	}
	l.numbers[e.Writer] = max(l.numbers[e.Writer], e.Number)
	return ordered
}

// noteLag takes an event for seen at once whose acknowledgement the writer has not noted
// yet.
func (r *Reader) noteLag(e Event, at time.Time) error {
	acknowledged, ok := r.writes.acknowledged(e.Writer, e.Number)
	switch {
	case !ok && at.Before(r.from), ok && acknowledged.Before(r.from):
		return nil
	case !ok:
		return load.Record(r.lags, 0)
	}
	return load.Record(r.lags, max(at.Sub(acknowledged), 0))
}

// Outcome is what a reader has made of a log.
type Outcome struct {
	// Seen counts different events, Skipped those that were acknowledged and not seen.
	Seen, Skipped     uint64
	Twice, OutOfOrder uint64
	Lags              *hdrhistogram.Histogram
}

// Outcome is for a reader that has come to the end of all logs, after all writers have
// ended. It fails if the reader has seen more events than were acknowledged and may have
// been stored by calls that failed.
func (r *Reader) Outcome(failed uint64) (Outcome, error) {
	o := Outcome{Twice: r.twice, OutOfOrder: r.outOfOrder, Lags: r.lags}
	for i := range r.seen {
		o.Seen += r.seen[i].Count()
	}
	acknowledged := uint64(0)
	r.writes.numbers(func(writer int, number uint64) {
		acknowledged++
		if !r.seen[writer].Has(number) {
			o.Skipped++
		}
	})
	if foreign := o.Seen - (acknowledged - o.Skipped); foreign > failed {
		return o, fmt.Errorf("seen: got %d events that were not acknowledged, want at most the %d of failed calls", foreign, failed)
	}
	return o, nil
}
