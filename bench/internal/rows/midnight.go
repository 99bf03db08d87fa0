package rows

import (
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/partita-go/partita/bench/internal/ledger"
	"github.com/partita-go/partita/bench/internal/measure"
	"github.com/partita-go/partita/bench/internal/report"
)

// dayLength is how long an emulated day is, in all rows: so there are many midnights in a window.
const dayLength = time.Second

// MidnightGroups returns the rows whose numbers begin anew each day: one series of numbers, which all callers want.
func MidnightGroups() [][]measure.Spec {
	return [][]measure.Spec{{
		{Name: "midnight/postgres-reset", Callers: peerCallers, New: newPostgresReset},
		{Name: "midnight/postgres-day-row", Callers: peerCallers, New: newPostgresDayRow},
		{Name: "midnight/partita", Callers: peerCallers, New: newPartitaMidnight},
	}}
}

// rollbacks are the transactions of each caller that take a number and are rolled back, one for 100 that are not: the
// same ones in every row.
type rollbacks []*rand.Rand

func newRollbacks(callers int) rollbacks {
	all := make(rollbacks, callers)
	for i := range all {
		all[i] = rand.New(rand.NewPCG(uint64(i), 3))
	}
	return all
}

// next reports whether a caller's next transaction is rolled back.
func (r rollbacks) next(caller int) bool { return r[caller].IntN(100) == 0 }

// days counts what is wrong with the numbers of days.
type days map[int64]*dayNumbers

type dayNumbers struct {
	given            ledger.Numbers
	largest, doubled uint64
}

// add takes the number of one event.
func (d days) add(day int64, number uint64) error {
	n := d[day]
	if n == nil {
		n = new(dayNumbers)
		d[day] = n
	}
	added, err := n.given.Add(number)
	if err == nil && !added {
		n.doubled++
	}
	n.largest = max(n.largest, number)
	return err
}

// numbering returns what was counted. It leaves out the last day, which has not ended.
func (d days) numbering() report.Numbering {
	ended := slices.Sorted(maps.Keys(d))
	ended = ended[:max(0, len(ended)-1)]
	numbering := report.Numbering{Days: len(ended)}
	for _, day := range ended {
		n := d[day]
		numbering.Doubled += n.doubled
		numbering.Missing += n.largest - n.given.Count()
	}
	return numbering
}
