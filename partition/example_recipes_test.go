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

// office issues numbers of one sequence, by a clock that the example moves.
type office struct {
	ctx       context.Context
	clock     *actorstest.FakeClock
	sequencer *partition.Sequencer
	formats   messages.Formats
	end       func()
}

func openOffice(s messages.Sequence, at time.Time) *office {
	o := &office{ctx: context.Background(), clock: actorstest.NewFakeClock(at)}
	store, closeStore := temporaryStore(o.ctx, messages.Descriptor{Application: "office", Partitions: 1, Kinds: []messages.Kind{{
		ID: shop, Name: "shop", Sequences: []messages.Sequence{s},
	}}})
	parts := partition.NewAppParts(quietSystem(), partition.Options{Clock: o.clock})
	app, err := parts.Deploy(o.ctx, partition.Application{Descriptor: store.Descriptor()}, store)
	check(err)
	check(app.Ready(o.ctx))
	o.sequencer, err = app.SequencerOf(0)
	check(err)
	o.formats, err = s.ParseFormats()
	check(err)
	o.end = func() {
		check(parts.Close(o.ctx))
		closeStore()
	}
	return o
}

// issue appends an event with the next number, and prints that. No date means the day on which it is registered.
func (o *office) issue(ws messages.WSID, date calendar.Date, body string) error {
	done, err := o.sequencer.Append(o.ctx, partition.AppendTo{Workspace: ws, Kind: shop}, partition.Draft{
		Wanted: []partition.Wanted{{Seq: bills}}, Date: date, Body: []byte(body),
	})
	if err == nil {
		fmt.Println(o.formats.Print(done.Numbers[0]), body)
	}
	return err
}

// Invoices begin again at midnight of New Year's Eve in Zurich. One of the old year that is written in January gives its
// business date.
func Example_recipeInvoices() {
	o := openOffice(messages.Sequence{
		ID: bills, Name: "Invoice", Initial: 1, Formats: []string{"INV/{yyyy}/{n:04}"},
		Restart: messages.Restart{Rule: calendar.Rule{Every: calendar.Year}, Zone: "Europe/Zurich"},
	}, time.Date(2026, 12, 31, 22, 59, 0, 0, time.UTC))
	defer o.end()
	check(o.issue(7, 0, "before midnight"))
	o.clock.Advance(time.Minute)
	check(o.issue(7, 0, "at midnight"))
	check(o.issue(7, 20261231, "goods of last year"))
	check(o.issue(7, 0, "the next one"))
	// Output:
	// INV/2026/0001 before midnight
	// INV/2027/0001 at midnight
	// INV/2026/0002 goods of last year
	// INV/2027/0002 the next one
}

// Each cash desk is a workspace, and counts each day by itself. A desk that was offline sends its receipts late, with the
// dates that they have. Days that have newer ones behind them, more than are kept, are closed: then the receipt is one of
// today, and says of which day it should have been.
func Example_recipeReceipts() {
	o := openOffice(messages.Sequence{
		ID: bills, Name: "Receipt", Initial: 1, Formats: []string{"{yyyy}{mm}{dd}-{n}"},
		Restart: messages.Restart{Rule: calendar.Rule{Every: calendar.Day}, Zone: "Europe/Zurich", Keep: 2},
	}, time.Date(2026, 3, 29, 12, 0, 0, 0, time.UTC))
	defer o.end()
	const desk, other messages.WSID = 101, 102
	check(o.issue(desk, 20260329, "bread"))
	check(o.issue(other, 20260329, "milk"))
	for _, day := range []calendar.Date{20260330, 20260331} {
		o.clock.Advance(24 * time.Hour)
		check(o.issue(desk, day, "bread"))
	}
	check(o.issue(desk, 20260330, "late"))
	check(o.issue(other, 20260329, "late, but this desk has no newer days"))
	err := o.issue(desk, 20260329, "too late")
	if late, ok := errors.AsType[*partition.BusinessDateError](err); ok {
		fmt.Println("refused:", late.Date, "is before", late.First)
		check(o.issue(desk, 0, "of "+late.Date.String()))
	}
	// Output:
	// 20260329-1 bread
	// 20260329-1 milk
	// 20260330-1 bread
	// 20260331-1 bread
	// 20260330-2 late
	// 20260329-2 late, but this desk has no newer days
	// refused: 2026-03-29 is before 2026-03-30
	// 20260331-2 of 2026-03-29
}

// Cases are numbered in fiscal years, which begin in July.
func Example_recipeCases() {
	o := openOffice(messages.Sequence{
		ID: bills, Name: "Case", Initial: 1, Formats: []string{"{yyyy}/{fy}-{n:05}"},
		Restart: messages.Restart{Rule: calendar.Rule{Every: calendar.Year, FirstMonth: time.July}, Zone: "Europe/Zurich"},
	}, time.Date(2026, 6, 30, 12, 0, 0, 0, time.UTC))
	defer o.end()
	check(o.issue(7, 0, "on the last day"))
	o.clock.Advance(24 * time.Hour)
	check(o.issue(7, 0, "on the first day"))
	check(o.issue(7, 20260630, "received the day before"))
	// Output:
	// 2025/2026-00001 on the last day
	// 2026/2027-00001 on the first day
	// 2025/2026-00002 received the day before
}
