package partition_test

import (
	"context"
	"errors"
	"fmt"

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
