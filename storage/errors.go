package storage

import (
	"errors"
	"fmt"

	"github.com/partita-go/partita/calendar"
	"github.com/partita-go/partita/messages"
)

// Errors of writing. [messages.ErrFenced] and [messages.ErrOutcomeUnknown] belong
// to them too.
var (
	// ErrOutOfOrder is returned when an event does not continue its log.
	//
	// From: Log.Append, and what leads to it: Append, Commit.
	// Do: report it, if you do not write to the store yourself.
	ErrOutOfOrder = errors.New("event does not continue the log")
	// ErrTimeFell is returned when an event's time is before its predecessor's.
	//
	// From: Log.Append, and what leads to it: Append, Commit.
	// Do: report it, if you do not write to the store yourself.
	ErrTimeFell = errors.New("registration time falls")
	// ErrInvalidEvent is returned when an event contradicts itself or the descriptor: another partition's workspace, an
	// unknown kind or sequence, an explicit id above the cap, too large. Nothing was written. The error is an
	// [*InvalidEventError], unless the application has no such partition.
	//
	// From: Log.Append, and what leads to it: Append, Write, Commit.
	// Do: correct the event.
	ErrInvalidEvent = errors.New("invalid event")
	// ErrConflict is returned when a key that must be free is not. Nothing was overwritten. It lasts until the store is
	// repaired, and others do not suffer. The error is a [*ConflictError], which names the key.
	//
	// From: Log.TakeEpoch, Log.Append, Projections.Flush, and what leads to them: Append, Write, Commit, App.Ready.
	// Do: if it is a record, take another id for the new one. Else run `partita verify`, which names the repair.
	ErrConflict = errors.New("key is taken")
	// ErrDuplicate is returned when an event's deduplication id is in its workspace's log already. Nothing was written.
	// The error is a [*DuplicateError], which says where.
	//
	// From: Log.Append. Append of a partition finds the event instead, and answers what the first append was answered.
	// Do: read the event that has the id.
	ErrDuplicate = errors.New("deduplication id is in the log already")
	// ErrCheckpoint is returned when a checkpoint is not the expected one, falls, or lies beyond the log.
	//
	// From: Projections.Flush, Reader.Tail. A partition that meets it replays the log's tail.
	// Do: nothing, if you do not flush yourself.
	ErrCheckpoint = errors.New("wrong checkpoint")
	// ErrNumbers is returned when numbers to be flushed are not what the log says. The error is a [*NumbersError].
	//
	// From: Projections.Flush. A partition that meets it replays the log's tail.
	// Do: report it, if you do not flush yourself.
	ErrNumbers = errors.New("numbers differ from the log")
	// ErrTailFull is returned when the events that are not in the projections yet reach their limit. Nothing was written.
	//
	// From: Log.Append, and what leads to it: Append, Write, Commit.
	// Do: repeat it a little later: a flush makes room. If it lasts, the partition's status says why it cannot flush.
	ErrTailFull = errors.New("tail of the log is full")
	// ErrFull is returned when there is no space left. Nothing was written.
	//
	// From: all that writes.
	// Do: make room on the disk, or raise bolt.Options.MaxSize. What is in the log stays readable.
	ErrFull = errors.New("no space left")
)

