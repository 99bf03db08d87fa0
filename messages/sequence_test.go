package messages_test

import (
	"errors"
	"math"
	"testing"

	"github.com/partita-go/partita/messages"
)

func TestNearlyUsed(t *testing.T) {
	for _, tt := range []struct {
		initial, largest, last messages.Number
		want                   bool
	}{
		{1, 10, 0, false}, {1, 10, 9, false}, {1, 10, 10, true},
		{1, 100, 90, false}, {1, 100, 91, true}, {1, 100, 100, true},
		{98, 100, 97, false}, {98, 100, 98, false}, {98, 100, 99, false}, {98, 100, 100, true},
		{7, 7, 0, false}, {7, 7, 7, true},
		{1, 0, math.MaxInt64/10*9 + 6, false}, {1, 0, math.MaxInt64/10*9 + 7, true}, {1, 0, math.MaxUint64, true},
		{math.MaxUint64 - 4, 0, math.MaxUint64 - 1, false}, {math.MaxUint64 - 4, 0, math.MaxUint64, true},
	} {
		s := messages.Sequence{Initial: tt.initial, Largest: tt.largest}
		if got := s.NearlyUsed(tt.last); got != tt.want {
			t.Errorf("%d to %d: got %v after %d, want %v", tt.initial, s.Max(), got, tt.last, tt.want)
		}
	}
}

func TestLargestOfDigits(t *testing.T) {
	for digits, want := range map[int]messages.Number{-1: 9, 0: 9, 1: 9, 7: 9_999_999, 18: 999_999_999_999_999_999, 19: 999_999_999_999_999_999} {
		if got := messages.LargestOfDigits(digits); got != want {
			t.Errorf("%d digits: got %d, want %d", digits, got, want)
		}
	}
}

// A largest number can be raised and not lowered. What a store has from before there were
// limits stays without one.
func TestLargestOfAStore(t *testing.T) {
	const endless = math.MaxUint64
	for _, tt := range []struct{ was, given, want messages.Number }{
		{100, 100, 100}, {100, 101, 101}, {100, 0, messages.LargestDefault}, {100, 99, 0}, {messages.LargestDefault, 0, messages.LargestDefault},
		{0, messages.LargestSafe, 0}, {endless, 0, endless}, {endless, messages.LargestDefault, endless}, {endless, messages.LargestSafe, 0}, {endless, endless, endless},
	} {
		of := func(largest messages.Number) messages.Descriptor {
			d := messages.Descriptor{Application: "a", Partitions: 1, Kinds: []messages.Kind{{
				ID: 1, Name: "k", Sequences: []messages.Sequence{{ID: 16, Name: "s", Initial: 1, Largest: largest}},
			}}}
			return d.Normalized()
		}
		was, given := of(tt.was), of(tt.given)
		err := given.Extends(&was)
		if tt.want == 0 {
			if !errors.Is(err, messages.ErrDescriptor) {
				t.Errorf("%d, then %d: got %v, want refused", tt.was, tt.given, err)
			}
			continue
		}
		over := given.Over(&was)
		if got := over.Kinds[0].Sequences[0].Largest; err != nil || got != tt.want {
			t.Errorf("%d, then %d: got %d, %v, want %d", tt.was, tt.given, got, err, tt.want)
		}
	}
}

func TestLargestIsValidated(t *testing.T) {
	for _, tt := range []struct {
		initial, largest messages.Number
		want             error
	}{
		{1, 0, nil}, {5, 5, nil}, {6, 5, messages.ErrDescriptor}, {1, messages.LargestDefault, nil},
		{1, messages.LargestDefault + 1, messages.ErrDescriptor}, {1, math.MaxUint64 - 1, messages.ErrDescriptor},
		{math.MaxUint64, 0, nil}, {math.MaxUint64, messages.LargestDefault, messages.ErrDescriptor},
	} {
		d := messages.Descriptor{Application: "a", Partitions: 1, Kinds: []messages.Kind{{
			ID: 1, Name: "k", Sequences: []messages.Sequence{{ID: 16, Name: "s", Initial: tt.initial, Largest: tt.largest}},
		}}}
		if err := d.Validate(); !errors.Is(err, tt.want) {
			t.Errorf("%d to %d: got %v, want %v", tt.initial, tt.largest, err, tt.want)
		}
	}
}
