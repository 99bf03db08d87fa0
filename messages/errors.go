package messages

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/partita-go/partita/calendar"
)

// Errors of input that is wrong whatever the state.
var (
	// ErrSyntax is returned when text is not an id, a number or an offset.
	//
	// From: ParseWSID and the other functions that read text.
	// Do: correct the text.
	ErrSyntax = errors.New("bad syntax")
	// ErrSettings is returned when a setting is out of its range. The error names the setting, what it got and what it
	// wants.
	//
	// From: AppParts.Deploy, App.Reconfigure, App.Subscribe, bolt.Open, and the Validate methods of settings.
	// Do: correct the setting.
	ErrSettings = errors.New("bad setting")
	// ErrDescriptor is returned when an application's descriptor is wrong, or is not the one that a store was made with.
	//
	// From: Descriptor.Validate, AppParts.Deploy, bolt.Open.
	// Do: correct the descriptor. Kinds and sequences can be added to one; nothing else of it ever changes. An older
	// program opens a store that has more with bolt.Options.AcceptNewer.
	ErrDescriptor = errors.New("bad application descriptor")
	// ErrUnknownKind is returned when a workspace kind is not the application's.
	//
	// From: Start, Append, Subscribe.
	// Do: correct the call, or add the kind to the descriptor.
	ErrUnknownKind = errors.New("unknown workspace kind")
	// ErrUnknownSequence is returned when a sequence is not one of the kind's, or is one whose numbers Next does not
	// give.
	//
	// From: Next, Raise, Write, Append.
	// Do: correct the call, or add the sequence to the descriptor.
	ErrUnknownSequence = errors.New("unknown sequence")
	// ErrWrongPartition is returned when a workspace is another partition's, or the application has no such partition.
	//
	// From: Start and Append of a partition's client, and the store.
	// Do: take the client from App.SequencerOf, which knows the workspace's partition.
	ErrWrongPartition = errors.New("workspace of another partition")
	// ErrWorkspaceZero is returned when workspace 0 would begin: most often an id was forgotten. One that has events goes
	// on.
	//
	// From: Start, Append.
	// Do: name the workspace, or set Application.WorkspaceZero.
	ErrWorkspaceZero = errors.New("workspace 0 is not allowed by the application")
	// ErrKindMismatch is returned when a workspace is of another kind, which its first event fixed.
	//
	// From: Start, Append.
	// Do: name the kind that the workspace has.
	ErrKindMismatch = errors.New("workspace of another kind")
	// ErrExplicitID is returned when the explicit id of a new record is above its sequence's cap.
	//
	// From: Raise, Write, Append.
	// Do: take a smaller id. Nothing was written.
	ErrExplicitID = errors.New("explicit record id above the cap")
	// ErrRawID is returned when a command's raw ids are 0 or used twice, or one is asked for that the command has not.
	//
	// From: CommandProcessor.Execute, and what a handler or drafter asks for.
	// Do: correct the command.
	ErrRawID = errors.New("bad raw record id")
)

