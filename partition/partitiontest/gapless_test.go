package partitiontest

import (
	"context"
	"iter"
	"strings"
	"testing"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage"
	"github.com/partita-go/partita/storage/storagetest"
)

// holed is a store that does not show the second event.
type holed struct{ storage.Store }

func (h holed) PLog(ctx context.Context, p messages.PartitionID, from messages.PLogOffset) iter.Seq2[messages.Event, error] {
	return func(yield func(messages.Event, error) bool) {
		for e, err := range h.Store.PLog(ctx, p, from) {
			if e.PLogOffset != 2 && !yield(e, err) {
				return
			}
		}
	}
}

// busyOnce is a store that gets another epoch while it is first looked at.
type busyOnce struct {
	storage.Store
	looks *int
}

func (b busyOnce) Register(ctx context.Context, p messages.PartitionID) (storage.Register, error) {
	if *b.looks++; *b.looks == 2 {
		_, _ = b.TakeEpoch(ctx, p)
	}
	return b.Store.Register(ctx, p)
}

// TestGapless: a hole is seen, and whoever writes meanwhile is waited for.
func TestGapless(t *testing.T) {
	memory, err := storagetest.NewMemory(storagetest.Descriptor(messages.TrustNone))
	if err != nil {
		t.Fatal(err)
	}
	p := storagetest.Take(t, memory, 0)
	for range 3 {
		p.Append(t, storagetest.Spec{Workspace: 3, Give: []messages.SeqID{storagetest.SeqOrder}})
	}
	if err := gapless(t.Context(), holed{memory}); err == nil || !strings.Contains(err.Error(), "offset is 3, want 2") ||
		!strings.Contains(err.Error(), "sequence: ") {
		t.Errorf("got %v, want the hole", err)
	}
	if err := gapless(t.Context(), busyOnce{memory, new(int)}); err != nil {
		t.Errorf("got %v, want it to look again", err)
	}
}
