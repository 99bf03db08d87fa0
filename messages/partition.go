package messages

import (
	"github.com/partita-go/partita/calendar"
	"github.com/partita-go/partita/ids"
)

// WorkspaceNumbers are a workspace's kind and the last numbers given out in its
// sequences, in order of their ids. A sequence that is not listed gave none.
type WorkspaceNumbers struct {
	Workspace WSID
	// Kind is 0 if the workspace has no events, and in a flush also if its kind is
	// stored already.
	Kind WSKind
	// Numbers are ordered by sequence and period.
	Numbers []SequenceNumber
	// Closed says of sequences, in order, which period is the first that is not closed.
	Closed []SequencePeriod
	// Older are the sequences, in order, that have older periods which are listed only if they are asked for.
	Older []SeqID
	// Zones are the changes of the workspace's time zone that may still count, none if it has no zone of its
	// own. A change counts for each sequence that restarts from its next period on: see [calendar.Zones]. In
	// a flush there are none: the store takes them from the log.
	Zones calendar.Zones
}

// Of returns the last numbers of a sequence in order of their periods. If there is none, it is one number that is 0.
func (w *WorkspaceNumbers) Of(seq SeqID) []SequenceNumber {
	var all []SequenceNumber
	for _, n := range w.Numbers {
		if n.Seq == seq {
			all = append(all, n)
		}
	}
	if len(all) == 0 {
		all = []SequenceNumber{{Seq: seq}}
	}
	return all
}

// Register is where a partition stands.
type Register struct {
	Epoch Epoch
	// Last is the offset of the partition's last event, 0 if it has none.
	Last PLogOffset
	// LastRegisteredAt is the time of the last event, 0 if there is none.
	LastRegisteredAt Timestamp
	// Checkpoint is the next offset to replay, at least 1: the projections hold
	// exactly the events before it.
	Checkpoint PLogOffset
}

// Outcome is how a leaf's work ended, as far as the partition must know.
type Outcome uint8

const (
	// Done: it succeeded.
	Done Outcome = iota
	// Retry: it failed and may succeed later.
	Retry
	// Diverged: what the partition holds is not what the log says; the tail must
	// be replayed.
	Diverged
	// Broken: it cannot succeed before somebody repairs something.
	Broken
)

// WriteOutcome is how the writing of a batch ended, as far as the partition must
// know.
type WriteOutcome uint8

const (
	// WriteDone: all of it is durable.
	WriteDone WriteOutcome = iota
	// WriteRefused: nothing was written, because of the events that are named; if
	// none is, because of one that nobody knows.
	WriteRefused
	// WriteFailed: nothing was written, and trying again is of no use now.
	WriteFailed
	// WriteTailFull: nothing was written. A flush makes room.
	WriteTailFull
	// WriteDiverged: nothing was written, since the log is not as the partition
	// holds it, or takes nothing any more; the tail must be replayed.
	WriteDiverged
	// WriteFenced: nothing was written, and never will be: the partition was taken
	// over.
	WriteFenced
	// WriteUnknown: all of it was written, or nothing.
	WriteUnknown
)

// EventsWritten is the appender's answer to [WriteEvents].
type EventsWritten struct {
	Generation uint64
	// First is the offset of the batch's first event.
	First   PLogOffset
	Outcome WriteOutcome
	// Refused are the events that WriteRefused is about, in order, as far as they
	// are known.
	Refused []RefusedEvent
	Err     error
	// Trace is the one that all events of the batch are of, zero if they have none in common.
	Trace ids.TraceID
}

// RefusedEvent is an event that the log does not take.
type RefusedEvent struct {
	PLogOffset PLogOffset
	// Duplicate is the offset in the workspace's log of the event that has the same
	// deduplication id, 0 if that is not why.
	Duplicate WLogOffset
	// Taken is the number of the workspace whose key is taken: an offset in its log,
	// or the id of a new record. Zero if that is not why.
	Taken SequenceNumber
}

// EventsLoaded is the reader's answer to [LoadEvents].
type EventsLoaded struct {
	Generation uint64
	Load       uint64
	// Events are the first one and all that were appended together with it, none if
	// the log has no event with the id.
	Events []Event
	Err    error
	// Trace is that of the request.
	Trace ids.TraceID
}

// Loaded is the reader's answer to [LoadNumbers].
type Loaded struct {
	Generation uint64
	Load       uint64
	Numbers    WorkspaceNumbers
	Err        error
	// Trace is that of the request.
	Trace ids.TraceID
}

// Written is the flusher's answer to [WriteProjections].
type Written struct {
	Generation uint64
	Checkpoint PLogOffset
	Outcome    Outcome
	Err        error
	// PLogOffset is the event that Err is about, 0 if it is about none.
	PLogOffset PLogOffset
}

// Taken is the actualizer's first answer to [Replay]: the new epoch is durable.
type Taken struct {
	Generation uint64
	Register   Register
}

// Replayed is a piece of the log's tail. The actualizer sends the next one when
// it gets [Credit].
type Replayed struct {
	Generation uint64
	Events     []Numbering
}

// ReplayFailed is the actualizer's last word if it could not go on.
type ReplayFailed struct {
	Generation uint64
	Outcome    Outcome
	Err        error
	// PLogOffset is the event that Err is about, 0 if it is about none.
	PLogOffset PLogOffset
	// Elsewhere says that the log is another node's now: a stop waits for no other try.
	Elsewhere bool
}

