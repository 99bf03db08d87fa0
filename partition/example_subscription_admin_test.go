package partition_test

import (
	"context"
	"fmt"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/partition"
)

// A subscription is looked after by its name, while it runs and, as here, while it does not:
// the next Subscribe goes on from where it was put.
func ExampleSubscriptionAdmin() {
	ctx := context.Background()
	app, end := deployed(ctx)
	defer end()
	sequencer, err := app.SequencerOf(7)
	check(err)
	for range 3 {
		_, err = sequencer.Append(ctx, partition.AppendTo{Workspace: 7, Kind: shop}, partition.Draft{})
		check(err)
	}
	subscription, err := app.Subscribe(ctx, partition.SubscriptionConfig{
		Name: "mails", Workspace: new(messages.WSID(7)), From: partition.FromNow,
		Handler: func(context.Context, partition.Delivery) error { return nil },
	})
	check(err)
	check(subscription.End(ctx))

	admin := app.SubscriptionAdmin()
	check(admin.Rewind(ctx, "mails", app.PartitionOf(7), 2))
	check(admin.Pause(ctx, "mails"))
	for status, err := range admin.List(ctx, "") {
		check(err)
		fmt.Printf("%s: %v, %d events behind\n", status.Name, status.State, status.Lag)
	}
	// Output:
	// mails: paused, 2 events behind
}
