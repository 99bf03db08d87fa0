package storagetest

import "context"

// Lookout is a context that tells when somebody waits for its end: who calls a method of
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
