package messages

import (
	"encoding/hex"
	"math"

	"github.com/partita-go/partita/calendar"
	"github.com/partita-go/partita/ids"
)

// DedupID is a caller's name for an append, so that it can be repeated without
// doubt: 16 bytes, for instance a UUID. It is unique within its workspace for the
// life of the log. The zero value means none.
type DedupID [16]byte

// String returns the id in hexadecimal.
func (id DedupID) String() string { return hex.EncodeToString(id[:]) }

// IsZero reports whether there is none.
func (id DedupID) IsZero() bool { return id == DedupID{} }

// Wanted asks for the next Count numbers of a sequence. Zero means one.
type Wanted struct {
	Seq   SeqID
	Count uint32
}

// Numbers is how many numbers that are, at most 2,147,483,647: more than any event can have.
func (w Wanted) Numbers() int { return max(1, int(min(w.Count, math.MaxInt32))) }

// AppendNumbers appends to dst the numbers that were given, of which the first is known, and
// returns it.
func AppendNumbers(dst []SequenceNumber, w Wanted, first SequenceNumber) []SequenceNumber {
	for range w.Numbers() {
		dst = append(dst, first)
		first.Number++
	}
	return dst
}

// Draft is an event that has no numbers yet.
type Draft struct {
	// Wanted are the numbers that the event is to be given, in this order.
	Wanted []Wanted

	// Brought are numbers that the event brings along from an old system, as a historical invoice does: it has them
	// instead of new ones. They come before those that are wanted, in Event.Numbers too. Each must be above the last
	// number of its sequence and period, as the numbers before it leave it, else it is refused with a
	// [*BackwardError]; the sequence goes on above it. In a sequence that restarts, Period is the first day of the
	// number's period, which is checked as a business date is; zero means that of Date. No other sequence has one.
	Brought []SequenceNumber

	// Moves are sequences that the event moves forward without giving a number, to follow the last number of an
	// old system. They come behind all numbers of the event, and behind the ids of its new records: then Number is
	// the last one of its sequence and period. The rules are those of Brought.
	Moves []SequenceNumber

	// Body may refer to a number by its index among the numbers of the event, whose
	// list is stored with it.
	Body []byte

	// Records are the rows that it writes. Of several writes of one row the last
	// counts; only the first may create it.
	Records []DraftRecord

	// Date is the business date: it decides in which periods the numbers are, of sequences
	// that restart. Zero means the registration time. One in a period that is closed, or too far
	// ahead, is refused with a [*BusinessDateError].
	Date calendar.Date

	// Zone is a time zone that the workspace gets, by its name in the IANA's database, as "Europe/Zurich".
	// Empty means that it stays as it is. Each sequence that restarts goes by it from its next period
	// on, and no more by [Restart].Zone: see [WorkspaceNumbers].Zones. What is no such name is
	// refused with ErrZone, and a zone that changes too often with ErrZoneChange.
	Zone string
}

// Count returns how many numbers the draft wants or brings along.
func (d *Draft) Count() int {
	n := len(d.Brought)
	for _, w := range d.Wanted {
		n += w.Numbers()
	}
	return n
}

// DraftRecord is a row as a draft writes it.
type DraftRecord struct {
	// ID names the row. The id of a new record that is not one of the message's
	// numbers lifts its sequence, like [Raise]; that of another one must not be above
	// its sequence's last number, as the draft's event leaves it: see
	// [RecordAheadError]. The zero value means Number.
	ID RecordID

	// Number is the index of the row's id among the numbers of all drafts of the
	// message, in order: a later draft can refer to a record that an earlier one
	// creates. It is not looked at if ID is set.
	Number int

	// New says that the record is created by this event.
	New bool

	Data []byte
}

// Append asks for a whole transaction in one message: the drafts are numbered,
// written and made durable as consecutive events of the workspace, which become
// visible together or not at all. It is answered by [Appended] once they are
// durable, or by [Refused]: then nothing is left of them, unless the error is
// ErrOutcomeUnknown.
//
// The caller must not change what the message refers to before the answer.
type Append struct {
	Workspace WSID
	Kind      WSKind

	// Drafts are at least one, and at most the setting BatchEvents, and take at most
	// GroupBytes together; a repeated append that was written under higher settings is
	// recognised first.
	Drafts []Draft

	// DedupID, if set, makes the append happen once: if an event of the workspace
	// has the id, the answer is that of the append which wrote it, and nothing is
	// written. The same id with other drafts is refused with ErrDedupMismatch.
	DedupID DedupID

	// Expected, if set, refuses the append with an [*OffsetError] unless the last
	// offset of the workspace's log is this one; 0 means that it has no events. A
	// repeated append is recognised first.
	Expected *WLogOffset

	// Trace names the trace that the append belongs to, and stands in its events. Zero means none.
	Trace ids.TraceID

	// Span names the caller's span of the trace, for whoever makes spans. It is not stored. Zero means none.
	Span ids.SpanID

	// Deadline is when the sender stops waiting: an append that was not handed to
	// the store by then is refused with ErrDeadlineExceeded. It is by the partition's
	// clock. Zero means none.
	Deadline Timestamp
}

func (*Append) partitionMessage() {}

// Appended answers [Append]: its events are durable and readable.
type Appended struct {
	Partition PartitionID
	// PLogOffset and WLogOffset are those of the first draft's event; the others
	// follow it without a hole in both logs.
	PLogOffset PLogOffset
	WLogOffset WLogOffset
	// RegisteredAt is the time of all of them.
	RegisteredAt Timestamp
	// Numbers are what the drafts brought along and wanted, in their order.
	Numbers []SequenceNumber
	// Repeated says that an earlier append with the same DedupID wrote the events.
	Repeated bool
}

func (*Appended) sequencerReply() {}
