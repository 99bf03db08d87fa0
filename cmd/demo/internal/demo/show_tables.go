package demo

import (
	"fmt"
	"time"

	"github.com/partita-go/partita/cmd/internal/human"
	"github.com/partita-go/partita/cmd/internal/table"
)

// tables shows the result.
func (s *show) tables(c *console) {
	r := &s.result
	c.Draw("Events per partition, and how many the recovery replayed", partitionTable(r.Partitions))
	c.Draw("Time until the first command is taken, and what reading the whole log takes", startTable(r))
	c.Draw("The authors with most commits, and the last number of the fullest year and day", authorTable(r))
	s.printVerdict(c)
}

func authorTable(r *showResult) *table.Table {
	t := table.New(table.Left("author"), table.Right("commits"), table.Right("years"), table.Right("days"),
		table.Right("fullest year"), table.Right("fullest day"))
	row := func(name string, a authorResult) {
		t.Row(name, uint64(a.Commits), uint64(a.Years), uint64(a.Days), a.FullestYear, a.FullestDay)
	}
	for _, a := range r.Busiest {
		row(a.Author, a)
	}
	t.Rule()
	row("all", r.All)
	return t
}

func partitionTable(partitions []partitionResult) *table.Table {
	t := table.New(table.Left("partition"), table.Right("authors"), table.Right("events"), table.Bar("", 16),
		table.Right("at the crash"), table.Right("replayed"), table.Right("share"))
	var sum partitionResult
	for _, p := range partitions {
		t.Row(uint64(p.Partition), uint64(p.Authors), uint64(p.Events), uint64(p.Events),
			uint64(p.AtCrash), uint64(p.Replayed), percent(uint64(p.Replayed), uint64(p.AtCrash)))
		sum.Authors += p.Authors
		sum.Events += p.Events
		sum.AtCrash += p.AtCrash
		sum.Replayed += p.Replayed
	}
	t.Rule()
	t.Row("all", uint64(sum.Authors), uint64(sum.Events), nil,
		uint64(sum.AtCrash), uint64(sum.Replayed), percent(uint64(sum.Replayed), uint64(sum.AtCrash)))
	return t
}

func startTable(r *showResult) *table.Table {
	t := table.New(table.Left("start"), table.Right("in the log"), table.Right("replayed"),
		table.Right("open"), table.Right("until ready"), table.Right("full scan"))
	row := func(name string, s startResult) {
		t.Row(name, uint64(s.Events), uint64(s.Replayed), time.Duration(s.OpenSeconds), s.total(), time.Duration(s.ScanSeconds))
	}
	if r.Crash != nil {
		row("after SIGKILL", r.Crash.Recovery)
	}
	row("after a clean stop", *r.CleanStart)
	return t
}

// percent returns a share in words, nothing of nothing.
func percent(part, whole uint64) any {
	if whole == 0 {
		return nil
	}
	return fmt.Sprintf("%.1f%%", 100*float64(part)/float64(whole))
}

func (s *show) printVerdict(c *console) {
	r := &s.result
	c.printVerdict(r.Check)
	right := r.History.Wrong == 0 && r.History.Equal == r.Commits
	c.printCheck(right, fmt.Sprintf("%s of %s commits are there, in each author's order, numbered from 1 each day and each year",
		human.Count(r.History.Equal), human.Count(r.Commits)))
	if r.History.First != "" {
		c.Tell("       ", "%s", r.History.First)
	}
	if r.Crash != nil {
		c.printCheck(r.Crash.Lost == 0, fmt.Sprintf("of %s commits that were acknowledged before SIGKILL, %s are lost",
			human.Count(r.Crash.Acknowledged), human.Count(r.Crash.Lost)))
	}
	c.Say("\nlog.db %v, state.db %v", human.Bytes(r.Bytes.Log), human.Bytes(r.Bytes.State))
	if r.Kept {
		c.Tell("", "The store stays in %s: demo replay --db %s --from-start", s.work.dir, s.work.dir)
	}
}
