package demo

import (
	"context"
	"errors"
	"fmt"
	"time"

	shared "github.com/partita-go/partita/cmd/internal/console"
	"github.com/partita-go/partita/cmd/internal/human"
	"github.com/partita-go/partita/storage"
	"github.com/partita-go/partita/storage/verify"
)

var errVerdict = errors.New("the store violates its invariants")

// shownFaults is how many faults are told in words.
const shownFaults = 10

// checkInvariants runs the check over a store at rest, with progress.
func checkInvariants(ctx context.Context, c *console, store storage.Store, events uint64) (*checkResult, error) {
	started := time.Now()
	c.Phase("   check", int64(events))
	report, err := verify.Run(ctx, store, verify.Options{
		MaxFaults: shownFaults,
		Progress:  func(p verify.Progress) { c.Set(int64(p.Events)) },
	})
	if err != nil {
		return nil, err
	}
	c.Set(int64(report.Events))
	c.Done()
	return newCheckResult(report, time.Since(started)), nil
}

// printVerdict tells what the check found.
func (c *console) printVerdict(r *checkResult) {
	c.Print("\nThe verdict\n\n")
	if r.OK {
		c.printCheck(true, "no log and no sequence has a gap, no number was given twice")
		c.printCheck(true, "the projections are exactly what the log says")
	} else {
		c.printCheck(false, human.Count(r.FaultCount)+" faults:")
	}
	for _, f := range r.Faults {
		c.Tell("      - ", "%s", f)
	}
	if more := uint64(r.FaultCount) - uint64(len(r.Faults)); more > 0 {
		c.Say("      - and %s more", human.Count(more))
	}
	c.Tell("      ", "(read: %s events, %s numbers, %s records, %s workspaces)",
		human.Count(r.Events), human.Count(r.Numbers), human.Count(r.Records), human.Count(r.Workspaces))
}

func (c *console) printCheck(good bool, text string) {
	c.Tell(fmt.Sprintf("  %-3s ", shared.Mark(good)), "%s", text)
}
