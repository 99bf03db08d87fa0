package messages_test

import (
	"testing"

	"github.com/partita-go/partita/messages"
)

// TestBusyReasonNames: each reason has a name and is found by it; others have none.
func TestBusyReasonNames(t *testing.T) {
	for r := messages.BusyMailboxFull; r <= messages.BusyNoQuorum; r++ {
		if r.Name() == "" || messages.BusyReasonOf(r.Name()) != r {
			t.Errorf("%v: got name %q, of which the reason is %v", r, r.Name(), messages.BusyReasonOf(r.Name()))
		}
	}
	for _, r := range []messages.BusyReason{0, messages.BusyNoQuorum + 1, 255} {
		if r.Name() != "" {
			t.Errorf("%d: got name %q", uint8(r), r.Name())
		}
	}
	for _, name := range []string{"", "bored"} {
		if r := messages.BusyReasonOf(name); r != 0 {
			t.Errorf("%q: got %v", name, r)
		}
	}
}
