package messages

import (
	"fmt"

	"github.com/partita-go/partita/ids"
)

// LaneState is where a lane of a subscription stands.
type LaneState uint8

// The states of a lane.
const (
	// LaneLoading: it asks the store where it stands.
	LaneLoading LaneState = iota
	// LaneWaiting: it has handled all that there is.
	LaneWaiting
	// LaneReading: it reads the next batch.
	LaneReading
	// LaneHandling: the handler has a batch.
	LaneHandling
	// LaneStoring: what was handled becomes durable.
	LaneStoring
	// LaneRetrying: something has failed, and is tried again after a while.
	LaneRetrying
	// LaneHalted: the subscription is paused or has stopped, until somebody resumes it.
	LaneHalted
	// LaneHeld: somebody changes where it stands.
	LaneHeld
	// LaneFailed: it cannot go on before somebody repairs what Err names and resumes it.
	LaneFailed
	// LaneEnded: it delivers nothing any more.
	LaneEnded
)

func (s LaneState) String() string {
	names := [...]string{
		"loading", "waiting", "reading", "handling", "storing", "retrying", "halted", "held", "failed", "ended",
	}
	if int(s) < len(names) {
		return names[s]
	}
	return fmt.Sprintf("state %d", uint8(s))
}

// LaneStatus is a lane's state with details, as of its last change.
type LaneStatus struct {
	State LaneState
	// Next is the offset before which every event was handled, parked or passed over; 0
	// if that was not loaded yet. What is stored may be a batch behind.
	Next uint64
	// Tries counts the calls of the handler in a row that failed.
	Tries uint32
	// Delivered counts the events that were handled, Parked those that were given up, since
	// the lane was made.
	Delivered, Parked uint64
	// Halted says why it is halted.
	Halted string
	// Err is the last error, nil after a success.
	Err error
}

// LaneMessage is what a lane takes: from whoever changes the subscription, from the
// subscription's other lanes, from its deliverer and from its timer.
//
//sumtype:decl
type LaneMessage interface{ laneMessage() }

// HoldLane asks a lane to deliver nothing more until it is released. It is answered by
// [Held] when what is under way has ended: what was handled is durable, unless that
// cannot be.
type HoldLane struct{}

// ReleaseLane lets a lane go on from where the store says.
type ReleaseLane struct{}

// ReloadLane tells a lane that the store may say something else than it knows.
type ReloadLane struct{}

// TryEvent asks a lane that is held to hand one event to the handler. It is answered by
// [Tried].
type TryEvent struct{ Event LogEvent }

// StopLane ends a lane. It is answered by [LaneStopped] when what is under way has ended.
type StopLane struct{}

// PositionLoaded is the deliverer's answer to [LoadPosition].
type PositionLoaded struct {
	Generation uint64
	Next       uint64
	Stopped    string
	Outcome    Outcome
	Err        error
}

// LogGrown is the deliverer's answer to [AwaitLog]: there is an event, or never will be.
type LogGrown struct {
	Generation uint64
	Outcome    Outcome
	Err        error
}

// EventsRead is the deliverer's answer to [ReadLog].
type EventsRead struct {
	Generation uint64
	// Events are those to be delivered.
	Events []LogEvent
	// Next is the offset behind them and behind those that were passed over.
	Next    uint64
	Outcome Outcome
	Err     error
}

// LogEvent is an event and its offset in the log that was read: its partition's or its
// workspace's.
type LogEvent struct {
	Offset uint64
	Event  Event
}

// BatchHandled is the deliverer's answer to [HandleBatch].
type BatchHandled struct {
	Generation uint64
	// Failed is the index of the event that could not be handled, if the handler has named
	// it; else -1.
	Failed int
	Err    error
	// At is when the handler returned.
	At Timestamp
	// Trace is the one that all events of the batch are of, zero if they have none in common.
	Trace ids.TraceID
}

// PositionStored is the deliverer's answer to [StorePosition].
type PositionStored struct {
	Generation uint64
	Outcome    Outcome
	Err        error
	// Trace is that of the question.
	Trace ids.TraceID
}

// RetryFired is sent by a lane's timer.
type RetryFired struct{ Generation uint64 }

func (*HoldLane) laneMessage()       {}
func (*ReleaseLane) laneMessage()    {}
func (*ReloadLane) laneMessage()     {}
func (*TryEvent) laneMessage()       {}
func (*StopLane) laneMessage()       {}
func (*PositionLoaded) laneMessage() {}
func (*LogGrown) laneMessage()       {}
func (*EventsRead) laneMessage()     {}
func (*BatchHandled) laneMessage()   {}
func (*PositionStored) laneMessage() {}
func (*RetryFired) laneMessage()     {}

// Held answers [HoldLane].
type Held struct{}

// Tried answers [TryEvent] with what the handler has returned.
type Tried struct{ Err error }

// LaneStopped answers [StopLane].
type LaneStopped struct {
	// Err says why what was handled last could not be stored: it will be delivered again.
	Err error
}

// DelivererMessage is what a lane's deliverer takes.
//
//sumtype:decl
type DelivererMessage interface{ delivererMessage() }

// LoadPosition asks where the subscription stands. It is answered by [PositionLoaded].
type LoadPosition struct{ Generation uint64 }

// AwaitLog asks to wait until the log has come to an offset. It is answered by [LogGrown],
// also when nobody wants to know any more.
type AwaitLog struct{ Generation, Offset uint64 }

// ReadLog asks for the next events from an offset on. It is answered by [EventsRead].
type ReadLog struct{ Generation, From uint64 }

// HandleBatch asks to call the handler. It is answered by [BatchHandled].
type HandleBatch struct {
	Generation uint64
	Events     []LogEvent
}

// StorePosition asks to make durable what was handled. It is answered by [PositionStored].
type StorePosition struct {
	Generation uint64
	Next       uint64
	// Park is an event that is given up, nil for none.
	Park *PoisonEvent
	// Stopped, if not empty, stops the subscription.
	Stopped string
	// Trace is that of the event because of which Park or Stopped is set, zero if it has none.
	Trace ids.TraceID
}

// PoisonEvent is an event that the handler could not handle.
type PoisonEvent struct {
	Partition PartitionID
	Offset    uint64
	Reason    string
	Tries     uint32
	At        Timestamp
}

func (*LoadPosition) delivererMessage()  {}
func (*AwaitLog) delivererMessage()      {}
func (*ReadLog) delivererMessage()       {}
func (*HandleBatch) delivererMessage()   {}
func (*StorePosition) delivererMessage() {}
