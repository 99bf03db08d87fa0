package partition_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"log/slog"
	"os"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/partition"
	"github.com/partita-go/partita/storage/bolt"
)

const (
	shop     messages.WSKind = 1
	invoices messages.SeqID  = 16
)

// descriptor says what kinds of workspaces there are and which sequences each has.
var descriptor = messages.Descriptor{
	Application: "billing",
	Partitions:  4,
	Kinds: []messages.Kind{{ID: shop, Name: "shop", Sequences: []messages.Sequence{
		{ID: invoices, Name: "Invoice", Initial: 1},
	}}},
}

func Example_quickstart() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "billing")
	check(err)
	defer func() { check(os.RemoveAll(dir)) }()

	store, err := bolt.Open(ctx, dir, descriptor, bolt.Options{Create: true})
	check(err)
	parts := partition.NewAppParts(quietSystem(), partition.Options{})
	app, err := parts.Deploy(ctx, partition.Application{Descriptor: descriptor}, store)
	check(err)
	check(app.Ready(ctx))

	const tenant = messages.WSID(42)
	sequencer, err := app.SequencerOf(tenant)
	check(err)
	for range 3 {
		tx, err := sequencer.Start(ctx, shop, tenant)
		check(err)
		number, err := tx.Next(ctx, invoices)
		check(err)
		check(tx.Commit(ctx, []byte("an invoice")))
		fmt.Printf("invoice %d is event %d of tenant %d\n", number, tx.WLogOffset(), tenant)
	}

	check(parts.Close(ctx))
	check(store.Close(ctx))
	// Output:
	// invoice 1 is event 1 of tenant 42
	// invoice 2 is event 2 of tenant 42
	// invoice 3 is event 3 of tenant 42
}

// Deploying: errors are clear, several applications live side by side, and the
// status tells how each partition is.
func ExampleAppParts_Deploy() {
	ctx := context.Background()
	store, end := temporaryStore(ctx, descriptor)
	defer end()
	parts := partition.NewAppParts(quietSystem(), partition.Options{})
	defer func() { check(parts.Close(ctx)) }()

	app, err := parts.Deploy(ctx, partition.Application{
		Descriptor: descriptor,
		Settings:   partition.Settings{FlushThreshold: 2000},
	}, store)
	check(err)
	check(app.Ready(ctx))

	_, err = parts.Deploy(ctx, partition.Application{Descriptor: descriptor}, store)
	fmt.Println("twice:", errors.Is(err, partition.ErrDeployed))
	_, err = app.Sequencer(4)
	fmt.Println(err)
	for _, s := range app.Status() {
		fmt.Printf("partition %d is %v, %d events replayed\n", s.Partition, s.State, s.Replayed)
	}
	// Output:
	// twice: true
	// unknown partition: got 4, want 0 to 3
	// partition 0 is normal, 0 events replayed
	// partition 1 is normal, 0 events replayed
	// partition 2 is normal, 0 events replayed
	// partition 3 is normal, 0 events replayed
}

// A transaction step by step: numbers that were reserved go back when it is
// cancelled, so there is no gap.
func ExampleTransaction() {
	ctx := context.Background()
	app, end := deployed(ctx)
	defer end()
	sequencer, err := app.SequencerOf(7)
	check(err)

	tx, err := sequencer.Start(ctx, shop, 7)
	check(err)
	number, err := tx.Next(ctx, invoices)
	check(err)
	fmt.Println("reserved", number)
	check(tx.Cancel(ctx))

	tx, err = sequencer.Start(ctx, shop, 7)
	check(err)
	number, err = tx.Next(ctx, invoices)
	check(err)
	record := messages.Record{ID: messages.RecordID{Seq: invoices, Number: number}, New: true, Data: []byte("100 EUR")}
	if err := tx.Write(ctx, []byte("invoice issued"), record); err != nil {
		check(tx.Actualize(ctx)) // the log says what became of it
	}
	check(tx.Flush(ctx))
	fmt.Println("given", number)
	// Output:
	// reserved 1
	// given 1
}

