package metrics_test

import (
	"context"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/partita-go/partita/internal/quiet"
	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/metrics"
	"github.com/partita-go/partita/partition"
	"github.com/partita-go/partita/storage/bolt"
)

// An application with a page for Prometheus. Whoever has a registry of his own registers m there.
func Example() {
	ctx := context.Background()
	application := partition.Application{Descriptor: messages.Descriptor{
		Application: "billing", Partitions: 4, Kinds: []messages.Kind{{ID: 1, Name: "shop"}},
	}}
	dir, err := os.MkdirTemp("", "billing")
	must(err)
	defer func() { must(os.RemoveAll(dir)) }()
	store, err := bolt.Open(ctx, dir, application.Descriptor, bolt.Options{Create: true})
	must(err)

	m := metrics.New(metrics.Options{})
	parts := partition.NewAppParts(quietSystem(), partition.Options{Observer: m})
	app, err := parts.Deploy(ctx, application, store)
	must(err)
	must(app.Ready(ctx))
	m.Watch(app, store)

	sequencer, err := app.SequencerOf(42)
	must(err)
	for range 3 {
		_, err = sequencer.Append(ctx, partition.AppendTo{Workspace: 42, Kind: 1}, partition.Draft{})
		must(err)
	}

	http.Handle("/metrics", m.Handler())
	page := httptest.NewRecorder()
	http.DefaultServeMux.ServeHTTP(page, httptest.NewRequestWithContext(ctx, http.MethodGet, "/metrics", nil))
	for line := range strings.Lines(page.Body.String()) {
		if strings.HasPrefix(line, "partita_appends_total") || strings.HasPrefix(line, "partita_active_actors{actor_group=\"partition\",status=\"normal\"") {
			fmt.Print(line)
		}
	}

	must(parts.Close(ctx))
	must(store.Close(ctx))
	// Output:
	// partita_active_actors{actor_group="partition",status="normal"} 4
	// partita_appends_total{application="billing"} 3
}

// quietSystem returns an actor system that logs nothing; a program makes its own.
func quietSystem() *actor.ActorSystem { return quiet.NewSystem() }

func must(err error) {
	if err != nil {
		log.Panic(err)
	}
}
