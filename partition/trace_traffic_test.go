package partition_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/partita-go/partita/actors"
	"github.com/partita-go/partita/ids"
	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/partition"
	"github.com/partita-go/partita/storage/storagetest"
)

// trafficLog remembers which trace each message was told to be of.
type trafficLog struct {
	mu  sync.Mutex
	all []string
}

func (*trafficLog) Posted(actors.Key, any)  {}
func (*trafficLog) Taken(actors.Key, any)   {}
func (*trafficLog) Handled(actors.Key, any) {}

func (l *trafficLog) Received(t actors.Traffic) { l.note("in", t) }
func (l *trafficLog) Sent(t actors.Traffic)     { l.note("out", t) }

func (l *trafficLog) note(direction string, t actors.Traffic) {
	l.mu.Lock()
	defer l.mu.Unlock()
	name := strings.TrimPrefix(fmt.Sprintf("%T", t.Message), "*messages.")
	l.all = append(l.all, fmt.Sprintf("%s %s %s %v", t.Key.Group, direction, name, t.Trace))
}

// has fails the test unless each of the messages, as "partition in Append", was told, and always of a trace.
func (l *trafficLog) has(t *testing.T, trace ids.TraceID, wanted ...string) {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, w := range wanted {
		of := 0
		for _, line := range l.all {
			if !strings.HasPrefix(line, w+" ") {
				continue
			}
			if of++; line != fmt.Sprintf("%s %v", w, trace) {
				t.Errorf("got %q, want trace %v", line, trace)
			}
		}
		if of == 0 {
			t.Errorf("got no %s in %q", w, l.all)
		}
	}
	l.all = nil
}

// tracedDesk returns a desk whose messages are told of, over a store in memory.
func tracedDesk(t *testing.T) (*desk, *storagetest.Faulty, *trafficLog) {
	t.Helper()
	traffic, watched := new(trafficLog), make(holds, 1000)
	h := newHouse(t, partition.Options{Traces: newTraces(), Observer: partition.Observers(watched, traffic)})
	faulty := h.newStore(descriptor)
	store, err := storagetest.NewSubscribing(faulty)
	h.check(err)
	return openDesk(h, watched, store), faulty, traffic
}

// TestTraceOfAnswers: a request's answer is told to be of its trace, also if it is a refusal, and so is all that belongs to
// a transaction.
func TestTraceOfAnswers(t *testing.T) {
	d, _, traffic := tracedDesk(t)
	ctx := ids.ContextWithTrace(d.ctx, given)
	s, err := d.app.SequencerOf(1)
	d.check(err)
	_, err = s.Append(ctx, partition.AppendTo{Workspace: 1, Kind: shop}, partition.Draft{})
	d.check(err)
	traffic.has(t, given, "partition in Append", "partition out LoadNumbers", "reader in LoadNumbers", "reader out Loaded", "partition in Loaded",
		"partition out WriteEvents", "partition in EventsWritten", "partition out Appended")
	_, err = s.Append(ctx, partition.AppendTo{Workspace: 1, Kind: shop, Expected: new(messages.WLogOffset(9))}, partition.Draft{})
	wants(t, "append", err, messages.ErrExpectedOffset)
	traffic.has(t, given, "partition out Refused")
	id := partition.AppendTo{Workspace: 1, Kind: shop, DedupID: partition.DedupID{1}}
	for range 2 {
		_, err = s.Append(ctx, id, partition.Draft{})
		d.check(err)
	}
	traffic.has(t, given, "partition out LoadEvents", "reader in LoadEvents", "reader out EventsLoaded", "partition in EventsLoaded", "partition out Appended")

	tx, err := s.Start(ctx, shop, 1)
	d.check(err)
	d.check(tx.Commit(d.ctx, nil))
	traffic.has(t, given, "partition in Start", "partition out Started", "partition in Flush", "partition out Flushed")
	tx, err = s.Start(ctx, shop, 1)
	d.check(err)
	d.check(tx.Cancel(d.ctx))
	traffic.has(t, given, "partition in Cancel", "partition out Cancelled")
	tx, err = s.Start(ctx, shop, 1)
	d.check(err)
	d.check(tx.Actualize(d.ctx))
	traffic.has(t, given, "partition in Actualize", "partition out Actualizing")
}

