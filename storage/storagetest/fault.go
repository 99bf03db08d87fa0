package storagetest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage"
)

// Op is an operation of a store that [Faulty] can spoil.
type Op uint8

// The operations.
const (
	OpTakeEpoch Op = iota
	OpAppend
	OpFlush
	OpNumbers
	OpRegister
	OpTail
	OpPLog
	OpWLog
	OpRecords
	OpFind
	OpAwaitPLog
	OpAwaitWLog
	OpAwaitAny
	OpClose
	OpSubscriptionNames
	OpSubscription
	OpParkedEvents
	OpPutSubscription
	OpMoveSubscription
	OpDeleteSubscription
	numOps
)

func (o Op) String() string {
	names := [numOps]string{
		"TakeEpoch", "Append", "Flush", "Numbers", "Register", "Tail", "PLog", "WLog", "Records", "Find",
		"AwaitPLog", "AwaitWLog", "AwaitAny", "Close",
		"SubscriptionNames", "Subscription", "ParkedEvents", "PutSubscription", "MoveSubscription", "DeleteSubscription",
	}
	if o >= numOps {
		return fmt.Sprintf("operation %d", uint8(o))
	}
	return names[o]
}

// writes reports whether the outcome of the operation can be unknown.
func (o Op) writes() bool {
	switch o {
	case OpTakeEpoch, OpAppend, OpFlush, OpPutSubscription, OpMoveSubscription, OpDeleteSubscription:
		return true
	default:
		return false
	}
}

// Effect is what a fault does to a call. Make one with [Fail], [Full],
// [UnknownDone], [UnknownNotDone], [Break], [Panic], [Hold] or [HoldAnswer].
type Effect struct {
	// before runs before the call. If it returns an error, the call is not done.
	before func(context.Context) error
	// after runs after the call and gets its error.
	after func(ctx context.Context, op Op, err error) error
	// elements is how many elements an iterator yields before its error.
	elements int
	// breaking is the error of an iterator that breaks off, else nil.
	breaking error
}

// Fail returns err instead of doing the call.
func Fail(err error) Effect {
	return Effect{before: func(context.Context) error { return err }}
}

// Full refuses the call because there is no space left.
func Full() Effect { return Fail(fmt.Errorf("%w: injected", storage.ErrFull)) }

// UnknownDone does the call and then returns [messages.ErrOutcomeUnknown],
// whatever its outcome was.
func UnknownDone() Effect {
	return Effect{after: func(context.Context, Op, error) error {
		return fmt.Errorf("%w: injected", messages.ErrOutcomeUnknown)
	}}
}

// UnknownNotDone returns [messages.ErrOutcomeUnknown] instead of doing the call.
func UnknownNotDone() Effect {
	return Fail(fmt.Errorf("%w: injected", messages.ErrOutcomeUnknown))
}

// Break ends an iterator with err after some elements, or where the log ends, if
// that is sooner. On other operations it does nothing.
func Break(elements int, err error) Effect {
	return Effect{elements: elements, breaking: err}
}

// Panic panics with the value instead of doing the call.
func Panic(value any) Effect {
	return Effect{before: func(context.Context) error { panic(value) }}
}

// Hold stops the call at the gate before it does anything. A call whose context
// ends at the gate returns the context's error and has done nothing.
func Hold(g *Gate) Effect { return Effect{before: g.pass} }

// HoldAnswer does the call and keeps its answer at the gate. If the context ends
// there, a write returns [messages.ErrOutcomeUnknown], all else the context's
// error.
func HoldAnswer(g *Gate) Effect {
	return Effect{after: func(ctx context.Context, op Op, err error) error {
		held := g.pass(ctx)
		switch {
		case held == nil:
			return err
		case op.writes():
			return errors.Join(messages.ErrOutcomeUnknown, held)
		}
		return held
	}}
}

// Fault says which calls of an operation suffer, and what.
type Fault struct {
	Op Op
	// Do is what happens to the calls.
	Do Effect
	// Skip is how many calls pass first, counted from planting.
	Skip int
	// Times is how many calls suffer at most. Zero means all until it is healed.
	Times int
	// Chance is the probability with which a call suffers, between 0 and 1. Zero
	// means always.
	Chance float64
	// Seed makes the chance reproducible, as far as the order of the calls is.
	Seed uint64
}

// Planted is a fault in place. Its methods may be called concurrently.
type Planted struct {
	fault Fault

	mu       sync.Mutex
	random   *rand.Rand
	seen     int
	injected int
	healed   bool
}

func newPlanted(f Fault) *Planted {
	return &Planted{fault: f, random: rand.New(rand.NewPCG(f.Seed, uint64(f.Op)))}
}

// Heal ends the fault. Calls that are held at a gate stay there.
func (p *Planted) Heal() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.healed = true
}

// Injected returns how many calls have suffered from the fault.
func (p *Planted) Injected() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.injected
}

// strikes decides about one call of the operation.
func (p *Planted) strikes() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.healed || (p.fault.Times > 0 && p.injected >= p.fault.Times) {
		return false
	}
	p.seen++
	if p.seen <= p.fault.Skip || (p.fault.Chance > 0 && p.random.Float64() >= p.fault.Chance) {
		return false
	}
	p.injected++
	return true
}
