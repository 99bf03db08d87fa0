package report

import (
	"errors"
	"fmt"
	"io"
	"text/tabwriter"
)

// bar is a promise about two rows that were measured next to each other.
type bar struct {
	promise string
	// figure is that of row over that of other: their events a second, or with p50 how
	// long half of the calls take at most.
	row, other string
	p50        bool
	atLeast    float64 // 0: none
	atMost     float64
}

// These rows have the shape of row "partita", and are measured once more next to what
// is compared with them.
const (
	partitionsReference = "partita/partitions=16"
	workspacesReference = "partita/workspaces=10000,uniform"
)

var bars = []bar{
	{promise: "256 callers, over the limit", row: "partita", other: "limit/callers=256", atLeast: 0.4},
	{promise: "256 callers, deduplication ids, over the limit", row: "partita/dedup", other: "limit/callers=256", atLeast: 0.3},
	{promise: "10 partitions, over 16", row: "partita/partitions=10", other: partitionsReference, atLeast: 0.6},
	{promise: "100 partitions, over 16", row: "partita/partitions=100", other: partitionsReference, atLeast: 0.6},
	{promise: "1,000 partitions, over 16", row: "partita/partitions=1000", other: partitionsReference, atLeast: 0.6},
	{promise: "100 workspaces by Zipf, over 10,000 uniform", row: "partita/workspaces=100,zipf", other: workspacesReference, atLeast: 0.6},
	{promise: "10,000 workspaces by Zipf, over 10,000 uniform", row: "partita/workspaces=10000,zipf", other: workspacesReference, atLeast: 0.6},
	{promise: "1,000,000 workspaces by Zipf, over 10,000 uniform", row: "partita/workspaces=1000000,zipf", other: workspacesReference, atLeast: 0.6},
	{promise: "64 callers, over PostgreSQL's counter row", row: "partita/callers=64", other: "postgres-counter", atLeast: 3},
	{promise: "64 callers, over PostgreSQL's numbers at commit", row: "partita/callers=64", other: "postgres-trigger", atLeast: 10},
	{promise: "64 callers, over JetStream synced always", row: "partita/callers=64", other: "nats-jetstream", atLeast: 8},
	{promise: "1 caller, p50, over a bare bbolt update", row: "partita/callers=1", other: "bbolt-update", p50: true, atMost: 1.3},
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
		if own == nil || other == nil {
			continue
		}
		if len(verdicts) == 0 {
			fmt.Fprintln(table, "\nbar\tfigure\twanted\tverdict")
		}
		figures := b.figures(own, other)
		verdict := b.verdict(figures)
		if verdict == notMeasured && allowMissing && unavailable(own, other) {
			verdict = notAvailable
		}
		verdicts[verdict]++
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\n", b.promise, figureText(figures), b.wanted(), verdict)
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

// verdict judges the median of the figures.
func (b bar) verdict(figures []float64) string {
	if len(figures) == 0 {
		return notMeasured
	}
	value := median(figures)
	if b.atLeast > 0 && value < b.atLeast || b.atMost > 0 && value > b.atMost {
		return missed
	}
	return held
}

func (b bar) wanted() string {
	if b.atMost > 0 {
		return fmt.Sprintf("at most %g", b.atMost)
	}
	return fmt.Sprintf("at least %g", b.atLeast)
}

// figures are the ratios of the results that were measured next to each other: the
// speed of a disk that others use too is not the same an hour, or a minute, later. If
// one result is not right there are none.
func (b bar) figures(own, other []Result) []float64 {
	var figures []float64
	for i := range own {
		for j := range other {
			if !own[i].Right() || !other[j].Right() {
				return nil
			}
			if own[i].Repeat == other[j].Repeat {
				figures = append(figures, b.value(&own[i])/b.value(&other[j]))
			}
		}
	}
	return figures
}

func (b bar) value(r *Result) float64 {
	if b.p50 {
		return r.P50.Seconds()
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

// figureText writes the median, and of how many.
func figureText(figures []float64) string {
	switch len(figures) {
	case 0:
		return "-"
	case 1:
		return fmt.Sprintf("%.2f", figures[0])
	}
	return fmt.Sprintf("%.2f (median of %d)", median(figures), len(figures))
}
