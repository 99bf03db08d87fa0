package partition_test

import (
	"slices"
	"testing"

	"github.com/partita-go/partita/calendar"
	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/partition"
	"github.com/partita-go/partita/partition/partitiontest"
)

// A transaction counts in the period of its business date, and its event has that date. Without one the period is of the
// registration time.
func TestOnDate(t *testing.T) {
	const receipts messages.SeqID = 17
	app := partitiontest.Deploy(t, partition.Application{Descriptor: messages.Descriptor{
		Application: "receipts", Partitions: 1, Kinds: []messages.Kind{{ID: shop, Name: "shop", Sequences: []messages.Sequence{{
			ID: receipts, Name: "Receipt", Initial: 1, Restart: messages.Restart{Rule: calendar.Rule{Every: calendar.Day}},
		}}}},
	}}, partitiontest.Options{})
	sequencer, err := app.SequencerOf(7)
	if err != nil {
		t.Fatal(err)
	}
	issue := func(options ...partition.StartOption) messages.Number {
		tx, err := sequencer.Start(t.Context(), shop, 7, options...)
		if err != nil {
			t.Fatal(err)
		}
		n, err := tx.Next(t.Context(), receipts)
		if err != nil {
			t.Fatal(err)
		}
		if err := tx.Commit(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
		return n
	}
	monday, tuesday := partition.OnDate(20250203), partition.OnDate(20250204)
	numbers := []messages.Number{issue(monday), issue(monday), issue(tuesday), issue(), issue(monday)}
	if want := []messages.Number{1, 2, 1, 1, 3}; !slices.Equal(numbers, want) {
		t.Errorf("got %v, want %v", numbers, want)
	}
	events, err := app.Reader().WLogPage(t.Context(), 7, 1, 9)
	if err != nil {
		t.Fatal(err)
	}
	var dates []calendar.Date
	for i := range events {
		dates = append(dates, events[i].Date)
	}
	if want := []calendar.Date{20250203, 20250203, 20250204, 0, 20250203}; !slices.Equal(dates, want) {
		t.Errorf("got %v, want %v", dates, want)
	}
}
