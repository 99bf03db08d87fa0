package main

import (
	"bufio"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// bar is a promise about the benchmarks: the median of a figure, or its ratio to
// the median of another one of the same run.
type bar struct {
	promise string
	unit    string // of the benchmark's output
	figure  string // regular expression of the benchmark's name
	// over is what the figure is divided by, minus what is subtracted; empty: none.
	over, minus string
	scale       float64 // the result is multiplied by it; 0 means 1
	atMost      float64 // 0: none
	atLeast     float64
}

var bars = []bar{
	{promise: "interactive transaction, in bare round trips", unit: "round-trips", figure: `^Interactive/in-turn$`, atMost: 4},
	{promise: "interactive transaction, allocations", unit: "allocs/op", figure: `^Interactive/transaction$`, atMost: 12},
	{promise: "an append of three numbers without its storage, in bare round trips", unit: "round-trips", figure: `^Append/callers=1/in-turn$`, atMost: 2},
	{promise: "RequestFuture with the defaults, in bare round trips (for comparison)", unit: "ns/op", figure: `^Interactive/roundtrip=future$`, over: `^Interactive/roundtrip=port$`},
	{promise: "recovery of a tail of 1,000,000 events, in plain scans", unit: "ns/op", figure: `^Recovery/events=1000000/tail$`, over: `^Recovery/events=1000000/scan$`, atMost: 3},
	{promise: "first Start after a clean stop, 100,000 events in the log, ms", unit: "ns/op", figure: `^FirstStart/events=100000$`, scale: 1e-6, atMost: 100},
	{promise: "first Start after a clean stop, 5,000,000 events in the log, ms", unit: "ns/op", figure: `^FirstStart/events=5000000$`, scale: 1e-6, atMost: 100},
	{promise: "first Start after SIGKILL under a moderate load, 100,000 events in the log, ms", unit: "ns/op", figure: `^FirstStartAfterKill/events=100000$`, scale: 1e-6, atMost: 100},
	{promise: "first Start after SIGKILL under a moderate load, 5,000,000 events in the log, ms", unit: "ns/op", figure: `^FirstStartAfterKill/events=5000000$`, scale: 1e-6, atMost: 100},
	{promise: "first Start after SIGKILL at the full load of 256 callers, ms", unit: "ns/op", figure: `^FullLoadEnds/killed$`, scale: 1e-6, atMost: 500},
	{promise: "events replayed for it", unit: "replayed/op", figure: `^FullLoadEnds/killed$`},
	{promise: "orderly Close at the full load of 256 callers, ms", unit: "ns/op", figure: `^FullLoadEnds/closed$`, scale: 1e-6, atMost: 3000},
	{promise: "state.db rebuilt from the log, events/s", unit: "events/s", figure: `^Rebuild$`, atLeast: 300_000},
	{promise: "store of 100,000 workspaces verified in one pass, events/s", unit: "events/s", figure: `^Verify/memory=256MiB$`, atLeast: 300_000},
	{promise: "heap of verify that may remember 256 MiB, at its peak, MiB", unit: "peak-MiB", figure: `^Verify/memory=256MiB$`, atMost: 256 + 32},
	{promise: "heap of verify that may remember 8 MiB, at its peak, MiB", unit: "peak-MiB", figure: `^Verify/memory=8MiB$`, atMost: 8 + 32},
	{promise: "heap of 1,000,000 workspaces over that of 1,000, uniform, MiB", unit: "MiB", figure: `^Memory/workspaces=1000000/uniform$`, minus: `^Memory/workspaces=1000/uniform$`, atMost: 64},
	{promise: "heap of 1,000,000 workspaces over that of 1,000, Zipf, MiB", unit: "MiB", figure: `^Memory/workspaces=1000000/zipf$`, minus: `^Memory/workspaces=1000/zipf$`, atMost: 64},
	{promise: "65,536 partitions ready, s", unit: "ready-s", figure: `^Partitions/partitions=65536$`, atMost: 10},
	{promise: "65,536 partitions ready again after one append each, s", unit: "ready-again-s", figure: `^Partitions/partitions=65536$`, atMost: 10},
	{promise: "65,536 partitions stopped cleanly after one append each, s", unit: "stop-s", figure: `^Partitions/partitions=65536$`, atMost: 30},
	{promise: "65,536 partitions, memory of the process until they are ready, MiB", unit: "ready-MiB", figure: `^Partitions/partitions=65536$`, atMost: 1024},
	{promise: "the same, at its peak, after an append to each of them within seconds", unit: "peak-MiB", figure: `^Partitions/partitions=65536$`},
	{promise: "65,536 partitions, heap for each that is idle, bytes", unit: "B/idle-partition", figure: `^Partitions/partitions=65536$`, atMost: 6144},
	{promise: "32 command processors on 8 partitions over 1 on 1, events/s", unit: "events/s", figure: `^CommandProcessors/processors=32/partitions=8$`, over: `^CommandProcessors/processors=1/partitions=1$`, atLeast: 3},
	{promise: "the same over 8 on 8: not slower", unit: "events/s", figure: `^CommandProcessors/processors=32/partitions=8$`, over: `^CommandProcessors/processors=8/partitions=8$`, atLeast: 1},
	{promise: "follower 1,000,000 events behind, of a partition, events/s", unit: "events/s", figure: `^FollowBehind/partition$`, atLeast: 300_000},
	{promise: "follower 1,000,000 events behind, of a workspace, events/s", unit: "events/s", figure: `^FollowBehind/workspace$`, atLeast: 300_000},
	{promise: "feed 1,000,000 events behind, of 8 partitions, events/s", unit: "events/s", figure: `^FollowBehind/feed$`, atLeast: 300_000},
	{promise: "appends beside 1,000 idle followers over none, events/s", unit: "rate-ratio", figure: `^IdleFollowers$`, atLeast: 0.9},
	{promise: "appends beside 1,000 idle followers over none, CPU time of an event", unit: "cpu-ratio", figure: `^IdleFollowers$`, atMost: 1.1},
	{promise: "appends beside 100 followers of the feed over none, CPU time of an event", unit: "cpu-ratio", figure: `^FeedFollowers$`, atMost: 3},
	{promise: "100 live followers of workspaces at full write load, p99 of lag, ms", unit: "p99-ms", figure: `^LiveFollowers/of=workspaces$`, atMost: 50},
	{promise: "nine fast subscriptions beside a slow one at full write load, p99 of lag, ms", unit: "p99-ms", figure: `^SlowSubscription$`, atMost: 100},
	{promise: "a subscription at 10 events/s beside nine fast ones, heap that it adds, MiB", unit: "grown-MiB", figure: `^SlowSubscription$`, atMost: 32},
	{promise: "100 live followers of 8 partitions at full write load, p99 of lag, ms", unit: "p99-ms", figure: `^LiveFollowers/of=partitions$`, atMost: 50},
	{promise: "an append without its storage with metrics and trace ids over one without", unit: "times", figure: `^Metrics/append/in-turn$`, atMost: 1.1},
	{promise: "an interactive transaction without its storage with metrics and trace ids over one without", unit: "times", figure: `^Metrics/transaction/in-turn$`, atMost: 1.1},
	{promise: "an append without its storage with 1,000 watchers of statuses over one without", unit: "times", figure: `^Statuses/append/in-turn$`, atMost: 1.03},
	{promise: "an interactive transaction without its storage with 1,000 watchers of statuses over one without", unit: "times", figure: `^Statuses/transaction/in-turn$`, atMost: 1.03},
	{promise: "appends over HTTP beside a backup of the store over none", unit: "share", figure: `^Served/backup$`, atLeast: 0.8},
	{promise: "appends over HTTP beside 20 live log --follow over none", unit: "share", figure: `^Served/20_followers$`, atLeast: 0.95},
	{promise: "first serve of 1,000,000 events without state.db, until /healthz, ms", unit: "lives-ms", figure: `^ServeWithoutState$`, atMost: 1000},
	{promise: "metrics of 1,000 partitions, ms", unit: "ns/op", figure: `^Metrics/page/partitions=1000$`, scale: 1e-6, atMost: 20},
	{promise: "the same, KiB", unit: "KiB", figure: `^Metrics/page/partitions=1000$`, atMost: 200},
	{promise: "durable appends at full load, dumped at 10,000 lines/s, over those that are not", unit: "at-10k", figure: `^FullLoadDumped$`, atLeast: 0.95},
	{promise: "durable appends at full load, dumped at the default limit, over those that are not", unit: "at-default", figure: `^FullLoadDumped$`, atLeast: 0.8},
	{promise: "lines of dumps written to one file, lines/s", unit: "lines/s", figure: `^Lines$`, atLeast: 300_000},
	{promise: "a trace id, from one goroutine, ns", unit: "ns/op", figure: `^TraceID/chunks=own/goroutines=1$`, atMost: 15},
	{promise: "a trace id, from as many goroutines as processors, ns", unit: "ns/op", figure: `^TraceID/chunks=own/goroutines=processors$`, atMost: 30},
	{promise: "the same with one chunk for all (for comparison)", unit: "ns/op", figure: `^TraceID/chunks=one/goroutines=processors$`},
	{promise: "a trace id, allocations", unit: "allocs/op", figure: `^TraceID/chunks=own/goroutines=processors$`, atMost: 0.5},
}

// figures holds the values of a benchmark run: name, then unit.
type figures map[string]map[string][]float64

// checkBars reads the output of benchmarks and prints each bar that they measure.
// It fails if one does not hold, or none was measured.
func checkBars(stdin io.Reader, stdout io.Writer) error {
	run, err := readFigures(stdin)
	if err != nil {
		return fmt.Errorf("bars: %w", err)
	}
	measured, failed := 0, 0
	for _, b := range bars {
		value, n := b.value(run)
		if n == 0 {
			fmt.Fprintf(stdout, "%-75s not measured\n", b.promise)
			continue
		}
		measured++
		verdict := b.verdict(value)
		if strings.HasPrefix(verdict, "FAILED") {
			failed++
		}
		fmt.Fprintf(stdout, "%-75s %12.2f  %s (median of %d)\n", b.promise, value, verdict, n)
	}
	switch {
	case measured == 0:
		return fmt.Errorf("bars: none was measured")
	case failed > 0:
		return fmt.Errorf("bars: %d of %d do not hold", failed, measured)
	}
	return nil
}

func (b bar) verdict(value float64) string {
	switch {
	case b.atMost > 0 && value > b.atMost:
		return fmt.Sprintf("FAILED, want at most %g", b.atMost)
	case b.atLeast > 0 && value < b.atLeast:
		return fmt.Sprintf("FAILED, want at least %g", b.atLeast)
	case b.atMost > 0:
		return fmt.Sprintf("ok, at most %g", b.atMost)
	case b.atLeast > 0:
		return fmt.Sprintf("ok, at least %g", b.atLeast)
	}
	return "no bar"
}

// value returns the bar's value and of how many runs, 0 if it was not measured.
func (b bar) value(run figures) (float64, int) {
	value, n := run.median(b.figure, b.unit)
	if b.scale != 0 {
		value *= b.scale
	}
	if b.over != "" {
		other, m := run.median(b.over, b.unit)
		value, n = value/other, min(n, m)
	}
	if b.minus != "" {
		other, m := run.median(b.minus, b.unit)
		value, n = value-other, min(n, m)
	}
	return value, n
}

func (f figures) median(name, unit string) (float64, int) {
	pattern := regexp.MustCompile(name)
	for benchmark, units := range f {
		if values := slices.Sorted(slices.Values(units[unit])); pattern.MatchString(benchmark) && len(values) > 0 {
			mid := len(values) / 2
			if len(values)%2 == 0 {
				return (values[mid-1] + values[mid]) / 2, len(values)
			}
			return values[mid], len(values)
		}
	}
	return 0, 0
}

// processors is what the testing package appends to a benchmark's name.
var processors = regexp.MustCompile(`-\d+$`)

// readFigures reads lines like "BenchmarkX/y-2  10  123 ns/op  4 allocs/op".
func readFigures(r io.Reader) (figures, error) {
	run := make(figures)
	lines := bufio.NewScanner(r)
	for lines.Scan() {
		fields := strings.Fields(lines.Text())
		if len(fields) < 4 || !strings.HasPrefix(fields[0], "Benchmark") {
			continue
		}
		name := processors.ReplaceAllString(strings.TrimPrefix(fields[0], "Benchmark"), "")
		if run[name] == nil {
			run[name] = make(map[string][]float64)
		}
		for i := 2; i+1 < len(fields); i += 2 {
			value, err := strconv.ParseFloat(fields[i], 64)
			if err != nil {
				return nil, fmt.Errorf("%s: got %q, want a number", name, fields[i])
			}
			run[name][fields[i+1]] = append(run[name][fields[i+1]], value)
		}
	}
	return run, lines.Err()
}
