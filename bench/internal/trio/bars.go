package trio

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"text/tabwriter"

	"github.com/partita-go/partita/bench/internal/report"
)

// Figures are what was measured, by name: one of each repeat, in their order.
type Figures struct {
	names  []string
	values map[string][]float64
}

func (f *Figures) add(name string, value float64) {
	if f.values == nil {
		f.values = make(map[string][]float64)
	}
	if f.values[name] == nil {
		f.names = append(f.names, name)
	}
	f.values[name] = append(f.values[name], value)
}

// bar is a promise about a figure, or about its ratio to another one.
type bar struct {
	promise  string
	of, over string
	// What is judged is the median, or the largest if worst is set.
	worst bool
	// The figure is at least atLeast, if that is not 0; else at most atMost.
	atLeast, atMost float64
	// told says that nothing is promised.
	told bool
}

var bars = []bar{
	{promise: "256 callers, events/s over alone", of: "partita/many/rate", over: "alone/many/rate", atLeast: 0.3},
	{promise: "1 caller, p50 over alone", of: "partita/one/p50", over: "alone/one/p50", atMost: 8},
	{promise: "verified reads, 64 callers, a second", of: "read/rate", atLeast: 20_000},
	{promise: "verified reads, 64 callers, p50, ms", of: "read/p50", atMost: 2},
	{promise: "handing over under load, longest pause, ms", of: "hand-over/pause", worst: true, atMost: 200},
	{promise: "elections under full load", of: "steady/elections", worst: true},
	{promise: "catching up, events/s over writing", of: "behind/catching-up", over: "behind/writing", atLeast: 2},
	{promise: "catching up, more heap in use than before, MiB", of: "behind/heap", worst: true, atMost: 64},
	{promise: "catching up, more heap in use at the owner, MiB", of: "behind/owner-heap", worst: true, atMost: 64},
	{promise: "catching up, more heap and garbage than before, MiB", of: "behind/heap-and-garbage", worst: true, told: true},
	{promise: "leader killed, longest pause over etcd", of: "partita/kill/pause", over: "etcd/kill/pause", atMost: 1},
	{promise: "leader killed, longest pause over JetStream", of: "partita/kill/pause", over: "nats/kill/pause", atMost: 1},
	{promise: "256 callers, events/s over etcd", of: "partita/many/rate", over: "etcd/many/rate", atLeast: 2},
	// Partita may be behind JetStream by what the projections cost: so its log alone may not be behind.
	{promise: "256 callers, events/s of the log alone over JetStream", of: "log/many/rate", over: "nats/many/rate", atLeast: 1},
	{promise: "256 callers, events/s over JetStream", of: "partita/many/rate", over: "nats/many/rate", told: true},
	{promise: "256 callers, events/s over the log alone", of: "partita/many/rate", over: "log/many/rate", told: true},
}

// ErrBars is returned when a bar is missed.
var ErrBars = errors.New("bars")

// Write writes all figures, and a verdict on each bar whose figures were measured.
func (f *Figures) Write(w io.Writer) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "figure\tmin\tmedian\tmax\tof")
	for _, name := range f.names {
		v := f.values[name]
		fmt.Fprintf(table, "%s\t%.2f\t%.2f\t%.2f\t%d\n", name, slices.Min(v), report.Median(v), slices.Max(v), len(v))
	}
	fmt.Fprintln(table, "\nbar\tmin\tmedian\tmax\twanted\tverdict")
	missed := 0
	for _, b := range bars {
		figures := b.figures(f)
		if len(figures) == 0 {
			continue
		}
		verdict := b.verdict(figures)
		if verdict == missedVerdict {
			missed++
		}
		fmt.Fprintf(table, "%s\t%.2f\t%.2f\t%.2f\t%s\t%s\n",
			b.promise, slices.Min(figures), report.Median(figures), slices.Max(figures), b.wanted(), verdict)
	}
	if err := table.Flush(); err != nil {
		return err
	}
	if missed > 0 {
		return fmt.Errorf("%w: %d missed", ErrBars, missed)
	}
	return nil
}

// figures are what is judged: those of one name, or the ratios of what was measured in the same turn.
func (b bar) figures(f *Figures) []float64 {
	own, other := f.values[b.of], f.values[b.over]
	if b.over == "" {
		return own
	}
	var ratios []float64
	for i := range min(len(own), len(other)) {
		ratios = append(ratios, own[i]/other[i])
	}
	return ratios
}

// The verdicts.
const (
	heldVerdict   = "held"
	missedVerdict = "MISSED"
	toldVerdict   = "-"
)

func (b bar) verdict(figures []float64) string {
	switch {
	case b.told:
		return toldVerdict
	case b.held(figures):
		return heldVerdict
	}
	return missedVerdict
}

func (b bar) held(figures []float64) bool {
	value := report.Median(figures)
	if b.worst {
		value = slices.Max(figures)
	}
	if b.atLeast > 0 {
		return value >= b.atLeast
	}
	return value <= b.atMost
}

func (b bar) wanted() string {
	if b.told {
		return "nothing"
	}
	of := "median"
	if b.worst {
		of = "max"
	}
	if b.atLeast > 0 {
		return fmt.Sprintf("%s at least %g", of, b.atLeast)
	}
	return fmt.Sprintf("%s at most %g", of, b.atMost)
}
