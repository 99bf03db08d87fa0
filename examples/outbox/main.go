// Outbox publishes each event of an application to a stream of NATS JetStream, in the order of its workspace's log, and
// each of them once: the event's id is the message's, by which the stream knows what it has already.
//
//	go run ./outbox -dir DIR -nats nats://localhost:4222
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/partita-go/partita/partition"
	"github.com/partita-go/partita/storage/bolt"
)

// stream has the messages, one subject for each workspace: events.42.
const stream = "EVENTS"

// window is how long the stream remembers ids. What the outbox tries again is much younger, unless it was off for longer
// between a message and the storing of its position: then that one message may come twice, with the same id.
const window = time.Hour

func main() {
	dir := flag.String("dir", "store", "the directory of the store")
	url := flag.String("nats", nats.DefaultURL, "the NATS server")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, *dir, *url); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, dir, url string) (err error) {
	store, err := bolt.OpenExisting(ctx, dir, bolt.Options{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close(context.Background())) }()
	system := actor.NewActorSystem(actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger { return slog.New(slog.DiscardHandler) }))
	parts := partition.NewAppParts(system, partition.Options{})
	defer func() { err = errors.Join(err, parts.Close(context.Background())) }()
	app, err := parts.Deploy(ctx, partition.Application{Descriptor: store.Descriptor()}, store)
	if err != nil {
		return err
	}
	conn, err := nats.Connect(url, nats.MaxReconnects(-1))
	if err != nil {
		return err
	}
	defer conn.Close()
	if err := publish(ctx, app, conn); err != nil {
		return err
	}
	<-ctx.Done()
	return nil
}

// publish starts the outbox. It runs until the application is undeployed, and goes on where it was.
func publish(ctx context.Context, app *partition.App, conn *nats.Conn) error {
	js, err := jetstream.New(conn)
	if err != nil {
		return err
	}
	_, err = js.CreateOrUpdateStream(ctx, jetstream.StreamConfig{Name: stream, Subjects: []string{"events.*"}, Duplicates: window})
	if err != nil {
		return err
	}
	_, err = app.Subscribe(ctx, partition.SubscriptionConfig{
		Name:     "outbox",
		Handler:  func(ctx context.Context, d partition.Delivery) error { return send(ctx, js, d) },
		OnPoison: partition.Stop, // later events must not overtake one that cannot be sent
	})
	return err
}

// send publishes a batch, one event after the other. What it had sent when it fails is not sent again.
func send(ctx context.Context, js jetstream.JetStream, d partition.Delivery) error {
	for i, e := range d.Events {
		subject := fmt.Sprintf("events.%d", e.Workspace)
		if _, err := js.Publish(ctx, subject, e.Body, jetstream.WithMsgID(e.DedupID.String())); err != nil {
			return &partition.BatchError{Index: i, Err: err}
		}
	}
	return nil
}
