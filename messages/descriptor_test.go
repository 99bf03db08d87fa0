package messages_test

import (
	"errors"
	"reflect"
	"testing"

	"github.com/partita-go/partita/calendar"
	"github.com/partita-go/partita/messages"
)

// However a descriptor was put together, what means the same is deeply equal when
// normalized, and shares nothing with what was given.
func TestDescriptorNormalized(t *testing.T) {
	one := messages.Descriptor{Application: "test", Partitions: 2, Kinds: []messages.Kind{
		{ID: 2, Name: "none", Sequences: []messages.Sequence{}},
		{ID: 1, Name: "two", Sequences: []messages.Sequence{{ID: 17, Name: "b", Initial: 1}, {ID: 16, Name: "a", Initial: 1}}},
	}}
	other := messages.Descriptor{Application: "test", Partitions: 2, Kinds: []messages.Kind{
		{ID: 1, Name: "two", Sequences: []messages.Sequence{{ID: 16, Name: "a", Initial: 1}, {ID: 17, Name: "b", Initial: 1}}},
		{ID: 2, Name: "none"},
	}}
	got, want := one.Normalized(), other.Normalized()
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %#v, want %#v", got, want)
	}
	other.Kinds[0].Sequences[0].Largest, other.Kinds[0].Sequences[1].Largest = messages.LargestDefault, messages.LargestDefault
	if !reflect.DeepEqual(want, other) {
		t.Errorf("got %#v, want the ordered one, with largest numbers: %#v", want, other)
	}
	got.Kinds[0].Sequences[0].Name, got.Kinds[0].Name = "changed", "changed"
	if one.Kinds[1].Name != "two" || one.Kinds[1].Sequences[1].Name != "a" {
		t.Errorf("what was given has changed: %#v", one)
	}
	empty, none := messages.Descriptor{Kinds: []messages.Kind{}}, messages.Descriptor{}
	if got, want := empty.Normalized(), none.Normalized(); !reflect.DeepEqual(got, want) {
		t.Errorf("got %#v, want %#v", got, want)
	}
}

// Of how a sequence restarts, how many periods are kept may change, and a business date may be further ahead: with less
// room before the newest number the current period would be closed.
func TestRestartExtends(t *testing.T) {
	with := func(r messages.Restart) *messages.Descriptor {
		return &messages.Descriptor{Application: "test", Partitions: 1, Kinds: []messages.Kind{
			{ID: 1, Name: "till", Sequences: []messages.Sequence{{ID: 16, Name: "receipt", Initial: 1, Restart: r}}},
		}}
	}
	daily := calendar.Rule{Every: calendar.Day}
	for name, test := range map[string]struct {
		was, is messages.Restart
		refused bool
	}{
		"same":             {messages.Restart{Rule: daily, Keep: 2, Ahead: 3}, messages.Restart{Rule: daily, Keep: 2, Ahead: 3}, false},
		"more is kept":     {messages.Restart{Rule: daily, Keep: 2}, messages.Restart{Rule: daily, Keep: 5}, false},
		"less is kept":     {messages.Restart{Rule: daily}, messages.Restart{Rule: daily, Keep: 1}, false},
		"further ahead":    {messages.Restart{Rule: daily, Ahead: 3}, messages.Restart{Rule: daily, Ahead: 4}, false},
		"none means one":   {messages.Restart{Rule: daily, Ahead: 1}, messages.Restart{Rule: daily}, false},
		"less far ahead":   {messages.Restart{Rule: daily, Ahead: 4}, messages.Restart{Rule: daily, Ahead: 3}, true},
		"one less by none": {messages.Restart{Rule: daily, Ahead: 2}, messages.Restart{Rule: daily}, true},
		"not ahead":        {messages.Restart{Rule: daily}, messages.Restart{Rule: daily, Ahead: -1}, true},
		"another rule":     {messages.Restart{Rule: daily}, messages.Restart{Rule: calendar.Rule{Every: calendar.Week}}, true},
		"another zone":     {messages.Restart{Rule: daily}, messages.Restart{Rule: daily, Zone: "Europe/Zurich"}, true},
		"no restart":       {messages.Restart{Rule: daily}, messages.Restart{}, true},
	} {
		t.Run(name, func(t *testing.T) {
			is := with(test.is)
			if err := is.Validate(); err != nil {
				t.Fatal(err)
			}
			if err := is.Extends(with(test.was)); errors.Is(err, messages.ErrDescriptor) != test.refused {
				t.Errorf("got %v, want refused %v", err, test.refused)
			}
		})
	}
}
