package partition_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/partita-go/partita/partition"
)

// An audit log: follow a workspace from its first event on. The loop is woken by the
// append, and ends with its context.
func ExampleReader_FollowWLog() {
	ctx := context.Background()
	app, end := deployed(ctx)
	defer end()
	sequencer, err := app.SequencerOf(7)
	check(err)
	issue := func(text string) {
		_, err := sequencer.Append(ctx, partition.AppendTo{Workspace: 7, Kind: shop},
			partition.Draft{Wanted: []partition.Wanted{{Seq: invoices}}, Body: []byte(text)})
		check(err)
	}
	issue("invoice for apples")

	following, stop := context.WithCancel(ctx)
	defer stop()
	for event, err := range app.Reader().FollowWLog(following, 7, 1) {
		if errors.Is(err, context.Canceled) {
			break
		}
		check(err)
		fmt.Printf("%d: %s, number %d\n", event.WLogOffset, event.Body, event.Numbers[0].Number)
		switch event.WLogOffset {
		case 1:
			issue("invoice for pears")
		case 2:
			stop() // the next element is the context's error
		}
	}
	// Output:
	// 1: invoice for apples, number 1
	// 2: invoice for pears, number 2
}

// A projection of a whole application: pages of its feed, and a cursor that is saved with
// what was made of them. After a restart it goes on from the saved text, and no event is
// missing or twice.
func ExampleReader_Feed() {
	ctx := context.Background()
	app, end := deployed(ctx)
	defer end()
	reader := app.Reader()

	saved := ""                  // on disk, with the totals: in one transaction
	totals := make(map[int]int)  // events of each tenant
	restart := func(limit int) { // one life of the program
		cursor, err := reader.ParseCursor(saved)
		check(err)
		feed, err := reader.Feed(ctx, cursor)
		check(err)
		events, err := feed.Page(ctx, limit)
		check(err)
		for _, event := range events {
			totals[int(event.Workspace)]++
		}
		saved = feed.Cursor().String()
	}
	for _, tenant := range []partition.AppendTo{{Workspace: 5}, {Workspace: 6}, {Workspace: 5}} {
		sequencer, err := app.SequencerOf(tenant.Workspace)
		check(err)
		tenant.Kind = shop
		_, err = sequencer.Append(ctx, tenant, partition.Draft{Body: []byte("order")})
		check(err)
		restart(1)
	}
	restart(100)
	fmt.Println(totals)

	_, err := reader.ParseCursor(saved[1:])
	fmt.Println(errors.Is(err, partition.ErrCursor), err)
	// Output:
	// map[5:2 6:1]
	// true wrong cursor: damaged
}
