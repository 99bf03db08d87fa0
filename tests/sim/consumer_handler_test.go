package sim

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"time"

	"github.com/partita-go/partita/actors"
	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/partition"
)

// delivered is an event of a log that a subscription reads.
type delivered struct {
	partition messages.PartitionID
	offset    uint64
}

// endsWell is how a call of a handler ends that is not made to fail.
const endsWell = fault(0)

// errPoison says that a handler will never handle an event.
var errPoison = errors.New("injected: poison")

// handle is the handler of a lane.
func (r *laneRun) handle(ctx context.Context, events []messages.LogEvent) error {
	s := r.node.s
	s.gate(r.node, r.handles())
	if s.isDead(r.node) {
		return errCrashed
	}
	r.model.begin(r, events)
	how := r.chooseEnding()
	if how != endsWell {
		s.hitLane(how, r)
	}
	handled, err := r.work(ctx, events, how)
	if s.isDead(r.node) {
		return errCrashed
	}
	if how == faultHandlerPanic || how == faultHandlerExit {
		handled = 0 // nobody is told what it says
	}
	r.model.ended(r, events, handled, err)
	switch how {
	case faultHandlerPanic:
		panic(err)
	case faultHandlerExit:
		runtime.Goexit()
	default:
	}
	return err
}

func (r *laneRun) handles() string { return fmt.Sprintf("%s %v handles", r.node.name, r.key) }

func (r *laneRun) chooseEnding() fault {
	s := r.node.s
	if !s.strikes(rateHandler) {
		return endsWell
	}
	return faultHandler + fault(s.random.IntN(int(faultKinds-faultHandler)))
}

// work handles events, and returns how many it has handled if it says so, all if err is nil.
func (r *laneRun) work(ctx context.Context, events []messages.LogEvent, how fault) (int, error) {
	s := r.node.s
	good := s.random.IntN(len(events) + 1)
	for i := range events {
		if how == faultNamed && i == good {
			return r.named(i, errHandler, true)
		}
		if err := r.apply(ctx, &events[i]); err != nil {
			return r.named(i, err, r.consumer.names)
		}
	}
	switch how {
	case faultHandler, faultHandlerPanic, faultHandlerExit:
		return 0, errHandler
	case faultHandlerSlow:
		s.wait(&task{node: r.node, key: r.handles(), ctx: ctx, due: s.after(3 * r.consumer.limit)})
		if ctx.Err() != nil {
			return 0, context.Cause(ctx)
		}
	case faultHandlerDeaf:
		s.wait(&task{node: r.node, key: r.handles(), due: s.after(time.Duration(s.random.IntN(3000)) * time.Millisecond)})
	default:
	}
	return len(events), nil
}

// named returns the error of a handler that cannot handle an event, and how many it says that
// it has handled.
func (r *laneRun) named(i int, err error, names bool) (int, error) {
	if !names {
		return 0, err
	}
	return i, &actors.BatchError{Index: i, Err: err}
}

// apply appends an event for some of those that clients have written, under the id of the
// delivery: however often it is delivered, that happens once.
func (r *laneRun) apply(ctx context.Context, e *messages.LogEvent) error {
	c, s := r.consumer, r.node.s
	source := s.ledger.of(&e.Event)
	switch {
	case source == nil:
		s.failf("%v: got %q, which nobody has written", r.key, e.Event.Body)
		return nil
	case c.poison > 0 && source.id%c.poison == 0:
		return errPoison
	case !c.applies || source.derived || source.id%3 > 0:
		return nil
	}
	q := c.request(r.model.partition, e)
	s.ledger.sent(q, "append to %s", r.node.name)
	// A crash leaves it open what has become of it.
	q.doubts++
	to := actors.AppendTo{Workspace: q.workspace, Kind: q.kind, DedupID: q.dedup, Wait: s.random.IntN(2) == 0}
	a, err := r.node.sequencers[s.partitionOf(q.workspace)].Append(ctx, to, q.drafts[0])
	s.gate(r.node, r.handles())
	switch {
	case s.isDead(r.node):
		return errCrashed
	case err == nil:
		q.doubts--
		s.ledger.acknowledged(q, placeOf(a))
	case errors.Is(err, messages.ErrOutcomeUnknown):
		q.doubts--
		s.ledger.unknown(q, err)
	default:
		q.doubts--
		s.ledger.refused(q, err)
	}
	return err
}

// request returns what is asked for because of an event: the same whenever it is delivered.
func (c *consumer) request(p messages.PartitionID, e *messages.LogEvent) *request {
	at := delivered{p, e.Offset}
	if c.applied[at] != nil {
		return c.applied[at]
	}
	ws := (e.Event.Workspace + 1) % messages.WSID(c.s.workspaces)
	r := c.s.ledger.request(c.name(), ws, c.s.kindNow(ws))
	r.derived = true
	r.dedup = partition.DeliveryID(c.s.desc.Application, c.name(), &e.Event)
	r.drafts = []messages.Draft{{Body: fmt.Appendf(nil, "request %d event 0", r.id), Wanted: []messages.Wanted{{Seq: seqOrder}}}}
	c.applied[at] = r
	return r
}
