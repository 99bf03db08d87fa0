package messages_test

import (
	"reflect"
	"testing"

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
