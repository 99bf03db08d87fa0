package partition_test

import (
	"context"
	"fmt"
	"strings"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/partition"
)

// An outbox: what was written is sent to somebody else, in order, and nothing is lost. After
// a crash a batch may be sent again: let the receiver know the event by its id.
func ExampleApp_Subscribe_outbox() {
	ctx := context.Background()
	app, end := deployed(ctx)
	defer end()
	sent := make(chan string)
	_, err := app.Subscribe(ctx, partition.SubscriptionConfig{
		Name: "mails",
		Handler: func(ctx context.Context, d partition.Delivery) error {
			for i, event := range d.Events {
				select {
				case sent <- fmt.Sprintf("%s (id: %t)", event.Body, !event.DedupID.IsZero()):
				case <-ctx.Done():
					return &partition.BatchError{Index: i, Err: ctx.Err()} // those before it were sent
				}
			}
			return nil
		},
	})
	check(err)

	sequencer, err := app.SequencerOf(7)
	check(err)
	for _, text := range []string{"invoice for apples", "invoice for pears"} {
		_, err = sequencer.Append(ctx, partition.AppendTo{Workspace: 7, Kind: shop}, partition.Draft{Body: []byte(text)})
		check(err)
	}
	fmt.Println(<-sent)
	fmt.Println(<-sent)
	// Output:
	// invoice for apples (id: true)
	// invoice for pears (id: true)
}

// A projection whose effect is an append happens exactly once: the delivery's id is the
// append's. Here it is rewound, and every event delivered twice.
func ExampleApp_Subscribe_exactlyOnce() {
	ctx := context.Background()
	app, end := deployed(ctx)
	defer end()
	const tenant, report = messages.WSID(7), messages.WSID(8)
	handled := make(chan struct{}, 100)
	subscription, err := app.Subscribe(ctx, partition.SubscriptionConfig{
		Name:      "report",
		Workspace: new(tenant),
		Handler: func(ctx context.Context, d partition.Delivery) error {
			sequencer, err := app.SequencerOf(report)
			if err != nil {
				return err
			}
			for i, event := range d.Events {
				to := partition.AppendTo{Workspace: report, Kind: shop, DedupID: event.DedupID, Wait: true}
				draft := partition.Draft{Body: []byte(strings.ToUpper(string(event.Body)))}
				if _, err := sequencer.Append(ctx, to, draft); err != nil {
					return &partition.BatchError{Index: i, Err: err}
				}
				handled <- struct{}{}
			}
			return nil
		},
	})
	check(err)

	sequencer, err := app.SequencerOf(tenant)
	check(err)
	for _, text := range []string{"apples", "pears"} {
		_, err = sequencer.Append(ctx, partition.AppendTo{Workspace: tenant, Kind: shop}, partition.Draft{Body: []byte(text)})
		check(err)
		<-handled
	}
	check(subscription.Rewind(ctx, app.PartitionOf(tenant), 1))
	<-handled
	<-handled

	for event, err := range app.Reader().WLog(ctx, report, 1) {
		check(err)
		fmt.Printf("%d: %s\n", event.WLogOffset, event.Body)
	}
	// Output:
	// 1: APPLES
	// 2: PEARS
}
