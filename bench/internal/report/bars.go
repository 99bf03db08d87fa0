package report

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"text/tabwriter"
	"time"
)

// bar is a promise about two rows that were measured next to each other, or about one.
type bar struct {
	promise string
	// What is judged is the figure of row over that of other, or that of row if there is
	// no other.
	row, other string
	of         figure
	atLeast    float64 // 0: at most atMost
	atMost     float64
}

// figure is what a bar is about.
type figure int

const (
	// eventsPerSecond are those acknowledged in the window.
	eventsPerSecond figure = iota
	// callP50 is how long half of the calls take at most.
	callP50
	// readFaults counts what readers have skipped, seen twice or out of order.
	readFaults
	// readLag is the largest p99 that a reader's lag has, in milliseconds.
	readLag
	// dayFaults counts the numbers of days that are doubled or missing. There must be such days.
	dayFaults
	// p99Times and p999Times are how many times callP50 the p99 and the p999 are.
	p99Times
	p999Times
	// worstSecond is how many calls ended in the second that had the fewest. One that the window has cut short
	// does not count.
	worstSecond
	// anonymousMiB is the most memory that the process had of its own.
	anonymousMiB
	// writtenBytes are those written an event, for whatever file; stateBytes what state.db takes an event at the end.
	writtenBytes
	stateBytes
)

// These rows have the shape of row "partita", and are measured once more next to what
// is compared with them.
const (
	partitionsReference = "partita/partitions=16"
	workspacesReference = "partita/workspaces=10000,uniform"
)

