package messages

import (
	"cmp"
	"fmt"

	"github.com/partita-go/partita/calendar"
	"github.com/partita-go/partita/ids"
)

// EventKind says what an event is. Kinds other than [EventBusiness] are
// reserved for later.
type EventKind uint8

// EventBusiness is an event of the application.
const EventBusiness EventKind = 1

// MaxEventNumbers is how many numbers one event can be given.
const MaxEventNumbers = 1 << 17

// MaxEventBytes is how large an event may be, its body and records together, in bytes, about. Of a larger one Commit and
// Write return ErrInvalidEvent of package storage. Append and Execute return [ErrTooLarge], also above the setting
// GroupBytes.
const MaxEventBytes = 16 << 20

// MaxReservedTag is the last tag of a section that the runtime keeps for itself,
// from 1 on.
const MaxReservedTag = 15

// Event is one entry of a partition's log and of its workspace's log.
type Event struct {
	Kind          EventKind
	Epoch         Epoch
	Partition     PartitionID
	PLogOffset    PLogOffset
	Workspace     WSID
	WorkspaceKind WSKind
	WLogOffset    WLogOffset

	// RegisteredAt never decreases within a partition.
	RegisteredAt Timestamp

	// Numbers are the numbers given out to this event, in order. The offset in
	// the workspace's log is a number too, but stands in WLogOffset only.
	Numbers []SequenceNumber

	// Moves are the sequences that the event has moved forward, in order, without giving a number: behind all numbers
	// of the event, so that the last number of each, in its period, is Number now.
	Moves []SequenceNumber

	// Brought is how many of Numbers, from the first one on, the event has brought along from an old system
	// instead of being given them: each is above the last one of its sequence and period, which goes on above it. So
	// what lies between is no number that was lost.
	Brought uint32

	// Date is the business date that was given with the event, zero if none was. Then it
	// says in which periods the numbers are, of sequences that restart.
	Date calendar.Date

	// Zone is the time zone that the event gives its workspace, from the next period of each sequence
	// on, empty if none. The event's own numbers are of the periods of the zone before.
	Zone string

	Body []byte

	// Records are the rows that the event writes. Of several writes of one row the
	// last counts; only the first may create it.
	Records []Record

	// DedupID is the append's deduplication id, zero if it has none. It stands in
	// the first event of the append.
	DedupID DedupID

	// Together is how many events were appended together with this one and stand
	// behind it in both logs. It stands in the first event of the append.
	Together uint32

	// Trace names the trace that the event belongs to, zero if none was given: see [ids.TraceID]. It names
	// nothing else, and need not be of that layout.
	Trace ids.TraceID

	// Sections are optional tagged data that readers which do not know the tag
	// pass over and keep.
	Sections []Section
}

// SequenceNumber is one number of one sequence of a workspace.
type SequenceNumber struct {
	Seq SeqID
	// Period is the first day of the period that the number is of, zero if the sequence never
	// restarts: see [Restart]. It was decided once, and is never computed again.
	Period calendar.Date
	Number Number
}

// String returns the number as "sequence/number", and with a period as "sequence/2026-03-29/number".
func (n SequenceNumber) String() string {
	if n.Period == 0 {
		return fmt.Sprintf("%d/%d", n.Seq, n.Number)
	}
	return fmt.Sprintf("%d/%v/%d", n.Seq, n.Period, n.Number)
}

// Record returns the id of a record that has the number. Sequences that restart have none.
func (n SequenceNumber) Record() RecordID { return RecordID{Seq: n.Seq, Number: n.Number} }

// ComparePlace orders numbers by sequence, then by period, whatever the numbers are.
func (n SequenceNumber) ComparePlace(other SequenceNumber) int {
	if n.Seq != other.Seq {
		return int(n.Seq) - int(other.Seq)
	}
	return cmp.Compare(n.Period, other.Period)
}

// SequencePeriod returns where the number is unique: its sequence and period.
func (n SequenceNumber) SequencePeriod() SequencePeriod { return SequencePeriod{n.Seq, n.Period} }

// SequencePeriod is a sequence of a workspace in one period.
type SequencePeriod struct {
	Seq    SeqID
	Period calendar.Date
}

// String names the sequence, and the period if it has one.
func (p SequencePeriod) String() string {
	if p.Period == 0 {
		return fmt.Sprintf("sequence %d", p.Seq)
	}
	return fmt.Sprintf("sequence %d in %v", p.Seq, p.Period)
}

// Compare orders by sequence, then by period.
func (p SequencePeriod) Compare(other SequencePeriod) int {
	return cmp.Or(cmp.Compare(p.Seq, other.Seq), cmp.Compare(p.Period, other.Period))
}

// RecordID names a record within its workspace: a number of a sequence. The
// sequence is part of the key, so records of two sequences never meet.
type RecordID struct {
	Seq    SeqID
	Number Number
}

// SequenceNumber returns the number that the id is, or would be, of a sequence that never restarts.
func (id RecordID) SequenceNumber() SequenceNumber {
	return SequenceNumber{Seq: id.Seq, Number: id.Number}
}

// String returns the id as "sequence/number".
func (id RecordID) String() string { return fmt.Sprintf("%d/%d", id.Seq, id.Number) }

// Record is a row of a workspace as an event writes it.
type Record struct {
	ID RecordID

	// New says that the record is created by this event. At trust level 0 a new
	// record is written only if its key is free; an update is always a put, be there
	// a row or not. It must not be of a number that its sequence has still to give
	// out: see [RecordAheadError]. Partitions and typed clients refuse it, the store
	// does not: whoever writes an event of his own sees to it.
	New bool

	Data []byte
}

// Section is one piece of an event's tagged optional data. Tags from 1 to
// [MaxReservedTag] are refused.
type Section struct {
	Tag  uint16
	Data []byte
}
