package messages

import (
	"cmp"

	"github.com/partita-go/partita/calendar"
	"github.com/partita-go/partita/ids"
)

// CommandProcessorMessage is what a command processor takes.
//
//sumtype:decl
type CommandProcessorMessage interface{ commandProcessorMessage() }

// Command asks a command processor to run the user's handler and to write one
// event. It is answered by [CommandDone] or [Refused].
type Command struct {
	Workspace WSID
	Kind      WSKind

	// RawRecords are the records that the command creates, each of which gets a
	// real id before the handler runs. A raw id that is used twice is refused.
	RawRecords []RawRecord

	Body []byte

	// DedupID and Expected are those of [Append], for a command processor that
	// appends; another one refuses them.
	DedupID  DedupID
	Expected *WLogOffset

	// Date is the business date of the command's event, as in [Draft]. Zero means the time at which it is
	// registered.
	Date calendar.Date

	// Zone is the time zone that the workspace gets, as in [Draft]. Empty means that it stays as it is.
	Zone string

	// Trace names the trace that the command belongs to: the handler's context carries it, and it stands in the
	// command's event. Zero means none.
	Trace ids.TraceID

	// Span is as in [Append].
	Span ids.SpanID

	// Deadline is when the sender stops waiting: the command is not begun later,
	// and its write not either. It is by the
	// partition's clock. Zero means that the transaction limit bounds it.
	Deadline Timestamp
}

// RawRecord is a new record of a command: a placeholder for an id of a sequence.
type RawRecord struct {
	ID RawID
	// Seq is the sequence that the real id comes from. Zero means SeqCRecordID.
	Seq SeqID
}

// Sequence is the sequence that the real id comes from.
func (r RawRecord) Sequence() SeqID { return cmp.Or(r.Seq, SeqCRecordID) }

func (*Command) commandProcessorMessage() {}

// CommandDone answers a command whose event is durable.
type CommandDone struct {
	Partition    PartitionID
	PLogOffset   PLogOffset
	WLogOffset   WLogOffset
	RegisteredAt Timestamp
	// IDs maps the command's raw ids to the real ones.
	IDs map[RawID]RecordID
	// Numbers are all numbers that the event was given, in order.
	Numbers []SequenceNumber
	// Repeated says that an earlier command with the same DedupID wrote the event.
	Repeated bool
}