// Errors of transactions and appends.
var (
	// ErrBusy is returned when a partition, or a command processor, takes no request now. Nothing was done. The error is
	// a [*BusyError] with the reason.
	//
	// From: Start, Append, CommandProcessor.Execute.
	// Do: repeat the request after BusyError.RetryAfter. If that is 0, repeating is of no use.
	ErrBusy = errors.New("partition is busy")
	// ErrNoTransaction is returned when a transaction is not open: none was started, it has ended, its context has, or it
	// is somebody else's. Nothing was written.
	//
	// From: the methods of a transaction, and requests with its token.
	// Do: start another one.
	ErrNoTransaction = errors.New("no such transaction is open")
	// ErrFenced is returned when the partition was taken over since: whatever was attempted under the older epoch is not
	// in the log, and never will be.
	//
	// From: Start, Write, Commit, Flush, Append, and the store.
	// Do: start again. If it lasts, another program has the partition, or a transaction takes longer than the setting
	// TransactionLimit.
	ErrFenced = errors.New("fenced by a newer epoch")
	// ErrOverflow is returned when a sequence has not as many numbers left as are wanted. It consumes nothing. The
	// error is an OverflowError that names the sequence.
	//
	// From: Start, Next, Append.
	// Do: raise the sequence's largest number in the descriptor, or use another sequence or another workspace.
	ErrOverflow = errors.New("sequence is exhausted")
	// ErrBusinessDate is returned when a business date is in a period of a sequence that is closed, or is too far
	// ahead. The error is a BusinessDateError that says which periods are taken.
	//
	// From: Start, Append.
	// Do: correct the date, or set Keep or Ahead of the sequence's restart higher.
	ErrBusinessDate = errors.New("business date is not taken")
	// ErrUnknownZone is returned when numbers of a sequence that restarts are wanted in a workspace with a time
	// zone that this machine does not know: another one has set it. In which period they would be, nobody
	// can tell. Everything else works.
	//
	// From: Start, Append.
	// Do: update the zone database, and start the process again.
	ErrUnknownZone = errors.New("the workspace's time zone is not known here")
	// ErrBackward is returned when a number that an event brings along, or moves a sequence to, is not above the last
	// one of its sequence and period. It consumes nothing. The error is a BackwardError.
	//
	// From: Append, Bring, Move.
	// Do: correct the number. A sequence never goes back; history is brought in the order of its numbers.
	ErrBackward = errors.New("sequence would not go forward")
	// ErrDeadlineExceeded is returned when a request's deadline had passed before the request was taken. Nothing was
	// done.
	//
	// From: Start, Append, CommandProcessor.Execute.
	// Do: repeat the request, with more time.
	ErrDeadlineExceeded = errors.New("deadline passed before the request was taken")
	// ErrOutcomeUnknown is returned when a write may or may not have happened: it is wholly there or not at all.
	//
	// From: Commit, Append, CommandProcessor.Execute, changes of subscriptions, and the store.
	// Do: repeat an append that has a deduplication id: it is answered with what is there, or is appended now. Without
	// one, look into the workspace's log. After a change of a subscription, look where it stands.
	ErrOutcomeUnknown = errors.New("outcome of the write is unknown")
	// ErrStopped is returned when the actor has stopped, or stopped before it could answer: the application was
	// undeployed, or is being. Nothing was done.
	//
	// From: Start, Append, CommandProcessor.Execute, and the methods of an App and its subscriptions.
	// Do: deploy the application again, and repeat the request.
	ErrStopped = errors.New("actor has stopped")
	// ErrClock is returned when the clock shows a time that cannot be: further ahead of what it said last than the
	// setting ClockJump allows, before 1970, or after 2261. Nothing was written and no number is consumed. The error is a
	// [*ClockError].
	//
	// From: Start, Append.
	// Do: set the clock right. If it is right and what it said before was not, or the machine was suspended for longer
	// than the setting, raise the setting with Reconfigure, or deploy the application again: the first reading after that
	// is trusted.
	ErrClock = errors.New("clock is not trusted")
	// ErrInterrupted is returned when the actor failed with the request in its hands. A transaction that it had granted
	// is fenced. Nothing was done, unless the error is ErrOutcomeUnknown too.
	//
	// From: Start, Append, and changes of subscriptions.
	// Do: repeat the request: the actor has started again.
	ErrInterrupted = errors.New("actor failed while it handled the request")
	// ErrPartitionFailed is returned when the partition cannot go on until it is repaired. The error is a
	// [*PartitionError], which has the cause. It is returned too when the partition has panicked and its policy of
	// restarts says that it ends.
	//
	// From: Start, Append, App.Ready.
	// Do: stop the application, run `partita verify`, which names the repair, and start again.
	ErrPartitionFailed = errors.New("partition has failed")
	// ErrStoredNumber is returned when a stored number is above what the log can explain.
	//
	// From: Start, Append.
	// Do: run `partita verify`, which names the repair. Other workspaces do not suffer.
	ErrStoredNumber = errors.New("stored number is above what the log explains")
	// ErrBrokenLog is returned when the log's tail contradicts itself: a hole, an epoch or a time that falls, an unknown
	// kind or sequence.
	//
	// From: App.Ready, Start and Append, as the cause of ErrPartitionFailed.
	// Do: run `partita verify`, which names the repair.
	ErrBrokenLog = errors.New("log contradicts itself")
	// ErrTooManyNumbers is returned when an event would have more than [MaxEventNumbers].
	//
	// From: Next, Append.
	// Do: write several events.
	ErrTooManyNumbers = errors.New("too many numbers for one event")
	// ErrCounted is returned when the numbers that an owner says it has counted itself cannot be: one fell, or is above
	// its sequence's largest.
	//
	// From: a request [Flush] whose Last is wrong.
	// Do: report it: the typed client counts right.
	ErrCounted = errors.New("numbers that were not reserved")
	// ErrExpectedOffset is returned when an append's workspace is not where the append expects it to be. Nothing was
	// written. The error is an [*OffsetError].
	//
	// From: Append, CommandProcessor.Execute.
	// Do: read what is new in the workspace's log, decide again, and append with the new offset.
	ErrExpectedOffset = errors.New("workspace is not at the expected offset")
	// ErrDedupMismatch is returned when an append has the deduplication id of another append of the workspace, but other
	// drafts. Nothing was written.
	//
	// From: Append, CommandProcessor.Execute.
	// Do: take a new id for what is new; repeat only what is the same.
	ErrDedupMismatch = errors.New("deduplication id was used for something else")
	// ErrRecordAhead is returned when an event updates a record under a number that its sequence has still to give out.
	// The error is a [*RecordAheadError].
	//
	// From: Event, Write, Append.
	// Do: create the record as a new one, which lifts the sequence, or update one that exists.
	ErrRecordAhead = errors.New("updated record is ahead of its sequence")
	// ErrDraft is returned when an append's drafts contradict themselves: none or too many of them, a record that refers
	// to a number that was not wanted, or to one of a sequence that restarts. So is it for a business date that is no day.
	//
	// From: Start, Append, CommandProcessor.Execute.
	// Do: correct the drafts.
	ErrDraft = errors.New("bad draft of an event")
	// ErrTooLarge is returned when an append, or a command, takes more than the setting GroupBytes. Nothing was written.
	// The error is a [*TooLargeError].
	//
	// From: Append, CommandProcessor.Execute.
	// Do: make it smaller, or raise the setting.
	ErrTooLarge = errors.New("append is too large")
)

