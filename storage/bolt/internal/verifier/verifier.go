// Package verifier lets those who read together ask a replicated log once whether this node leads.
package verifier

import (
	"context"
	"sync"

	"github.com/partita-go/partita/storage/replog"
)

// Verifier asks a replicated log whether this node leads, once for all who read meanwhile. A question counts for those only
// who came before it was asked: what others were told before that is here then. The zero value is ready, and safe for
// concurrent use.
type Verifier struct {
	mu sync.Mutex
	// next is the question that is to be asked; nil if nobody waits for it.
	next *question
	// asking says that one is under way.
	asking bool
}

// question is answered when answered is closed.
type question struct {
	answered chan struct{}
	err      error
}

// Verify returns nil if this node led at some moment during the call.
func (v *Verifier) Verify(ctx context.Context, log replog.Log) error {
	v.mu.Lock()
	if v.next == nil {
		v.next = &question{answered: make(chan struct{})}
	}
	q := v.next
	if !v.asking {
		v.asking = true
		go v.ask(log) //nolint:gosec // G118: the question is that of others too
	}
	v.mu.Unlock()
	select {
	case <-q.answered:
		return q.err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// ask asks until nobody waits.
func (v *Verifier) ask(log replog.Log) {
	for {
		v.mu.Lock()
		q := v.next
		v.next, v.asking = nil, q != nil
		v.mu.Unlock()
		if q == nil {
			return
		}
		q.err = log.Verify(context.Background())
		close(q.answered)
	}
}
