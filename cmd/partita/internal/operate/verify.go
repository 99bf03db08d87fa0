package operate

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/partita-go/partita/cmd/internal/cli"
	"github.com/partita-go/partita/cmd/internal/console"
	"github.com/partita-go/partita/cmd/internal/human"
	"github.com/partita-go/partita/storage/bolt"
	"github.com/partita-go/partita/storage/verify"
)

// maxFaults bounds --max-faults.
const maxFaults = 1_000_000

func verifyCommand() *cobra.Command {
	c := &cobra.Command{
		Use: "verify " + sourceUse, Short: "Check a store, and say what repairs each fault",
		Long: `Check all that the files can show, and say what repairs each fault: holes,
numbers given twice, damaged values, projections that are not what the log says.
Nothing is repaired, and no byte of the store is changed. Of a store that a
server has open a copy is checked, which is made in TMPDIR and removed.

Without state.db it looks at log.db alone, and says so as a fault.`,
	}
	from := sourceFlags(c)
	defaults := verify.Options{}.WithDefaults()
	faults := c.Flags().Int("max-faults", defaults.MaxFaults, "how many faults are told in words, `N`; all are counted")
	memory := c.Flags().Int("max-memory", int(defaults.MaxMemory>>20), "what the check may remember, in `MiB`; with more it reads the files several times")
	asJSON := cli.JSON(c)
	c.RunE = cli.Run(func(ctx context.Context, s cli.Streams) error {
		if err := errors.Join(cli.InRange("max-faults", *faults, 1, maxFaults), cli.InRange("max-memory", *memory, 1, 1<<20)); err != nil {
			return err
		}
		o := verify.Options{MaxFaults: *faults, MaxMemory: int64(*memory) << 20}
		server, err := from.server(ctx)
		if err != nil {
			return err
		}
		if server != nil {
			return server.verify(ctx, console.New(s, *asJSON), from.name(), o)
		}
		return runVerify(ctx, console.New(s, *asJSON), from.dir, from.dir, o)
	})
	return c
}

// verifyResult is what a check has found, in the words of its JSON.
type verifyResult struct {
	Command string `json:"command"`
	Store   string `json:"store"`
	checkResult
	// Actions are what to do about the faults, also about those that are not told in words.
	Actions   []actionResult  `json:"actions"`
	Seconds   console.Seconds `json:"seconds"`
	PerSecond float64         `json:"events_per_second"`
}

// checkResult is a report as JSON.
type checkResult struct {
	OK            bool          `json:"ok"`
	Partitions    number        `json:"partitions"`
	Workspaces    number        `json:"workspaces"`
	Events        number        `json:"events"`
	Numbers       number        `json:"numbers"`
	Records       number        `json:"records"`
	Subscriptions number        `json:"subscriptions"`
	FaultCount    number        `json:"fault_count"`
	Faults        []faultResult `json:"faults"`
	// Unread says what was not looked at because of the faults.
	Unread []string `json:"unread,omitempty"`
}

// faultResult is a fault as JSON. Where is set for what is no partition's.
type faultResult struct {
	Check      verify.Check `json:"check"`
	Where      string       `json:"where,omitempty"`
	Partition  *number      `json:"partition,omitempty"`
	PLogOffset number       `json:"plog_offset,omitempty"`
	Workspace  *id          `json:"workspace,omitempty"`
	Projection bool         `json:"projection"`
	Text       string       `json:"text"`
	Remedy     remedy       `json:"remedy"`
}

func newCheckResult(r verify.Report, needed remedies) checkResult {
	c := checkResult{
		OK: r.FaultCount == 0, Partitions: number(r.Partitions), Workspaces: number(r.Workspaces), Events: number(r.Events),
		Numbers: number(r.Numbers), Records: number(r.Rows), Subscriptions: number(r.Subscriptions), FaultCount: number(r.FaultCount), Faults: []faultResult{}, Unread: r.Unread,
	}
	for _, f := range r.Faults {
		c.Faults = append(c.Faults, newFaultResult(f, needed))
	}
	return c
}

func newFaultResult(f verify.Fault, needed remedies) faultResult {
	result := faultResult{
		Check: f.Check, Where: f.Where, Projection: f.Projection, Text: f.Text, Remedy: needed.beside(remedyOf(f)),
	}
	if f.Where == "" {
		partition := number(f.Partition)
		result.Partition, result.PLogOffset = &partition, number(f.PLogOffset)
		if f.Workspace != 0 || f.PLogOffset != 0 {
			workspace := id(f.Workspace)
			result.Workspace = &workspace
		}
	}
	return result
}

