package bolt

import (
	"errors"
	"testing"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage"
	"github.com/partita-go/partita/storage/bolt/internal/format"
)

// A foreign head ahead of a workspace's log is not taken for its end.
func TestEndsBeforeAForeignHead(t *testing.T) {
	s := open(t, t.TempDir(), testDescriptor(1, messages.TrustNone), Options{})
	w := takeOver(t, s, 0)
	plant(t, s, storage.PlaceWLog, &messages.Event{Workspace: 2, WLogOffset: 4})
	for range 2 {
		if err := w.try(w.event(2)); !conflictAt(err, storage.PlaceWLog) {
			t.Errorf("got %v, want a conflict", err)
		}
	}
	remove(t, s.state, format.BucketWorkspaces, format.AppendWorkspaceKey(nil, 2))
	w.append(2, 2)
}

// A batch that is refused, since it lies behind the end of the log, teaches nothing
// about what lies before it.
func TestEndsOfABatchBehindTheEnd(t *testing.T) {
	s := open(t, t.TempDir(), testDescriptor(1, messages.TrustNone), Options{})
	w := takeOver(t, s, 0)
	putList(t, s, 0, 4, foreignLSN)
	e := w.event(2)
	e.PLogOffset = 10
	if err := w.try(e); !errors.Is(err, storage.ErrOutOfOrder) {
		t.Fatalf("offset 10 of an empty log: got %v, want out of order", err)
	}
	w.append(2, 2, 2)
	if err := w.try(w.event(2)); !conflictAt(err, storage.PlacePLog) {
		t.Errorf("got %v, want a conflict", err)
	}
}

// Whoever takes a partition over is told of a foreign entry at the end of its log, although nobody
// who appends looks there any more.
func TestTakeEpochBeforeAForeignPLogEntry(t *testing.T) {
	s := open(t, t.TempDir(), testDescriptor(1, messages.TrustNone), Options{})
	w := takeOver(t, s, 0)
	w.append(2)
	if !s.partitions[0].ends.plogFree {
		t.Fatal("those who append look there")
	}
	putList(t, s, 0, 2, foreignLSN)
	if _, err := s.TakeEpoch(t.Context(), 0); !conflictAt(err, storage.PlacePLog) {
		t.Errorf("got %v, want a conflict", err)
	}
}
