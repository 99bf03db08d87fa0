package actors

import (
	"errors"
	"fmt"
)

// Errors of the typed clients.
var (
	// ErrNotRaised is returned when an event brings along an explicit id of a new record that was not announced, or does
	// not bring one that was: the sequence would not be what the log says.
	//
	// From: Event, Write, Commit.
	// Do: call Raise for each such id, and write each record that was announced.
	ErrNotRaised = errors.New("explicit record id and Raise do not agree")
	// ErrWriteBegun is returned when a transaction cannot be cancelled, or be given numbers, because its event may have
	// been written.
	//
	// From: Next, Raise, Event, Write, Commit, Cancel.
	// Do: end the transaction with Flush or Actualize.
	ErrWriteBegun = errors.New("a write was begun: only Flush or Actualize end the transaction")
	// ErrNotAppending is returned when a command has a deduplication id or an expected offset, but its command processor
	// does not append: a [Handler] has its own transaction.
	//
	// From: CommandProcessor.Execute.
	// Do: give the command processor a [Drafter], or leave them out.
	ErrNotAppending = errors.New("only a command processor that appends takes a deduplication id or an expected offset")
	// ErrProtocol is returned when an actor answers with something that is not an answer to the request.
	//
	// From: all typed clients.
	// Do: see that no middleware of the actor system changes messages.
	ErrProtocol = errors.New("unexpected answer")

	// errStopLimit is why Stop of a partition waits no longer.
	errStopLimit = errors.New("partition did not answer within the stop limit")
	// errGivenUp is why a partition has ended that has panicked and is not restarted.
	errGivenUp = errors.New("it has panicked and is not restarted")
)

// Errors of what users write: handlers and drafters.
var (
	// ErrHandlerPanic is returned when a handler or drafter panicked: the command was refused, the batch was not handled.
	//
	// From: CommandProcessor.Execute, and the status of a subscription.
	// Do: mend the handler; the log has the stack.
	ErrHandlerPanic = errors.New("handler panicked")
	// ErrHandlerExit is returned when a handler or drafter has ended its goroutine (runtime.Goexit) instead of returning:
	// the command was refused, the batch was not handled.
	//
	// From: CommandProcessor.Execute, and the status of a subscription.
	// Do: mend the handler: it must return. A test's FailNow ends its goroutine.
	ErrHandlerExit = errors.New("handler has ended its goroutine")
	// ErrHanging is returned when a handler, or the store, ignores the end of its context. It was left behind.
	//
	// From: the end of a subscription or of a command processor, as the cause of partition.ErrNotClean.
	// Do: mend the handler: it must return when its context ends.
	ErrHanging = errors.New("it hangs and was left behind")
	// ErrBrokenOff is returned when a handler was not waited for any longer: its batch will be delivered again.
	//
	// From: the end of a subscription, as the cause of partition.ErrNotClean.
	// Do: give it more time, or make batches smaller.
	ErrBrokenOff = errors.New("the batch under way was broken off")
)

// BatchError says which event of a batch a handler could not handle: those before it count as handled.
//
// From: a handler of a subscription, if it knows the event.
// Do: return it instead of the event's own error.
type BatchError struct {
	// Index is the event's place in the batch, from 0 on.
	Index int
	Err   error
}

func (e *BatchError) Error() string { return fmt.Sprintf("event %d of the batch: %v", e.Index, e.Err) }

// Unwrap returns the cause.
func (e *BatchError) Unwrap() error { return e.Err }