var bars = []bar{
	{promise: "256 callers, over the limit", row: "partita", other: "limit/callers=256", atLeast: 0.6},
	{promise: "256 callers, deduplication ids, over the limit", row: "partita/dedup", other: "limit/callers=256", atLeast: 0.45},
	{promise: "10 partitions, over 16", row: "partita/partitions=10", other: partitionsReference, atLeast: 0.75},
	{promise: "100 partitions, over 16", row: "partita/partitions=100", other: partitionsReference, atLeast: 0.75},
	{promise: "1,000 partitions, over 16", row: "partita/partitions=1000", other: partitionsReference, atLeast: 0.75},
	{promise: "100 workspaces by Zipf, over 10,000 uniform", row: "partita/workspaces=100,zipf", other: workspacesReference, atLeast: 0.75},
	{promise: "10,000 workspaces by Zipf, over 10,000 uniform", row: "partita/workspaces=10000,zipf", other: workspacesReference, atLeast: 0.75},
	{promise: "1,000,000 workspaces by Zipf, over 10,000 uniform", row: "partita/workspaces=1000000,zipf", other: workspacesReference, atLeast: 0.75},
	{promise: "1,000,000 workspaces uniform, over 10,000 uniform", row: "partita/workspaces=1000000,uniform", other: workspacesReference, atLeast: 0.5},
	{promise: "3,000,000 events of 100,000 workspaces, over a new store", row: "partita/workspaces=100000,filled=3000000", other: "partita/workspaces=100000,filled=0", atLeast: 0.6},
	{promise: "1,000,000 workspaces with 4 sequences, over a new store", row: "partita/workspaces=1000000,filled=1000000", other: "partita/workspaces=1000000,filled=0", atLeast: 0.6},
	{promise: "64 callers, over PostgreSQL's counter row", row: "partita/callers=64", other: "postgres-counter", atLeast: 4.5},
	{promise: "64 callers, over PostgreSQL's numbers at commit", row: "partita/callers=64", other: "postgres-trigger", atLeast: 20},
	{promise: "64 callers, over JetStream synced always", row: "partita/callers=64", other: "nats-jetstream", atLeast: 10},
	{promise: "1 caller, p50, over a bare bbolt update", row: "partita/callers=1", other: "bbolt-update", of: callP50, atMost: 1.3},
	{promise: "256 callers: p99 over p50", row: "partita", of: p99Times, atMost: 4},
	{promise: "256 callers: p999 over p50", row: "partita", of: p999Times, atMost: 10},
	{promise: "1 partition: p99 over p50", row: "partita/partitions=1", of: p99Times, atMost: 4},
	{promise: "1 partition: p999 over p50", row: "partita/partitions=1", of: p999Times, atMost: 10},
	{promise: "10,000 workspaces: memory of its own, MiB", row: "partita", of: anonymousMiB, atMost: 400},
	{promise: "1,000,000 workspaces by Zipf: memory of its own, MiB", row: "partita/workspaces=1000000,zipf", of: anonymousMiB, atMost: 600},
	{promise: "1,000,000 workspaces uniform: memory of its own, MiB", row: "partita/workspaces=1000000,uniform", of: anonymousMiB, atMost: 600},
	{promise: "3,000,000 events of 100,000 workspaces: memory of its own, MiB", row: "partita/workspaces=100000,filled=3000000", of: anonymousMiB, atMost: 600},
	{promise: "1,000,000 workspaces with 4 sequences: memory of its own, MiB", row: "partita/workspaces=1000000,filled=1000000", of: anonymousMiB, atMost: 600},
	{promise: "10,000 workspaces: bytes written an event", row: "partita", of: writtenBytes, atMost: 2000},
	{promise: "10,000 workspaces: bytes of state.db an event", row: "partita", of: stateBytes, atMost: 480},
	neverStops("partita"), neverStops("partita/dedup"),
	neverStops("partita/partitions=1"), neverStops("partita/partitions=10"), neverStops(partitionsReference),
	neverStops("partita/partitions=100"), neverStops("partita/partitions=1000"),
	neverStops("partita/workspaces=100,uniform"), neverStops("partita/workspaces=100,zipf"),
	neverStops(workspacesReference), neverStops("partita/workspaces=10000,zipf"),
	neverStops("partita/workspaces=1000000,uniform"), neverStops("partita/workspaces=1000000,zipf"),
	neverStops("partita/callers=64"), neverStops("partita/callers=8"), neverStops("partita/callers=1"),

	{promise: "pauses before the append: skipped, twice or out of order", row: "read/pauses/partita", of: readFaults},
	{promise: "pauses before the append: p99 of a reader's lag, ms", row: "read/pauses/partita", of: readLag, atMost: 20},
	{promise: "pauses in the transaction: skipped, twice or out of order", row: "read/pauses/partita-held", of: readFaults},
	{promise: "pauses in the transaction: p99 of a reader's lag, ms", row: "read/pauses/partita-held", of: readLag, atMost: 20},
	{promise: "no pauses: skipped, twice or out of order", row: "read/partita", of: readFaults},
	{promise: "no pauses, over PostgreSQL's numbers at commit", row: "read/partita", other: "read/postgres-trigger", atLeast: 10},

	{promise: "midnights: doubled or missing", row: "midnight/partita", of: dayFaults},
	{promise: "midnights, over PostgreSQL's row per day", row: "midnight/partita", other: "midnight/postgres-day-row", atLeast: 3},
}

// neverStops promises that there is no second without an append in a row.
func neverStops(row string) bar {
	return bar{promise: row + ": appends in the worst second", row: row, of: worstSecond, atLeast: 1}
}

// ErrBars is returned when a bar is missed, or cannot be computed although its rows
// were run.
var ErrBars = errors.New("bars")

// WriteBars writes a verdict on each bar whose rows were run. With allowMissing, bars
// of rows that are not available do not count.
func WriteBars(w io.Writer, results []Result, allowMissing bool) error {
	rows := make(map[string][]Result)
	for i := range results {
		rows[results[i].Row] = append(rows[results[i].Row], results[i])
	}
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	verdicts := make(map[string]int)
	for _, b := range bars {
		own, other := rows[b.row], rows[b.other]
		if own == nil || other == nil && b.other != "" {
			continue
		}
		if len(verdicts) == 0 {
			fmt.Fprintln(table, "\nbar\tfigure\twanted\tverdict")
		}
		figures := b.figures(own, other)
		figure, verdict := b.judge(figures)
		if verdict == notMeasured && allowMissing && unavailable(own, other) {
			verdict = notAvailable
		}
		verdicts[verdict]++
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\n", b.promise, figure, b.wanted(), verdict)
	}
	if err := table.Flush(); err != nil {
		return err
	}
	if bad := verdicts[missed] + verdicts[notMeasured]; bad > 0 {
		return fmt.Errorf("%w: %d missed, %d not measured, %d held", ErrBars, verdicts[missed], verdicts[notMeasured], verdicts[held])
	}
	return nil
}

