package report

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"
)

// legend explains the columns.
const legend = `events/s, p50, p99, p999  of the calls that were acknowledged in the window; each caller calls again at once
written/event             bytes given to write calls by the server, or by the program that holds the store, over all events
                          since the setup; to sockets too; * by growth of the files
disk/event                bytes that the whole disk wrote meanwhile, also for others, over the same events
memory, anonymous         largest of the server with its children, or of the program that holds store and callers (+);
                          shared memory and files count once
`

// WriteTable writes results as a table, and below it what it leaves out.
func WriteTable(w io.Writer, results []Result) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(table, "row\tcallers\tevents/s\tp50\tp99\tp999\terrors\tfiles\twritten/event\tdisk/event\tmemory\tanonymous\tnumbers\t")
	for i := range results {
		fmt.Fprintln(table, strings.Join(results[i].cells(), "\t")+"\t")
	}
	if err := table.Flush(); err != nil {
		return err
	}
	fmt.Fprint(w, "\n", legend)
	for i := range results {
		for _, line := range results[i].remarks() {
			fmt.Fprintf(w, "\n%s: %s", results[i].Row, line)
		}
	}
	_, err := fmt.Fprintln(w)
	return err
}

// cells are the row of the table.
func (r *Result) cells() []string {
	cells := []string{r.Row, fmt.Sprint(r.Callers)}
	if r.Events == 0 {
		verdict := "FAILED"
		if r.Unavailable != "" {
			verdict = "not available"
		}
		return append(cells, verdict, "-", "-", "-", fmt.Sprint(r.Errors), "-", "-", "-", "-", "-", "-")
	}
	numbers := "ok"
	if r.Check == "" {
		numbers = "FAILED"
	}
	return append(cells,
		fmt.Sprintf("%.0f", r.EventsPerSecond),
		milliseconds(r.P50), milliseconds(r.P99), milliseconds(r.P999),
		fmt.Sprint(r.Errors),
		r.files(), r.written(), r.disk(),
		r.memory(r.PeakResident), r.memory(r.PeakAnonymous),
		numbers,
	)
}

// remarks say in words what the table does not.
func (r *Result) remarks() []string {
	var lines []string
	for _, line := range []struct{ prefix, text string }{
		{"", r.Note},
		{"checked: ", r.Check},
		{"files: ", r.fileList()},
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