// Errors of opening, reading and closing.
var (
	// ErrClosed is returned when the store is closed, or has closed itself because the outcome of a write is unknown.
	//
	// From: all methods of a store.
	// Do: open it anew, and deploy the application again.
	ErrClosed = errors.New("store is closed")
	// ErrDamaged is returned when stored bytes are not what was written. The error is a [*DamagedError], which names the
	// place.
	//
	// From: all that opens or reads a store.
	// Do: run `partita verify`, which names the repair.
	ErrDamaged = errors.New("stored data is damaged")
	// ErrReadOnly is returned when a store that was opened to be read is written.
	//
	// From: all that writes.
	// Do: open it without the option ReadOnly.
	ErrReadOnly = errors.New("store is open read-only")
	// ErrLocked is returned when the store is open already. The error says whether this process has it or another one.
	//
	// From: bolt.Open and all that opens a store's files.
	// Do: end the other process, or close the store; to copy a store that is open, use its method Backup.
	ErrLocked = errors.New("store is in use")
	// ErrInUse is returned when an application is deployed over the open store already, by whichever AppParts. The error
	// names the application.
	//
	// From: Store.Claim, AppParts.Deploy.
	// Do: undeploy that one: it gives the store back.
	ErrInUse = errors.New("store is in use by a deployed application")
	// ErrForeign is returned when a file is not a store's, two files of different stores lie side by side, or a
	// subscription rests on an event of another log.
	//
	// From: bolt.Open and all that opens a store's files, Store.Claim, AppParts.Deploy, Append, Commit.
	// Do: put the right files back. For a subscription of another log see operating.md.
	ErrForeign = errors.New("not a file of this store")
	// ErrFormat is returned when the store has a format version that this program does not know.
	//
	// From: bolt.Open and all that opens a store's files.
	// Do: use the version of the program that wrote it, or a newer one. If only state.db is older, open the store once
	// for writing: it is rebuilt.
	ErrFormat = errors.New("unknown format version")
	// ErrNotFound is returned when there is no store at the place named, or a file of it is missing.
	//
	// From: bolt.Open without Options.Create, bolt.OpenExisting, bolt.Verify, and what opens a store to read or copy it.
	// Do: correct the path, or mount the volume. To make a new store, open it with Options.Create.
	ErrNotFound = errors.New("no store there")
	// ErrDisplaced is returned when what is under the store's name is not the store any more: its directory was moved or
	// removed. The store works on with the files that it has.
	//
	// From: [Placed], and the status of each partition.
	// Do: stop the application, find the directory that the store has, and put it back under its name.
	ErrDisplaced = errors.New("the store's directory is not under its name any more")
)

// Errors of subscriptions.
var (
	// ErrNoSubscription is returned when there is no subscription of a name.
	//
	// From: SubscriptionAdmin, [Subscriptions].
	// Do: correct the name, or make it with App.Subscribe.
	ErrNoSubscription = errors.New("no such subscription")
	// ErrSubscription is returned when a subscription cannot be what it is said to be: a name that is empty, too long or
	// no plain text, a partition or kind that the application does not have, a position of a partition that it does not
	// read, or beyond the next event of its log, an event parked that lies not before the position, or another source
	// than it has.
	//
	// From: App.Subscribe, Rewind of a subscription, [Subscriptions].
	// Do: correct the call. For another source take another name, or delete the one that is there.
	ErrSubscription = errors.New("wrong subscription")
)

// Place is a kind of key.
type Place uint8

// The kinds of keys that can be in conflict.
const (
	// PlaceLog is the next entry of the physical log: the store is failed.
	PlaceLog Place = iota + 1
	// PlacePLog is the next entry of a partition's log: the partition is failed.
	PlacePLog
	// PlaceWLog is the next entry of a workspace's log: the workspace errs.
	PlaceWLog
	// PlaceRecord is a new record: that sequence of the workspace errs.
	PlaceRecord
)

func (p Place) String() string {
	switch p {
	case PlaceLog:
		return "log"
	case PlacePLog:
		return "PLog"
	case PlaceWLog:
		return "WLog"
	case PlaceRecord:
		return "record"
	}
	return fmt.Sprintf("place %d", uint8(p))
}

// ConflictError names the key that was taken, and the event that needed it: see [ErrConflict].
type ConflictError struct {
	Place      Place
	Partition  messages.PartitionID
	PLogOffset messages.PLogOffset
	LSN        messages.LSN
	Workspace  messages.WSID
	WLogOffset messages.WLogOffset
	// Record is set for PlaceRecord only.
	Record messages.RecordID
}

func (e *ConflictError) Error() string {
	where := ""
	switch e.Place {
	case PlaceLog:
		where = fmt.Sprintf("LSN %d", e.LSN)
	case PlacePLog:
		where = fmt.Sprintf("partition %d, offset %d", e.Partition, e.PLogOffset)
	case PlaceWLog:
		where = fmt.Sprintf("workspace %d, offset %d", e.Workspace, e.WLogOffset)
	case PlaceRecord:
		where = fmt.Sprintf("workspace %d, record %v", e.Workspace, e.Record)
	}
	return fmt.Sprintf("%v: %v entry of %s (wanted by partition %d, offset %d)", ErrConflict, e.Place, where, e.Partition, e.PLogOffset)
}

// Is makes errors.Is(err, ErrConflict) hold.
func (e *ConflictError) Is(target error) bool { return target == ErrConflict }

// InvalidEventError names an event of a batch that contradicts itself or the
// descriptor; others may, too. Nothing of the batch was written.
type InvalidEventError struct {
	Partition  messages.PartitionID
	PLogOffset messages.PLogOffset
	// Cause says what is wrong with it.
	Cause error
}

