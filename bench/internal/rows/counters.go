//go:build !nopeers

package rows

import (
	"context"
	"fmt"

	"github.com/partita-go/partita/bench/internal/event"
	"github.com/partita-go/partita/bench/internal/ledger"
)

// Both SQL rows that count in rows have these tables, with the types of their
// database, and are checked alike:
//
//	counters (workspace, wlog_offset, number1, number2)    last given out; workspaces from 0 on, all there from the start
//	events   (workspace, wlog_offset, body)
//	records  (workspace, sequence, number, data)           sequence 1 and 2

// countersOff counts the counters that are not what is stored.
var countersOff = fmt.Sprintf(`
with e as (
	select workspace, count(*) as n, max(wlog_offset) as top, min(length(body)) as low, max(length(body)) as high
	from events group by workspace
), r as (
	select workspace, sequence, count(*) as n, max(number) as top, min(length(data)) as low, max(length(data)) as high
	from records group by workspace, sequence
), stored as (
	select workspace, 0 as sequence, n, top, low, high, %d as size from e
	union all select workspace, sequence, n, top, low, high, %d from r
), wanted as (
	select workspace, 0 as sequence, wlog_offset as last from counters
	union all select workspace, 1, number1 from counters
	union all select workspace, 2, number2 from counters
)
select count(*) from wanted w full join stored s on s.workspace = w.workspace and s.sequence = w.sequence
where coalesce(w.last, -1) <> coalesce(s.n, 0) or coalesce(w.last, -1) <> coalesce(s.top, 0)
	or s.low <> s.size or s.high <> s.size`, event.BodySize, event.RecordSize)

// eventsOf tells how many events each workspace has.
const eventsOf = `select workspace, wlog_offset from counters order by workspace`

// database answers queries of whole numbers.
type database interface {
	// query calls each for every row of the answer, with its columns.
	query(ctx context.Context, columns int, sql string, each func(columns []int64) error) error
}

// queryRow returns the only row of an answer.
func queryRow(ctx context.Context, db database, columns int, sql string) ([]int64, error) {
	var row []int64
	rows := 0
	err := db.query(ctx, columns, sql, func(columns []int64) error {
		row, rows = append(row, columns...), rows+1
		return nil
	})
	if err == nil && rows != 1 {
		err = fmt.Errorf("got %d rows, want 1, for %s", rows, sql)
	}
	return row, err
}

// checkCounters compares counters, events and records with each other, and the
// events with what was acknowledged.
func checkCounters(ctx context.Context, db database, acknowledged *ledger.Ledger, workspaces int, failed uint64) (string, error) {
	off, err := queryRow(ctx, db, 1, countersOff)
	if err != nil {
		return "", err
	}
	if off[0] != 0 {
		return "", fmt.Errorf("got %d counters that differ from count and maximum of what is stored, want 0", off[0])
	}
	stored := make([]uint64, 0, workspaces)
	total := uint64(0)
	err = db.query(ctx, 2, eventsOf, func(columns []int64) error {
		if want := int64(len(stored)); columns[0] != want {
			return fmt.Errorf("counters: got workspace %d, want %d", columns[0], want)
		}
		stored = append(stored, uint64(columns[1]))
		total += uint64(columns[1])
		return nil
	})
	if err != nil {
		return "", err
	}
	if err := acknowledged.Check(stored, failed); err != nil {
		return "", err
	}
	return fmt.Sprintf("%d events in %d workspaces: count, maximum and counter agree for offsets and records, each offset acknowledged once", total, workspaces), nil
}
