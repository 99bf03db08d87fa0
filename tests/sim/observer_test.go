package sim

import (
	"fmt"
	"slices"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/partita-go/partita/actors"
	"github.com/partita-go/partita/messages"
)

// observer writes down what the actors of a node take, and makes each of them wait for
// the scheduler between two messages.
type observer struct {
	s    *sim
	node *node
	// taken holds the message that an actor handles.
	taken map[actors.Key]any
}

func (o *observer) key(k actors.Key) string { return o.node.name + " " + k.String() }

// Posted tells the dispatcher which new mailbox this goroutine schedules next. Whoever stops a
// partition, or holds a lane, asks again as soon as it is refused, while that still ends its
// leaves: it waits for the scheduler first.
func (o *observer) Posted(k actors.Key, message any) {
	switch message.(type) {
	case *messages.Stop, *messages.HoldLane, *messages.TryEvent, *messages.StopLane:
		o.s.gate(o.node, o.key(k)+" "+messageName(message))
	case *actor.Stop:
		if k.Group == laneGroup {
			o.s.gate(o.node, o.key(k)+" stop")
		}
	}
	if _, started := message.(*actor.Started); started {
		o.s.created(o.key(k))
	}
}

// Taken may panic, which the observer of a real system must not: so a partition is
// made to fail with a request in its hands.
func (o *observer) Taken(k actors.Key, message any) {
	if !o.take(k, message) {
		return
	}
	o.s.notef("%s takes %s", o.key(k), describe(message))
	if k.Group == laneGroup {
		o.takenByLane(k, message)
		return
	}
	m, ok := message.(messages.PartitionMessage)
	if !ok || k.Group != "partition" {
		return
	}
	p, err := messages.ParsePartitionID(k.ID)
	if err != nil {
		panic(err)
	}
	if o.s.strikes(rateActorPanic) {
		o.s.hit(faultActorPanic, o.node, p)
		panic(fmt.Sprintf("injected before %T", m))
	}
}

// takenByLane makes a lane fail with a message in its hands, and notes that it begins anew.
func (o *observer) takenByLane(k actors.Key, message any) {
	i := slices.IndexFunc(o.node.lanes, func(r *laneRun) bool { return r.key == k })
	r := o.node.lanes[i]
	switch message.(type) {
	case *actor.Restart:
		r.model.broken = true
	case messages.LaneMessage:
		if o.s.strikes(rateActorPanic) {
			o.s.hitLane(faultLanePanic, r)
			panic("injected before " + messageName(message))
		}
	}
}

// take reports whether the node is alive.
func (o *observer) take(k actors.Key, message any) bool {
	o.s.mu.Lock()
	defer o.s.mu.Unlock()
	o.taken[k] = message
	return !o.node.dead
}

func (o *observer) Handled(k actors.Key, message any) {
	o.s.mu.Lock()
	now, ok := o.taken[k]
	mine := ok && now == message
	if mine {
		delete(o.taken, k)
	}
	o.s.mu.Unlock()
	// Else the mailbox refused it, on the goroutine of whoever sent it.
	if mine {
		o.s.gate(o.node, o.key(k))
	}
}

// describe says what a message is, as far as that is the same in each run.
func describe(message any) string {
	switch m := message.(type) {
	case *messages.Start:
		return fmt.Sprintf("Start(workspace %d, kind %d)", m.Workspace, m.Kind)
	case *messages.Append:
		return fmt.Sprintf("Append(%q, workspace %d, kind %d, %d drafts)", m.Drafts[0].Body, m.Workspace, m.Kind, len(m.Drafts))
	case *messages.Next:
		return fmt.Sprintf("Next(%v, sequence %d)", m.Token, m.Seq)
	case *messages.Raise:
		return fmt.Sprintf("Raise(%v, %v)", m.Token, m.ID)
	case *messages.Flush:
		return fmt.Sprintf("Flush(%v, %v)", m.Token, m.Last)
	case *messages.Cancel:
		return fmt.Sprintf("Cancel(%v)", m.Token)
	case *messages.Actualize:
		return fmt.Sprintf("Actualize(%v)", m.Token)
	case *messages.Command:
		return fmt.Sprintf("Command(%q, workspace %d)", m.Body, m.Workspace)
	case *messages.TimerFired:
		return fmt.Sprintf("TimerFired(%d)", m.Timer)
	case *messages.Taken:
		return fmt.Sprintf("Taken%+v", *m)
	case *messages.Replayed:
		return fmt.Sprintf("Replayed(generation %d, %d events)", m.Generation, len(m.Events))
	case *messages.Loaded:
		return fmt.Sprintf("Loaded(generation %d, load %d, %+v, %v)", m.Generation, m.Load, m.Numbers, m.Err)
	case *messages.Written:
		return fmt.Sprintf("Written(generation %d, checkpoint %d, %d, %v)", m.Generation, m.Checkpoint, m.Outcome, m.Err)
	case *messages.EventsWritten:
		return fmt.Sprintf("EventsWritten(generation %d, first %d, %d, %v)", m.Generation, m.First, m.Outcome, m.Err)
	case *messages.Started:
		return fmt.Sprintf("Started%+v", *m)
	case *messages.Refused:
		return fmt.Sprintf("Refused(%v)", m.Err)
	case *messages.PositionLoaded:
		return fmt.Sprintf("PositionLoaded(%d, %q, %v)", m.Next, m.Stopped, m.Err)
	case *messages.EventsRead:
		return fmt.Sprintf("EventsRead(%d events, next %d, %v)", len(m.Events), m.Next, m.Err)
	case *messages.BatchHandled:
		return fmt.Sprintf("BatchHandled(failed %d, %v)", m.Failed, m.Err)
	case *messages.PositionStored:
		return fmt.Sprintf("PositionStored(%v)", m.Err)
	case *actor.Terminated:
		return "Terminated"
	}
	return messageName(message)
}

func messageName(message any) string { return fmt.Sprintf("%T", message) }
