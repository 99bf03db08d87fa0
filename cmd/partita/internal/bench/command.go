package bench

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/partita-go/partita/cmd/internal/cli"
	"github.com/partita-go/partita/cmd/internal/console"
	"github.com/partita-go/partita/cmd/internal/human"
	"github.com/partita-go/partita/cmd/internal/table"
	"github.com/partita-go/partita/cmd/partita/internal/paths"
)

// minBench is how short a measurement may be.
const minBench = time.Second

// Command is partita bench.
func Command() *cobra.Command {
	c := &cobra.Command{
		Use: "bench --dir DIR", Short: "Measure a disk, and say whether it is good for a store",
		Long: `Measure how long the disk of a directory takes for a synced write, and how many
events are appended a second by 1, 8, 64 and 256 callers, each with a number and
a body of 200 bytes. It says whether the disk is good for a store, and what
limits. It makes a directory partita-bench-* in DIR, which may take some GiB,
and removes it, also when it is interrupted. A store is never touched. While it
runs everything else on the disk is slow.`,
	}
	dir := cli.Required(c, "dir", "a directory, `DIR`, on the disk; it must be there")
	limit := c.Flags().Duration("time", time.Minute, "measure for so long, `DURATION`, as 30s or 5m")
	asJSON := cli.JSON(c)
	c.RunE = cli.Run(func(ctx context.Context, s cli.Streams) error {
		if *limit < minBench {
			return cli.WrongUsage("--time: got %v, want at least %v", *limit, minBench)
		}
		if err := paths.CheckOutside("dir", filepath.Join(*dir, "scratch")); err != nil {
			return err
		}
		if _, err := os.Stat(*dir); err != nil {
			return err
		}
		c := console.New(s, *asJSON)
		measured, err := Run(ctx, *dir, *limit, c)
		c.Done()
		if err != nil {
			return fmt.Errorf("%s: %w", *dir, err)
		}
		result := newBenchResult(*dir, &measured)
		return c.Result(result, result.text)
	})
	return c
}

// benchResult is what was measured, in the words of its JSON.
type benchResult struct {
	Command string        `json:"command"`
	Dir     string        `json:"dir"`
	Sync    timesResult   `json:"synced_writes"`
	Appends []appendsTold `json:"appends"`
	Verdict Level         `json:"verdict"`
	Words   []string      `json:"words"`
}

type timesResult struct {
	Count int64           `json:"count"`
	P50   console.Seconds `json:"p50_seconds"`
	P99   console.Seconds `json:"p99_seconds"`
	Most  console.Seconds `json:"max_seconds"`
}

type appendsTold struct {
	Callers   int     `json:"callers"`
	PerSecond float64 `json:"per_second"`
	// Disk is the share of the time in which the log was being written.
	Disk float64 `json:"disk_busy"`
	timesResult
}

func newTimesResult(t Times) timesResult {
	return timesResult{t.Count, console.Seconds(t.P50), console.Seconds(t.P99), console.Seconds(t.Most)}
}

func newBenchResult(dir string, measured *Result) *benchResult {
	v := measured.Verdict()
	r := &benchResult{Command: "bench", Dir: dir, Sync: newTimesResult(measured.Sync), Verdict: v.Level, Words: v.Words}
	for _, a := range measured.Appends {
		r.Appends = append(r.Appends, appendsTold{a.Callers, a.PerSecond, a.Disk, newTimesResult(a.Times)})
	}
	return r
}

func (r *benchResult) text(c *console.Console) {
	t := table.New(table.Left(""), table.Right("a second"), table.Right("half within"), table.Right("99 % within"), table.Right("longest"), table.Right("disk busy"))
	took := func(s console.Seconds) string { return human.Duration(time.Duration(s)) }
	t.Row("synced writes", "", took(r.Sync.P50), took(r.Sync.P99), took(r.Sync.Most), "")
	for _, a := range r.Appends {
		t.Row(fmt.Sprintf("appends of %d", a.Callers), human.Count(uint64(a.PerSecond)), took(a.P50), took(a.P99), took(a.Most), fmt.Sprintf("%.0f%%", 100*a.Disk))
	}
	c.Draw("What the disk of "+r.Dir+" gives", t)
	c.Tell("", "\n")
	c.Tell(console.Mark(r.Verdict == Good || r.Verdict == Usable)+" ", "The disk is %s.", r.Verdict)
	for _, words := range r.Words {
		c.Tell("  ", "%s", words)
	}
}
