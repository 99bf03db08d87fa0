//go:build cgo && !nopeers

package rows

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	_ "github.com/mattn/go-sqlite3" // the driver sqlite3

	"github.com/partita-go/partita/bench/internal/event"
	"github.com/partita-go/partita/bench/internal/ledger"
	"github.com/partita-go/partita/bench/internal/measure"
	"github.com/partita-go/partita/bench/internal/usage"
)

// sqlite is one connection that all callers queue for; each makes a transaction
// of its own: a counter update, an event and its records.
type sqlite struct {
	settings measure.Settings
	path     string
	db       *sql.DB
	conn     *sql.Conn
	version  string
	update   *sql.Stmt // of counters
	event    *sql.Stmt
	record   *sql.Stmt
	turn     chan struct{} // holds one token while nobody writes
	sources  []*event.Source
	ledger   *ledger.Ledger
}

const sqliteModule = "github.com/mattn/go-sqlite3"

// sqlitePragmas are settings with the answers that say they hold.
var sqlitePragmas = []struct{ set, name, want string }{
	{"pragma journal_mode = wal", "journal_mode", "wal"},
	{"pragma synchronous = full", "synchronous", "2"},
	{"pragma wal_autocheckpoint = 1000", "wal_autocheckpoint", "1000"},
	{"pragma cache_size = -65536", "cache_size", "-65536"},
}

const sqliteSchema = `
create table counters (
	workspace integer primary key,
	wlog_offset integer not null default 0, number1 integer not null default 0, number2 integer not null default 0
);
create table events (
	workspace integer not null, wlog_offset integer not null, body blob not null,
	primary key (workspace, wlog_offset)
) without rowid;
create table records (
	workspace integer not null, sequence integer not null, number integer not null, data blob not null,
	primary key (workspace, sequence, number)
) without rowid;
with recursive all_of (workspace) as (select 0 union all select workspace + 1 from all_of where workspace + 1 < ?)
insert into counters (workspace) select workspace from all_of`

func newSQLite(s measure.Settings) measure.Row {
	return &sqlite{
		settings: s,
		turn:     make(chan struct{}, 1),
		sources:  event.NewSources(s.Callers, s.Workspaces),
		ledger:   ledger.New(s.Workspaces),
	}
}

func (s *sqlite) Setup(ctx context.Context, dir string) error {
	s.path = filepath.Join(dir, "events.db")
	var err error
	if s.db, err = sql.Open("sqlite3", s.path); err != nil {
		return err
	}
	if s.conn, err = s.db.Conn(ctx); err != nil {
		return err
	}
	if err := s.configure(ctx); err != nil {
		return err
	}
	if _, err := s.conn.ExecContext(ctx, sqliteSchema, s.settings.Workspaces); err != nil {
		return fmt.Errorf("tables: %w", err)
	}
	if err := s.prepare(ctx); err != nil {
		return err
	}
	s.turn <- struct{}{}
	return s.Settle(ctx)
}

func (s *sqlite) configure(ctx context.Context) error {
	for _, pragma := range sqlitePragmas {
		if _, err := s.conn.ExecContext(ctx, pragma.set); err != nil {
			return fmt.Errorf("%s: %w", pragma.set, err)
		}
		var got string
		if err := s.conn.QueryRowContext(ctx, "pragma "+pragma.name).Scan(&got); err != nil {
			return fmt.Errorf("%s: %w", pragma.name, err)
		}
		if got != pragma.want {
			return fmt.Errorf("%s: got %s, want %s", pragma.name, got, pragma.want)
		}
	}
	return s.conn.QueryRowContext(ctx, "select sqlite_version()").Scan(&s.version)
}

