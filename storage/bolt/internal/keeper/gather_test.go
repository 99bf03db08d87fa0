package keeper

import (
	"testing"

	"github.com/partita-go/partita/storage/bolt/internal/queue"
)

// A commit takes so many requests and leaves the others where they wait.
func TestKeeperLeavesWhatIsTooMuch(t *testing.T) {
	k := New(nil, nil, nil)
	k.Requests = make(chan *Request, 2*maxRequests)
	for range maxRequests + 1 {
		k.Requests <- &Request{Ticket: queue.NewTicket()}
	}
	if got := len(k.gather(<-k.Requests)); got != maxRequests {
		t.Errorf("got %d requests, want %d", got, maxRequests)
	}
	if got := len(k.Requests); got != 1 {
		t.Errorf("got %d requests left, want 1", got)
	}
}
