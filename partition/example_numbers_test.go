package partition_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/partita-go/partita/actors/actorstest"
	"github.com/partita-go/partita/calendar"
	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/partition"
)

// A sequence for a column of one digit: its end is a typed error that consumes nothing, and
// the status tells of it before.
func Example_limits() {
	ctx := context.Background()
	const tickets messages.SeqID = 17
	counted := messages.Descriptor{Application: "tickets", Partitions: 1, Kinds: []messages.Kind{{
		ID: shop, Name: "shop", Sequences: []messages.Sequence{
			{ID: tickets, Name: "Ticket", Initial: 1, Largest: messages.LargestOfDigits(1)},
		},
	}}}
	app, end := deployedAs(ctx, counted)
	defer end()
	sequencer, err := app.SequencerOf(7)
	check(err)
	to := partition.AppendTo{Workspace: 7, Kind: shop}
	take := func(n uint32) error {
		_, err := sequencer.Append(ctx, to, partition.Draft{Wanted: []partition.Wanted{{Seq: tickets, Count: n}}})
		return err
	}
	check(take(8))
	fmt.Println(len(sequencer.Status().NearlyUsed), "sequences end soon")
	if exhausted, ok := errors.AsType[*partition.OverflowError](take(2)); ok {
		fmt.Printf("%d wanted of %s after %d, largest is %d\n", exhausted.Wanted, exhausted.Name, exhausted.Last, exhausted.Largest)
	}
	check(take(1))
	fmt.Println(len(sequencer.Status().NearlyUsed), "sequence ends soon")
	fmt.Println(errors.Is(take(1), partition.ErrOverflow))
	// Output:
	// 0 sequences end soon
	// 2 wanted of Ticket after 8, largest is 9
	// 1 sequence ends soon
	// true
}

// Many numbers at once follow each other, and are given all or not at all.
func ExampleTransaction_NextRange() {
	ctx := context.Background()
	app, end := deployed(ctx)
	defer end()
	sequencer, err := app.SequencerOf(7)
	check(err)
	tx, err := sequencer.Start(ctx, shop, 7)
	check(err)
	first, err := tx.NextRange(ctx, partition.Wanted{Seq: invoices, Count: 3})
	check(err)
	next, err := tx.Next(ctx, invoices)
	check(err)
	check(tx.Commit(ctx, []byte("four invoices")))
	fmt.Println(first, next, tx.Numbers())
	// Output:
	// 1 4 [16/1 16/2 16/3 16/4]
}

// Receipts restart each day. A business date that is given decides the day, also a past one: the event extends the
// day's own numbers. Printed numbers can be read again.
func Example_periods() {
	ctx := context.Background()
	const receipts messages.SeqID = 17
	receipt := messages.Sequence{
		ID: receipts, Name: "Receipt", Initial: 1,
		Restart: messages.Restart{Rule: calendar.Rule{Every: calendar.Day}, Zone: "Europe/Zurich"},
		Formats: []string{"{yyyy}{mm}{dd}-{n:03}"},
	}
	app, end := deployedAs(ctx, messages.Descriptor{Application: "receipts", Partitions: 1, Kinds: []messages.Kind{{
		ID: shop, Name: "shop", Sequences: []messages.Sequence{receipt},
	}}})
	defer end()
	sequencer, err := app.SequencerOf(7)
	check(err)
	formats, err := receipt.ParseFormats()
	check(err)
	issue := func(date calendar.Date) error {
		done, err := sequencer.Append(ctx, partition.AppendTo{Workspace: 7, Kind: shop}, partition.Draft{
			Wanted: []partition.Wanted{{Seq: receipts}}, Date: date,
		})
		if err == nil && date != 0 {
			fmt.Println(formats.Print(done.Numbers[0]))
		}
		return err
	}
	check(issue(20260329))
	check(issue(20260330))
	check(issue(20260329)) // late
	check(issue(0))        // today, by the registration time
	fmt.Println(errors.Is(issue(20991231), partition.ErrBusinessDate))
	n, err := formats.Parse("20260329-002")
	check(err)
	fmt.Println(n.Period, n.Number)
	// Output:
	// 20260329-001
	// 20260330-001
	// 20260329-002
	// true
	// 2026-03-29 2
}

// A tenant moves from Zurich to Auckland. The day in Zurich goes on to its end; when it has ended, it is the next morning
// in Auckland, and from then on days begin and end there.
func Example_zones() {
	ctx := context.Background()
	const receipts messages.SeqID = 17
	store, closeStore := temporaryStore(ctx, messages.Descriptor{Application: "receipts", Partitions: 1, Kinds: []messages.Kind{{
		ID: shop, Name: "shop", Sequences: []messages.Sequence{{
			ID: receipts, Name: "Receipt", Initial: 1,
			Restart: messages.Restart{Rule: calendar.Rule{Every: calendar.Day}, Zone: "Europe/Zurich"},
		}},
	}}})
	defer closeStore()
	clock := actorstest.NewFakeClock(time.Date(2026, 6, 10, 12, 0, 0, 0, time.UTC))
	parts := partition.NewAppParts(quietSystem(), partition.Options{Clock: clock})
	app, err := parts.Deploy(ctx, partition.Application{Descriptor: store.Descriptor()}, store)
	check(err)
	check(app.Ready(ctx))
	sequencer, err := app.SequencerOf(7)
	check(err)
	issue := func(zone string) {
		done, err := sequencer.Append(ctx, partition.AppendTo{Workspace: 7, Kind: shop}, partition.Draft{
			Wanted: []partition.Wanted{{Seq: receipts}}, Zone: zone,
		})
		check(err)
		fmt.Println(done.RegisteredAt, done.Numbers[0])
	}
	issue("")
	issue("Pacific/Auckland")
	for _, later := range []time.Duration{9 * time.Hour, time.Hour, 13 * time.Hour, time.Hour} {
		clock.Advance(later)
		issue("")
	}
	numbers, err := app.Reader().Numbers(ctx, 7)
	check(err)
	last, _ := numbers.Zones.Last()
	fmt.Println(last.Zone)
	check(parts.Close(ctx))
	// Output:
	// 2026-06-10T12:00:00Z 17/2026-06-10/1
	// 2026-06-10T12:00:00Z 17/2026-06-10/2
	// 2026-06-10T21:00:00Z 17/2026-06-10/3
	// 2026-06-10T22:00:00Z 17/2026-06-11/1
	// 2026-06-11T11:00:00Z 17/2026-06-11/2
	// 2026-06-11T12:00:00Z 17/2026-06-12/1
	// Pacific/Auckland
}
