package replog

import "context"

// NodeID names a node among those that keep a log.
type NodeID string

// Log is one node's side of a replicated log of entries that has at most one accepted writer at any place. All methods but
// Start may be called concurrently, and by a [Replica] too; Start comes first, once.
type Log interface {
	// Start lets the replica have every accepted entry behind a position, from now on until Close. It returns at once.
	// ErrBehind and ErrAhead if this node's log cannot give it those.
	Start(from Position, r Replica) error

	// Append writes an entry behind the head prev, of at most [MaxEntry] bytes. It keeps nothing of the body that the caller
	// changes later, but the replica may be given the very same bytes. Of several that are under way at one prev one is
	// accepted at most.
	//
	// nil: the entry is on the disks of a majority, and the replica here has applied it.
	//
	// ErrNotOwner, ErrMoved, ErrTooLarge, ErrClosed, or the context's error if it ended before: it is not there, and never
	// will be.
	//
	// [messages.ErrOutcomeUnknown]: it is there, or will be, or never will be. As soon as any other entry was accepted behind
	// prev it is void. This node's leadership has ended before Append returns: it takes nothing more until it leads anew, and
	// then the entry was applied, or is void.
	Append(ctx context.Context, prev uint64, body []byte) error

	// Verify returns nil if this node led at some moment during the call: so the replica here has applied all that anybody
	// was told to be there before the call. ErrNotOwner if it does not lead, also while it has not begun yet; ErrClosed; the
	// context's error.
	Verify(ctx context.Context) error

	// Leadership returns who leads as far as this node knows, and a channel that is closed when that changes. A state and a
	// bell instead of a channel of events: the store and the node above it both want to know, a slow one delays nobody, and
	// whoever comes late sees how it is.
	Leadership() (Leadership, <-chan struct{})

	// Transfer asks another node to lead. It returns nil when this one does not lead any more. ErrNotOwner if this node does
	// not lead; another error if the other node cannot, or does not answer: this one leads on then, perhaps anew, unless the
	// other one has heard it all the same.
	Transfer(ctx context.Context, to NodeID) error

	// Trim says that the replica has on its disk what the entries up to an index say. It never needs them again, and this
	// node may forget them when it likes. It does not block.
	Trim(index uint64)

	// Close ends this node's part. No entry is under way to the replica when it returns. An Append that has no answer yet is
	// told ErrOutcomeUnknown. Closing twice is harmless.
	Close() error
}

// Replica is what a node makes of the log.
type Replica interface {
	// Apply takes an accepted entry: each of the log once, in their order, the same on all nodes; one at a time. at is where
	// the log stands with it: the replica stores that together with what it makes of the entry, and gives it to Start
	// when it comes back. The body may be kept, and must not be changed.
	//
	// An error stops this replica: it is given nothing more, and leads no more. So there is no refusing: whatever could be
	// wrong with an entry was judged by whoever wrote it.
	Apply(at Position, body []byte) error
}

// Leadership is who leads, as far as a node knows.
type Leadership struct {
	// Term is 0 while this node does not lead. Else it is another one at each beginning. It begins when the replica here has
	// applied all entries of earlier leaders.
	Term uint64
	// Leader is who leads or is about to, "" if this node does not know.
	Leader NodeID
	// Stopped is why the replica here is given nothing more: what its Apply returned, ErrDiverged, ErrBehind, or what has
	// happened to the log's own disk. nil while it is.
	Stopped error
}
