// Package delivered follows what subscriptions deliver, over crashes, and says what
// contradicts their promises: that nothing is left out, nothing overtaken, and that a crash
// repeats at most one batch of each log.
package delivered

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/partita-go/partita/messages"
)

// ErrPromise is returned when something contradicts the promises of subscriptions.
var ErrPromise = errors.New("subscription breaks its promise")

// Log is one of the logs that a subscription reads.
type Log struct {
	Subscription string
	Partition    messages.PartitionID
}

// Call is a call of a handler that has returned.
type Call struct {
	Log
	// First is the offset of the first event that it got, Count how many there were, one
	// behind the other, and Handled how many it has handled. If there were more, it has
	// refused the next one.
	First          uint64
	Count, Handled uint64
	// Parks says that what is refused again and again is parked.
	Parks bool
}

// Step is a step of changing where a subscription stands.
type Step string

const (
	// Paused: Pause has returned.
	Paused Step = "paused"
	// Resuming: Resume is about to be called.
	Resuming Step = "resuming"
	// Moving: Rewind is about to be called, while the subscription is paused.
	Moving Step = "moving"
	// Moved: Rewind has returned.
	Moved Step = "moved"
)

// Change is a step, and the new offset if it moves.
type Change struct {
	Log
	Step Step
	To   uint64
}

// lane is where a subscription may stand in a log, as far as the calls of its handler tell.
type lane struct {
	// next are the offsets that the next call may begin with.
	next []uint64
	// last is where the last call began. After a crash it may be made again.
	last uint64
	// behind is the offset behind the furthest event that was handled.
	behind uint64
}

// Book is what is known of all subscriptions that begin with the first event of each log. It
// is not safe for concurrent use.
type Book struct {
	lanes  map[Log]*lane
	paused map[string]bool
	// Events counts the events that were handled for the first time, Repeated those that
	// were handled again, and were not rewound.
	Events, Repeated uint64
}

// NewBook returns a book of subscriptions that have delivered nothing yet.
func NewBook() *Book { return &Book{lanes: make(map[Log]*lane), paused: make(map[string]bool)} }

// Clone returns a book of its own that knows the same.
func (b *Book) Clone() *Book {
	c := &Book{lanes: make(map[Log]*lane, len(b.lanes)), paused: maps.Clone(b.paused), Events: b.Events, Repeated: b.Repeated}
	for log, l := range b.lanes {
		c.lanes[log] = &lane{next: slices.Clone(l.next), last: l.last, behind: l.behind}
	}
	return c
}

func (b *Book) lane(log Log) *lane {
	if b.lanes[log] == nil {
		b.lanes[log] = &lane{next: []uint64{1}, last: 1, behind: 1}
	}
	return b.lanes[log]
}

// Called notes a call, in the order of those of its log. It returns an ErrPromise if the call
// may not begin where it does.
func (b *Book) Called(c Call) error {
	l := b.lane(c.Log)
	switch {
	case b.paused[c.Subscription]:
		return fmt.Errorf("%w: %v: got offset %d while it is paused", ErrPromise, c.Log, c.First)
	case !slices.Contains(l.next, c.First):
		return fmt.Errorf("%w: %v: got offset %d, want one of %d", ErrPromise, c.Log, c.First, l.next)
	}
	end := c.First + c.Handled
	if again := min(l.behind, end); again > c.First {
		b.Repeated += again - c.First
	}
	if end > l.behind {
		b.Events += end - max(l.behind, c.First)
	}
	l.last, l.next, l.behind = c.First, []uint64{end}, max(l.behind, end)
	if c.Handled < c.Count && c.Parks {
		l.next = append(l.next, end+1)
	}
	return nil
}

// Crashed notes that whatever delivers has ended without storing what was handled last, or
// cannot be known to have stored it.
func (b *Book) Crashed() {
	for _, l := range b.lanes {
		l.may(l.last)
	}
}

func (l *lane) may(offset uint64) {
	if !slices.Contains(l.next, offset) {
		l.next = append(l.next, offset)
	}
}

// Changed notes a step.
func (b *Book) Changed(c Change) {
	switch c.Step {
	case Paused:
		b.paused[c.Subscription] = true
	case Resuming:
		b.paused[c.Subscription] = false
	case Moving:
		l := b.lane(c.Log)
		l.may(c.To)
		// What is delivered again because of that is no repetition.
		l.behind = min(l.behind, c.To)
	case Moved:
		l := b.lane(c.Log)
		l.next, l.last = []uint64{c.To}, c.To
	}
}

// Stands returns an ErrPromise if a subscription cannot stand at an offset, crash or not.
func (b *Book) Stands(log Log, offset uint64) error {
	l := b.lane(log)
	if offset != l.last && !slices.Contains(l.next, offset) {
		return fmt.Errorf("%w: %v: it stands at offset %d, want one of %d, or %d", ErrPromise, log, offset, l.next, l.last)
	}
	return nil
}