// verify checks a copy of what a server has open.
func (k *serverKeeper) verify(ctx context.Context, c *console.Console, name string, o verify.Options) (err error) {
	defer func() { err = errors.Join(err, k.close()) }()
	dir, remove, err := k.copied(ctx, "", c)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, remove()) }()
	return runVerify(ctx, c, dir, name, o)
}

// runVerify checks the store in a directory, and tells of it under a name.
func runVerify(ctx context.Context, c *console.Console, dir, name string, o verify.Options) error {
	begun, needed := time.Now(), make(remedies)
	o.Progress, o.EachFault = showCheck(c), needed.add
	report, err := bolt.Verify(ctx, dir, o)
	if err != nil {
		c.Done()
		return about(dir, err)
	}
	took := time.Since(begun)
	rename(&report, dir, name)
	result := verifyResult{
		Command: "verify", Store: name, checkResult: newCheckResult(report, needed), Actions: needed.actions(name),
		Seconds: console.Seconds(took), PerSecond: console.PerSecond(report.Events, took),
	}
	err = c.Result(result, func(c *console.Console) {
		result.sayFaults(c, report)
		sayChecked(c, report)
		result.sayActions(c)
	})
	if err != nil {
		return err
	}
	return faulty(name, report)
}

// rename lets a report tell of a directory under a name.
func rename(r *verify.Report, dir, name string) {
	if dir == name {
		return
	}
	for i := range r.Faults {
		f := &r.Faults[i]
		f.Where, f.Text = strings.ReplaceAll(f.Where, dir, name), strings.ReplaceAll(f.Text, dir, name)
	}
	for i := range r.Unread {
		r.Unread[i] = strings.ReplaceAll(r.Unread[i], dir, name)
	}
}

// showCheck shows the phases of a check.
func showCheck(c *console.Console) func(verify.Progress) {
	shown := ""
	return func(p verify.Progress) {
		name := string(p.Phase)
		if p.File != "" {
			name += " of " + p.File
		}
		if p.Pass > 1 {
			name = fmt.Sprintf("%s, pass %d", p.Phase, p.Pass)
		}
		if key := fmt.Sprint(name, p.Total); key != shown {
			shown = key
			c.Phase(name, int64(p.Total))
		}
		c.Set(int64(p.Done))
	}
}

// sayFaults tells the faults, what repairs each, and what was not looked at.
func (r *verifyResult) sayFaults(c *console.Console, report verify.Report) {
	for i, f := range report.Faults {
		c.Say("%s\n  -> %s", f.String(), r.Faults[i].Remedy)
	}
	if more := report.FaultCount - uint64(len(report.Faults)); more > 0 {
		c.Say("and %s more", human.Count(more))
	}
	for _, what := range r.Unread {
		c.Say("not looked at: %s", what)
	}
}

// sayActions tells what to do.
func (r *verifyResult) sayActions(c *console.Console) {
	if len(r.Actions) == 0 {
		return
	}
	c.Say("\nWhat to do (nothing was changed):")
	for _, a := range r.Actions {
		c.Tell("  - ", "%s", a.Text)
	}
}

// sayChecked tells how much was looked at, and the verdict.
func sayChecked(c *console.Console, r verify.Report) {
	subscriptions := ""
	if r.Subscriptions > 0 {
		subscriptions = ", " + human.Counted(r.Subscriptions, "subscription")
	}
	c.Say("%s of %s in %s, %s, %s%s", human.Counted(r.Events, "event"), human.Counted(r.Workspaces, "workspace"),
		human.Counted(r.Partitions, "partition"), human.Counted(r.Numbers, "number"), human.Counted(r.Rows, "record"), subscriptions)
	if r.FaultCount > 0 {
		c.Say("%s %s", console.Mark(false), human.Counted(r.FaultCount, "fault"))
		return
	}
	c.Say("%s no fault: every invariant that the files can show holds", console.Mark(true))
}

// faulty returns an [verify.ErrFaults] if the report has faults, without their text.
func faulty(dir string, r verify.Report) error {
	if r.FaultCount == 0 {
		return nil
	}
	return fmt.Errorf("%s: %w: %s", dir, verify.ErrFaults, human.Counted(r.FaultCount, "fault"))
}