func (s *sqlite) prepare(ctx context.Context) error {
	for _, statement := range []struct {
		prepared **sql.Stmt
		text     string
	}{
		{&s.update, "update counters set wlog_offset = wlog_offset + 1, number1 = number1 + 1, number2 = number2 + 1 where workspace = ? returning wlog_offset, number1, number2"},
		{&s.event, "insert into events (workspace, wlog_offset, body) values (?, ?, ?)"},
		{&s.record, "insert into records (workspace, sequence, number, data) values (?, 1, ?, ?), (?, 2, ?, ?)"},
	} {
		var err error
		if *statement.prepared, err = s.conn.PrepareContext(ctx, statement.text); err != nil {
			return fmt.Errorf("%s: %w", statement.text, err)
		}
	}
	return nil
}

func (s *sqlite) Do(ctx context.Context, caller int) error {
	source := s.sources[caller]
	workspace := source.Next()
	select {
	case <-s.turn:
	case <-ctx.Done():
		return ctx.Err()
	}
	offset, err := s.append(ctx, workspace, source)
	s.turn <- struct{}{}
	if err != nil {
		return err
	}
	return s.ledger.Acknowledge(workspace, offset)
}

// append is one transaction.
func (s *sqlite) append(ctx context.Context, workspace int, source *event.Source) (uint64, error) {
	tx, err := s.conn.BeginTx(ctx, nil)
	if err != nil {
		return 0, err
	}
	var offset, number1, number2 int64
	err = tx.StmtContext(ctx, s.update).QueryRowContext(ctx, workspace).Scan(&offset, &number1, &number2)
	if err == nil {
		_, err = tx.StmtContext(ctx, s.event).ExecContext(ctx, workspace, offset, source.Body())
	}
	if err == nil {
		_, err = tx.StmtContext(ctx, s.record).ExecContext(ctx, workspace, number1, source.Record(0), workspace, number2, source.Record(1))
	}
	if err != nil {
		return 0, errors.Join(err, tx.Rollback())
	}
	return uint64(offset), tx.Commit()
}

// Settle moves the log into the file.
func (s *sqlite) Settle(ctx context.Context) error {
	var busy, frames, moved int
	err := s.conn.QueryRowContext(ctx, "pragma wal_checkpoint(truncate)").Scan(&busy, &frames, &moved)
	if err == nil && busy != 0 {
		err = fmt.Errorf("checkpoint: got busy, %d of %d frames moved", moved, frames)
	}
	return err
}

func (s *sqlite) Check(ctx context.Context, failed uint64) (string, error) {
	return checkCounters(ctx, s, s.ledger, s.settings.Workspaces, failed)
}

func (s *sqlite) query(ctx context.Context, columns int, text string, each func([]int64) error) error {
	rows, err := s.conn.QueryContext(ctx, text)
	if err != nil {
		return err
	}
	values, targets := scanTargets(columns)
	for err == nil && rows.Next() {
		if err = rows.Scan(targets...); err == nil {
			err = each(values)
		}
	}
	return errors.Join(err, rows.Err(), rows.Close())
}

func (s *sqlite) Sizes() ([]usage.Size, error) {
	var sizes []usage.Size
	for _, suffix := range []string{"", "-wal"} {
		size, err := usage.SizeOf(s.path + suffix)
		if err != nil {
			return nil, err
		}
		sizes = append(sizes, size)
	}
	return sizes, nil
}

func (s *sqlite) Note() string {
	return fmt.Sprintf("SQLite %s by %s %s, WAL, synchronous full, checkpoint every 1000 pages, one connection that the callers queue for; the same counters and tables as postgres-counter",
		s.version, sqliteModule, moduleVersion(sqliteModule))
}

func (s *sqlite) Close(context.Context) error {
	var all []error
	for _, statement := range slices.DeleteFunc([]*sql.Stmt{s.update, s.event, s.record}, func(p *sql.Stmt) bool { return p == nil }) {
		all = append(all, statement.Close())
	}
	if s.conn != nil {
		all = append(all, s.conn.Close())
	}
	if s.db != nil {
		all = append(all, s.db.Close())
	}
	return errors.Join(all...)
}
