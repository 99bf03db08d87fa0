package messages_test

import (
	"errors"
	"testing"

	"github.com/partita-go/partita/calendar"
	"github.com/partita-go/partita/messages"
)

func invoices(formats ...string) *messages.Sequence {
	return &messages.Sequence{
		ID: 16, Name: "invoice", Initial: 1, Restart: messages.Restart{Rule: calendar.Rule{Every: calendar.Year}}, Formats: formats,
	}
}

// The first format prints, and what an older one has printed is still read.
func TestFormats(t *testing.T) {
	f, err := invoices("INV/{yyyy}/{n:04}", "{yyyy}-{n}").ParseFormats()
	if err != nil {
		t.Fatal(err)
	}
	n := messages.SequenceNumber{Seq: 16, Period: 20260101, Number: 42}
	if got := f.Print(n); got != "INV/2026/0042" {
		t.Errorf("got %q", got)
	}
	for _, text := range []string{"INV/2026/0042", "2026-42"} {
		if got, err := f.Parse(text); err != nil || got.Period != n.Period || got.Number != n.Number {
			t.Errorf("%q: got %v, %v", text, got, err)
		}
	}
	if got, err := f.Parse("2026-042"); !errors.Is(err, messages.ErrSyntax) {
		t.Errorf("got %v, %v, want ErrSyntax", got, err)
	}
}

// Without a format a number is printed as it is, and read again.
func TestNoFormat(t *testing.T) {
	var f messages.Formats
	if got := f.Print(messages.SequenceNumber{Seq: 16, Number: 42}); got != "42" {
		t.Errorf("got %q", got)
	}
	if got, err := f.Parse("42"); err != nil || got.Number != 42 {
		t.Errorf("got %v, %v", got, err)
	}
	if _, err := f.Parse("x"); !errors.Is(err, messages.ErrSyntax) {
		t.Errorf("got %v, want ErrSyntax", err)
	}
}

// A descriptor is refused if a format of it does not tell the numbers apart.
func TestBadFormats(t *testing.T) {
	for _, formats := range [][]string{{"{n}"}, {"{yyyy}"}, {"{yyyy}-{n}", "{n}-{yyyy}"}, make([]string, messages.MaxFormats+1)} {
		d := messages.Descriptor{Application: "test", Partitions: 1, Kinds: []messages.Kind{
			{ID: 1, Sequences: []messages.Sequence{*invoices(formats...)}},
		}}
		if err := d.Validate(); !errors.Is(err, messages.ErrDescriptor) {
			t.Errorf("%q: got %v, want ErrDescriptor", formats, err)
		}
	}
	if _, err := invoices("{n}").ParseFormats(); !errors.Is(err, messages.ErrDescriptor) {
		t.Errorf("got %v, want ErrDescriptor", err)
	}
}
