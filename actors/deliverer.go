package actors

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"sync/atomic"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/partita-go/partita/ids"
	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage"
)

// BatchHandler handles events of one lane in their order. It must not change them.
type BatchHandler func(ctx context.Context, events []messages.LogEvent) error

// LaneStore is what a lane needs of a store.
type LaneStore interface {
	Subscription(ctx context.Context, name string) (storage.Subscription, error)
	MoveSubscription(ctx context.Context, m storage.SubscriptionMove) error
	PLog(ctx context.Context, p messages.PartitionID, from messages.PLogOffset) iter.Seq2[messages.Event, error]
	WLog(ctx context.Context, ws messages.WSID, from messages.WLogOffset) iter.Seq2[messages.Event, error]
	AwaitPLog(ctx context.Context, p messages.PartitionID, offset messages.PLogOffset) error
	AwaitWLog(ctx context.Context, ws messages.WSID, offset messages.WLogOffset) error
}

// maxPassedRead is how many events that are not delivered are looked at in one piece.
const maxPassedRead = 4096

// deliverer is the leaf of a lane: it reads and waits, calls the handler, and stores the
// position.
type deliverer struct {
	config *LaneConfig
	// ctx ends with the incarnation, or when a stop has waited long enough.
	ctx context.Context
	// wait is the wait that the lane asked for last.
	wait *atomic.Pointer[logWait]
}

// logWait is a wait that the lane can end.
type logWait struct {
	generation uint64
	ctx        context.Context
	cancel     context.CancelFunc
}

func (d *deliverer) Receive(ctx actor.Context) {
	switch m := ctx.Message().(type) {
	case messages.DelivererMessage:
		ctx.Send(ctx.Parent(), d.answer(m))
	case actor.AutoReceiveMessage, actor.SystemMessage:
	default:
		d.config.unhandled(m)
	}
}

func (d *deliverer) answer(m messages.DelivererMessage) messages.LaneMessage {
	switch m := m.(type) {
	case *messages.LoadPosition:
		return d.load(m)
	case *messages.AwaitLog:
		return d.await(m)
	case *messages.ReadLog:
		return d.read(m)
	case *messages.HandleBatch:
		return d.handle(m)
	case *messages.StorePosition:
		return d.store(m)
	}
	panic(fmt.Sprintf("unknown message %T", m))
}

func (d *deliverer) load(m *messages.LoadPosition) *messages.PositionLoaded {
	s, err := d.config.Store.Subscription(d.ctx, d.config.Subscription)
	return &messages.PositionLoaded{
		Generation: m.Generation, Next: s.Next[d.config.Lane.Partition], Stopped: s.Stopped, Outcome: laneOutcome(err), Err: err,
	}
}

func (d *deliverer) await(m *messages.AwaitLog) *messages.LogGrown {
	w := d.wait.Load()
	if w.generation != m.Generation {
		return &messages.LogGrown{Generation: m.Generation} // the lane has gone on
	}
	ctx := w.ctx
	var err error
	if ws := d.config.Workspace; ws != nil {
		err = d.config.Store.AwaitWLog(ctx, *ws, messages.WLogOffset(m.Offset))
	} else {
		err = d.config.Store.AwaitPLog(ctx, d.config.Lane.Partition, messages.PLogOffset(m.Offset))
	}
	return &messages.LogGrown{Generation: m.Generation, Outcome: laneOutcome(err), Err: err}
}

// read gathers a batch. What came before an error is delivered first.
func (d *deliverer) read(m *messages.ReadLog) *messages.EventsRead {
	read := &messages.EventsRead{Generation: m.Generation, Next: m.From}
	bytes := 0
	for e, err := range d.log(m.From) {
		if err != nil {
			if read.Next == m.From {
				read.Outcome, read.Err = laneOutcome(err), err
			}
			break
		}
		if d.config.wants(e.WorkspaceKind) {
			read.Events = append(read.Events, messages.LogEvent{Offset: read.Next, Event: e})
			bytes += e.Memory()
		}
		read.Next++
		if len(read.Events) >= d.config.Batch || bytes >= d.config.Bytes || read.Next-m.From >= maxPassedRead {
			break
		}
	}
	return read
}

func (d *deliverer) log(from uint64) iter.Seq2[messages.Event, error] {
	if ws := d.config.Workspace; ws != nil {
		return d.config.Store.WLog(d.ctx, *ws, messages.WLogOffset(from))
	}
	return d.config.Store.PLog(d.ctx, d.config.Lane.Partition, messages.PLogOffset(from))
}

func (d *deliverer) handle(m *messages.HandleBatch) *messages.BatchHandled {
	ctx, cancel := context.WithTimeout(d.ctx, d.config.HandlerLimit)
	defer cancel()
	trace := messages.TraceOfDelivery(m.Events)
	ctx = d.config.Traces.handling(ctx, trace, m)
	handled := &messages.BatchHandled{Generation: m.Generation, Failed: -1, Trace: trace, Err: d.call(ctx, trace, m.Events)}
	if named, ok := errors.AsType[*BatchError](handled.Err); ok {
		handled.Failed = named.Index
	}
	handled.At = messages.TimestampOf(d.config.Clock.Now())
	return handled
}

func (d *deliverer) call(ctx context.Context, trace ids.TraceID, events []messages.LogEvent) error {
	return callHandler(d.config.Logger, d.config.Key, trace, func() error { return d.config.Handler(ctx, events) })
}

func (d *deliverer) store(m *messages.StorePosition) *messages.PositionStored {
	move := storage.SubscriptionMove{
		Name: d.config.Subscription,
		Next: map[messages.PartitionID]uint64{d.config.Lane.Partition: m.Next},
	}
	if m.Stopped != "" {
		move.Stopped = &m.Stopped
	}
	if m.Park != nil {
		move.Park = []storage.ParkedEvent{storage.ParkedEvent(*m.Park)}
	}
	err := d.config.Store.MoveSubscription(d.ctx, move)
	return &messages.PositionStored{Generation: m.Generation, Outcome: laneOutcome(err), Err: err, Trace: m.Trace}
}

// laneOutcome says what a store's error means to a lane.
func laneOutcome(err error) messages.Outcome {
	switch {
	case err == nil:
		return messages.Done
	case isBroken(err), errors.Is(err, storage.ErrNoSubscription), errors.Is(err, storage.ErrSubscription):
		return messages.Broken
	}
	return messages.Retry
}
