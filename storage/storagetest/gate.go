package storagetest

import (
	"context"
	"sync"
)

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
