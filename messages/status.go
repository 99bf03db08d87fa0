package messages

import (
	"fmt"

	"github.com/partita-go/partita/calendar"
)

// PartitionState is the life-cycle state of a partition.
type PartitionState uint8

// The states of a partition.
const (
	// StateInitializing: it replays the tail of its log; Start is busy.
	StateInitializing PartitionState = iota
	// StateNormal: it takes transactions.
	StateNormal
	// StateAlarming: it takes transactions, but something is wrong that Details name: flushing fails, it has been busy
	// for long, a leaf hangs, or a sequence will end. Or it refuses them: its clock is wrong, then Err is ErrClock; or
	// there is no room, then Full says so.
	StateAlarming
	// StateTerminating: it finishes what is in flight.
	StateTerminating
	// StateTerminated: it has ended.
	StateTerminated
	// StateFailed: it cannot go on before somebody repairs what Err names.
	StateFailed
)

func (s PartitionState) String() string {
	switch s {
	case StateInitializing:
		return "initializing"
	case StateNormal:
		return "normal"
	case StateAlarming:
		return "alarming"
	case StateTerminating:
		return "terminating"
	case StateTerminated:
		return "terminated"
	case StateFailed:
		return "failed"
	}
	return fmt.Sprintf("state %d", uint8(s))
}

// PartitionStatus is a partition's state with details, as of its last change. Last and Checkpoint are as of the time of
// asking.
type PartitionStatus struct {
	Partition PartitionID
	State     PartitionState
	Epoch     Epoch
	// Last is the offset of the last event.
	Last PLogOffset
	// Checkpoint is the next offset to replay: see Unflushed.
	Checkpoint PLogOffset
	// Details say in words what State and the fields below are about, "" if there is nothing to say.
	Details string
	// Replayed counts the events of the last actualization, Tail those that it has to replay: while it lasts, Replayed is
	// that of the last change.
	Replayed, Tail uint64
	// Actualizations counts how often the tail was replayed.
	Actualizations uint64
	// FlushFailures counts the failures in a row of the flush under way.
	FlushFailures int
	// Restarts counts how often the actor was restarted after a panic.
	Restarts uint64
	// Abandoned counts leaves that hung in storage when the partition stopped.
	Abandoned int
	// Clean says of a terminated partition that everything durable is in the
	// projections.
	Clean bool
	// Err is the last error: why it failed, or why flushing or actualizing fails.
	Err error
	// NearlyUsed are sequences of which more than 90 % is used, see [Sequence.NearlyUsed], in the order in which the
	// partition noticed it: when a number was given out, or a workspace was loaded. There are at most MaxNearlyUsed:
	// of further ones it says nothing. A partition that begins anew has noticed none. Of a sequence that restarts it
	// lists periods, each until it is over or closed. One that was over when a late event was given a number of it
	// is listed until the next period begins.
	NearlyUsed []NearlyUsed
	// Displaced says that the directory of the store is not under its name any more, nil if it is, as of the last
	// flush of any partition. It is storage.ErrDisplaced; the partition works on in the directory that it has.
	Displaced error
	// Full says that the store has no room for what is appended, nil if it has. It is storage.ErrFull; it ends by
	// itself when there is room, whether anybody appends or not.
	Full error
}

// Unflushed returns how many events are in the log and not in the projections yet: a start would replay them.
func (s *PartitionStatus) Unflushed() uint64 {
	if s.Checkpoint == 0 || s.Last < s.Checkpoint {
		return 0 // there are none, or it is not known yet where it stands
	}
	return uint64(s.Last + 1 - s.Checkpoint)
}

// MaxNearlyUsed is how many sequences a partition's status lists as nearly used.
const MaxNearlyUsed = 16

// NearlyUsed is a sequence of a workspace of which more than 90 % is used.
type NearlyUsed struct {
	Workspace WSID
	Seq       SeqID
	// Period is the one whose numbers are nearly used, zero if the sequence never restarts.
	Period calendar.Date
	// Name is the sequence's.
	Name string
	// Last is the last number given out, as of the last change of the status, Largest the last one that can be.
	Last, Largest Number
}

// SameSequence reports whether both are of the same sequence of the same workspace, and of the same period.
func (n NearlyUsed) SameSequence(as NearlyUsed) bool {
	return n.Workspace == as.Workspace && n.Seq == as.Seq && n.Period == as.Period
}