func (e *InvalidEventError) Error() string {
	return fmt.Sprintf("%v: partition %d, offset %d: %v", ErrInvalidEvent, e.Partition, e.PLogOffset, e.Cause)
}

// Is makes errors.Is(err, ErrInvalidEvent) hold.
func (e *InvalidEventError) Is(target error) bool { return target == ErrInvalidEvent }

// Unwrap returns the cause.
func (e *InvalidEventError) Unwrap() error { return e.Cause }

// DuplicateError names the events of a batch whose deduplication ids are in their
// workspaces' logs already. Nothing of the batch was written.
type DuplicateError struct {
	Partition messages.PartitionID
	// Duplicates are all of the batch, in its order, at least one. An id that only
	// the batch itself has twice is named with its first event in the batch.
	Duplicates []Duplicate
}

// Duplicate is one event that was refused, and where its id stands already.
type Duplicate struct {
	// PLogOffset is that of the refused event.
	PLogOffset messages.PLogOffset
	Workspace  messages.WSID
	ID         messages.DedupID
	// First is the offset of the event that has the id.
	First messages.WLogOffset
}

func (e *DuplicateError) Error() string {
	d := e.Duplicates[0]
	return fmt.Sprintf("%v: partition %d, offset %d: workspace %d, id %v is at offset %d (%d of the batch)",
		ErrDuplicate, e.Partition, d.PLogOffset, d.Workspace, d.ID, d.First, len(e.Duplicates))
}

// Is makes errors.Is(err, ErrDuplicate) hold.
func (e *DuplicateError) Is(target error) bool { return target == ErrDuplicate }

// DamagedError names the place where stored data is damaged.
type DamagedError struct {
	// Where names the value: a bucket and key, or a file.
	Where string
	// Partition and PLogOffset are known where the value is an event's entry in a
	// partition's log, else PLogOffset is 0.
	Partition  messages.PartitionID
	PLogOffset messages.PLogOffset
	// Cause says what is wrong with it.
	Cause error
}

func (e *DamagedError) Error() string {
	if e.PLogOffset == 0 {
		return fmt.Sprintf("%v: %s: %v", ErrDamaged, e.Where, e.Cause)
	}
	return fmt.Sprintf("%v: partition %d, offset %d: %s: %v", ErrDamaged, e.Partition, e.PLogOffset, e.Where, e.Cause)
}

// Is makes errors.Is(err, ErrDamaged) hold.
func (e *DamagedError) Is(target error) bool { return target == ErrDamaged }

// Unwrap returns the cause.
func (e *DamagedError) Unwrap() error { return e.Cause }

// LookupError names the events of a batch of whose deduplication ids nobody can know
// whether the log has them, since what would say so is damaged. Nothing of the batch
// was written; the damage says nothing about other ids.
//
// From: Log.Append, and what leads to it: Append.
// Do: run `partita verify`, which names the repair.
type LookupError struct {
	Partition messages.PartitionID
	// PLogOffsets are those of the refused events, in the order of the batch, at least
	// one.
	PLogOffsets []messages.PLogOffset
	// Cause is the damage that the first of them met.
	Cause error
}

func (e *LookupError) Error() string {
	return fmt.Sprintf("deduplication ids cannot be looked up: partition %d, offset %d (%d of the batch): %v",
		e.Partition, e.PLogOffsets[0], len(e.PLogOffsets), e.Cause)
}

// Unwrap returns the cause.
func (e *LookupError) Unwrap() error { return e.Cause }

// NumbersError names the first number of a Flush that the log does not bear out.
type NumbersError struct {
	Partition messages.PartitionID
	Workspace messages.WSID
	Seq       messages.SeqID
	// Period is zero if the sequence never restarts.
	Period     calendar.Date
	Got, Want  messages.Number
	Checkpoint messages.PLogOffset
}

func (e *NumbersError) Error() string {
	period := ""
	if e.Period != 0 {
		period = fmt.Sprintf(", period %v", e.Period)
	}
	return fmt.Sprintf("%v: partition %d, workspace %d, sequence %d%s, before offset %d: got %d, want %d",
		ErrNumbers, e.Partition, e.Workspace, e.Seq, period, e.Checkpoint, e.Got, e.Want)
}

// Is makes errors.Is(err, ErrNumbers) hold.
func (e *NumbersError) Is(target error) bool { return target == ErrNumbers }
