package storage

import (
	"fmt"
	"sync"
)

// Claim keeps what [Store] promises of the method of that name. The zero value is free. It is
// safe for concurrent use.
type Claim struct {
	mu   sync.Mutex
	held *claimed
}

// claimed is one taking of a store.
type claimed struct{ application string }

// Take takes the store, or returns ErrInUse.
func (c *Claim) Take(application string) (release func(), err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.held != nil {
		return nil, fmt.Errorf("%w: %q", ErrInUse, c.held.application)
	}
	mine := &claimed{application}
	c.held = mine
	return func() { c.release(mine) }, nil
}

// release gives the store back once: it may be another's by now.
func (c *Claim) release(mine *claimed) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.held == mine {
		c.held = nil
	}
}
