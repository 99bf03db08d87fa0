package partition_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/partita-go/partita/calendar"
	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/partition"
)

const bills messages.SeqID = 17

// yearlyBills is an application whose bills restart each year.
func yearlyBills() messages.Descriptor {
	return messages.Descriptor{Application: "billing", Partitions: 1, Kinds: []messages.Kind{{
		ID: shop, Name: "shop", Sequences: []messages.Sequence{{
			ID: bills, Name: "Bill", Initial: 1, Restart: messages.Restart{Rule: calendar.Rule{Every: calendar.Year}},
		}},
	}}}
}

// The old system keeps its bills. Its last number of each year moves the sequence, so that new bills go on above it.
func Example_takeOver() {
	ctx := context.Background()
	app, end := deployedAs(ctx, yearlyBills())
	defer end()
	sequencer, err := app.SequencerOf(7)
	check(err)
	to := partition.AppendTo{Workspace: 7, Kind: shop}
	_, err = sequencer.Append(ctx, to, partition.Draft{
		Body: []byte("taken over from the old system"),
		Moves: []messages.SequenceNumber{
			{Seq: bills, Period: 20250101, Number: 1204},
			{Seq: bills, Period: 20260101, Number: 311},
		},
	})
	check(err)
	late := partition.Draft{Wanted: []partition.Wanted{{Seq: bills}}, Date: 20251231}
	done, err := sequencer.Append(ctx, to, late)
	check(err)
	fmt.Println(done.Numbers[0])
	_, err = sequencer.Append(ctx, to, partition.Draft{Moves: []messages.SequenceNumber{{Seq: bills, Period: 20250101, Number: 1000}}})
	fmt.Println(errors.Is(err, partition.ErrBackward))
	// Output:
	// 17/2025-01-01/1205
	// true
}

// The history comes along: each bill has the number that it had, in their order. Number 2 was never issued: the hole
// stays one.
func Example_takeOverHistory() {
	ctx := context.Background()
	app, end := deployedAs(ctx, yearlyBills())
	defer end()
	sequencer, err := app.SequencerOf(7)
	check(err)
	to := partition.AppendTo{Workspace: 7, Kind: shop}
	var history []partition.Draft
	for _, bill := range []struct {
		date   calendar.Date
		number messages.Number
	}{{20251112, 1}, {20251130, 3}, {20251224, 4}} {
		history = append(history, partition.Draft{
			Date: bill.date, Brought: []messages.SequenceNumber{{Seq: bills, Number: bill.number}}, Body: []byte("an old bill"),
		})
	}
	_, err = sequencer.AppendAll(ctx, to, history)
	check(err)
	_, err = sequencer.Append(ctx, to, partition.Draft{Wanted: []partition.Wanted{{Seq: bills}}, Date: 20251231, Body: []byte("a new bill")})
	check(err)
	for e, err := range app.Reader().WLog(ctx, 7, 1) {
		check(err)
		fmt.Println(e.Numbers[0], e.Brought == 1, string(e.Body))
	}
	// Output:
	// 17/2025-01-01/1 true an old bill
	// 17/2025-01-01/3 true an old bill
	// 17/2025-01-01/4 true an old bill
	// 17/2025-01-01/5 false a new bill
}
