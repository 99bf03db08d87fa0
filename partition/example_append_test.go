package partition_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/partition"
)

// One message, one transaction: the draft says which numbers it wants, and refers to
// them by their index. With a deduplication id it can be repeated without doubt.
func ExampleSequencer_append() {
	ctx := context.Background()
	app, end := deployed(ctx)
	defer end()
	sequencer, err := app.SequencerOf(7)
	check(err)

	to := partition.AppendTo{Workspace: 7, Kind: shop, DedupID: partition.DedupID{1: 0xca, 15: 0xfe}}
	draft := partition.Draft{
		Wanted:  []partition.Wanted{{Seq: invoices}},
		Body:    []byte("invoice issued"),
		Records: []partition.DraftRecord{{Number: 0, New: true, Data: []byte("100 EUR")}},
	}
	for range 2 {
		done, err := sequencer.Append(ctx, to, draft)
		check(err)
		fmt.Printf("invoice %d is event %d, repeated: %v\n", done.Numbers[0].Number, done.WLogOffset, done.Repeated)
	}
	// Output:
	// invoice 1 is event 1, repeated: false
	// invoice 1 is event 1, repeated: true
}

// Several events of one workspace become visible together or not at all, and only
// if nobody else has written to the workspace meanwhile.
func ExampleSequencer_appendAll() {
	ctx := context.Background()
	app, end := deployed(ctx)
	defer end()
	sequencer, err := app.SequencerOf(7)
	check(err)

	to := partition.AppendTo{Workspace: 7, Kind: shop, Expected: new(messages.WLogOffset(0))}
	drafts := []partition.Draft{
		{Body: []byte("order"), Wanted: []partition.Wanted{{Seq: messages.SeqCRecordID}}, Records: []partition.DraftRecord{{New: true}}},
		{Body: []byte("invoice"), Wanted: []partition.Wanted{{Seq: invoices}}, Records: []partition.DraftRecord{{Number: 0, Data: []byte("invoiced")}}},
	}
	events, err := sequencer.AppendAll(ctx, to, drafts)
	check(err)
	for _, e := range events {
		fmt.Printf("event %d: %v\n", e.WLogOffset, e.Numbers)
	}
	_, err = sequencer.AppendAll(ctx, to, drafts)
	fmt.Println(errors.Is(err, partition.ErrExpectedOffset), err)
	// Output:
	// event 1: [2/322685000131072]
	// event 2: [16/1]
	// true workspace is not at the expected offset: workspace 7: got 2, want 0
}

// A command processor that appends: the drafter refers to numbers that are not known
// yet, and the partition serves others while a command waits for the disk.
func ExampleApp_SpawnAppendProcessor() {
	ctx := context.Background()
	app, end := deployed(ctx)
	defer end()
	processor, err := app.SpawnAppendProcessor(func(_ context.Context, d *partition.DraftContext) error {
		number, err := d.Number(1)
		if err != nil {
			return err
		}
		d.Insert(number, []byte("a customer"))
		return nil
	})
	check(err)
	done, err := processor.Execute(ctx, messages.Command{
		Workspace: 7, Kind: shop, RawRecords: []messages.RawRecord{{ID: 1}}, Body: []byte("new customer"),
	})
	check(err)
	fmt.Printf("record %v in event %d\n", done.IDs[1], done.WLogOffset)
	// Output:
	// record 2/322685000131072 in event 1
}
