package storagetest

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"runtime"
	"sync"
	"time"

	"github.com/partita-go/partita/messages"
)

// Lookout is a context that tells when somebody waits for its end: whoever calls a method of
// [storage.Watcher] with it has looked by then, and found nothing.
type Lookout struct {
	context.Context
	waits chan struct{}
}

// NewLookout returns a Lookout that ends with its parent.
func NewLookout(parent context.Context) *Lookout {
	return &Lookout{Context: parent, waits: make(chan struct{}, gateBacklog)}
}

// Done is the parent's.
func (l *Lookout) Done() <-chan struct{} {
	select {
	case l.waits <- struct{}{}:
	default:
		// Nobody counts that many.
	}
	return l.Context.Done()
}

// Waits gets a value each time that somebody begins to wait.
func (l *Lookout) Waits() <-chan struct{} { return l.waits }

// Gate holds calls until the test lets them go. Its methods may be called
// concurrently.
type Gate struct {
	open     chan struct{}
	openOnce sync.Once
	arrived  chan struct{}
}

// gateBacklog is how many arrivals a gate remembers that nobody awaited.
const gateBacklog = 1 << 16

// NewGate returns a closed gate.
func NewGate() *Gate {
	return &Gate{open: make(chan struct{}), arrived: make(chan struct{}, gateBacklog)}
}

// Await returns when one more call has arrived at the gate since the last Await
// returned, or with the context's error. Its return says that the call is held,
// not just begun.
func (g *Gate) Await(ctx context.Context) error {
	select {
	case <-g.arrived:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Arrived gets a value for each call that arrives, for use in a select.
func (g *Gate) Arrived() <-chan struct{} { return g.arrived }

// Release lets all calls go that are held, and every later one. Releasing twice
// is harmless.
func (g *Gate) Release() { g.openOnce.Do(func() { close(g.open) }) }

// pass waits until the gate is open or the context ends.
func (g *Gate) pass(ctx context.Context) error {
	select {
	case g.arrived <- struct{}{}:
	default:
		// Nobody counts that many.
	}
	select {
	case <-g.open:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// awaitLimit is how long a wait may take that must end.
const awaitLimit = 30 * time.Second

// wait is one call of a [storage.Watcher].
type wait struct {
	what string
	// tell makes the call. It returns the count that AwaitAny has told of, else 0.
	tell func(context.Context) (uint64, error)
	// read fails if what was told cannot be read.
	read func(ctx context.Context, told uint64) error
}

func (w wait) call(ctx context.Context) error {
	told, err := w.tell(ctx)
	if err != nil {
		return err
	}
	if err := w.read(ctx, told); err != nil {
		// Nobody may take it for the error of the call.
		return errors.New("it was told, and reading says: " + err.Error())
	}
	return nil
}

func (e *env) awaitPLog(p messages.PartitionID, offset messages.PLogOffset) wait {
	return wait{
		what: fmt.Sprintf("AwaitPLog of partition %d, offset %d", p, offset),
		tell: func(ctx context.Context) (uint64, error) { return 0, e.store.AwaitPLog(ctx, p, offset) },
		read: func(ctx context.Context, _ uint64) error {
			first, err := firstOf(e.store.PLog(ctx, p, offset))
			if err == nil && (first.Partition != p || first.PLogOffset != max(offset, 1)) {
				err = fmt.Errorf("got partition %d, offset %d", first.Partition, first.PLogOffset)
			}
			return err
		},
	}
}

func (e *env) awaitWLog(ws messages.WSID, offset messages.WLogOffset) wait {
	return wait{
		what: fmt.Sprintf("AwaitWLog of workspace %d, offset %d", ws, offset),
		tell: func(ctx context.Context) (uint64, error) { return 0, e.store.AwaitWLog(ctx, ws, offset) },
		read: func(ctx context.Context, _ uint64) error {
			first, err := firstOf(e.store.WLog(ctx, ws, offset))
			if err == nil && (first.Workspace != ws || first.WLogOffset != max(offset, 1)) {
				err = fmt.Errorf("got workspace %d, offset %d", first.Workspace, first.WLogOffset)
			}
			return err
		},
	}
}

// awaitAny is a wait that must be told of at least want events.
func (e *env) awaitAny(seen, want uint64) wait {
	return wait{
		what: fmt.Sprintf("AwaitAny after %d events", seen),
		tell: func(ctx context.Context) (uint64, error) { return e.store.AwaitAny(ctx, seen) },
		read: func(ctx context.Context, told uint64) error {
			there, err := e.count(ctx)
			if err == nil && (told < want || told > there) {
				err = fmt.Errorf("got %d events, want at least %d and at most the %d that are there", told, want, there)
			}
			return err
		},
	}
}

// count adds up the events of all partitions.
func (e *env) count(ctx context.Context) (n uint64, err error) {
	for id := range messages.PartitionID(e.desc.Partitions) {
		r, err := e.store.Register(ctx, id)
		if err != nil {
			return 0, err
		}
		n += uint64(r.Last)
	}
	return n, nil
}

func firstOf(events iter.Seq2[messages.Event, error]) (messages.Event, error) {
	for e, err := range events {
		return e, err
	}
	return messages.Event{}, nil
}

// atOnce fails the test unless a wait has nothing to wait for.
func (e *env) atOnce(when string, w wait) {
	e.Helper()
	ctx, cancel := context.WithTimeout(e.Context(), awaitLimit)
	defer cancel()
	if err := w.call(ctx); err != nil {
		e.Fatalf("%s, %s: got %v, want it to return at once", w.what, when, err)
	}
}

// waiter is a wait under way.
type waiter struct {
	wait
	env    *env
	cancel context.CancelFunc
	ended  chan error
}

// start begins a wait, and returns when it has looked and found nothing.
func (e *env) start(w wait) *waiter {
	e.Helper()
	parent, cancel := context.WithCancel(e.Context())
	ctx := NewLookout(parent)
	s := &waiter{wait: w, env: e, cancel: cancel, ended: make(chan error, 1)}
	over := make(chan struct{})
	store := e.store
	e.Cleanup(func() {
		// A store that is wrong may obey one of them only.
		cancel()
		_ = store.Close(context.Background())
		<-over
	})
	go func() {
		defer close(over)
		s.ended <- w.call(ctx)
	}()
	select {
	case <-ctx.Waits():
	case err := <-s.ended:
		e.Fatalf("%s: got %v, want it to wait", w.what, err)
	case <-time.After(awaitLimit):
		e.Fatalf("%s: it does not wait for the end of its context", w.what)
	}
	return s
}

// mustEnd fails the test unless the wait ends with an error, nil meaning none.
func (s *waiter) mustEnd(when string, want error) {
	s.env.Helper()
	select {
	case err := <-s.ended:
		if want != nil {
			s.env.isOneOf(s.what+", "+when, err, want)
		} else if err != nil {
			s.env.Fatalf("%s, %s: got %v", s.what, when, err)
		}
	case <-time.After(awaitLimit):
		s.env.Fatalf("%s, %s: it waits for ever", s.what, when)
	}
}

// mustWait fails the test if the wait has ended.
func (s *waiter) mustWait(when string) {
	s.env.Helper()
	for range 100 {
		runtime.Gosched()
	}
	select {
	case err := <-s.ended:
		s.env.Fatalf("%s, %s: got %v, want it to wait on", s.what, when, err)
	default:
	}
}