// BusyReason says why a partition or a command processor is busy.
type BusyReason uint8

// The reasons for being busy.
const (
	// BusyMailboxFull: the request lane of the mailbox is full.
	BusyMailboxFull BusyReason = iota + 1
	// BusyActualizing: the partition replays the tail of its log.
	BusyActualizing
	// BusyUnflushed: the limit of numbers or events that are durable in the log
	// but not yet in the projections is reached.
	BusyUnflushed
	// BusyStopping: the partition is being stopped; or the workspace still has commands at a member that leaves its
	// group, which RetryAfter tells apart: it is not 0 then.
	BusyStopping
	// BusyNoQuorum: of several nodes none owns the log, as long as most of them do not hear each other. See package cluster.
	BusyNoQuorum
)

// busyNames are the reasons' names.
var busyNames = [...]string{
	BusyMailboxFull: "mailbox-full", BusyActualizing: "actualizing", BusyUnflushed: "unflushed", BusyStopping: "stopping",
	BusyNoQuorum: "no-quorum",
}

// Name returns the name of a reason for programs, which never changes, as "mailbox-full" over HTTP. It is "" of one that is
// not known.
func (r BusyReason) Name() string {
	if int(r) < len(busyNames) {
		return busyNames[r]
	}
	return ""
}

// BusyReasonOf returns the reason of a name, 0 if it is not known.
func BusyReasonOf(name string) BusyReason {
	return BusyReason(max(0, slices.Index(busyNames[:], name)))
}

