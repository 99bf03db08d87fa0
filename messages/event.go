package messages

import "fmt"

// EventKind says what an event is. Kinds other than [EventBusiness] are
// reserved for later.
type EventKind uint8

// EventBusiness is an event of the application.
const EventBusiness EventKind = 1

// MaxEventNumbers is how many numbers one event can be given.
const MaxEventNumbers = 1 << 17

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

	// Sections are optional tagged data that readers which do not know the tag
	// pass over and keep.
	Sections []Section
}

// SequenceNumber is one number of one sequence of a workspace.
type SequenceNumber struct {
	Seq    SeqID
	Number Number
}

// RecordID names a record within its workspace: a number of a sequence. The
// sequence is part of the key, so records of two sequences never meet.
type RecordID struct {
	Seq    SeqID
	Number Number
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
	// does not: who writes an event of his own sees to it.
	New bool

	Data []byte
}

// Section is one piece of an event's tagged optional data. Tags from 1 to
// [MaxReservedTag] are refused.
type Section struct {
	Tag  uint16
	Data []byte
}
