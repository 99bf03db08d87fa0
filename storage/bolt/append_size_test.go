package bolt

import (
	"errors"
	"testing"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage"
)

// An event may be as large as the limit, and no byte larger.
func TestEventSizeLimit(t *testing.T) {
	s := open(t, t.TempDir(), testDescriptor(1, messages.TrustNone), Options{})
	w := takeOver(t, s, 0)
	e := w.event(1)
	e.Body = nil
	e.Body = make([]byte, maxEventSize-sizeHint(&e))
	if got := sizeHint(&e); got != maxEventSize {
		t.Fatalf("got %d bytes, want %d", got, maxEventSize)
	}
	if err := w.try(e); err != nil {
		t.Errorf("an event of the limit: %v", err)
	}
	e = w.event(1)
	e.Body = nil
	e.Body = make([]byte, maxEventSize-sizeHint(&e)+1)
	if err := w.try(e); !errors.Is(err, storage.ErrInvalidEvent) {
		t.Errorf("a byte more: got %v, want %v", err, storage.ErrInvalidEvent)
	}
}
