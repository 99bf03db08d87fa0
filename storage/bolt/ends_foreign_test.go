package bolt

import (
	"errors"
	"testing"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage"
)

// A foreign entry ahead in a workspace's log is not taken for its end.
func TestEndsBeforeAForeignWLogEntry(t *testing.T) {
	s := open(t, t.TempDir(), testDescriptor(1, messages.TrustNone), Options{})
	w := takeOver(t, s, 0)
	put(t, s.state, bucketWLog, appendWLogKey(nil, 2, 4), []byte("foreign!"))
	w.append(2)
	e := w.event(2)
	e.WLogOffset = 5
	if err := w.try(e); !errors.Is(err, storage.ErrOutOfOrder) {
		t.Errorf("offset 5 after 1: got %v, want out of order", err)
	}
}

// A batch that is refused, since it lies behind the end of the log, teaches nothing
// about what lies before it.
func TestEndsOfABatchBehindTheEnd(t *testing.T) {
	s := open(t, t.TempDir(), testDescriptor(1, messages.TrustNone), Options{})
	w := takeOver(t, s, 0)
	put(t, s.state, bucketPLog, appendPLogKey(nil, 0, 4), []byte("foreign!"))
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
