// Package rows holds the stores that are compared.
package rows

import (
	"fmt"
	"slices"

	"github.com/partita-go/partita/bench/internal/measure"
)

// Callers of a row that is a peer.
const peerCallers = 64

// All returns all rows, in the order in which they run.
func All() []measure.Spec {
	return slices.Concat(
		limitRows(),
		partitaRows(),
		[]measure.Spec{
			{Name: "bbolt-update", Callers: 1, New: newUpdate},
			{Name: "postgres-counter", Callers: peerCallers, New: newPostgresCounter},
			{Name: "postgres-trigger", Callers: peerCallers, New: newPostgresTrigger},
			{Name: "nats-jetstream", Callers: peerCallers, New: newNATS},
			{Name: "sqlite", Callers: peerCallers, New: newSQLite},
		},
	)
}

func limitRows() []measure.Spec {
	var specs []measure.Spec
	for _, callers := range []int{256, 64, 8, 1} {
		specs = append(specs, measure.Spec{Name: fmt.Sprintf("limit/callers=%d", callers), Callers: callers, New: newLimit})
	}
	return specs
}
