// Takeover moves the numbers of a PostgreSQL counter table into a store, so that the tenants go on behind them:
//
//	CREATE TABLE counters (tenant BIGINT PRIMARY KEY, last BIGINT NOT NULL);
//
//	go run ./takeover -postgres postgres://… -dir DIR -new
//
// The flag -new makes the store. Leave it out afterwards: a directory that was mistyped is refused then, instead of getting
// the numbers a second time.
//
// It locks the table while it reads it: stop what gives numbers before, and start the new program afterwards. It can be
// repeated as often as it takes: a tenant that was moved is not moved again.
package main

import (
	"context"
	"crypto/sha256"
	"errors"
	"flag"
	"fmt"
	"log"
	"log/slog"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/jackc/pgx/v5"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/partition"
	"github.com/partita-go/partita/storage/bolt"
)

const (
	tenants  messages.WSKind = 1
	invoices messages.SeqID  = 16
)

// descriptor says what the application has. The number of partitions never changes.
func descriptor() messages.Descriptor {
	return messages.Descriptor{Application: "invoicing", Partitions: 8, Kinds: []messages.Kind{{
		ID: tenants, Name: "tenant", Sequences: []messages.Sequence{{ID: invoices, Name: "Invoice", Initial: 1}},
	}}}
}

func main() {
	url := flag.String("postgres", "", "the URL of the database")
	dir := flag.String("dir", "invoices", "the directory of the store")
	isNew := flag.Bool("new", false, "make the store, if there is none")
	flag.Parse()
	moved, err := run(context.Background(), *url, *dir, *isNew)
	if err != nil {
		log.Fatal(err)
	}
	log.Printf("%d tenants go on behind their last numbers", moved)
}

func run(ctx context.Context, url, dir string, isNew bool) (moved int, err error) {
	store, err := bolt.Open(ctx, dir, descriptor(), bolt.Options{Create: isNew})
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, store.Close(context.Background())) }()
	system := actor.NewActorSystem(actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger { return slog.New(slog.DiscardHandler) }))
	parts := partition.NewAppParts(system, partition.Options{})
	defer func() { err = errors.Join(err, parts.Close(context.Background())) }()
	app, err := parts.Deploy(ctx, partition.Application{Descriptor: descriptor()}, store)
	if err != nil {
		return 0, err
	}
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, conn.Close(context.Background())) }()
	return moved, pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
		moved, err = moveAll(ctx, tx, app)
		return err
	})
}

// moveAll moves each tenant that has given a number. Nobody can give another one meanwhile.
func moveAll(ctx context.Context, tx pgx.Tx, app *partition.App) (moved int, err error) {
	if _, err := tx.Exec(ctx, "LOCK TABLE counters IN EXCLUSIVE MODE"); err != nil {
		return 0, err
	}
	rows, err := tx.Query(ctx, "SELECT tenant, last FROM counters WHERE last > 0 ORDER BY tenant")
	if err != nil {
		return 0, err
	}
	defer rows.Close()
	for rows.Next() {
		var tenant, last int64
		if err := rows.Scan(&tenant, &last); err != nil {
			return moved, err
		}
		if err := move(ctx, app, messages.WSID(tenant), messages.Number(last)); err != nil {
			return moved, fmt.Errorf("tenant %d, last number %d: %w", tenant, last, err)
		}
		moved++
	}
	return moved, rows.Err()
}

// move lets a tenant's invoices go on behind a number. The event that does so has an id of its own: a tenant is moved once,
// and if its counter says something else by then, that is an error.
func move(ctx context.Context, app *partition.App, tenant messages.WSID, last messages.Number) error {
	sequencer, err := app.SequencerOf(tenant)
	if err != nil {
		return err
	}
	id := sha256.Sum256([]byte("taken over from the counters of PostgreSQL"))
	_, err = sequencer.Append(ctx, partition.AppendTo{Workspace: tenant, Kind: tenants, DedupID: partition.DedupID(id[:16]), Wait: true},
		partition.Draft{
			Moves: []messages.SequenceNumber{{Seq: invoices, Number: last}},
			Body:  fmt.Appendf(nil, `{"taken_over":{"from":"counters","last":%d}}`, last),
		})
	return err
}
