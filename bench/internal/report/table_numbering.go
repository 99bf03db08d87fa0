package report

import "fmt"

// numberingLegend explains the columns of the rows whose numbers begin anew each day.
const numberingLegend = `events/s                   of the calls that were acknowledged in the window; each caller calls again at once
days                       those that ended in the load; a day lasts a second
doubled, missing           events with the number of another event of their day; numbers below the largest one of
                           their day that no event has; of all days
`

var numberingColumns = []string{
	"row", "callers", "events/s", "slowest-fastest", "days", "doubled", "missing", "p50", "p99", "errors", "numbers",
}

// numberingCells are the row of the table.
func (s *Summary) numberingCells() []string {
	return []string{
		s.Row, fmt.Sprint(s.Callers), fmt.Sprintf("%.0f", s.EventsPerSecond), s.spread(),
		fmt.Sprint(s.Numbering.Days), fmt.Sprint(s.Numbering.Doubled), fmt.Sprint(s.Numbering.Missing),
		milliseconds(s.P50), milliseconds(s.P99), fmt.Sprint(s.Errors), s.numbers(),
	}
}
