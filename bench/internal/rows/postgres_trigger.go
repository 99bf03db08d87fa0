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
const triggerSchema = identitySchema + `
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

const triggerCounts = `
select (select count(*) from events),
       (select count(*) from positions), (select coalesce(max(position), 0) from positions),
       (select count(*) from positions p join events e on e.id = p.event)`

// triggerVariant numbers by a deferred trigger, at commit. What is acknowledged is the
// event's id, not its position: that is not known before the commit.
var triggerVariant = postgresVariant{
	note:   "one global position, given by a deferred constraint trigger under an advisory lock; no offsets of workspaces, no numbers of records",
	schema: triggerSchema,
	insert: identityInsert,
	logs:   func(int) int { return 1 },
	logOf:  func(int) int { return 0 },
	check:  checkPositions,
}

func newPostgresTrigger(s measure.Settings) measure.Row { return newPostgres(s, triggerVariant) }

// checkPositions makes sure that every event has one position, from 1 on without
// gaps, and that all that were acknowledged are there.
func checkPositions(ctx context.Context, p *postgres, failed uint64) (string, error) {
	counts, err := queryRow(ctx, p, 4, triggerCounts)
	if err != nil {
		return "", err
	}
	events, positions, last, joined := counts[0], counts[1], counts[2], counts[3]
	if positions != events || last != events || joined != events {
		return "", fmt.Errorf("got %d events, %d positions up to %d, %d of them of events, want one position for each event", events, positions, last, joined)
	}
	if _, err := checkIDs(ctx, p, failed); err != nil {
		return "", err
	}
	return fmt.Sprintf("%d events with positions 1 to %d, each acknowledged once", events, last), nil
}