// Busy is an answer, not a failure: it says why, and when to try again. An HTTP
// server makes it 503 with Retry-After.
func ExampleBusyError() {
	ctx := context.Background()
	app, end := deployed(ctx)
	sequencer, err := app.SequencerOf(7)
	check(err)
	end()

	_, err = sequencer.Start(ctx, shop, 7)
	var busy *partition.BusyError
	switch {
	case errors.As(err, &busy):
		fmt.Println("busy:", busy.Reason, "try again in", busy.RetryAfter)
	case errors.Is(err, partition.ErrStopped):
		fmt.Println("stopped")
	}
	// Output:
	// stopped
}

// A command processor runs commands from Start to Flush. The handler sees the real
// ids, and decides.
func ExampleApp_SpawnCommandProcessor() {
	ctx := context.Background()
	app, end := deployed(ctx)
	defer end()

	processor, err := app.SpawnCommandProcessor(func(ctx context.Context, c *partition.CommandContext) error {
		if len(c.Command().Body) == 0 {
			return errors.New("an invoice needs a text")
		}
		if _, err := c.Next(ctx, invoices); err != nil {
			return err
		}
		id, err := c.ID(1)
		if err != nil {
			return err
		}
		return c.Insert(ctx, id, c.Command().Body)
	})
	check(err)

	command := messages.Command{Workspace: 7, Kind: shop, RawRecords: []messages.RawRecord{{ID: 1}}}
	_, err = processor.Execute(ctx, command)
	fmt.Println("refused:", err)
	command.Body = []byte("100 EUR")
	done, err := processor.Execute(ctx, command)
	check(err)
	fmt.Println("event", done.WLogOffset, "record", done.IDs[1].Number, "invoice", done.Numbers[1].Number)
	// Output:
	// refused: an invoice needs a text
	// event 1 record 322685000131072 invoice 1
}

// Reading the log: what was acknowledged is there, in order, without holes.
func Example_readingTheLog() {
	ctx := context.Background()
	store, end := temporaryStore(ctx, descriptor)
	defer end()
	parts := partition.NewAppParts(quietSystem(), partition.Options{})
	defer func() { check(parts.Close(ctx)) }()
	app, err := parts.Deploy(ctx, partition.Application{Descriptor: descriptor}, store)
	check(err)
	check(app.Ready(ctx))
	for _, tenant := range []messages.WSID{5, 9, 5} {
		sequencer, err := app.SequencerOf(tenant)
		check(err)
		tx, err := sequencer.Start(ctx, shop, tenant)
		check(err)
		check(tx.Commit(ctx, fmt.Appendf(nil, "event of tenant %d", tenant)))
	}

	for event, err := range store.PLog(ctx, app.PartitionOf(5), 1) {
		check(err)
		fmt.Printf("PLog %d: %s\n", event.PLogOffset, event.Body)
	}
	for event, err := range store.WLog(ctx, 5, 1) {
		check(err)
		fmt.Printf("WLog %d: %s\n", event.WLogOffset, event.Body)
	}
	// Output:
	// PLog 1: event of tenant 5
	// PLog 2: event of tenant 9
	// PLog 3: event of tenant 5
	// WLog 1: event of tenant 5
	// WLog 2: event of tenant 5
}

func check(err error) {
	if err != nil {
		log.Panic(err)
	}
}

// quietSystem returns an actor system that logs nothing.
func quietSystem() *actor.ActorSystem {
	return actor.NewActorSystem(
		actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger { return slog.New(slog.DiscardHandler) }),
		actor.WithDeadLetterThrottleInterval(time.Millisecond))
}

func temporaryStore(ctx context.Context, d messages.Descriptor) (store *bolt.Store, end func()) {
	dir, err := os.MkdirTemp("", "billing")
	check(err)
	store, err = bolt.Open(ctx, dir, d, bolt.Options{Create: true})
	check(err)
	return store, func() {
		check(store.Close(ctx))
		check(os.RemoveAll(dir))
	}
}

func deployed(ctx context.Context) (app *partition.App, end func()) {
	return deployedAs(ctx, descriptor)
}

func deployedAs(ctx context.Context, d messages.Descriptor) (app *partition.App, end func()) {
	store, closeStore := temporaryStore(ctx, d)
	parts := partition.NewAppParts(quietSystem(), partition.Options{})
	app, err := parts.Deploy(ctx, partition.Application{Descriptor: d}, store)
	check(err)
	check(app.Ready(ctx))
	return app, func() {
		check(parts.Close(ctx))
		closeStore()
	}
}
