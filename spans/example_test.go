package spans_test

import (
	"context"
	"fmt"
	"os"

	"github.com/asynkron/protoactor-go/actor"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/partita-go/partita/ids"
	"github.com/partita-go/partita/internal/quiet"
	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/partition"
	"github.com/partita-go/partita/spans"
	"github.com/partita-go/partita/storage/bolt"
)

// Spans of an append lie below the span of whoever appends.
func Example() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "partita")
	must(err)
	defer os.RemoveAll(dir)

	// Your program has a provider with an exporter of its own.
	exporter := tracetest.NewInMemoryExporter()
	provider := sdktrace.NewTracerProvider(sdktrace.WithSyncer(exporter))

	descriptor := messages.Descriptor{Application: "billing", Partitions: 1, Kinds: []messages.Kind{{ID: 1, Name: "shop"}}}
	store, err := bolt.Open(ctx, dir, descriptor, bolt.Options{Create: true})
	must(err)
	s := spans.New(provider)
	parts := partition.NewAppParts(newSystem(), partition.Options{
		Traces: ids.NewTraceGenerator(7, ids.TraceOptions{}), Tracer: s, Observer: s,
	})
	app, err := parts.Deploy(ctx, partition.Application{Descriptor: descriptor}, store)
	must(err)
	must(app.Ready(ctx))

	sequencer, err := app.SequencerOf(42)
	must(err)
	spanned, span := provider.Tracer("shop").Start(ctx, "buy")
	_, err = sequencer.Append(spanned, partition.AppendTo{Workspace: 42, Kind: 1}, partition.Draft{Body: []byte("sold")})
	must(err)
	span.End()

	must(parts.Close(ctx))
	must(store.Close(ctx))
	for _, s := range exporter.GetSpans() {
		if s.Name == "partita.append" {
			fmt.Println(s.Name, "lies below buy:", s.Parent.SpanID() == span.SpanContext().SpanID())
		}
	}
	// Output: partita.append lies below buy: true
}

// newSystem returns an actor system; a program's own is actor.NewActorSystem().
func newSystem() *actor.ActorSystem { return quiet.NewSystem() }

func must(err error) {
	if err != nil {
		panic(err)
	}
}
