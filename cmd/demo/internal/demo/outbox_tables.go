package demo

import (
	"fmt"
	"time"

	"github.com/partita-go/partita/cmd/internal/human"
	"github.com/partita-go/partita/cmd/internal/table"
)

// tables shows the result.
func (o *outbox) tables(c *console) {
	c.Draw("Lines of each process, and how many of them were there already", processTable(o.result.Processes))
	c.printVerdict(o.result.Check)
	f, copies := o.result.File, o.result.Copies
	c.printCheck(f.Missing+f.Wrong == 0, fmt.Sprintf("of %s lines %s are missing", human.Count(o.result.Commits), human.Count(f.Missing)))
	c.printCheck(f.OutOfOrder == 0, "no event has overtaken another one of its log")
	c.printCheck(f.TooOften == 0, fmt.Sprintf("%s lines were repeated, at most one batch of %d of each log for a kill", human.Count(f.Repeated), o.batch))
	c.printCheck(copies.right(), fmt.Sprintf("of %s copies %s are missing and %s repeated", human.Count(o.result.Commits), human.Count(copies.Missing), human.Count(copies.Repeated)))
	if o.result.Kept {
		c.Tell("", "\nStore and %s stay in %s", outboxFile, o.work.dir)
	}
}

func processTable(processes []processResult) *table.Table {
	t := table.New(table.Left("process"), table.Left("ended by"), table.Right("lines"), table.Bar("", 16),
		table.Right("repeated"), table.Right("most of a log"), table.Right("time"))
	var sum processResult
	for _, p := range processes {
		end := "itself"
		if p.Killed {
			end = "SIGKILL"
		}
		t.Row(fmt.Sprint(p.PID), end, uint64(p.Lines), uint64(p.Lines), uint64(p.Again), uint64(p.Most), time.Duration(p.Took))
		sum.Lines += p.Lines
		sum.Again += p.Again
	}
	t.Rule()
	t.Row("all", nil, uint64(sum.Lines), nil, uint64(sum.Again), nil, nil)
	return t
}
