package partition

import (
	"errors"

	"github.com/partita-go/partita/actors"
	"github.com/partita-go/partita/actors/groups"
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
	ErrNoMember        = groups.ErrNoMember
	ErrRoute           = groups.ErrRoute
)

type (
	// BusyError is [messages.BusyError].
	//
	//	Reason messages.BusyReason
	//	RetryAfter time.Duration
	//	Limit string
	//	func (*BusyError) Error() string
	//	func (*BusyError) Is(target error) bool
	BusyError = messages.BusyError
	// OffsetError is [messages.OffsetError].
	//
	//	Workspace messages.WSID
	//	Got messages.WLogOffset
	//	Want messages.WLogOffset
	//	func (*OffsetError) Error() string
	//	func (*OffsetError) Is(target error) bool
	OffsetError = messages.OffsetError
	// OverflowError is [messages.OverflowError].
	//
	//	Workspace messages.WSID
	//	Seq messages.SeqID
	//	Name string
	//	Period calendar.Date
	//	Last messages.Number
	//	Largest messages.Number
	//	Wanted int
	//	func (*OverflowError) Error() string
	//	func (*OverflowError) Is(target error) bool
	OverflowError = messages.OverflowError
	// BackwardError is [messages.BackwardError].
	//
	//	Workspace messages.WSID
	//	Seq messages.SeqID
	//	Name string
	//	Period calendar.Date
	//	Last messages.Number
	//	Wanted messages.Number
	//	func (*BackwardError) Error() string
	//	func (*BackwardError) Is(target error) bool
	BackwardError = messages.BackwardError
	// BusinessDateError is [messages.BusinessDateError].
	//
	//	Workspace messages.WSID
	//	Seq messages.SeqID
	//	Date calendar.Date
	//	First calendar.Date
	//	Last calendar.Date
	//	func (*BusinessDateError) Error() string
	//	func (*BusinessDateError) Is(target error) bool
	BusinessDateError = messages.BusinessDateError
	// RecordAheadError is [messages.RecordAheadError].
	//
	//	Workspace messages.WSID
	//	ID messages.RecordID
	//	Last messages.Number
	//	func (*RecordAheadError) Error() string
	//	func (*RecordAheadError) Is(target error) bool
	RecordAheadError = messages.RecordAheadError
	// TooLargeError is [messages.TooLargeError].
	//
	//	Workspace messages.WSID
	//	Got int
	//	Want int
	//	func (*TooLargeError) Error() string
	//	func (*TooLargeError) Is(target error) bool
	TooLargeError = messages.TooLargeError
	// BatchError is [actors.BatchError].
	//
	//	Index int
	//	Err error
	//	func (*BatchError) Error() string
	//	func (*BatchError) Unwrap() error
	BatchError = actors.BatchError
	// MemberError is [groups.MemberError].
	MemberError = groups.MemberError
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
	// ErrNotOwned is returned when a partition does not run here, but where its shard does.
	//
	// From: App.Sequencer, App.Subscribe, and what leads to them, of an application with several shards.
	// Do: ask the application that cluster.Node.AppOf returns; Node.Append finds it by itself.
	ErrNotOwned = errors.New("partition is of another shard")
	// ErrGrouped is returned when the application has a group of that name already.
	//
	// From: App.SpawnGroup.
	// Do: stop the one that runs, or take another name.
	ErrGrouped = errors.New("group runs already")
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