func (r BusyReason) String() string {
	switch r {
	case BusyMailboxFull:
		return "mailbox is full"
	case BusyActualizing:
		return "actualizing"
	case BusyUnflushed:
		return "too much is not flushed yet"
	case BusyStopping:
		return "stopping"
	case BusyNoQuorum:
		return "no quorum: no node owns the log"
	}
	return fmt.Sprintf("reason %d", uint8(r))
}

// BusyError is the error of a request that was refused for now. Nothing was
// done; the same request may succeed later.
type BusyError struct {
	Reason BusyReason
	// RetryAfter is a hint: how long to wait before trying again. Zero means that
	// trying again is of no use.
	RetryAfter time.Duration
	// Limit is the setting that is the bound that was met: "RequestLane" or "RequestLaneBytes" of a full mailbox,
	// "BusyLimit", "BusyEvents" or the store's "Memory" if too much is unflushed. It is "" for all other reasons.
	Limit string
}

func (e *BusyError) Error() string {
	if e.Reason == 0 {
		return fmt.Sprintf("%v: retry after %v", ErrBusy, e.RetryAfter)
	}
	return fmt.Sprintf("%v: %v, retry after %v", ErrBusy, e.Reason, e.RetryAfter)
}

// Is makes errors.Is(err, ErrBusy) hold.
func (e *BusyError) Is(target error) bool { return target == ErrBusy }

// OverflowError is the error of whoever wants more numbers of a sequence than it has left. No
// number was used.
type OverflowError struct {
	Workspace WSID
	Seq       SeqID
	// Name is the sequence's, Period is zero if it never restarts.
	Name   string
	Period calendar.Date
	// Last is the last number given out, 0 if there is none, Largest the last one that can be, or, of a move or a
	// number that is brought along, the last one that can be taken over: see [Sequence.MaxTaken].
	Last, Largest Number
	// Wanted is how many were wanted at once.
	Wanted int
}

func (e *OverflowError) Error() string {
	return fmt.Sprintf("%v: workspace %d, %v %q: got %d wanted after %d, want at most %d",
		ErrOverflow, e.Workspace, SequencePeriod{e.Seq, e.Period}, e.Name, e.Wanted, e.Last, e.Largest)
}

// Is makes errors.Is(err, ErrOverflow) hold.
func (e *OverflowError) Is(target error) bool { return target == ErrOverflow }

// BackwardError is the error of a number that an event brings along, or moves a sequence to, though the sequence is
// that far already. No number was used.
type BackwardError struct {
	Workspace WSID
	Seq       SeqID
	// Name is the sequence's, Period is zero if it never restarts.
	Name   string
	Period calendar.Date
	// Last is the last number, or one less than the first one if there is none. Wanted must be above it.
	Last, Wanted Number
}

func (e *BackwardError) Error() string {
	return fmt.Sprintf("%v: workspace %d, %v %q: got %d, want more than %d",
		ErrBackward, e.Workspace, SequencePeriod{e.Seq, e.Period}, e.Name, e.Wanted, e.Last)
}

// Is makes errors.Is(err, ErrBackward) hold.
func (e *BackwardError) Is(target error) bool { return target == ErrBackward }

// BusinessDateError is the error of a business date that a sequence does not take. No number was
// used.
type BusinessDateError struct {
	Workspace WSID
	Seq       SeqID
	Date      calendar.Date
	// First and Last are the periods that it would have to be in; First is zero if none is closed.
	First, Last calendar.Date
}

