package format_test

import (
	"errors"
	"testing"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage/bolt/internal/format"
)

// The hash depends on the store, the workspace and the id.
func TestDedupHash(t *testing.T) {
	key := format.DedupKey{Workspace: 1, ID: messages.DedupID{1}}
	hash := key.Hash(format.StoreID{1})
	otherID, otherWS := format.DedupKey{Workspace: 1, ID: messages.DedupID{1, 15: 1}}, format.DedupKey{Workspace: 2, ID: messages.DedupID{1}}
	if otherID.Hash(format.StoreID{1}) == hash || otherWS.Hash(format.StoreID{1}) == hash || key.Hash(format.StoreID{1, 15: 1}) == hash {
		t.Fatal("the hash leaves something out")
	}
	// It is part of the format.
	if want := uint64(0xe240c01af5a7b9af); hash != want {
		t.Fatalf("got %#x, want %#x", hash, want)
	}
}

// An entry of an index that leads to another event is damage, whichever half of its place is wrong.
func TestBelongs(t *testing.T) {
	v := format.EventView{Partition: 1, PLogOffset: 3}
	for _, tt := range []struct {
		p    messages.PartitionID
		o    messages.PLogOffset
		want error
	}{{1, 3, nil}, {1, 4, format.ErrMisplaced}, {2, 3, format.ErrMisplaced}, {2, 4, format.ErrMisplaced}} {
		if err := v.Belongs(tt.p, tt.o); !errors.Is(err, tt.want) {
			t.Errorf("partition %d, offset %d: got %v, want %v", tt.p, tt.o, err, tt.want)
		}
	}
}
