package operate

import (
	"context"
	"flag"
	"fmt"
	"slices"
	"strings"

	"github.com/partita-go/partita/cmd/internal/cli"
	"github.com/partita-go/partita/cmd/internal/console"
	"github.com/partita-go/partita/cmd/internal/human"
	"github.com/partita-go/partita/storage/bolt"
	"github.com/partita-go/partita/storage/verify"
)

func repairFlags(set *flag.FlagSet) func(context.Context, cli.Streams) error {
	dir := set.String("db", "", "")
	dryRun := set.Bool("dry-run", false, "")
	asJSON := set.Bool("json", false, "")
	return func(ctx context.Context, s cli.Streams) error {
		switch {
		case *dir == "":
			return required("repair", "db", *dir)
		case !*dryRun:
			return cli.WrongUsage("repair: it only says what to do, and that needs --dry-run: partita never repairs a store itself")
		}
		return runRepair(ctx, console.New(s, *asJSON), *dir)
	}
}

// remedy is what repairs a fault.
type remedy string

// The remedies.
const (
	// nothingToDo: the next start does it.
	nothingToDo remedy = "nothing"
	// deleteState: what is wrong can be rebuilt from the log.
	deleteState remedy = "delete state.db"
	// forgetSubscriptions: where consumers stand cannot be derived from the log.
	forgetSubscriptions remedy = "delete subscriptions.db"
	// copyMeta: a meta page of the log can be taken from the other one.
	copyMeta remedy = "copy the meta page"
	// compactStore: what is wrong is not taken along.
	compactStore remedy = "compact"
	// newerLog: the log is too short, or state.db is the wrong file.
	newerLog remedy = "restore from a newer backup"
	// restoreLog: the log itself is wrong.
	restoreLog remedy = "restore from a backup"
)

// words says what to do.
func (r remedy) words(dir string) string {
	switch r {
	case nothingToDo:
		return "do nothing: state.db is missing, and the next start rebuilds it from log.db"
	case deleteState:
		return fmt.Sprintf("stop the application, move %s/state.db away, start it: it rebuilds the file from log.db. Not if log.db was put back from an older copy: then the last numbers would be given again", dir)
	case forgetSubscriptions:
		return fmt.Sprintf("delete the subscription that is named (partita subscriptions delete --db %s --name NAME), or stop the application and move %s/subscriptions.db away: then all subscriptions are forgotten. One that is made anew begins at the beginning, or at the end, as it is told", dir, dir)
	case copyMeta:
		return "restore from a backup (partita restore). If there is none, copy the valid meta page over the damaged one, on a copy of log.db, as docs/operating.md says under 'A damaged meta page'; the last commit may be lost"
	case compactStore:
		return fmt.Sprintf("stop the application, copy the store without it (partita compact --db %s --to NEW), and use the copy", dir)
	case restoreLog:
		return "restore from a backup: partita restore --from BACKUP --to NEW. The log is the truth, there is nothing to rebuild it from"
	case newerLog:
		return "if log.db was put back from an older copy, or has lost its end: restore from a newer backup (partita restore), and do not delete state.db, since the last numbers would be given again. Only if state.db was put beside this log from another copy: put the right one back, or move it away. docs/operating.md, 'A log that is too short', says more"
	}
	return string(r)
}

// remedyOf returns what repairs a fault.
func remedyOf(f verify.Fault) remedy {
	switch {
	case f.Projection:
		return deleteState
	case f.Check == verify.CheckLogEnd:
		return newerLog
	case f.Check == verify.CheckHeader:
		return compactStore
	case f.Check == verify.CheckSubscription, strings.Contains(f.Where, "subscriptions.db"):
		return forgetSubscriptions
	case strings.Contains(f.Where, "meta page"):
		return copyMeta
	}
	return restoreLog
}

// repairResult is what would be done, in the words of its JSON.
type repairResult struct {
	Command    string         `json:"command"`
	Store      string         `json:"store"`
	OK         bool           `json:"ok"`
	FaultCount number         `json:"fault_count"`
	Actions    []actionResult `json:"actions"`
	Faults     []faultRemedy  `json:"faults"`
	// Unread says what was not looked at because of the faults.
	Unread []string `json:"unread,omitempty"`
}

// actionResult is one thing to do.
type actionResult struct {
	Remedy remedy `json:"remedy"`
	Text   string `json:"text"`
}

// faultRemedy is a fault and what repairs it.
type faultRemedy struct {
	faultResult
	Remedy remedy `json:"remedy"`
	line   string
}

func runRepair(ctx context.Context, c *console.Console, dir string) error {
	needed := make(map[remedy]bool)
	need := func(f verify.Fault) {
		if f.Check != verify.CheckMissing {
			needed[remedyOf(f)] = true
		}
	}
	report, err := bolt.Verify(ctx, dir, verify.Options{Progress: showCheck(c), EachFault: need})
	if err != nil {
		c.Done()
		return about(dir, err)
	}
	missing := takeMissing(&report)
	r := &repairResult{Command: "repair", Store: dir, OK: report.FaultCount == 0, FaultCount: number(report.FaultCount), Actions: []actionResult{}, Faults: []faultRemedy{}, Unread: report.Unread}
	for _, f := range report.Faults {
		each := remedyOf(f)
		if each == deleteState && needed[newerLog] {
			each = newerLog // without state.db nobody would know that the log is too short
		}
		r.Faults = append(r.Faults, faultRemedy{faultResult: newFaultResult(f), Remedy: each, line: f.String()})
	}
	switch {
	case needed[restoreLog] || needed[copyMeta] || needed[newerLog]:
		// What restores the log rebuilds state.db as well.
		delete(needed, deleteState)
	case missing:
		needed[nothingToDo] = true
	}
	for _, each := range []remedy{nothingToDo, deleteState, forgetSubscriptions, compactStore, copyMeta, newerLog, restoreLog} {
		if needed[each] {
			r.Actions = append(r.Actions, actionResult{Remedy: each, Text: each.words(dir)})
		}
	}
	if err := c.Result(r, r.text); err != nil {
		return err
	}
	return faulty(dir, report)
}

// takeMissing takes the fault that state.db is missing out of a report, and reports whether
// it was there: it needs no repair.
func takeMissing(r *verify.Report) bool {
	n := len(r.Faults)
	r.Faults = slices.DeleteFunc(r.Faults, func(f verify.Fault) bool { return f.Check == verify.CheckMissing })
	r.FaultCount -= uint64(n - len(r.Faults))
	return len(r.Faults) < n
}

func (r *repairResult) text(c *console.Console) {
	for _, f := range r.Faults {
		c.Say("%s\n  -> %s", f.line, f.Remedy)
	}
	if more := int(r.FaultCount) - len(r.Faults); more > 0 {
		c.Say("and %s more", human.Count(more))
	}
	sayUnread(c, r.Unread)
	if len(r.Actions) == 0 {
		c.Say("%s no fault: there is nothing to repair", c.Mark(true))
		return
	}
	c.Say("\nWhat to do (nothing was changed):")
	for _, a := range r.Actions {
		c.Tell("  - ", "%s", a.Text)
	}
}
