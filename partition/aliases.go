package partition

import (
	"github.com/partita-go/partita/actors"
	"github.com/partita-go/partita/messages"
)

// The types that users meet, under one roof.
type (
	// Sequencer is the typed client of one partition.
	Sequencer = actors.Sequencer
	// Transaction is an open sequencing transaction.
	Transaction = actors.Transaction
	// CommandProcessor is a handle on a command processor and its typed client.
	CommandProcessor = actors.CommandProcessor
	// CommandContext is a command under way, as its handler sees it.
	CommandContext = actors.CommandContext
	// Handler decides what a command does.
	Handler = actors.Handler
	// Drafter decides what a command does without knowing its numbers.
	Drafter = actors.Drafter
	// DraftContext is a command whose event is being drafted.
	DraftContext = actors.DraftContext
	// AppendTo says where drafts go and under which conditions.
	AppendTo = actors.AppendTo
	// Draft is an event that has no numbers yet.
	Draft = messages.Draft
	// DraftRecord is a row as a draft writes it.
	DraftRecord = messages.DraftRecord
	// Wanted asks for numbers of a sequence.
	Wanted = messages.Wanted
	// Appended says where an append stands.
	Appended = messages.Appended
	// DedupID is a caller's name for an append, so that it can be repeated.
	DedupID = messages.DedupID
	// OffsetError is the error of an append to a workspace that has moved on.
	OffsetError = messages.OffsetError
	// RecordAheadError is the error of an event that updates a record under a number
	// which its sequence has still to give out.
	RecordAheadError = messages.RecordAheadError
	// TooLargeError is the error of an append that takes more than the setting GroupBytes.
	TooLargeError = messages.TooLargeError
	// Observer is told about every message of every actor.
	Observer = actors.Observer
	// Clock is where the time comes from.
	Clock = actors.Clock
	// Settings can be changed while an application runs.
	Settings = messages.Settings
	// Status is a partition's state with details.
	Status = messages.PartitionStatus
	// BusyError is the error of a request that was refused for now.
	BusyError = messages.BusyError
)

// Errors that users meet most, see package messages for all of them.
var (
	// ErrBusy is returned when a partition takes no transaction now; the error is a
	// [*BusyError] with the reason and a hint when to retry.
	ErrBusy = messages.ErrBusy
	// ErrExpectedOffset is returned when an append's workspace is not where it is
	// expected to be; the error is an [*OffsetError].
	ErrExpectedOffset = messages.ErrExpectedOffset
	// ErrRecordAhead is returned when an event updates a record under a number that its
	// sequence has still to give out; the error is a [*RecordAheadError].
	ErrRecordAhead = messages.ErrRecordAhead
	// ErrTooLarge is returned when an append takes more than the setting GroupBytes; the
	// error is a [*TooLargeError].
	ErrTooLarge = messages.ErrTooLarge
	// ErrDedupMismatch is returned when a deduplication id was used for another
	// append.
	ErrDedupMismatch = messages.ErrDedupMismatch
	// ErrOutcomeUnknown is returned when a write may or may not have happened.
	ErrOutcomeUnknown = messages.ErrOutcomeUnknown
	// ErrStopped is returned when the application was undeployed.
	ErrStopped = messages.ErrStopped
	// ErrPartitionFailed is returned when a partition needs repair.
	ErrPartitionFailed = messages.ErrPartitionFailed
)
