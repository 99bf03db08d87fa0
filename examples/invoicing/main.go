// Invoicing is a service that numbers the invoices of each tenant: INV/2026/0001, INV/2026/0002 … without a hole, anew
// each year.
//
//	go run ./invoicing -dir invoices -new     # makes the store
//	go run ./invoicing -dir invoices
//	curl -d '{"customer": "apples", "cents": 1200}' -H 'Idempotency-Key: order 1' localhost:8080/tenants/7/invoices
//	curl localhost:8080/tenants/7/invoices
package main

import (
	"context"
	"errors"
	"flag"
	"log"
	"log/slog"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/partita-go/partita/calendar"
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
		ID: tenants, Name: "tenant", Sequences: []messages.Sequence{{
			ID: invoices, Name: "Invoice", Initial: 1,
			Restart: messages.Restart{Rule: calendar.Rule{Every: calendar.Year}},
			Formats: []string{"INV/{yyyy}/{n:04}"},
		}},
	}}}
}

func main() {
	dir := flag.String("dir", "invoices", "the directory of the store")
	isNew := flag.Bool("new", false, "make the store: a mistyped directory must not begin at invoice 1 again")
	listen := flag.String("listen", "127.0.0.1:8080", "the address to listen on")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, *dir, *isNew, *listen); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, dir string, isNew bool, listen string) (err error) {
	s, err := start(ctx, dir, isNew)
	if err != nil || isNew {
		return errors.Join(err, s.close())
	}
	server := &http.Server{Addr: listen, Handler: s.routes(), ReadHeaderTimeout: 10 * time.Second}
	ended := make(chan error, 1)
	go func() { ended <- server.ListenAndServe() }()
	select {
	case err = <-ended:
	case <-ctx.Done():
		err = server.Shutdown(context.Background())
	}
	return errors.Join(err, s.close())
}

// service is the application, deployed over its store.
type service struct {
	store   *bolt.Store
	parts   *partition.AppParts
	app     *partition.App
	printer messages.Printer
}

func start(ctx context.Context, dir string, isNew bool) (*service, error) {
	s := &service{}
	d := descriptor()
	s.printer = d.Printer()
	var err error
	if s.store, err = bolt.Open(ctx, dir, d, bolt.Options{Create: isNew}); err != nil {
		return s, err
	}
	system := actor.NewActorSystem(actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger { return slog.New(slog.DiscardHandler) }))
	s.parts = partition.NewAppParts(system, partition.Options{})
	if s.app, err = s.parts.Deploy(ctx, partition.Application{Descriptor: d}, s.store); err != nil {
		return s, err
	}
	return s, s.app.Ready(ctx)
}

// close ends what was started. Everything is flushed, so that the next start replays nothing.
func (s *service) close() (err error) {
	if s.parts != nil {
		err = s.parts.Close(context.Background())
	}
	if s.store != nil {
		err = errors.Join(err, s.store.Close(context.Background()))
	}
	return err
}
