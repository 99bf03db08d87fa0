package partition

import (
	"errors"

	"github.com/partita-go/partita/actors"
	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage"
)

// Errors that users meet most, under one roof. What each says is told where it is declared.
var (
	ErrBusy            = messages.ErrBusy
	ErrExpectedOffset  = messages.ErrExpectedOffset
	ErrRecordAhead     = messages.ErrRecordAhead
	ErrTooLarge        = messages.ErrTooLarge
	ErrDedupMismatch   = messages.ErrDedupMismatch
	ErrOutcomeUnknown  = messages.ErrOutcomeUnknown
	ErrOverflow        = messages.ErrOverflow
	ErrBusinessDate    = messages.ErrBusinessDate
	ErrBackward        = messages.ErrBackward
	ErrStopped         = messages.ErrStopped
	ErrPartitionFailed = messages.ErrPartitionFailed
	ErrStoreInUse      = storage.ErrInUse
)

type (
	// BusyError is [messages.BusyError].
	BusyError = messages.BusyError
	// OffsetError is [messages.OffsetError].
	OffsetError = messages.OffsetError
	// OverflowError is [messages.OverflowError].
	OverflowError = messages.OverflowError
	// BackwardError is [messages.BackwardError].
	BackwardError = messages.BackwardError
	// BusinessDateError is [messages.BusinessDateError].
	BusinessDateError = messages.BusinessDateError
	// RecordAheadError is [messages.RecordAheadError].
	RecordAheadError = messages.RecordAheadError
	// TooLargeError is [messages.TooLargeError].
	TooLargeError = messages.TooLargeError
	// BatchError is [actors.BatchError].
	BatchError = actors.BatchError
)

// Errors of deploying and routing.
var (
	// ErrDeployed is returned when an application of that name is deployed already.
	//
	// From: AppParts.Deploy.
	// Do: undeploy it first, or give this one another name.
	ErrDeployed = errors.New("application is deployed already")
	// ErrUnknownApplication is returned when no application of that name is deployed.
	//
	// From: AppParts.App.
	// Do: correct the name, or deploy it.
	ErrUnknownApplication = errors.New("unknown application")
	// ErrUnknownPartition is returned when an application has no such partition.
	//
	// From: App.Sequencer.
	// Do: correct the number: partitions count from 0.
	ErrUnknownPartition = errors.New("unknown partition")
	// ErrClosed is returned when the AppParts is closed.
	//
	// From: AppParts.Deploy.
	// Do: make another one.
	ErrClosed = errors.New("AppParts is closed")
	// ErrNotClean is returned when an application was undeployed, or a subscription was ended, but not everything could
	// be flushed or stored, or a handler or the store hangs. Nothing is lost: the log has it, and the next start replays
	// it or delivers it again.
	//
	// From: AppParts.Undeploy, AppParts.Close, Subscription.End.
	// Do: nothing, or mend the cause that it names; a longer StopLimit gives more time.
	ErrNotClean = errors.New("application did not stop cleanly")
)

// Errors of reading.
var (
	// ErrNoEvent is returned when a log has no event at an offset (yet).
	//
	// From: Reader.PartitionEvent, Reader.WorkspaceEvent.
	// Do: correct the offset, or wait for the event.
	ErrNoEvent = errors.New("no such event")
	// ErrNoRecord is returned when a workspace has no record with an id.
	//
	// From: Reader.Record.
	// Do: correct the id.
	ErrNoRecord = errors.New("no such record")
	// ErrCursor is returned when a cursor is damaged, of an unknown version, of another application, or ahead of the
	// log. The error says which.
	//
	// From: Reader.ParseCursor, Reader.Feed.
	// Do: begin again from the start. A cursor ahead of the log says that the store was restored from an older copy.
	ErrCursor = errors.New("wrong cursor")
)

// Errors of subscriptions. [storage.ErrNoSubscription] and [storage.ErrSubscription] belong to
// them too.
var (
	// ErrSubscribed is returned when a subscription of that name runs already.
	//
	// From: App.Subscribe.
	// Do: end the one that runs, or take another name.
	ErrSubscribed = errors.New("subscription runs already")
	// ErrKeepsNone is returned when the application's store keeps no subscriptions.
	//
	// From: App.Subscribe, SubscriptionAdmin.
	// Do: use a store that keeps them, as package bolt does.
	ErrKeepsNone = errors.New("store keeps no subscriptions")
	// ErrNotRunning is returned when only a subscription's handler could do what is asked for, and nobody has subscribed.
	//
	// From: SubscriptionAdmin.Replay.
	// Do: subscribe, or ask the program that has.
	ErrNotRunning = errors.New("subscription does not run here")
	// ErrNotParked is returned when an event is not parked.
	//
	// From: Replay and Drop of a Subscription, or of SubscriptionAdmin.
	// Do: nothing, or correct the offset: somebody may have replayed or dropped the event before.
	ErrNotParked = errors.New("event is not parked")
	// ErrNotHandled is returned when the handler has failed on a parked event once more. The event stays parked, with the
	// new reason.
	//
	// From: Replay of a Subscription, or of SubscriptionAdmin.
	// Do: mend what the handler's error names, and replay again; or drop the event.
	ErrNotHandled = errors.New("the handler could not handle the event")
)
