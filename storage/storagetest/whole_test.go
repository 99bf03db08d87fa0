package storagetest

import (
	"slices"
	"testing"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage"
)

// All that is parked is read in pieces, the last one with nothing left or without being full,
// and no further than the loop goes.
func TestAllParkedReadsInPieces(t *testing.T) {
	const piece = 16
	for parked, calls := range map[int]int{0: 1, 1: 1, piece - 1: 1, piece: 2, piece + 1: 2, 3*piece - 1: 3} {
		m := MemoryFactory{}.Open(t, Descriptor(messages.TrustNone))
		Take(t, m, 0).Append(t, slices.Repeat([]Spec{{Workspace: 3}}, parked+1)...)
		s, err := NewSubscribing(NewFaulty(m))
		if err != nil {
			t.Fatal(err)
		}
		want := storage.Subscription{Name: "x", Next: positions{0: uint64(parked) + 1}}
		for offset := range uint64(parked) {
			want.Parked = append(want.Parked, storage.ParkedEvent{Offset: offset + 1})
		}
		if err := s.PutSubscription(t.Context(), want); err != nil {
			t.Fatal(err)
		}
		got, err := WholeSubscription(t.Context(), s, "x")
		if err != nil || !slices.Equal(got.Parked, want.Parked) || s.Calls(OpParkedEvents) != calls {
			t.Errorf("%d parked: got %d in %d calls, %v, want %d calls", parked, len(got.Parked), s.Calls(OpParkedEvents), err, calls)
		}
		for _, err := range storage.AllParked(t.Context(), s, "x", storage.ParkedEvent{}) {
			if err != nil {
				t.Fatal(err)
			}
			break
		}
		if n := s.Calls(OpParkedEvents); n != calls+1 {
			t.Errorf("%d parked: got %d calls for the first of them, want one", parked, n-calls)
		}
	}
}
