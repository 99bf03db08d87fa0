//go:build !nopeers

package rows

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/partita-go/partita/bench/internal/load"
	"github.com/partita-go/partita/bench/internal/measure"
	"github.com/partita-go/partita/bench/internal/report"
)

// Both rows of PostgreSQL have this table, and emulate the date alike: today() is the number of the second of the
// transaction's time, as current_date is its date. So a day lasts a second, on the clock of the machine.
const midnightSchema = `
create table receipts (id bigint generated always as identity primary key, day bigint not null, number bigint not null, body bytea not null);
create function today() returns bigint language sql stable as $$ select floor(extract(epoch from now()))::bigint $$;
`

// resetVariant numbers by a database sequence, which a job resets at midnight. There is no unique index: it would
// make errors of what is doubled.
var resetVariant = postgresVariant{
	note:   "a sequence that a job restarts at the beginning of each day",
	schema: midnightSchema + `create sequence receipt_number;`,
	insert: `insert into receipts (day, number, body) values (today(), nextval('receipt_number'), $1) returning id`,
	logs:   func(int) int { return 1 },
	logOf:  func(int) int { return 0 },
	check:  checkReceipts,
}

// resetSequence is what the job does.
const resetSequence = `alter sequence receipt_number restart`

// dayRowVariant numbers by a row for each day, locked by select for update, all in one round trip.
var dayRowVariant = postgresVariant{
	note: "a row per day, locked by select for update in a function that also inserts",
	schema: midnightSchema + `
create table days (day bigint primary key, last bigint not null) with (fillfactor = 25);
create function add_receipt(content bytea) returns bigint language plpgsql as $$
declare
	next bigint;
	given bigint;
begin
	loop
		select last + 1 into next from days where day = today() for update;
		exit when found;
		insert into days (day, last) values (today(), 0) on conflict do nothing;
	end loop;
	update days set last = next where day = today();
	insert into receipts (day, number, body) values (today(), next, content) returning id into given;
	return given;
end $$;`,
	insert: `select add_receipt($1)`,
	logs:   resetVariant.logs,
	logOf:  resetVariant.logOf,
	check:  checkReceipts,
}

// postgresMidnight is a row of PostgreSQL that gives each receipt a number of its day.
type postgresMidnight struct {
	*postgres
	rollbacks rollbacks
	job       *dailyJob // nil if there is none
}

func newPostgresReset(s measure.Settings) measure.Row {
	return &postgresMidnight{newPostgres(s, resetVariant), newRollbacks(s.Callers), &dailyJob{sql: resetSequence}}
}

func newPostgresDayRow(s measure.Settings) measure.Row {
	return &postgresMidnight{newPostgres(s, dayRowVariant), newRollbacks(s.Callers), nil}
}

func (p *postgresMidnight) Setup(ctx context.Context, dir string) error {
	if err := p.postgres.Setup(ctx, dir); err != nil || p.job == nil {
		return err
	}
	conn, err := p.server.connect(ctx)
	if err == nil {
		p.job.start(ctx, conn)
	}
	return err
}

// errRollback makes a transaction roll back.
var errRollback = errors.New("rolled back")

func (p *postgresMidnight) Do(ctx context.Context, caller int) error {
	for p.rollbacks.next(caller) {
		err := pgx.BeginFunc(ctx, p.callers[caller], func(tx pgx.Tx) error {
			_, err := p.insertReceipt(ctx, tx, caller)
			return errors.Join(err, errRollback)
		})
		if !errors.Is(err, errRollback) || ctx.Err() != nil {
			return err
		}
	}
	id, err := p.insertReceipt(ctx, p.callers[caller], caller)
	if err != nil {
		return err
	}
	return p.ledger.Acknowledge(0, id)
}

func (p *postgresMidnight) insertReceipt(ctx context.Context, in inserter, caller int) (id uint64, err error) {
	s := p.sources[caller]
	s.Next()
	err = in.QueryRow(ctx, "append", s.Body()).Scan(&id)
	return id, err
}

// checkReceipts compares how many receipts there are with how many were acknowledged.
func checkReceipts(ctx context.Context, p *postgres, failed uint64) (string, error) {
	count, err := queryRow(ctx, p, 1, `select count(*) from receipts`)
	if err != nil {
		return "", err
	}
	stored, acknowledged := uint64(count[0]), p.ledger.Count()
	if stored < acknowledged || stored > acknowledged+failed {
		return "", fmt.Errorf("got %d receipts, want the %d that were acknowledged, and at most %d of failed calls", stored, acknowledged, failed)
	}
	return fmt.Sprintf("%d receipts, as many as were acknowledged", stored), nil
}

// Numbering implements [measure.Numbered].
func (p *postgresMidnight) Numbering(ctx context.Context) (report.Numbering, error) {
	counts := make(days)
	err := p.query(ctx, 2, `select day, number from receipts`, func(columns []int64) error {
		return counts.add(columns[0], uint64(columns[1]))
	})
	return counts.numbering(), err
}

func (p *postgresMidnight) Close(ctx context.Context) error {
	var err error
	if p.job != nil {
		err = p.job.stop(ctx)
	}
	return errors.Join(err, p.postgres.Close(ctx))
}

// dailyJob does something at the beginning of each day, as soon as a timer tells it.
type dailyJob struct {
	sql    string
	conn   *pgx.Conn // nil until it is started
	cancel context.CancelFunc
	ended  chan error
}

func (j *dailyJob) start(ctx context.Context, conn *pgx.Conn) {
	ctx, j.cancel = context.WithCancel(context.WithoutCancel(ctx))
	j.conn, j.ended = conn, make(chan error, 1)
	go func() { j.ended <- j.run(ctx) }()
}

func (j *dailyJob) run(ctx context.Context) error {
	for {
		now := time.Now()
		err := load.Pause(ctx, now.Truncate(dayLength).Add(dayLength).Sub(now))
		if err == nil {
			_, err = j.conn.Exec(ctx, j.sql)
		}
		switch {
		case ctx.Err() != nil:
			return nil //nolint:nilerr // it was stopped
		case err != nil:
			return fmt.Errorf("%s: %w", j.sql, err)
		}
	}
}

func (j *dailyJob) stop(ctx context.Context) error {
	if j.conn == nil {
		return nil
	}
	j.cancel()
	return errors.Join(<-j.ended, j.conn.Close(ctx))
}
