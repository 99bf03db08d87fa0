//go:build !nopeers

package rows

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/jackc/pgx/v5"

	"github.com/partita-go/partita/bench/internal/event"
	"github.com/partita-go/partita/bench/internal/ledger"
	"github.com/partita-go/partita/bench/internal/measure"
	"github.com/partita-go/partita/bench/internal/usage"
)

// postgres is a PostgreSQL server with a connection for each caller, which
// prepares one statement and appends an event with one round trip.
type postgres struct {
	settings measure.Settings
	variant  postgresVariant
	server   *postgresServer
	version  string
	callers  []*pgx.Conn
	control  *pgx.Conn
	sources  []*event.Source
	ledger   *ledger.Ledger
}

// postgresVariant is a way to number.
type postgresVariant struct {
	note   string
	schema string
	// insert has the parameters workspace, body and two records, and returns the
	// number that is acknowledged.
	insert string
	// logs is how many logs the ledger has; logOf is the log of a workspace.
	logs  func(workspaces int) int
	logOf func(workspace int) int
	check func(ctx context.Context, p *postgres, failed uint64) (string, error)
}

func newPostgres(s measure.Settings, v postgresVariant) *postgres {
	return &postgres{
		settings: s,
		variant:  v,
		sources:  event.NewSources(s.Callers, s.Workspaces),
		ledger:   ledger.New(v.logs(s.Workspaces)),
	}
}

func (p *postgres) Setup(ctx context.Context, dir string) error {
	var err error
	if p.server, err = startPostgres(ctx, dir, p.settings.Callers+p.settings.Readers); err != nil {
		return err
	}
	if p.control, err = p.server.connect(ctx); err != nil {
		return err
	}
	if err := p.control.QueryRow(ctx, "show server_version").Scan(&p.version); err != nil {
		return err
	}
	if err := p.createTables(ctx); err != nil {
		return err
	}
	p.callers, err = p.connect(ctx, p.settings.Callers, "append", p.variant.insert)
	return err
}

// connect returns connections that have prepared a statement. It returns those that it has
// made, also if it fails.
func (p *postgres) connect(ctx context.Context, n int, name, sql string) ([]*pgx.Conn, error) {
	var conns []*pgx.Conn
	for range n {
		conn, err := p.server.connect(ctx)
		if err != nil {
			return conns, fmt.Errorf("connection %d: %w", len(conns)+1, err)
		}
		conns = append(conns, conn)
		if _, err := conn.Prepare(ctx, name, sql); err != nil {
			return conns, err
		}
	}
	return conns, nil
}

func (p *postgres) createTables(ctx context.Context) error {
	if _, err := p.control.Exec(ctx, p.variant.schema); err != nil {
		return fmt.Errorf("tables: %w", err)
	}
	// What the load starts with is on disk, and its writing does not count.
	return p.Settle(ctx)
}

func (p *postgres) Do(ctx context.Context, caller int) error {
	workspace, number, err := p.insert(ctx, p.callers[caller], caller)
	if err != nil {
		return err
	}
	return p.ledger.Acknowledge(p.variant.logOf(workspace), number)
}

// inserter is a connection or a transaction.
type inserter interface {
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}

// insert inserts the caller's next event.
func (p *postgres) insert(ctx context.Context, in inserter, caller int) (workspace int, number uint64, err error) {
	s := p.sources[caller]
	workspace = s.Next()
	err = in.QueryRow(ctx, "append", int64(workspace), s.Body(), s.Record(0), s.Record(1)).Scan(&number)
	return workspace, number, err
}

// Settle writes what is only in the log and in memory.
func (p *postgres) Settle(ctx context.Context) error {
	_, err := p.control.Exec(ctx, "checkpoint")
	return err
}

func (p *postgres) Check(ctx context.Context, failed uint64) (string, error) {
	return p.variant.check(ctx, p, failed)
}

func (p *postgres) query(ctx context.Context, columns int, sql string, each func([]int64) error) error {
	rows, err := p.control.Query(ctx, sql)
	if err != nil {
		return err
	}
	defer rows.Close()
	values, targets := scanTargets(columns)
	for rows.Next() {
		if err := errors.Join(rows.Scan(targets...), rows.Err()); err != nil {
			return err
		}
		if err := each(values); err != nil {
			return err
		}
	}
	return rows.Err()
}

// scanTargets returns columns, and pointers to each.
func scanTargets(columns int) (values []int64, targets []any) {
	values = make([]int64, columns)
	for i := range values {
		targets = append(targets, &values[i])
	}
	return values, targets
}

func (p *postgres) Sizes() ([]usage.Size, error) { return p.server.sizes() }

func (p *postgres) PID() int { return p.server.process.PID() }

func (p *postgres) Note() string {
	return fmt.Sprintf("PostgreSQL %s, pgx %s over a Unix socket, %s; %s",
		p.version, moduleVersion("github.com/jackc/pgx/v5"), postgresNote, p.variant.note)
}

func (p *postgres) Close(ctx context.Context) error {
	if p.server == nil {
		return nil
	}
	var all []error
	for _, conn := range append(p.callers, p.control) {
		if conn != nil {
			all = append(all, conn.Close(ctx))
		}
	}
	return errors.Join(append(all, p.server.stop(ctx), os.RemoveAll(p.server.socketDir))...)
}
