package bolt

import (
	"context"
	"sync"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage"
	"github.com/partita-go/partita/storage/bolt/internal/queue"
)

var _ storage.Submitter = (*Store)(nil)

// door lets requests to the committer in that nobody waits for. Those that are
// inside when the committer ends are answered by it, so that none is forgotten.
type door struct {
	mu   sync.RWMutex
	shut bool
}

// Submit implements [storage.Submitter]. It takes what can be judged by what is in
// memory: not a batch with deduplication ids, and none of which it is not remembered
// where its keys end in state.db.
func (s *Store) Submit(b storage.Batch, done func(error)) (rest func(context.Context) error) {
	r, err := s.request(&b)
	if err != nil {
		done(err)
		return nil
	}
	r.Then = done
	if !s.needsLookup(r) && s.letIn(r) {
		return nil
	}
	return func(ctx context.Context) error { return s.submitRest(ctx, r) }
}

func (s *Store) needsLookup(r *writeRequest) bool {
	for i := range r.events {
		if r.events[i].hasID() {
			return true
		}
	}
	if s.schema.Trust == messages.TrustAll {
		return false
	}
	_, covered := r.coveredAt(s.schema.Trust)
	return !covered
}

// submitRest looks up what must be, and waits for room.
func (s *Store) submitRest(ctx context.Context, r *writeRequest) error {
	if err := s.enter(ctx); err != nil {
		return err
	}
	s.lookAhead(r)
	s.door.mu.RLock()
	defer s.door.mu.RUnlock()
	if s.door.shut {
		return storage.ErrClosed
	}
	select {
	case s.writes <- r:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-s.closing:
		return storage.ErrClosed
	}
}

// letIn queues a request if there is room.
func (s *Store) letIn(r *writeRequest) bool {
	s.door.mu.RLock()
	defer s.door.mu.RUnlock()
	if s.door.shut {
		return false
	}
	select {
	case s.writes <- r:
		return true
	default:
		return false
	}
}

// shutDoor refuses those who came in while the committer ended, or will never be
// served because its last commit failed.
func (s *Store) shutDoor() {
	s.door.mu.Lock()
	s.door.shut = true
	s.door.mu.Unlock()
	queue.ServeRest(s.writes, func(r *writeRequest) bool {
		r.Reply(storage.ErrClosed)
		return true
	})
}
