package messages_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/partita-go/partita/messages"
)

// Names that a store cannot begin with are refused where the descriptor is handed over. A store that has them goes on.
func TestDescriptorNames(t *testing.T) {
	for name, c := range map[string]struct {
		change func(d *messages.Descriptor)
		want   string
	}{
		"right":                   {func(*messages.Descriptor) {}, ""},
		"letters":                 {func(d *messages.Descriptor) { d.Kinds[0].Name = "Geschäft 店 no. 1" }, ""},
		"same in two kinds":       {func(d *messages.Descriptor) { d.Kinds[1].Sequences[0].Name = "invoice" }, ""},
		"application with escape": {func(d *messages.Descriptor) { d.Application = "a\x1b[31m" }, `application: name: got "a\x1b[31m"`},
		"kind without":            {func(d *messages.Descriptor) { d.Kinds[0].Name = "" }, "kind 1: name: got 0 bytes"},
		"kind too long":           {func(d *messages.Descriptor) { d.Kinds[0].Name = strings.Repeat("x", 256) }, "kind 1: name: got 256 bytes"},
		"kind twice":              {func(d *messages.Descriptor) { d.Kinds[1].Name = "shop" }, `kind 1: name: got "shop", which another one has`},
		"kind with line":          {func(d *messages.Descriptor) { d.Kinds[1].Name = "a\nb" }, `kind 2: name: got "a\nb"`},
		"sequence without":        {func(d *messages.Descriptor) { d.Kinds[0].Sequences[1].Name = "" }, "kind 1: sequence 17: name: got 0 bytes"},
		"sequence twice": {
			func(d *messages.Descriptor) { d.Kinds[0].Sequences[1].Name = "invoice" },
			`kind 1: sequence 16: name: got "invoice", which another one has`,
		},
		"sequence of digits":     {func(d *messages.Descriptor) { d.Kinds[0].Sequences[1].Name = "16" }, `kind 1: sequence 17: name: got "16", want one that is not of digits alone`},
		"sequence with digits":   {func(d *messages.Descriptor) { d.Kinds[0].Sequences[1].Name = "16a" }, ""},
		"kind of digits":         {func(d *messages.Descriptor) { d.Kinds[0].Name = "2026" }, ""},
		"sequence as built-in":   {func(d *messages.Descriptor) { d.Kinds[0].Sequences[1].Name = "WLogOffset" }, `kind 1: sequence 17: name: got "WLogOffset", which a built-in`},
		"sequence of no text":    {func(d *messages.Descriptor) { d.Kinds[0].Sequences[0].Name = "a\xff" }, `kind 1: sequence 16: name: got "a\xff"`},
		"sequence right to left": {func(d *messages.Descriptor) { d.Kinds[0].Sequences[0].Name = "a\u202eb" }, `kind 1: sequence 16: name: got "a\u202eb"`},
	} {
		t.Run(name, func(t *testing.T) {
			d := messages.Descriptor{Application: "billing", Partitions: 1, Kinds: []messages.Kind{
				{ID: 1, Name: "shop", Sequences: []messages.Sequence{{ID: 16, Name: "invoice", Initial: 1}, {ID: 17, Name: "receipt", Initial: 1}}},
				{ID: 2, Name: "branch", Sequences: []messages.Sequence{{ID: 16, Name: "order", Initial: 1}}},
			}}
			c.change(&d)
			err := d.CheckNames(nil)
			if (err == nil) != (c.want == "") || err != nil && (!errors.Is(err, messages.ErrDescriptor) || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("got %v, want %q", err, c.want)
			}
			if err := d.CheckNames(&d); err != nil {
				t.Errorf("in a store that has it: got %v", err)
			}
		})
	}
}

// A name that is taken already cannot be taken by what is added.
func TestDescriptorNameOfStore(t *testing.T) {
	old := messages.Descriptor{Application: "billing", Partitions: 1, Kinds: []messages.Kind{{ID: 1, Name: "shop"}, {ID: 2, Name: "shop"}}}
	d := old.Normalized()
	d.Kinds = append(d.Kinds, messages.Kind{ID: 3, Name: "shop"})
	if err := d.CheckNames(&old); !errors.Is(err, messages.ErrDescriptor) || !strings.Contains(err.Error(), "kind 3") {
		t.Errorf("got %v, want that kind 3 is refused", err)
	}
}

// What is different is said, and nothing else.
func TestDescriptorDifference(t *testing.T) {
	with := func(change func(d *messages.Descriptor)) *messages.Descriptor {
		d := messages.Descriptor{Application: "billing", Partitions: 2, Kinds: []messages.Kind{
			{ID: 1, Name: "shop", Sequences: []messages.Sequence{{ID: 16, Name: "invoice", Initial: 1, Largest: 100}}}, {ID: 2, Name: "branch"},
		}}
		change(&d)
		return &d
	}
	stored := with(func(*messages.Descriptor) {})
	for want, change := range map[string]func(d *messages.Descriptor){
		`application: got "other", the store has "billing"`:                                       func(d *messages.Descriptor) { d.Application = "other" },
		`partitions: got 3, the store has 2`:                                                      func(d *messages.Descriptor) { d.Partitions = 3 },
		`trust level: got 1, the store has 0`:                                                     func(d *messages.Descriptor) { d.TrustLevel = messages.TrustRecords },
		`kind 2 "branch": got none, the store has it`:                                             func(d *messages.Descriptor) { d.Kinds = d.Kinds[:1] },
		`kind 1: name: got "tenant", the store has "shop"`:                                        func(d *messages.Descriptor) { d.Kinds[0].Name = "tenant" },
		`kind 1 "shop", sequence 16 "invoice": got none, the store has it`:                        func(d *messages.Descriptor) { d.Kinds[0].Sequences = nil },
		`kind 1 "shop", sequence 16: name: got "order", the store has "invoice"`:                  func(d *messages.Descriptor) { d.Kinds[0].Sequences[0].Name = "order" },
		`kind 1 "shop", sequence 16 "invoice": initial: got 5, the store has 1`:                   func(d *messages.Descriptor) { d.Kinds[0].Sequences[0].Initial = 5 },
		`kind 1 "shop", sequence 16 "invoice": smaller largest number: got 99, the store has 100`: func(d *messages.Descriptor) { d.Kinds[0].Sequences[0].Largest = 99 },
	} {
		err := with(change).Extends(stored)
		if want = messages.ErrDescriptor.Error() + ": " + want; err == nil || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
	}
	more := with(func(d *messages.Descriptor) { d.Kinds = append(d.Kinds, messages.Kind{ID: 9, Name: "nine"}) })
	if err := more.Covers(stored); err != nil {
		t.Error(err)
	}
	want := messages.ErrDescriptor.Error() + `: kind 9 "nine": the store has none, the application has it`
	if err := stored.Covers(more); err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}
