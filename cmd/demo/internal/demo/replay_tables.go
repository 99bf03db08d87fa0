package demo

import (
	"github.com/partita-go/partita/cmd/internal/human"
	"github.com/partita-go/partita/cmd/internal/table"
)

// tables shows the result.
func (r *replay) tables(c *console) {
	c.Draw("Events per partition", r.partitionTable())
	if r.fromStart {
		c.printVerdict(r.result.Check)
	}
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
