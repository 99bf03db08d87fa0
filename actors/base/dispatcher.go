package base

import (
	"runtime"
	"sync"

	"github.com/asynkron/protoactor-go/actor"
)

// throughput is how many messages an actor takes before it yields to others.
const throughput = 300

// idlePerProcessor bounds the idle goroutines of a dispatcher, times GOMAXPROCS.
// Enough for the actors that are woken at the same time, as hundreds of partitions are that
// had a batch in the same commit; an idle goroutine costs its stack, 8 KB or so.
const idlePerProcessor = 64

// Dispatcher runs actors on goroutines that it uses again: a fresh goroutine would
// grow its stack anew at each wake-up. It implements [actor.Dispatcher], and is
// safe for concurrent use.
//
// It never refuses work, and never queues work behind a busy goroutine, because
// actors may block: if no goroutine is idle, it starts one. At most 64 x GOMAXPROCS
// stay idle. The last to become idle is used first, its stack is warm.
type Dispatcher struct {
	maxIdle int

	mu     sync.Mutex
	idle   []chan func() // one a goroutine, with room for one function
	closed bool
}

var _ actor.Dispatcher = (*Dispatcher)(nil)

// NewDispatcher returns a dispatcher without goroutines. Close ends those that it
// will have.
func NewDispatcher() *Dispatcher {
	return &Dispatcher{maxIdle: idlePerProcessor * runtime.GOMAXPROCS(0)}
}

// Schedule runs f on another goroutine. After Close it does so too, so that
// nothing is lost.
func (d *Dispatcher) Schedule(f func()) {
	if next := d.takeIdle(); next != nil {
		next <- f
		return
	}
	go d.run(f)
}

// Throughput implements [actor.Dispatcher].
func (d *Dispatcher) Throughput() int { return throughput }

// SenderRuns says that whoever waits for an actor may do its work: see
// [Mailbox.PostAndRun].
func (*Dispatcher) SenderRuns() {}

// Close ends the idle goroutines; busy ones end after their work.
func (d *Dispatcher) Close() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.closed = true
	for _, next := range d.idle {
		close(next)
	}
	d.idle = nil
}

// run is one goroutine.
func (d *Dispatcher) run(f func()) {
	next := make(chan func(), 1)
	for more := true; more; {
		f()
		if !d.putIdle(next) {
			return
		}
		f, more = <-next
	}
}

func (d *Dispatcher) takeIdle() chan func() {
	d.mu.Lock()
	defer d.mu.Unlock()
	last := len(d.idle) - 1
	if last < 0 {
		return nil
	}
	next := d.idle[last]
	d.idle = d.idle[:last]
	return next
}

// putIdle reports whether the goroutine may stay.
func (d *Dispatcher) putIdle(next chan func()) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed || len(d.idle) == d.maxIdle {
		return false
	}
	d.idle = append(d.idle, next)
	return true
}
