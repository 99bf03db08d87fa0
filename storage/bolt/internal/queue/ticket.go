package queue

import (
	"context"
	"fmt"
	"sync/atomic"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage"
)

// Stages of a request. Whoever moves it on from waiting owns it: the goroutine
// that does it, or the caller that gives up.
const (
	requestWaiting uint32 = iota
	requestTaken
	requestAbandoned
)

// Ticket is how a caller and the goroutine that serves it agree on an outcome. Its
// caller waits for done, or is told by then.
type Ticket struct {
	stage atomic.Uint32
	done  chan error
	Then  func(error)
}

// NewTicket returns a ticket whose caller waits.
func NewTicket() Ticket { return Ticket{done: make(chan error, 1)} }

// Claim takes the request over; false means that its caller has given up.
func (t *Ticket) Claim() bool { return t.stage.CompareAndSwap(requestWaiting, requestTaken) }

// Reply tells the caller the outcome.
func (t *Ticket) Reply(err error) {
	if t.Then != nil {
		t.Then(err)
		return
	}
	t.done <- err
}

// Await returns the request's outcome. ended is closed when its server has ended.
func (t *Ticket) Await(ctx context.Context, ended <-chan struct{}) error {
	select {
	case err := <-t.done:
		return err
	case <-ctx.Done():
		if t.stage.CompareAndSwap(requestWaiting, requestAbandoned) {
			return ctx.Err()
		}
		select {
		case err := <-t.done:
			return err
		default:
			return fmt.Errorf("%w: %w", messages.ErrOutcomeUnknown, ctx.Err())
		}
	case <-ended:
		select {
		case err := <-t.done:
			return err
		default:
			return storage.ErrClosed
		}
	}
}

// HandOver queues a request and waits for its outcome. closing is closed when no request is
// taken any more, ended when the one who serves them has ended.
func HandOver[R any](ctx context.Context, queue chan<- R, request R, t *Ticket, closing, ended <-chan struct{}) error {
	select {
	case queue <- request:
		return t.Await(ctx, ended)
	case <-ctx.Done():
		return ctx.Err()
	case <-closing:
		return storage.ErrClosed
	}
}
