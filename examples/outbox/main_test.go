package main

import (
	"context"
	"fmt"
	"log/slog"
	"path/filepath"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/partition"
	"github.com/partita-go/partita/storage/bolt"
)

const shop messages.WSKind = 1

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// deployed is an application over a new store.
func deployed(t *testing.T) *partition.App {
	t.Helper()
	d := messages.Descriptor{Application: "shops", Partitions: 2, Kinds: []messages.Kind{{ID: shop, Name: "shop"}}}
	store, err := bolt.Open(t.Context(), filepath.Join(t.TempDir(), "store"), d, bolt.Options{Create: true})
	check(t, err)
	system := actor.NewActorSystem(actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger { return slog.New(slog.DiscardHandler) }))
	parts := partition.NewAppParts(system, partition.Options{})
	t.Cleanup(func() {
		check(t, parts.Close(context.Background()))
		check(t, store.Close(context.Background()))
	})
	app, err := parts.Deploy(t.Context(), partition.Application{Descriptor: d}, store)
	check(t, err)
	check(t, app.Ready(t.Context()))
	return app
}

// connected is a connection to a NATS server within the test.
func connected(t *testing.T) *nats.Conn {
	t.Helper()
	s, err := server.NewServer(&server.Options{Host: "127.0.0.1", Port: server.RANDOM_PORT, JetStream: true, StoreDir: t.TempDir(), NoSigs: true})
	check(t, err)
	s.Start()
	t.Cleanup(func() {
		s.Shutdown()
		s.WaitForShutdown()
	})
	if !s.ReadyForConnections(30 * time.Second) {
		t.Fatal("NATS is not ready")
	}
	conn, err := nats.Connect(s.ClientURL())
	check(t, err)
	t.Cleanup(conn.Close)
	return conn
}

// TestOutbox: the stream has each event once and in its workspace's order, also when all are sent a second time.
func TestOutbox(t *testing.T) {
	const workspaces, each = 3, 20
	app, conn := deployed(t), connected(t)
	for i := range workspaces * each {
		ws := messages.WSID(1 + i%workspaces)
		sequencer, err := app.SequencerOf(ws)
		check(t, err)
		_, err = sequencer.Append(t.Context(), partition.AppendTo{Workspace: ws, Kind: shop}, partition.Draft{Body: fmt.Append(nil, 1+i/workspaces)})
		check(t, err)
	}
	check(t, publish(t.Context(), app, conn))
	got := received(t, conn, workspaces*each)
	for i := range workspaces {
		subject := fmt.Sprintf("events.%d", i+1)
		for n, body := range got[subject] {
			if body != fmt.Sprint(n+1) {
				t.Fatalf("%s: got %s, want %d", subject, body, n+1)
			}
		}
		if len(got[subject]) != each {
			t.Errorf("%s: got %d messages, want %d", subject, len(got[subject]), each)
		}
	}
	admin := app.SubscriptionAdmin()
	for p := range messages.PartitionID(2) {
		check(t, admin.Rewind(t.Context(), "outbox", p, 1))
	}
	settled(t, admin)
	js, err := jetstream.New(conn)
	check(t, err)
	s, err := js.Stream(t.Context(), stream)
	check(t, err)
	if n := s.CachedInfo().State.Msgs; n != workspaces*each {
		t.Errorf("got %d messages, want %d: some are there twice", n, workspaces*each)
	}
}

// received returns the first n messages of the stream by their subjects.
func received(t *testing.T, conn *nats.Conn, n int) map[string][]string {
	t.Helper()
	js, err := jetstream.New(conn)
	check(t, err)
	consumer, err := js.OrderedConsumer(t.Context(), stream, jetstream.OrderedConsumerConfig{})
	check(t, err)
	got := make(map[string][]string)
	for range n {
		m, err := consumer.Next(jetstream.FetchMaxWait(time.Minute))
		check(t, err)
		got[m.Subject()] = append(got[m.Subject()], string(m.Data()))
	}
	return got
}

// settled waits until the outbox has no event before it.
func settled(t *testing.T, admin *partition.SubscriptionAdmin) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for {
		status, err := admin.Status(ctx, "outbox")
		check(t, err)
		if status.Lag == 0 {
			return
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatal("the outbox does not come to its end")
		}
	}
}
