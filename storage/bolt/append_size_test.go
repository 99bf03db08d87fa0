package bolt

import (
	"errors"
	"testing"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage"
	"github.com/partita-go/partita/storage/bolt/internal/format"
)

// An event may be as large as the limit, and no byte larger.
func TestEventSizeLimit(t *testing.T) {
	s := open(t, t.TempDir(), testDescriptor(1, messages.TrustNone), Options{})
	w := takeOver(t, s, 0)
	e := w.event(1)
	e.Body = nil
	e.Body = make([]byte, format.MaxEventSize-format.SizeHint(&e))
	if got := format.SizeHint(&e); got != format.MaxEventSize {
		t.Fatalf("got %d bytes, want %d", got, format.MaxEventSize)
	}
	if err := w.try(e); err != nil {
		t.Errorf("an event of the limit: %v", err)
	}
	e = w.event(1)
	e.Body = nil
	e.Body = make([]byte, format.MaxEventSize-format.SizeHint(&e)+1)
	if err := w.try(e); !errors.Is(err, storage.ErrInvalidEvent) {
		t.Errorf("a byte more: got %v, want %v", err, storage.ErrInvalidEvent)
	}
}
