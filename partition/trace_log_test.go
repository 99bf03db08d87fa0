package partition_test

import (
	"context"
	"slices"
	"sync/atomic"
	"testing"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/partita-go/partita/actors"
	"github.com/partita-go/partita/ids"
	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/partition"
	"github.com/partita-go/partita/storage/storagetest"
)

// overAppend lets an actor panic over the first message of a kind, if it is armed.
type overAppend struct{ armed atomic.Bool }

func (*overAppend) Posted(actors.Key, any) {}

func (s *overAppend) Taken(_ actors.Key, message any) {
	if _, found := message.(*messages.Append); found && s.armed.CompareAndSwap(true, false) {
		panic("injected")
	}
}

func (*overAppend) Handled(actors.Key, any) {}

// TestTraceInLogLines: each line of the log that is written on a request's behalf says of which trace that is; the others
// have no such field.
func TestTraceInLogLines(t *testing.T) {
	core, lines := observer.New(zap.InfoLevel)
	panics := new(overAppend)
	watched := make(holds, 1000)
	h := newHouse(t, partition.Options{Traces: newTraces(), Logger: zap.New(core), Observer: partition.Observers(watched, panics)})
	store, err := storagetest.NewSubscribing(h.newStore(descriptor))
	h.check(err)
	d := openDesk(h, watched, store)
	ctx := ids.ContextWithTrace(d.ctx, given)
	// linesOf returns the traces of the lines with a text, once there are so many.
	linesOf := func(text string, n int) (all []any) {
		t.Helper()
		d.eventually(text, func() bool { return lines.FilterMessage(text).Len() == n })
		for _, l := range lines.FilterMessage(text).All() {
			all = append(all, l.ContextMap()["trace"])
		}
		return all
	}
	for _, n := range linesOf("partition is normal", int(descriptor.Partitions)) {
		isTrue(t, n == nil, "got trace %v for a partition that starts", n)
	}

	handled, err := d.app.SpawnCommandProcessor(func(context.Context, *partition.CommandContext) error { panic("injected") })
	d.check(err)
	_, err = handled.Execute(ctx, messages.Command{Workspace: 1, Kind: shop})
	wants(t, "command", err, actors.ErrHandlerPanic)
	drafted, err := d.app.SpawnAppendProcessor(func(context.Context, *partition.DraftContext) error { panic("injected") })
	d.check(err)
	_, err = drafted.Execute(ctx, messages.Command{Workspace: 1, Kind: shop})
	wants(t, "command", err, actors.ErrHandlerPanic)
	equal(t, slices.Repeat([]any{given.String()}, 2), linesOf("handler panicked", 2))

	s, err := d.app.SequencerOf(1)
	d.check(err)
	_, err = s.Append(ctx, partition.AppendTo{Workspace: 1, Kind: shop}, partition.Draft{})
	d.check(err)
	for name, poison := range map[string]partition.PoisonAction{"parks": partition.Park, "stops": partition.Stop} {
		d.subscribe(partition.SubscriptionConfig{
			Name: name, Workspace: new(messages.WSID(1)), MaxTries: 1, OnPoison: poison,
			Handler: func(context.Context, partition.Delivery) error { panic("injected") },
		})
	}
	equal(t, []any{given.String()}, linesOf("subscription has parked an event", 1))
	equal(t, []any{given.String()}, linesOf("subscription is halted", 1))
	equal(t, slices.Repeat([]any{given.String()}, 4), linesOf("handler panicked", 4))

	panics.armed.Store(true)
	_, err = s.Append(ctx, partition.AppendTo{Workspace: 1, Kind: shop}, partition.Draft{})
	wants(t, "append", err, messages.ErrInterrupted)
	equal(t, []any{given.String()}, linesOf("actor panicked and is restarted", 1))
}
