package report

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

// legend explains the columns.
const legend = `events/s, p50, p99, p999  of the calls that were acknowledged in the window; each caller calls again at once
slowest-fastest           events/s of the runs of the row; the other columns are of the run in the middle
rounds, drain             rounds of background work that ended in the window, the time after the load until nothing was put off
written/event             bytes given to write calls by the server, or by the program that holds the store, over all events
                          since the setup; to sockets too; * by growth of the files
cpu/event                 processor time of the same, in microseconds, over the same events
disk/event                bytes that the whole disk wrote meanwhile, also for others, over the same events
memory, anonymous         largest of the server with its children, or of the program that holds store and callers (+);
                          shared memory and files count once
`

// WriteTable writes a line for each row, and below the table what it leaves out. Rows that
// are read, and those whose numbers begin anew each day, have tables of their own.
func WriteTable(w io.Writer, results []Result) error {
	var appending, reading, numbering []Summary
	for _, s := range Summarize(results) {
		switch {
		case s.Readers > 0:
			reading = append(reading, s)
		case s.Numbering != nil:
			numbering = append(numbering, s)
		default:
			appending = append(appending, s)
		}
	}
	return errors.Join(
		writeTable(w, appending, columns, legend, (*Summary).cells),
		writeTable(w, reading, readingColumns, readingLegend, (*Summary).readingCells),
		writeTable(w, numbering, numberingColumns, numberingLegend, (*Summary).numberingCells),
	)
}

func writeTable(w io.Writer, rows []Summary, columns []string, legend string, cells func(*Summary) []string) error {
	if len(rows) == 0 {
		return nil
	}
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(table, strings.Join(columns, "\t")+"\t")
	for i := range rows {
		line := cells(&rows[i])
		line = append(line, slices.Repeat([]string{"-"}, len(columns)-len(line))...)
		fmt.Fprintln(table, strings.Join(line, "\t")+"\t")
	}
	if err := table.Flush(); err != nil {
		return err
	}
	fmt.Fprint(w, "\n", legend)
	for i := range rows {
		for _, line := range rows[i].remarks() {
			fmt.Fprintf(w, "\n%s: %s", rows[i].Row, line)
		}
	}
	_, err := fmt.Fprintln(w)
	return err
}

var columns = []string{
	"row", "callers", "events/s", "slowest-fastest", "p50", "p99", "p999", "errors", "rounds", "drain",
	"files", "written/event", "cpu/event", "disk/event", "memory", "anonymous", "numbers",
}

// cells are the row of the table; those that are left out are "-".
func (s *Summary) cells() []string {
	cells := []string{s.Row, fmt.Sprint(s.Callers)}
	if s.Events == 0 {
		return append(cells, s.absence(), "-", "-", "-", "-", fmt.Sprint(s.Errors))
	}
	return append(cells,
		fmt.Sprintf("%.0f", s.EventsPerSecond), s.spread(),
		milliseconds(s.P50), milliseconds(s.P99), milliseconds(s.P999),
		fmt.Sprint(s.Errors),
		s.rounds(), s.drain(),
		s.files(), s.written(), s.processor(), s.disk(),
		s.memory(s.PeakResident), s.memory(s.PeakAnonymous),
		s.numbers(),
	)
}

// absence says why there are no events.
func (r *Result) absence() string {
	if r.Unavailable != "" {
		return "not available"
	}
	return "FAILED"
}

// numbers tells whether what is stored was compared with what was acknowledged, and held.
func (r *Result) numbers() string {
	if r.Check == "" {
		return "FAILED"
	}
	return "ok"
}

// spread tells how far the runs are apart.
func (s *Summary) spread() string {
	if s.Runs == 1 {
		return "-"
	}
	return fmt.Sprintf("%.0f-%.0f", s.Slowest, s.Fastest)
}

// rounds are - for a row that has no background work of its own.
func (r *Result) rounds() string {
	switch {
	case r.tooFewRounds() != "":
		return fmt.Sprintf("%d!", r.Rounds)
	case r.Rounds == 0 && r.RoundsWanted == 0:
		return "-"
	}
	return fmt.Sprint(r.Rounds)
}

// tooFewRounds is empty if there were enough.
func (r *Result) tooFewRounds() string {
	if r.Rounds >= r.RoundsWanted {
		return ""
	}
	return fmt.Sprintf("%d rounds of background work, wanted %d; the window of %v is as long as it may be", r.Rounds, r.RoundsWanted, r.Window)
}

func (r *Result) drain() string {
	if r.Drain == 0 {
		return "-"
	}
	return fmt.Sprintf("%.1f s", r.Drain.Seconds())
}

// remarks say in words what the table does not.
func (r *Result) remarks() []string {
	var lines []string
	for _, line := range []struct{ prefix, text string }{
		{"", r.Note},
		{"checked: ", r.Check},
		{"files: ", r.fileList()},
		{"of each reader: ", r.readerList()},
		{"TOO FEW: ", r.tooFewRounds()},
		{"first error: ", r.FirstError},
		{"NOT AVAILABLE: ", r.Unavailable},
		{"FAILED: ", r.Failed},
	} {
		if line.text != "" {
			lines = append(lines, line.prefix+line.text)
		}
	}
	return lines
}

func (r *Result) files() string {
	total := int64(0)
	for _, f := range r.Files {
		total += f.Bytes
	}
	return size(total)
}

func (r *Result) fileList() string {
	list := make([]string, len(r.Files))
	for i, f := range r.Files {
		list[i] = f.Name + " " + size(f.Bytes)
	}
	return strings.Join(list, ", ")
}

func (r *Result) written() string {
	switch r.WrittenFrom {
	case "":
		return "not measured"
	case WrittenAsGrowth:
		return fmt.Sprintf("%.0f*", r.WrittenPerEvent)
	}
	return fmt.Sprintf("%.0f", r.WrittenPerEvent)
}

func (r *Result) processor() string {
	if r.Processor == 0 {
		return "not measured"
	}
	return fmt.Sprintf("%.2f", float64(r.ProcessorPerEvent)/float64(time.Microsecond))
}

func (r *Result) disk() string {
	if r.Disk == 0 {
		return "not measured"
	}
	return fmt.Sprintf("%.0f", r.DiskPerEvent)
}

func (r *Result) memory(bytes int64) string {
	switch {
	case bytes == 0:
		return "not measured"
	case r.Of == OfProgram:
		return size(bytes) + "+"
	}
	return size(bytes)
}

func milliseconds(d time.Duration) string {
	ms := float64(d) / float64(time.Millisecond)
	if ms < 10 {
		return fmt.Sprintf("%.2f ms", ms)
	}
	return fmt.Sprintf("%.1f ms", ms)
}

// size writes bytes in MiB.
func size(bytes int64) string {
	return fmt.Sprintf("%.1f MiB", float64(bytes)/(1<<20))
}
