package messages

import (
	"fmt"

	"github.com/partita-go/partita/calendar"
	"github.com/partita-go/partita/ids"
)

// Token names a sequencing transaction. [Started] gives it and every later
// message of the transaction repeats it.
type Token struct {
	Partition  PartitionID
	Epoch      Epoch
	PLogOffset PLogOffset
	// Serial tells transactions apart that were granted the same offset one
	// after the other, because the earlier ones were cancelled.
	Serial uint64
	// Trace is that of the [Start], zero for none, so that whatever names the transaction names it too.
	Trace ids.TraceID
	// Secret is drawn at random: a partition believes what the owner of a transaction says, and nobody else can
	// guess it.
	Secret uint64 `dump:"hidden"`
}

// String leaves the secret out.
func (t Token) String() string {
	return fmt.Sprintf("partition %d, epoch %d, offset %d, serial %d", t.Partition, t.Epoch, t.PLogOffset, t.Serial)
}

// PartitionMessage is what a partition actor takes. It is sealed: the owner's
// requests below, and the answers of leaves and timers in partition.go.
//
//sumtype:decl
type PartitionMessage interface{ partitionMessage() }

// Start asks for a sequencing transaction. It is answered by [Started] or
// [Refused], when its turn has come: first come, first served.
type Start struct {
	Workspace WSID
	Kind      WSKind

	// WatchOwner says that the sender is an actor: the transaction is given up
	// when that actor stops.
	WatchOwner bool

	// WithNumbers asks for the workspace's last numbers: the owner counts itself
	// instead of asking with Next and Raise, and says in Flush how far it got.
	WithNumbers bool

	// Date is the business date of the transaction's event, as in [Draft].
	Date calendar.Date

	// Zone is the time zone that the transaction's event gives the workspace, as in [Draft].
	Zone string

	// Trace names the trace that the transaction belongs to. Its owner writes it into the event. Zero means none.
	Trace ids.TraceID

	// Span is as in [Append].
	Span ids.SpanID

	// Deadline is when the sender stops waiting; a Start that is taken later is
	// answered with ErrDeadlineExceeded and never granted. It is by the partition's
	// clock. Zero means none.
	Deadline Timestamp
}

// Next asks for the next Count numbers of a sequence, which follow each other. Zero means
// one. It is answered by [Given] or, if it cannot have all of them, by [Refused]; either way
// the transaction stays open.
type Next struct {
	Token Token
	Seq   SeqID
	Count uint32
}

// Raise announces that the transaction's event brings along an explicit id of
// a new record. The sequence goes on above it; an id below the initial value or
// not above the last number given out changes nothing. It is answered by
// [Raised] or [Refused]; either way the transaction stays open.
type Raise struct {
	Token Token
	ID    RecordID
}

// Flush ends a transaction whose event is durable. It is answered by [Flushed]
// or [Refused]. A late or repeated Flush is answered from the log: Flushed if
// the event is there under the token's epoch and offset, else ErrFenced. Of a
// transaction that was cancelled it must not be asked: its offset is somebody else's.
type Flush struct {
	Token Token

	// Last are the workspace's last numbers with those of the transaction, if its
	// owner has counted them itself, as in [Started]; else nil. Numbers that cannot
	// be are refused with ErrCounted, and the transaction stays open.
	Last []Number
}

// Actualize ends a transaction whose write failed or has an unknown outcome:
// its numbers are dropped and the tail of the log is replayed under a new epoch.
// It is answered by [Actualizing] or [Refused].
type Actualize struct{ Token Token }

// Cancel ends a transaction of which no write was begun, or whose write was
// refused: its numbers go back. It is answered by [Cancelled] or [Refused].
type Cancel struct{ Token Token }

func (*Start) partitionMessage()     {}
func (*Next) partitionMessage()      {}
func (*Raise) partitionMessage()     {}
func (*Flush) partitionMessage()     {}
func (*Actualize) partitionMessage() {}
func (*Cancel) partitionMessage()    {}

// SequencerReply is what a partition answers to the owner of a transaction.
//
//sumtype:decl
type SequencerReply interface{ sequencerReply() }

// Started grants a transaction. The owner writes its event under the token's
// epoch at exactly these offsets, with exactly this time.
type Started struct {
	Token        Token
	WLogOffset   WLogOffset
	RegisteredAt Timestamp

	// Last are the last numbers given out in the workspace, in order of the kind's
	// sequences with the built-in ones ([Kind.All]); that of the WLog offset is
	// WLogOffset. They are there if Start asked for them, and are the receiver's own.
	Last []Number

	// Periods are those that the transaction's numbers are of, in the same order, and so are their
	// last numbers; zero for sequences that never restart. Nil if none of the kind's does. They are
	// there if Last is.
	Periods []calendar.Date
}

// Given answers Next with the first of the numbers, and with their period.
type Given struct {
	Number Number
	Period calendar.Date
}

// Raised answers Raise.
type Raised struct{}

// Flushed answers Flush.
type Flushed struct{}

// Actualizing answers Actualize: the transaction has ended, and the partition
// is busy until the tail of its log is replayed.
type Actualizing struct{}

// Cancelled answers Cancel.
type Cancelled struct{}

// Refused answers any request that was not granted. Err is one of the errors of
// this package or of the store, to be told with errors.Is and errors.As.
type Refused struct{ Err error }

func (*Started) sequencerReply()     {}
func (*Given) sequencerReply()       {}
func (*Raised) sequencerReply()      {}
func (*Flushed) sequencerReply()     {}
func (*Actualizing) sequencerReply() {}
func (*Cancelled) sequencerReply()   {}
func (*Refused) sequencerReply()     {}
