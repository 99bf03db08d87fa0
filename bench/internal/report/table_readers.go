package report

import (
	"fmt"
	"strings"
	"time"
)

// readingLegend explains the columns of the rows that are read.
const readingLegend = `events, events/s           acknowledged since the setup, and in a second of the window; each writer writes again at once
skipped, twice, disorder   events since the setup that a reader has not seen at its end, has seen again, or has seen after one
                           behind it (by position, or by what its writer had written before); all readers together
lag                        from an event's acknowledgement to the moment when a reader has it, 0 where that comes first; of all
                           readers together, and the p99 of the reader whose p99 is the largest
`

var readingColumns = []string{
	"row", "writers", "readers", "events", "events/s", "slowest-fastest", "skipped", "twice", "disorder",
	"lag p50", "lag p99", "lag max", "worst p99", "errors", "numbers",
}

// readingCells are the row of the table; those that are left out are "-".
func (s *Summary) readingCells() []string {
	cells := []string{s.Row, fmt.Sprint(s.Callers), fmt.Sprint(s.Readers)}
	if s.Events == 0 || s.Reading == nil {
		return append(cells, s.absence())
	}
	skipped, twice, outOfOrder := s.Reading.faults()
	lag := s.Reading.Lag
	return append(cells,
		fmt.Sprint(s.Acknowledged), fmt.Sprintf("%.0f", s.EventsPerSecond), s.spread(),
		fmt.Sprint(skipped), fmt.Sprint(twice), fmt.Sprint(outOfOrder),
		milliseconds(lag.P50), milliseconds(lag.P99), milliseconds(lag.Max), milliseconds(s.Reading.worstP99()),
		fmt.Sprint(s.Errors), s.numbers(),
	)
}

// readerList says how the readers differ: the smallest and the largest figure of one.
func (r *Result) readerList() string {
	if r.Reading == nil {
		return ""
	}
	count := func(n uint64) string { return fmt.Sprint(n) }
	lag := func(n uint64) string { return milliseconds(time.Duration(n)) }
	var parts []string
	for _, part := range []struct {
		name   string
		figure func(Reader) uint64
		text   func(uint64) string
	}{
		{"seen", func(r Reader) uint64 { return r.Seen }, count},
		{"skipped", func(r Reader) uint64 { return r.Skipped }, count},
		{"twice", func(r Reader) uint64 { return r.Twice }, count},
		{"out of order", func(r Reader) uint64 { return r.OutOfOrder }, count},
		{"lag p50", func(r Reader) uint64 { return uint64(r.Lag.P50) }, lag},
		{"lag p99", func(r Reader) uint64 { return uint64(r.Lag.P99) }, lag},
	} {
		low, high := r.Reading.spread(part.figure)
		parts = append(parts, fmt.Sprintf("%s %s to %s", part.name, part.text(low), part.text(high)))
	}
	return strings.Join(parts, ", ")
}
