package demo

import (
	"fmt"
	"slices"

	"github.com/partita-go/partita/cmd/internal/human"
	"github.com/partita-go/partita/cmd/internal/table"
	"github.com/partita-go/partita/messages"
)

// tables shows the result.
func (r *replay) tables(c *console) {
	c.Draw("Events per partition", r.partitionTable())
	if !r.fromStart {
		return
	}
	if len(r.result.Busiest) > 0 {
		c.Draw("The busiest workspaces and their last numbers", r.workspaceTable())
	}
	c.printVerdict(r.result.Check)
}

// shownPartitions is how many partitions are shown at most.
const shownPartitions = 64

func (r *replay) partitionTable() *table.Table {
	// The fourth and fifth column differ: from the start all events are replayed.
	fourth, fifth := table.Right("checkpoint"), table.Right("replayed")
	if r.fromStart {
		fourth, fifth = table.Right("workspaces"), table.Right("checkpoint")
	}
	t := table.New(table.Left("partition"), table.Right("epoch"), table.Right("events"), table.Bar("", 12), fourth, fifth, table.Right("events/s"))
	workspaces := uint64(0)
	for i, p := range r.result.Partitions {
		workspaces += uint64(p.Workspaces)
		row := []any{uint64(p.Partition), uint64(p.Epoch), uint64(p.Events), uint64(p.Events), uint64(p.Checkpoint), uint64(p.Replayed), rate(p.PerSecond)}
		if r.fromStart {
			row[4], row[5] = uint64(p.Workspaces), uint64(p.Checkpoint)
		}
		if i < shownPartitions {
			t.Row(row...)
		}
	}
	if more := len(r.result.Partitions) - shownPartitions; more > 0 {
		t.Row(human.Count(more) + " more")
	}
	t.Rule()
	row := []any{"all", nil, uint64(r.result.Events), nil, nil, uint64(r.result.Replayed), rate(r.result.PerSecond)}
	if r.fromStart {
		row[4], row[5] = workspaces, nil
	}
	t.Row(row...)
	return t
}

// rate returns how a rate is shown: nothing if there was nothing.
func rate(perSecond float64) any {
	if perSecond == 0 {
		return nil
	}
	return human.Number(perSecond)
}

// shownSequences is how many sequences have room in a table.
const shownSequences = 3

// workspaceTable has a column for each of the first sequences: the application's
// own before the built-in ones.
func (r *replay) workspaceTable() *table.Table {
	var shown []sequenceResult
	for _, ws := range r.result.Busiest {
		for _, s := range ws.Last {
			if !slices.ContainsFunc(shown, func(other sequenceResult) bool { return other.Sequence == s.Sequence && other.Name == s.Name }) {
				shown = append(shown, s)
			}
		}
	}
	slices.SortStableFunc(shown, func(a, b sequenceResult) int { return columnOf(a.Sequence) - columnOf(b.Sequence) })
	shown = shown[:min(shownSequences, len(shown))]

	columns := []table.Column{table.Left("workspace"), table.Left("kind"), table.Right("events")}
	for _, s := range shown {
		columns = append(columns, table.Right(fmt.Sprintf("%.16s", s.Name)))
	}
	t := table.New(columns...)
	for _, ws := range r.result.Busiest {
		row := []any{r.workspaceName(ws), fmt.Sprintf("%.12s", ws.Kind), uint64(ws.Events)}
		for _, s := range shown {
			row = append(row, lastNumber(ws, s))
		}
		t.Row(row...)
	}
	return t
}

// columnOf orders sequences: those of the application first.
func columnOf(id messages.SeqID) int {
	if id < messages.FirstApplicationSeq {
		return int(id) + 1<<16
	}
	return int(id)
}

// lastNumber returns a workspace's last number of a sequence as it is shown: long
// ones are ids, and have no separators.
func lastNumber(ws workspaceResult, of sequenceResult) any {
	for _, s := range ws.Last {
		switch {
		case s.Sequence != of.Sequence || s.Name != of.Name:
		case s.Number < 1e9:
			return uint64(s.Number)
		default:
			return fmt.Sprint(s.Number)
		}
	}
	return nil
}

// workspaceName is the author's hash in the show's own store.
func (r *replay) workspaceName(ws workspaceResult) string {
	if r.result.Application == applicationName {
		return fmt.Sprintf("%010x", uint64(ws.Workspace))
	}
	return fmt.Sprint(ws.Workspace)
}