// The verdicts.
const (
	held         = "held"
	missed       = "MISSED"
	notMeasured  = "NOT MEASURED"
	notAvailable = "not available"
)

// judge judges the median of the figures; but one run with faults is one too many.
func (b bar) judge(figures []float64) (figure, verdict string) {
	if len(figures) == 0 {
		return "-", notMeasured
	}
	value, name := Median(figures), "median"
	if b.of == readFaults || b.of == dayFaults {
		value, name = slices.Max(figures), "worst"
	}
	figure, verdict = fmt.Sprintf("%.2f", value), held
	if len(figures) > 1 {
		figure += fmt.Sprintf(" (%s of %d)", name, len(figures))
	}
	if b.atLeast > 0 && value < b.atLeast || b.atLeast == 0 && value > b.atMost {
		verdict = missed
	}
	return figure, verdict
}

func (b bar) wanted() string {
	if b.atLeast > 0 {
		return fmt.Sprintf("at least %g", b.atLeast)
	}
	return fmt.Sprintf("at most %g", b.atMost)
}

// figures are those of a row alone, or the ratios of the results that were measured next
// to each other: the speed of a disk that others use too is not the same an hour, or a
// minute, later. If one result is not right there are none.
func (b bar) figures(own, other []Result) []float64 {
	var figures []float64
	for i := range own {
		if !b.measured(&own[i]) {
			return nil
		}
		if b.other == "" {
			figures = append(figures, b.value(&own[i]))
		}
		for j := range other {
			if !b.measured(&other[j]) {
				return nil
			}
			if own[i].Repeat == other[j].Repeat {
				figures = append(figures, b.value(&own[i])/b.value(&other[j]))
			}
		}
	}
	return figures
}

// measured reports whether a result has the figure.
func (b bar) measured(r *Result) bool {
	aboutReaders := b.of == readFaults || b.of == readLag
	aboutDays := b.of == dayFaults
	return r.Right() && (r.Reading != nil || !aboutReaders) && (r.Numbering != nil && r.Numbering.Days > 0 || !aboutDays) &&
		b.observed(r)
}

// observed reports whether the machine has told what the figure is about.
func (b bar) observed(r *Result) bool {
	switch b.of {
	case p99Times, p999Times:
		return r.P50 > 0
	case worstSecond:
		return len(r.wholeSeconds()) > 0
	case anonymousMiB:
		return r.PeakAnonymous > 0
	case writtenBytes:
		return r.WrittenPerEvent > 0
	case stateBytes:
		return r.stateBytes() > 0 && r.Acknowledged > 0
	default:
		return true
	}
}

func (b bar) value(r *Result) float64 {
	switch b.of {
	case callP50:
		return r.P50.Seconds()
	case readFaults:
		skipped, twice, outOfOrder := r.Reading.faults()
		return float64(skipped + twice + outOfOrder)
	case readLag:
		return float64(r.Reading.worstP99()) / float64(time.Millisecond)
	case dayFaults:
		return float64(r.Numbering.Doubled + r.Numbering.Missing)
	case p99Times:
		return float64(r.P99) / float64(r.P50)
	case p999Times:
		return float64(r.P999) / float64(r.P50)
	case worstSecond:
		return float64(slices.Min(r.wholeSeconds()))
	case anonymousMiB:
		return float64(r.PeakAnonymous) / (1 << 20)
	case writtenBytes:
		return r.WrittenPerEvent
	case stateBytes:
		return float64(r.stateBytes()) / float64(r.Acknowledged)
	case eventsPerSecond:
	}
	return r.EventsPerSecond
}

func unavailable(runs ...[]Result) bool {
	for _, results := range runs {
		for i := range results {
			if results[i].Unavailable != "" {
				return true
			}
		}
	}
	return false
}
