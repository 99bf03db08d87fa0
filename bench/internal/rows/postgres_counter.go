//go:build !nopeers

package rows

import (
	"context"
	"strconv"
	"strings"

	"github.com/partita-go/partita/bench/internal/measure"
)

// counterSchema keeps room beside the counters, so that a counter's next version
// stays on its page and touches no index.
const counterSchema = `
create table counters (
	workspace bigint primary key,
	wlog_offset bigint not null default 0, number1 bigint not null default 0, number2 bigint not null default 0
) with (fillfactor = 25);
create table events (
	workspace bigint not null, wlog_offset bigint not null, body bytea not null,
	primary key (workspace, wlog_offset)
);
create table records (
	workspace bigint not null, sequence smallint not null, number bigint not null, data bytea not null,
	primary key (workspace, sequence, number)
);
insert into counters (workspace) select generate_series(0, WORKSPACES - 1);
analyze counters;
`

// counterInsert is one transaction. The row of the counters stays locked until its
// commit is durable, so that the numbers become visible in order.
const counterInsert = `
with given as (
	update counters set wlog_offset = wlog_offset + 1, number1 = number1 + 1, number2 = number2 + 1
	where workspace = $1 returning wlog_offset, number1, number2
), stored as (
	insert into events (workspace, wlog_offset, body) select $1, wlog_offset, $2 from given
), recorded as (
	insert into records (workspace, sequence, number, data)
	select $1, 1, number1, $3::bytea from given union all select $1, 2, number2, $4::bytea from given
)
select wlog_offset from given`

// newPostgresCounter numbers by a row of counters per workspace, updated in the
// transaction that inserts.
func newPostgresCounter(s measure.Settings) measure.Row {
	return newPostgres(s, postgresVariant{
		note:   "a row of 3 counters per workspace, updated by the statement that inserts the event and its 2 records; no order across workspaces",
		schema: strings.ReplaceAll(counterSchema, "WORKSPACES", strconv.Itoa(s.Workspaces)),
		insert: counterInsert,
		logs:   func(workspaces int) int { return workspaces },
		logOf:  func(workspace int) int { return workspace },
		check: func(ctx context.Context, p *postgres, failed uint64) (string, error) {
			return checkCounters(ctx, p, p.ledger, p.settings.Workspaces, failed)
		},
	})
}
