//go:build !nopeers

package rows

import (
	"context"
	"fmt"

	"github.com/partita-go/partita/bench/internal/measure"
)

// triggerSchema numbers all events of the database in the order of their commits:
// at its commit each transaction takes the one lock, and holds it until it is
// durable. Under the lock the largest position is the last one, so a position is
// never left out, and nothing is updated.
const triggerSchema = `
create table events (id bigint generated always as identity primary key, workspace bigint not null, body bytea not null);
create table records (event bigint not null, ordinal smallint not null, data bytea not null, primary key (event, ordinal));
create table positions (position bigint primary key, event bigint not null);
create function number_event() returns trigger language plpgsql as $$
begin
	perform pg_advisory_xact_lock(1);
	insert into positions (position, event) select coalesce(max(position), 0) + 1, new.id from positions;
	return null;
end $$;
create constraint trigger number_event after insert on events
	deferrable initially deferred for each row execute function number_event();
`

// triggerInsert is one transaction. It returns the event's id, not its position:
// that is not known before the commit.
const triggerInsert = `
with stored as (
	insert into events (workspace, body) values ($1, $2) returning id
), recorded as (
	insert into records (event, ordinal, data) select id, 1, $3::bytea from stored union all select id, 2, $4::bytea from stored
)
select id from stored`

const triggerCounts = `
select (select count(*) from events), (select coalesce(max(id), 0) from events),
       (select count(*) from positions), (select coalesce(max(position), 0) from positions),
       (select count(*) from positions p join events e on e.id = p.event),
       (select count(*) from records r join events e on e.id = r.event)`

// newPostgresTrigger numbers by a deferred trigger, at commit.
func newPostgresTrigger(s measure.Settings) measure.Row {
	return newPostgres(s, postgresVariant{
		note:   "one global position, given by a deferred constraint trigger under an advisory lock; no offsets of workspaces, no numbers of records",
		schema: triggerSchema,
		insert: triggerInsert,
		logs:   func(int) int { return 1 },
		logOf:  func(int) int { return 0 },
		check:  checkPositions,
	})
}

// checkPositions makes sure that every event has one position, from 1 on without
// gaps, and that all that were acknowledged are there.
func checkPositions(ctx context.Context, p *postgres, failed uint64) (string, error) {
	counts, err := queryRow(ctx, p, 6, triggerCounts)
	if err != nil {
		return "", err
	}
	events, lastID, positions, last, joined, records := counts[0], counts[1], counts[2], counts[3], counts[4], counts[5]
	if positions != events || last != events || joined != events || records != 2*events {
		return "", fmt.Errorf("got %d events, %d positions up to %d, %d of them of events, %d records, want one position and 2 records for each event", events, positions, last, joined, records)
	}
	// Ids of failed transactions are left out: they are no numbers of ours.
	if lost := lastID - events; lost > int64(failed) {
		return "", fmt.Errorf("got %d events with ids up to %d, want at most %d left out", events, lastID, failed)
	}
	if err := p.ledger.Check([]uint64{uint64(lastID)}, failed); err != nil {
		return "", err
	}
	return fmt.Sprintf("%d events with positions 1 to %d, each acknowledged once", events, last), nil
}
