//go:build !nopeers

package rows

import (
	"context"
	"fmt"
)

const identitySchema = `
create table events (id bigint generated always as identity primary key, workspace bigint not null, body bytea not null);
create table records (event bigint not null, ordinal smallint not null, data bytea not null, primary key (event, ordinal));
`

// identityInsert is one transaction, or a part of one.
const identityInsert = `
with stored as (
	insert into events (workspace, body) values ($1, $2) returning id
), recorded as (
	insert into records (event, ordinal, data) select id, 1, $3::bytea from stored union all select id, 2, $4::bytea from stored
)
select id from stored`

const identityCounts = `
select (select count(*) from events), (select coalesce(max(id), 0) from events),
       (select count(*) from records r join events e on e.id = r.event)`

// identityVariant numbers by a database sequence, when a row is inserted.
var identityVariant = postgresVariant{
	note:   "an identity column; no offsets of workspaces, no numbers of records",
	schema: identitySchema,
	insert: identityInsert,
	logs:   func(int) int { return 1 },
	logOf:  func(int) int { return 0 },
	check:  checkIDs,
}

// checkIDs makes sure that all events that were acknowledged are there.
func checkIDs(ctx context.Context, p *postgres, failed uint64) (string, error) {
	counts, err := queryRow(ctx, p, 3, identityCounts)
	if err != nil {
		return "", err
	}
	events, lastID, records := counts[0], counts[1], counts[2]
	if records != 2*events {
		return "", fmt.Errorf("got %d events and %d records, want 2 records for each event", events, records)
	}
	// Ids of failed transactions are left out: they are no numbers of ours.
	if lost := lastID - events; lost > int64(failed) {
		return "", fmt.Errorf("got %d events with ids up to %d, want at most %d left out", events, lastID, failed)
	}
	if err := p.ledger.Check([]uint64{uint64(lastID)}, failed); err != nil {
		return "", err
	}
	return fmt.Sprintf("%d events with ids 1 to %d, each acknowledged once", events, lastID), nil
}

// snapshotVariant is identityVariant with the transaction's id beside each event, by
// which readers stop before what is not committed yet.
var snapshotVariant = postgresVariant{
	note: "an identity column, and the transaction's id (xid8)",
	schema: identitySchema + `
alter table events add column xid xid8 not null default pg_current_xact_id();
create unique index events_xid on events (xid, id);
`,
	insert: identityInsert,
	logs:   identityVariant.logs,
	logOf:  identityVariant.logOf,
	check:  checkIDs,
}
