package storage

import (
	"context"

	"github.com/partita-go/partita/messages"
)

// Subscriptions is implemented by stores that keep where durable consumers stand. It is not
// part of the log, and cannot be derived from it.
//
// Its writes have the outcomes that those of [Store] have. Each is ErrClosed in a closed store,
// and ErrReadOnly in one that is only read. What is returned is the caller's own.
type Subscriptions interface {
	// SubscriptionNames returns the names of all that are kept, in their order, also of those
	// that are damaged.
	SubscriptionNames(ctx context.Context) ([]string, error)

	// Subscription returns the one of a name, or ErrNoSubscription. Of what is parked it has
	// the number alone, and takes no longer if there is more of it. With a [DamagedError] it
	// returns what is known all the same, if anything is. A position beyond its log is one, also
	// when the log has grown past it since; so is one that rests on another log's event.
	Subscription(ctx context.Context, name string) (Subscription, error)

	// ParkedEvents returns events that a subscription has parked, in order of partition and
	// offset, those behind a place: so many, or all that are left. It reads no others. With a
	// [DamagedError] it returns those before what is damaged. It returns ErrNoSubscription if
	// there is no subscription of the name. [AllParked] reads them to the end.
	ParkedEvents(ctx context.Context, name string, after ParkedEvent, limit int) ([]ParkedEvent, error)

	// PutSubscription makes a subscription as it is given, position, parked events and all, or
	// does nothing but check that what is there has the same source and kinds: else it is
	// ErrSubscription. It is durable when the call returns.
	PutSubscription(ctx context.Context, s Subscription) error

	// MoveSubscription changes where a subscription stands, all of it or nothing, durable
	// when the call returns. Changes that wait at the same time share one commit, each
	// accepted or refused alone. It returns ErrNoSubscription, ErrSubscription, ErrFull,
	// ErrClosed, ErrOutcomeUnknown of package messages.
	MoveSubscription(ctx context.Context, m SubscriptionMove) error

	// DeleteSubscription forgets a subscription, and what it has parked. It returns
	// ErrNoSubscription if there is none.
	DeleteSubscription(ctx context.Context, name string) error
}

// Limits of subscriptions, in bytes.
const (
	// MaxSubscriptionName is how long a subscription's name may be.
	MaxSubscriptionName = 200
	// MaxSubscriptionReason is how much of a reason is kept, why a subscription has stopped or
	// an event is parked. Stores cut off the rest.
	MaxSubscriptionReason = 4096
)

// Subscription is a durable consumer, and where it stands.
type Subscription struct {
	// Name is UTF-8 without control characters, neither empty nor too long.
	Name string
	SubscriptionSource
	// Stopped says why it delivers nothing, until somebody resumes it: "" if it does,
	// "paused", or the error because of which it has stopped.
	Stopped string
	// Next is the next offset of each log that it reads: of the workspace's log, or by
	// PartitionID of the partitions' logs. A workspace's log stands under its own
	// partition. A log that is not in it is read from 1 on.
	Next map[messages.PartitionID]uint64
	// Parked are the events that it could not handle, in order of partition and offset. They
	// lie before the position of their log. PutSubscription parks them; Subscription, which
	// may have thousands, leaves them out, and ParkedEvents reads them.
	Parked []ParkedEvent
	// ParkedCount is how many are parked, as Subscription found it.
	ParkedCount uint64
}

// SubscriptionSource is what a subscription reads.
type SubscriptionSource struct {
	// One of these is set, or neither: then it reads all partitions of the application.
	Partition *messages.PartitionID
	Workspace *messages.WSID
	// Kinds are those of the workspaces whose events are delivered, in ascending order; none
	// means all. The others are passed over.
	Kinds []messages.WSKind
}

// ParkedEvent is an event that a subscription has given up, and why.
type ParkedEvent struct {
	Partition messages.PartitionID
	// Offset is that of the log which the subscription reads: the workspace's, or the
	// partition's.
	Offset uint64
	Reason string
	// Tries is how often its handler was called with it, At when it was parked.
	Tries uint32
	At    messages.Timestamp
}

// SubscriptionMove is a change of where a subscription stands.
type SubscriptionMove struct {
	Name string
	// Next are the logs whose positions change. What is parked at a new position or behind
	// it is parked no more, since it will be delivered again.
	Next map[messages.PartitionID]uint64
	// Stopped, if set, is the new reason why nothing is delivered, "" for none.
	Stopped *string
	// Park and Unpark are events to be added to, and taken from, what is parked: taken
	// first, and by partition and offset alone. Taking one that is not there is harmless;
	// adding one that is there replaces it. Those added lie before the position that their
	// log has after the move.
	Park, Unpark []ParkedEvent
}
