package report

import (
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
disk/event                bytes that the whole disk wrote meanwhile, also for others, over the same events
memory, anonymous         largest of the server with its children, or of the program that holds store and callers (+);
                          shared memory and files count once
`

// WriteTable writes a line for each row, and below the table what it leaves out.
func WriteTable(w io.Writer, results []Result) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(table, "row\tcallers\tevents/s\tslowest-fastest\tp50\tp99\tp999\terrors\trounds\tdrain\tfiles\twritten/event\tdisk/event\tmemory\tanonymous\tnumbers\t")
	rows := Summarize(results)
	for i := range rows {
		fmt.Fprintln(table, strings.Join(rows[i].cells(), "\t")+"\t")
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

// columns is how many the table has.
const columns = 16

// cells are the row of the table.
func (s *Summary) cells() []string {
	cells := []string{s.Row, fmt.Sprint(s.Callers)}
	if s.Events == 0 {
		verdict := "FAILED"
		if s.Unavailable != "" {
			verdict = "not available"
		}
		cells = append(cells, verdict, "-", "-", "-", "-", fmt.Sprint(s.Errors))
		return append(cells, slices.Repeat([]string{"-"}, columns-len(cells))...)
	}
	numbers := "ok"
	if s.Check == "" {
		numbers = "FAILED"
	}
	return append(cells,
		fmt.Sprintf("%.0f", s.EventsPerSecond), s.spread(),
		milliseconds(s.P50), milliseconds(s.P99), milliseconds(s.P999),
		fmt.Sprint(s.Errors),
		s.rounds(), s.drain(),
		s.files(), s.written(), s.disk(),
		s.memory(s.PeakResident), s.memory(s.PeakAnonymous),
		numbers,
	)
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
