package verify_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage"
	"github.com/partita-go/partita/storage/storagetest"
	"github.com/partita-go/partita/storage/verify"
)

// moving is a store whose checkpoint moves whenever somebody looks.
type moving struct {
	storage.Store
	checkpoint messages.PLogOffset
}

func (m *moving) Register(ctx context.Context, p messages.PartitionID) (storage.Register, error) {
	r, err := m.Store.Register(ctx, p)
	m.checkpoint++
	r.Checkpoint = m.checkpoint
	return r, err
}

// A store that is written meanwhile is not called broken, nor sound.
func TestStoreNotAtRest(t *testing.T) {
	store, err := storagetest.NewMemory(storagetest.Descriptor(messages.TrustNone))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := verify.Run(t.Context(), &moving{Store: store}, verify.Options{}); !errors.Is(err, verify.ErrNotAtRest) {
		t.Errorf("got %v, want %v", err, verify.ErrNotAtRest)
	}
}

// A report counts its faults in words that fit.
func TestReportCountsFaults(t *testing.T) {
	for n, want := range []string{": no fault", ": 1 fault\nand 1 more", ": 2 faults\nand 2 more"} {
		if got := (verify.Report{FaultCount: uint64(n)}).String(); !strings.HasSuffix(got, want) {
			t.Errorf("got %q, want %q at its end", got, want)
		}
	}
}