// Found is the reader's answer to [FindEvent].
type Found struct {
	Generation uint64
	Token      Token
	// Present says that the event at the token's offset has the token's epoch.
	Present bool
	Err     error
}

// OwnerStopped says that the actor that owns the open transaction is gone.
type OwnerStopped struct{ Token Token }

// Timer names one of the partition's timers.
type Timer uint8

// The partition's timers. Each is armed only while there is something to wait for.
const (
	TimerFlush Timer = iota
	TimerFlushRetry
	TimerTransaction
	TimerActualizeRetry
	TimerCatchUp
	TimerStop
	// TimerClock looks again at a clock that is not trusted.
	TimerClock
	// TimerPeriod comes when a period is over of which the status tells.
	TimerPeriod
	// TimerAlarm looks whether anything does not get on. It is the shell's own: the core never asks for it.
	TimerAlarm
	// Timers is the number of timers.
	Timers
)

// TimerFired says that a timer's time has come.
type TimerFired struct{ Timer Timer }

// Stop asks the partition to finish what is in flight, flush and end. It is
// answered by [Stopped].
type Stop struct{}

// Stopped is the answer to [Stop].
type Stopped struct {
	// Clean says that everything durable is in the projections, so that the next
	// start replays nothing.
	Clean bool
	// Abandoned is the number of leaves that hang in storage and were left behind.
	Abandoned int
}

// Reconfigure changes the settings while the partition runs. It is answered by
// [Reconfigured]; the settings must be valid.
type Reconfigure struct{ Settings Settings }

// Reconfigured is the answer to [Reconfigure].
type Reconfigured struct{}

func (*Loaded) partitionMessage()        {}
func (*Written) partitionMessage()       {}
func (*Taken) partitionMessage()         {}
func (*Replayed) partitionMessage()      {}
func (*ReplayFailed) partitionMessage()  {}
func (*Found) partitionMessage()         {}
func (*EventsWritten) partitionMessage() {}
func (*EventsLoaded) partitionMessage()  {}
func (*OwnerStopped) partitionMessage()  {}
func (*TimerFired) partitionMessage()    {}
func (*Stop) partitionMessage()          {}
func (*Reconfigure) partitionMessage()   {}

// FlusherMessage is what a partition's flusher takes.
//
//sumtype:decl
type FlusherMessage interface{ flusherMessage() }

// WriteProjections asks the flusher to move the projections from one checkpoint
// to the next. It is answered by [Written].
type WriteProjections struct {
	Generation uint64
	Epoch      Epoch
	Expected   PLogOffset
	Checkpoint PLogOffset
	Numbers    []WorkspaceNumbers
}

func (*WriteProjections) flusherMessage() {}

// AppenderMessage is what a partition's appender takes.
//
//sumtype:decl
type AppenderMessage interface{ appenderMessage() }

// WriteEvents asks the appender to write a batch of events, all or nothing. It is
// answered by [EventsWritten]. The message and what it refers to stay as they are
// until then.
type WriteEvents struct {
	Generation uint64
	Epoch      Epoch
	Events     []Event
}

func (*WriteEvents) appenderMessage() {}

// ActualizerMessage is what a partition's actualizer takes.
//
//sumtype:decl
type ActualizerMessage interface{ actualizerMessage() }

// Replay asks the actualizer to take a new epoch and to send the tail of the log
// from the checkpoint on. It is answered by [Taken], then [Replayed] for each
// [Credit], or [ReplayFailed].
type Replay struct{ Generation uint64 }

// Credit asks the actualizer for the piece of the tail that begins at From.
type Credit struct {
	Generation uint64
	From       PLogOffset
}

// EndReplay tells the actualizer that the partition needs no more of the tail, or
// not before the next Credit: others may replay.
type EndReplay struct{ Generation uint64 }

func (*Replay) actualizerMessage()    {}
func (*Credit) actualizerMessage()    {}
func (*EndReplay) actualizerMessage() {}

// ReaderMessage is what a partition's reader takes.
//
//sumtype:decl
type ReaderMessage interface{ readerMessage() }

// LoadNumbers asks for the stored numbers of a workspace. It is answered by
// [Loaded].
type LoadNumbers struct {
	Generation uint64
	Load       uint64
	Workspace  WSID
	// Periods are those whose numbers are needed besides the newest ones.
	Periods []SequencePeriod
	// Trace is that of the request because of which they are loaded first, zero if it has none.
	Trace ids.TraceID
}

// FindEvent asks whether the event at a token's offset was written under the
// token's epoch. It is answered by [Found].
type FindEvent struct {
	Generation uint64
	Token      Token
}

// LoadEvents asks for the events of the append that had a deduplication id. It is
// answered by [EventsLoaded].
type LoadEvents struct {
	Generation uint64
	Load       uint64
	Workspace  WSID
	DedupID    DedupID
	// First is the offset of its first event, 0 if it is not known whether there is
	// one.
	First WLogOffset
	// Trace is that of the [Append] because of which they are looked for, zero if it has none.
	Trace ids.TraceID
}

func (*LoadNumbers) readerMessage() {}
func (*FindEvent) readerMessage()   {}
func (*LoadEvents) readerMessage()  {}