// TestTraceOfCommands: a command, what it asks its partition for, and its answer are of one trace.
func TestTraceOfCommands(t *testing.T) {
	d, _, traffic := tracedDesk(t)
	ctx := ids.ContextWithTrace(d.ctx, given)
	handled, err := d.app.SpawnCommandProcessor(func(context.Context, *partition.CommandContext) error { return nil })
	d.check(err)
	_, err = handled.Execute(ctx, messages.Command{Workspace: 1, Kind: shop})
	d.check(err)
	traffic.has(t, given, "command-processor in Command", "command-processor out CommandDone", "partition in Start", "partition out Flushed")
	drafted, err := d.app.SpawnAppendProcessor(func(context.Context, *partition.DraftContext) error { return errInjected })
	d.check(err)
	_, err = drafted.Execute(ctx, messages.Command{Workspace: 1, Kind: shop})
	wants(t, "command", err, errInjected)
	traffic.has(t, given, "command-processor in Command", "command-processor out Refused")
}

// TestTraceOfDeliveredTraffic: what is handed to a subscription is of its events' trace, also when it is given up.
func TestTraceOfDeliveredTraffic(t *testing.T) {
	d, _, traffic := tracedDesk(t)
	s, err := d.app.SequencerOf(1)
	d.check(err)
	_, err = s.Append(ids.ContextWithTrace(d.ctx, given), partition.AppendTo{Workspace: 1, Kind: shop}, partition.Draft{})
	d.check(err)
	sub := d.subscribe(partition.SubscriptionConfig{
		Name: "mails", Workspace: new(messages.WSID(1)), MaxTries: 1,
		Handler: func(context.Context, partition.Delivery) error { return errInjected },
	})
	d.eventually("the event is parked", func() bool { return len(d.parked(sub)) == 1 })
	d.check(sub.End(d.ctx))
	traffic.has(t, given, "deliverer out EventsRead", "lane in EventsRead", "lane out HandleBatch", "deliverer in HandleBatch",
		"deliverer out BatchHandled", "lane in BatchHandled", "deliverer in StorePosition", "deliverer out PositionStored")
}

// TestTraceOfBatches: a batch of several traces is of none.
func TestTraceOfBatches(t *testing.T) {
	d, faulty, traffic := tracedDesk(t)
	s, err := d.app.SequencerOf(1)
	d.check(err)
	gate := d.newGate()
	faulty.Plant(storagetest.Fault{Op: storagetest.OpAppend, Times: 1, Do: storagetest.Hold(gate)})
	outcomes := make(chan error, 4)
	send := func(id ids.TraceID) {
		_, err := s.Append(ids.ContextWithTrace(d.ctx, id), partition.AppendTo{Workspace: 1, Kind: shop}, partition.Draft{})
		outcomes <- err
	}
	go send(given)
	d.check(gate.Await(d.ctx))
	traffic.has(t, given, "partition out WriteEvents")
	come := func(message string, n int) func() bool {
		return func() bool {
			traffic.mu.Lock()
			defer traffic.mu.Unlock()
			others := func(l string) bool { return !strings.HasPrefix(l, "partition in "+message+" ") }
			return len(slices.DeleteFunc(slices.Clone(traffic.all), others)) == n
		}
	}
	go send(given + 1)
	go send(given + 2)
	d.eventually("two more have come", come("Append", 2))
	go func() {
		tx, err := s.Start(d.ctx, shop, 1)
		if err == nil {
			err = tx.Cancel(d.ctx)
		}
		outcomes <- err
	}()
	// It is handled behind them: so they wait.
	d.eventually("another one has come", come("Start", 1))
	gate.Release()
	for range 4 {
		d.check(<-outcomes)
	}
	traffic.has(t, 0, "partition out WriteEvents")
}
