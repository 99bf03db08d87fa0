// Package rows holds the stores that are compared.
package rows

import (
	"fmt"
	"slices"

	"github.com/partita-go/partita/bench/internal/measure"
)

// The callers of most rows of partita, and of those that are compared with peers.
const (
	manyCallers = 256
	peerCallers = 64
)

// usualPartitions is how many partitions a row has if it is not about them.
const usualPartitions = 16

// All returns all rows, in the order in which they run.
func All() []measure.Spec {
	return slices.Concat(slices.Concat(Groups(), ReadingGroups(), MidnightGroups())...)
}

// Groups returns the rows that only append, in groups: what is compared is in one group,
// and what is compared most closely is next to each other.
func Groups() [][]measure.Spec {
	usual := shape{partitions: usualPartitions}
	return [][]measure.Spec{
		{limitRow(manyCallers), partitaRow("", manyCallers, usual), partitaRow("/dedup", manyCallers, shape{partitions: usualPartitions, dedup: true})},
		partitionsRows(),
		workspacesRows(),
		filledRows(),
		{
			limitRow(peerCallers), partitaRow("/callers=64", peerCallers, usual),
			{Name: "nats-jetstream", Callers: peerCallers, New: newNATS},
			{Name: "postgres-counter", Callers: peerCallers, New: newPostgresCounter},
			{Name: "postgres-trigger", Callers: peerCallers, New: newPostgresTrigger},
			{Name: "sqlite", Callers: peerCallers, New: newSQLite},
		},
		{limitRow(8), partitaRow("/callers=8", 8, usual)},
		{limitRow(1), {Name: "bbolt-update", Callers: 1, New: newUpdate}, partitaRow("/callers=1", 1, usual)},
	}
}

func limitRow(callers int) measure.Spec {
	return measure.Spec{Name: fmt.Sprintf("limit/callers=%d", callers), Callers: callers, New: newLimit}
}

func partitaRow(name string, callers int, sh shape) measure.Spec {
	return measure.Spec{Name: "partita" + name, Callers: callers, New: func(s measure.Settings) measure.Row { return newPartita(sh, s) }}
}

// partitionsRows have row "partita" among them, under another name.
func partitionsRows() []measure.Spec {
	var specs []measure.Spec
	for _, n := range []uint32{1, 10, usualPartitions, 100, 1000} {
		specs = append(specs, partitaRow(fmt.Sprintf("/partitions=%d", n), manyCallers, shape{partitions: n}))
	}
	return specs
}

// workspacesRows have row "partita" among them too, as 10,000 uniform workspaces. It is
// in the middle, near to all that are compared with it.
func workspacesRows() []measure.Spec {
	var specs []measure.Spec
	for _, w := range []struct {
		n    int
		zipf bool
	}{{100, false}, {100, true}, {10_000, true}, {10_000, false}, {1_000_000, true}, {1_000_000, false}} {
		spread := "uniform"
		if w.zipf {
			spread = "zipf"
		}
		name := fmt.Sprintf("/workspaces=%d,%s", w.n, spread)
		specs = append(specs, partitaRow(name, manyCallers, shape{partitions: usualPartitions, workspaces: w.n, zipf: w.zipf}))
	}
	return specs
}

// filledRows are of new stores, and of stores as they are after some time.
func filledRows() []measure.Spec {
	var specs []measure.Spec
	for _, f := range []struct{ workspaces, filled int }{{100_000, 0}, {100_000, 3_000_000}, {1_000_000, 0}, {1_000_000, 1_000_000}} {
		name := fmt.Sprintf("/workspaces=%d,filled=%d", f.workspaces, f.filled)
		specs = append(specs, partitaRow(name, manyCallers, shape{partitions: usualPartitions, workspaces: f.workspaces, filled: f.filled}))
	}
	return specs
}