func (e *BusinessDateError) Error() string {
	first := ""
	if e.First != 0 {
		first = fmt.Sprintf(", at least in that of %v", e.First)
	}
	return fmt.Sprintf("%v: workspace %d, sequence %d: got %v, want it at most in the period of %v%s",
		ErrBusinessDate, e.Workspace, e.Seq, e.Date, e.Last, first)
}

// Is makes errors.Is(err, ErrBusinessDate) hold.
func (e *BusinessDateError) Is(target error) bool { return target == ErrBusinessDate }

// RecordAheadError is the error of an event that updates a record under a number
// which its sequence has still to give out: the new record that is given the number
// would meet the row, and so would all after it. Only a new record may be ahead,
// since it lifts the sequence. Nothing was written, and no number was used.
type RecordAheadError struct {
	Workspace WSID
	ID        RecordID
	// Last is the sequence's last number, with those of the event, 0 if it has none.
	Last Number
}

func (e *RecordAheadError) Error() string {
	return fmt.Sprintf("%v: workspace %d: got an update of %v, want at most %d, or a new record", ErrRecordAhead, e.Workspace, e.ID, e.Last)
}

// Is makes errors.Is(err, ErrRecordAhead) hold.
func (e *RecordAheadError) Is(target error) bool { return target == ErrRecordAhead }

// TooLargeError is the error of an append, or a command, that takes more than it may.
// Nothing was written.
type TooLargeError struct {
	Workspace WSID
	// Got is what it takes, Want what it may take, in bytes: see the setting GroupBytes.
	Got, Want int
}

func (e *TooLargeError) Error() string {
	return fmt.Sprintf("%v: workspace %d: got %d bytes, want at most %d", ErrTooLarge, e.Workspace, e.Got, e.Want)
}

// Is makes errors.Is(err, ErrTooLarge) hold.
func (e *TooLargeError) Is(target error) bool { return target == ErrTooLarge }

// PartitionError says why a partition has failed, and where.
type PartitionError struct {
	Partition PartitionID
	// PLogOffset is the event that cannot be processed, 0 if it is none.
	PLogOffset PLogOffset
	Cause      error
}

func (e *PartitionError) Error() string {
	if e.PLogOffset == 0 {
		return fmt.Sprintf("%v: partition %d: %v", ErrPartitionFailed, e.Partition, e.Cause)
	}
	return fmt.Sprintf("%v: partition %d, offset %d: %v", ErrPartitionFailed, e.Partition, e.PLogOffset, e.Cause)
}

// Is makes errors.Is(err, ErrPartitionFailed) hold.
func (e *PartitionError) Is(target error) bool { return target == ErrPartitionFailed }

// Unwrap returns the cause.
func (e *PartitionError) Unwrap() error { return e.Cause }

// ClockError says what a clock shows, and what it may show at the most.
type ClockError struct {
	Got Timestamp
	// Last is what the clock said last, and the time that has passed since; 0 if it has said
	// nothing that could be.
	Last  Timestamp
	Limit time.Duration
}

func (e *ClockError) Error() string {
	return fmt.Sprintf("%v: got %v, last %v, limit %v ahead", ErrClock, e.Got, e.Last, e.Limit)
}

// Is makes errors.Is(err, ErrClock) hold.
func (e *ClockError) Is(target error) bool { return target == ErrClock }

// OffsetError is the error of an append whose workspace has moved on, or is not
// as far yet. Nothing was written.
type OffsetError struct {
	Workspace WSID
	// Got is the last offset of the workspace's log, Want the expected one.
	Got, Want WLogOffset
}

func (e *OffsetError) Error() string {
	return fmt.Sprintf("%v: workspace %d: got %d, want %d", ErrExpectedOffset, e.Workspace, e.Got, e.Want)
}

// Is makes errors.Is(err, ErrExpectedOffset) hold.
func (e *OffsetError) Is(target error) bool { return target == ErrExpectedOffset }
