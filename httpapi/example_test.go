package httpapi_test

import (
	"context"
	"fmt"
	"io"
	"log"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/partita-go/partita/httpapi"
	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/partition"
	"github.com/partita-go/partita/storage/bolt"
)

// A program that deploys an application serves it among its own handlers.
func Example() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "billing")
	check(err)
	defer func() { check(os.RemoveAll(dir)) }()
	descriptor := messages.Descriptor{Application: "billing", Partitions: 4, Kinds: []messages.Kind{
		{ID: 1, Name: "shop", Sequences: []messages.Sequence{{ID: 16, Name: "Invoice", Initial: 1}}},
	}}
	store, err := bolt.Open(ctx, filepath.Join(dir, "store"), descriptor, bolt.Options{Create: true})
	check(err)
	quiet := actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger { return slog.New(slog.DiscardHandler) })
	soon := actor.WithDeadLetterThrottleInterval(time.Millisecond)
	parts := partition.NewAppParts(actor.NewActorSystem(quiet, soon), partition.Options{})
	app, err := parts.Deploy(ctx, partition.Application{Descriptor: descriptor}, store)
	check(err)
	check(app.Ready(ctx))

	api, err := httpapi.New(app, app.Reader(), httpapi.Options{})
	check(err)
	mux := http.NewServeMux()
	mux.Handle("/billing/", http.StripPrefix("/billing", httpapi.RequireToken(api, "a token that nobody guesses")))
	server := httptest.NewServer(mux)
	server.Config.RegisterOnShutdown(api.Stop) // or it would wait for those who wait for events

	call := func(method, path, body string) {
		request, err := http.NewRequestWithContext(ctx, method, server.URL+path, strings.NewReader(body))
		check(err)
		request.Header.Set("Authorization", "Bearer a token that nobody guesses")
		request.Header.Set("Content-Type", "application/json")
		request.Header.Set("Idempotency-Key", "order 1")
		response, err := http.DefaultClient.Do(request)
		check(err)
		answer, err := io.ReadAll(response.Body)
		check(err)
		check(response.Body.Close())
		text := string(answer)
		if _, repeated, there := strings.Cut(text, `"repeated":`); there {
			text = "repeated: " + strings.Trim(repeated, "}")
		}
		fmt.Println(response.StatusCode, text)
	}
	const order = `{"kind": 1, "wanted": [{"sequence": 16}], "body": "an order"}`
	call(http.MethodPost, "/billing/v1/workspaces/42/events", order)
	call(http.MethodPost, "/billing/v1/workspaces/42/events", order)
	call(http.MethodGet, "/billing/v1/workspaces/42/log?after=1", "")

	http.DefaultClient.CloseIdleConnections()
	check(server.Config.Shutdown(ctx))
	check(parts.Close(ctx))
	check(store.Close(ctx))
	// Output:
	// 201 repeated: false
	// 200 repeated: true
	// 200 {"results":[],"next":null,"poll_more":"/billing/v1/workspaces/42/log?after=1"}
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
