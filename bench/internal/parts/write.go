package parts

import (
	"errors"
	"fmt"
	"io"
	"os"
	"text/tabwriter"
	"time"

	"github.com/google/pprof/profile"

	"github.com/partita-go/partita/bench/internal/report"
)

// measured is what is known of all runs of a row that have a profile.
type measured struct {
	row      string
	events   uint64
	window   time.Duration
	profiles []*profile.Profile
}

// Write writes where the time of the rows goes that have a profile, all runs of a row
// together.
func Write(w io.Writer, results []report.Result) error {
	rows, err := read(results)
	if err != nil {
		return err
	}
	if len(rows) == 0 {
		return errors.New("got no result with a profile, want one: -cpuprofile makes them, of rows of partita")
	}
	for _, m := range rows {
		p, err := profile.Merge(m.profiles)
		if err != nil {
			return fmt.Errorf("%s: %w", m.row, err)
		}
		if err := m.write(w, costs(p)); err != nil {
			return err
		}
	}
	return nil
}

func read(results []report.Result) ([]*measured, error) {
	var rows []*measured
	byName := make(map[string]*measured)
	for i := range results {
		r := &results[i]
		if r.Profile == "" || !r.Right() {
			continue
		}
		m := byName[r.Row]
		if m == nil {
			m = &measured{row: r.Row}
			byName[r.Row] = m
			rows = append(rows, m)
		}
		p, err := readFile(r.Profile)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", r.Row, err)
		}
		m.events, m.window, m.profiles = m.events+r.Events, m.window+r.Window, append(m.profiles, p)
	}
	return rows, nil
}

func readFile(name string) (*profile.Profile, error) {
	file, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	p, err := profile.Parse(file)
	return p, errors.Join(err, file.Close())
}

// write writes the table of one row.
func (m *measured) write(w io.Writer, all []cost) error {
	var sum cost
	for _, c := range all {
		sum.total, sum.calls, sum.allocation = sum.total+c.total, sum.calls+c.calls, sum.allocation+c.allocation
	}
	fmt.Fprintf(w, "%s: %d events in %v, %.2f processors busy\n\n", m.row, m.events, m.window.Round(time.Millisecond), sum.total.Seconds()/m.window.Seconds())
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(table, "us an event\tof all\tof it system calls\tof it allocation\t  part")
	for i, c := range all {
		m.writeLine(table, parts[i].name, c, sum)
	}
	m.writeLine(table, "together", sum, sum)
	if err := table.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintln(w)
	return err
}

func (m *measured) writeLine(w io.Writer, name string, c, sum cost) {
	share := 0.0
	if sum.total > 0 {
		share = 100 * float64(c.total) / float64(sum.total)
	}
	fmt.Fprintf(w, "%.2f\t%.0f%%\t%.2f\t%.2f\t  %s\n", m.perEvent(c.total), share, m.perEvent(c.calls), m.perEvent(c.allocation), name)
}

// perEvent is in microseconds.
func (m *measured) perEvent(d time.Duration) float64 {
	return float64(d) / float64(time.Microsecond) / float64(m.events)
}
