package actors

import (
	"container/list"
	"sync"
)

// Permits bounds how many actors do something at the same time. Whoever waits for a permit
// keeps no goroutine meanwhile, so that any number may. Permits are given in the order in
// which they were asked for. It is safe for concurrent use.
type Permits struct {
	mu      sync.Mutex
	free    int
	given   int
	waiting list.List // of *permit; empty while one is free
}

// NewPermits returns so many permits. Less than 1 means 1.
func NewPermits(n int) *Permits { return &Permits{free: max(n, 1)} }

// Given returns how many are in somebody's hands.
func (p *Permits) Given() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.given
}

// Waiting returns how many wait for one.
func (p *Permits) Waiting() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.waiting.Len()
}

// permit is one that its owner holds or waits for.
type permit struct {
	of *Permits
	// granted is called when the permit is given to whoever has waited for it, on the goroutine of whoever gave
	// it back: it must not block.
	granted func(*permit)
	// place is where it waits, nil if it does not.
	place *list.Element
}

// ask returns a permit, and whether it is given now: if not, granted is called later. It is
// given back by giveBack in either case.
func (p *Permits) ask(granted func(*permit)) (asked *permit, now bool) {
	asked = &permit{of: p, granted: granted}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.free == 0 {
		asked.place = p.waiting.PushBack(asked)
		return asked, false
	}
	p.free--
	p.given++
	return asked, true
}

// giveBack gives back a permit, or waits for it no more. It is called once.
func (p *permit) giveBack() {
	if next := p.of.takeBack(p); next != nil {
		next.granted(next)
	}
}

// takeBack returns who has the permit now, nil if nobody.
func (p *Permits) takeBack(back *permit) (next *permit) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if back.place != nil {
		p.waiting.Remove(back.place)
		return nil
	}
	first := p.waiting.Front()
	if first == nil {
		p.free++
		p.given--
		return nil
	}
	p.waiting.Remove(first)
	next, _ = first.Value.(*permit)
	next.place = nil
	return next
}
