//go:build !nopeers

package rows

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/partita-go/partita/bench/internal/audit"
	"github.com/partita-go/partita/bench/internal/event"
	"github.com/partita-go/partita/bench/internal/load"
	"github.com/partita-go/partita/bench/internal/measure"
)

const (
	// pollPeriod is how long a reader waits after an answer without events.
	pollPeriod = 10 * time.Millisecond
	// pollPage is how many events it asks for at once.
	pollPage = 1000
)

// readerPlans makes the server find a reader's place by index, whatever it believes about
// tables that were empty when the statement was planned.
const readerPlans = `set enable_seqscan = off; set enable_bitmapscan = off; set enable_hashjoin = off; set enable_mergejoin = off; set enable_sort = off`

// postgresWay is how readers go on behind the last event that they have seen.
type postgresWay struct {
	note string
	// position is how many columns it has.
	position int
	// page has the position as its parameters, and returns the events behind it: the body
	// and the position.
	page string
	// heldBack, if it is not empty, tells whether there are events that a page may not
	// show yet, although they are committed.
	heldBack string
}

var (
	identityWay = postgresWay{
		note:     "where id > the last one",
		position: 1,
		page:     fmt.Sprintf(`select body, id from events where id > $1 order by id limit %d`, pollPage),
	}
	triggerWay = postgresWay{
		note:     "where position > the last one",
		position: 1,
		page: fmt.Sprintf(`select e.body, p.position from positions p join events e on e.id = p.event
			where p.position > $1 order by p.position limit %d`, pollPage),
	}
	snapshotWay = postgresWay{
		note:     "where (xid, id) > the last ones and xid < pg_snapshot_xmin(pg_current_snapshot())",
		position: 2,
		page: fmt.Sprintf(`select body, xid::text::bigint, id from events
			where (xid, id) > ($1::bigint::text::xid8, $2::bigint) and xid < pg_snapshot_xmin(pg_current_snapshot())
			order by xid, id limit %d`, pollPage),
		heldBack: `select coalesce(max(xid) >= pg_snapshot_xmin(pg_current_snapshot()), false) from events`,
	}
)

// postgresReading is a row of PostgreSQL that readers poll, each over a connection of its
// own. Its transactions may pause between the insert and the commit.
type postgresReading struct {
	*postgres
	way     postgresWay
	pauses  []pauses
	readers []*pgx.Conn
}

func newPostgresReading(v postgresVariant, way postgresWay) readingRow {
	return func(longest time.Duration, s measure.Settings) measure.Row {
		return &postgresReading{postgres: newPostgres(s, v), way: way, pauses: newPauses(s.Callers, longest)}
	}
}

var (
	newIdentityReading = newPostgresReading(identityVariant, identityWay)
	newTriggerReading  = newPostgresReading(triggerVariant, triggerWay)
	newSnapshotReading = newPostgresReading(snapshotVariant, snapshotWay)
)

func (p *postgresReading) Setup(ctx context.Context, dir string) error {
	if err := p.postgres.Setup(ctx, dir); err != nil {
		return err
	}
	var err error
	if p.readers, err = p.connect(ctx, p.settings.Readers, "page", p.way.page); err != nil {
		return err
	}
	for _, conn := range p.readers {
		if _, err := conn.Exec(ctx, readerPlans); err != nil {
			return err
		}
	}
	return nil
}

// Do appends by one statement, which is one round trip, if there is no pause.
func (p *postgresReading) Do(ctx context.Context, caller int) error {
	own := &p.pauses[caller]
	if own.longest == 0 {
		return p.postgres.Do(ctx, caller)
	}
	workspace, number := 0, uint64(0)
	err := pgx.BeginFunc(ctx, p.callers[caller], func(tx pgx.Tx) error {
		var err error
		if workspace, number, err = p.insert(ctx, tx, caller); err != nil {
			return err
		}
		return own.wait(ctx)
	})
	if err != nil {
		return err
	}
	return p.ledger.Acknowledge(p.variant.logOf(workspace), number)
}

// Follow polls.
func (p *postgresReading) Follow(ctx, writing context.Context, reader int, see func(audit.Event) error) error {
	for last := (audit.Position{}); ; {
		// Asked before the page is: what is committed by then, the page has.
		over, err := p.over(ctx, writing, reader)
		if err != nil {
			return err
		}
		n, err := p.page(ctx, reader, &last, see)
		if err != nil || n == 0 && over {
			return err
		}
		if n > 0 {
			continue
		}
		if err := load.Pause(ctx, pollPeriod); err != nil {
			return err
		}
	}
}

// over reports whether everything that will ever be there can be seen.
func (p *postgresReading) over(ctx, writing context.Context, reader int) (bool, error) {
	if writing.Err() == nil || p.way.heldBack == "" {
		return writing.Err() != nil, nil
	}
	held := false
	err := p.readers[reader].QueryRow(ctx, p.way.heldBack).Scan(&held)
	return !held, err
}

// page sees the events behind a position, and moves it.
func (p *postgresReading) page(ctx context.Context, reader int, last *audit.Position, see func(audit.Event) error) (n int, err error) {
	args := make([]any, p.way.position)
	var body pgtype.DriverBytes // holds until the next row
	targets := []any{&body}
	for i := range args {
		args[i] = last[i]
		targets = append(targets, &last[i])
	}
	rows, err := p.readers[reader].Query(ctx, "page", args...)
	if err != nil {
		return 0, err
	}
	defer rows.Close()
	for ; rows.Next(); n++ {
		if err := rows.Scan(targets...); err != nil {
			return n, err
		}
		e := audit.Event{Position: *last}
		if e.Writer, e.Number, err = event.MadeBy(body); err != nil {
			return n, err
		}
		if err := see(e); err != nil {
			return n, err
		}
	}
	return n, rows.Err()
}

func (p *postgresReading) Note() string {
	return fmt.Sprintf("%s; readers poll %s, and wait %v where that finds nothing", p.postgres.Note(), p.way.note, pollPeriod)
}

func (p *postgresReading) Close(ctx context.Context) error {
	var all []error
	for _, conn := range p.readers {
		all = append(all, conn.Close(ctx))
	}
	return errors.Join(append(all, p.postgres.Close(ctx))...)
}
