package report

import (
	"cmp"
	"slices"
)

// Summary is what stands for all results of a row.
type Summary struct {
	// Result is one that is wrong, if there is one, else the one with the median of
	// events a second: all that it tells was measured together.
	Result
	// Runs is how many results there are, Slowest and Fastest are the events a second
	// of two of them.
	Runs             int
	Slowest, Fastest float64
}

// Summarize returns a summary of each row, in the order in which they first appear.
func Summarize(results []Result) []Summary {
	runs := make(map[string][]Result)
	var names []string
	for i := range results {
		name := results[i].Row
		if runs[name] == nil {
			names = append(names, name)
		}
		runs[name] = append(runs[name], results[i])
	}
	summaries := make([]Summary, len(names))
	for i, name := range names {
		summaries[i] = summarize(runs[name])
	}
	return summaries
}

// summarize summarizes the results of one row.
func summarize(runs []Result) Summary {
	slices.SortStableFunc(runs, func(a, b Result) int {
		return cmp.Compare(a.EventsPerSecond, b.EventsPerSecond)
	})
	s := Summary{
		Result:  runs[(len(runs)-1)/2],
		Runs:    len(runs),
		Slowest: runs[0].EventsPerSecond,
		Fastest: runs[len(runs)-1].EventsPerSecond,
	}
	if wrong := slices.IndexFunc(runs, func(r Result) bool { return !r.Right() }); wrong >= 0 {
		s.Result = runs[wrong]
	}
	return s
}

// Median returns the median of some values, at least one.
func Median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	middle := len(sorted) / 2
	if len(sorted)%2 == 0 {
		return (sorted[middle-1] + sorted[middle]) / 2
	}
	return sorted[middle]
}
