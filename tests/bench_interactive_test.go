package tests

import (
	"context"
	"iter"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/partita-go/partita/actors"
	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/partition"
	"github.com/partita-go/partita/storage"
)

// nowhere is a store that keeps nothing: it takes the storage out of the way.
type nowhere struct {
	storage.Store
	descriptor messages.Descriptor
}

func (n *nowhere) Descriptor() messages.Descriptor { return n.descriptor }

func (*nowhere) Claim(string) (func(), error) { return func() {}, nil }

func (*nowhere) TakeEpoch(context.Context, messages.PartitionID) (storage.Register, error) {
	return storage.Register{Epoch: 1, Checkpoint: 1}, nil
}

func (*nowhere) Flush(context.Context, storage.Flush) error { return nil }

func (*nowhere) Numbers(context.Context, messages.WSID, ...messages.SequencePeriod) (storage.WorkspaceNumbers, error) {
	return storage.WorkspaceNumbers{}, nil
}

func (*nowhere) PLog(context.Context, messages.PartitionID, messages.PLogOffset) iter.Seq2[messages.Event, error] {
	return func(func(messages.Event, error) bool) {}
}

// answerer only answers: the bare round trip.
type answerer struct{}

func (answerer) Receive(ctx actor.Context) {
	if m, ok := ctx.Message().(*messages.Start); ok {
		ctx.Respond(m)
	}
}

// BenchmarkInteractive puts one transaction (Start, one Next, Flush) beside the
// bare round trips of the same run. Bar: at most 4 round trips, in turn, and at
// most 12 allocations. The typed client counts the numbers itself; by=messages asks
// the partition for each, as an actor may.
func BenchmarkInteractive(b *testing.B) {
	b.Run("roundtrip=port", func(b *testing.B) { byCallers(b, 1, roundTrips(b)) })
	b.Run("roundtrip=future", benchmarkFuture)
	b.Run("transaction", func(b *testing.B) { byCallers(b, 1, transactions(b)) })
	b.Run("by=messages", func(b *testing.B) { byCallers(b, 1, byMessages(b)) })
	b.Run("in-turn", func(b *testing.B) { inTurn(b, transactions(b)) })
}

func benchmarkFuture(b *testing.B) {
	pid := system.Root.Spawn(actor.PropsFromProducer(func() actor.Actor { return answerer{} }))
	defer system.Root.Stop(pid)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := system.Root.RequestFuture(pid, &messages.Start{}, time.Minute).Result(); err != nil {
			b.Fatal(err)
		}
	}
}

// withoutStorage returns a partition whose storage is out of the way.
func withoutStorage(b *testing.B) *actors.Sequencer { return watched(b, partition.Options{}) }

// watched is withoutStorage with an observer, which may be nil.
func watched(b *testing.B, o partition.Options) *actors.Sequencer {
	descriptor := shop(1)
	store := &nowhere{descriptor: descriptor.Normalized()}
	parts := partition.NewAppParts(system, o)
	app := must(parts.Deploy(limit(b), partition.Application{WorkspaceZero: true, Descriptor: descriptor}, store))(b)
	b.Cleanup(func() { check(b, parts.Close(limit(b))) })
	check(b, app.Ready(limit(b)))
	return must(app.Sequencer(0))(b)
}

func transactions(b *testing.B) func(int) error { return transactionsOf(withoutStorage(b)) }

func transactionsOf(s *actors.Sequencer) func(int) error {
	ctx := context.Background()
	var ws messages.WSID
	return func(int) error {
		ws = (ws + 1) % 100
		tx, err := s.Start(ctx, kindShop, ws)
		if err != nil {
			return err
		}
		if _, err := tx.Next(ctx, seqInvoice); err != nil {
			return err
		}
		return tx.Flush(ctx)
	}
}

func byMessages(b *testing.B) func(int) error {
	s := withoutStorage(b)
	ports := actors.NewPorts(system)
	b.Cleanup(ports.Close)
	ctx := context.Background()
	var ws messages.WSID
	return func(int) error {
		ws = (ws + 1) % 100
		reply, err := ports.Ask(ctx, s.PID(), &messages.Start{Workspace: ws, Kind: kindShop}, nil)
		if err != nil {
			return err
		}
		token := reply.(*messages.Started).Token
		if _, err := ports.Ask(ctx, s.PID(), &messages.Next{Token: token, Seq: seqInvoice}, nil); err != nil {
			return err
		}
		_, err = ports.Ask(ctx, s.PID(), &messages.Flush{Token: token}, nil)
		return err
	}
}
