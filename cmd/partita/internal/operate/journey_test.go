package operate

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/partita-go/partita/ids"
	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/partition"
	"github.com/partita-go/partita/spans"
	"github.com/partita-go/partita/storage/bolt"
)

// What the caller brings along, and which trace that is here.
const (
	journeyParent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	journeyTrace  = "0448eb211c80319c"
)

// TestJourneyOfATrace: the trace of one HTTP append is found in the answer, the dump, the metrics and the log of a server,
// which is killed; and then in the events, the context of a subscription's handler, its span, and what it appends.
func TestJourneyOfATrace(t *testing.T) {
	dir, dump := newStore(t), filepath.Join(t.TempDir(), "messages.dump")
	journeyServed(t, dir, dump)

	o := run(t, "trace", journeyTrace, "--db", dir, dump).has(t, exitFine)
	for _, want := range []string{
		"  event  partition 0/4  workspace 6/1", // behind the three events of workspace 4
		"In Request Append  trace " + journeyTrace,
		"Out Request WriteEvents  trace " + journeyTrace,
		"In Response EventsWritten  trace " + journeyTrace,
		"Out Response Appended  trace " + journeyTrace,
	} {
		if !strings.Contains(o.stdout, want) {
			t.Errorf("got %s\nwant %s", o.stdout, want)
		}
	}

	journeyDelivered(t, dir)
	events := strings.Count(run(t, "trace", journeyTrace, "--db", dir).has(t, exitFine).stdout, "  event  ")
	if written := strings.Count(o.stdout, "  event  "); events != written+1 {
		t.Errorf("got %d events of the trace, want %d, and the handler's", events, written)
	}
	run(t, "verify", "--db", dir).has(t, exitFine)
}

// journeyServed appends over HTTP to a server of its own process, looks for the trace while it runs, and kills it.
func journeyServed(t *testing.T, dir, dump string) {
	t.Helper()
	c := exec.CommandContext(limit(t), os.Args[0], programCommand, "serve", "--db", dir, "--listen", "127.0.0.1:0", "--json",
		"--trace-node", "7", "--dump", dump)
	out, err := c.StdoutPipe()
	check(t, err)
	check(t, c.Start())
	killed := false
	defer func() {
		if !killed {
			kill(c)
		}
	}()
	var server struct{ URL string }
	check(t, json.NewDecoder(out).Decode(&server))
	awaitReady(t, server.URL)
	client := &http.Client{Transport: &http.Transport{}}
	defer client.CloseIdleConnections()
	ask := func(method, path, body string, headers ...string) (*http.Response, string) {
		request, err := http.NewRequestWithContext(limit(t), method, server.URL+path, strings.NewReader(body))
		check(t, err)
		for i := 0; i < len(headers); i += 2 {
			request.Header.Set(headers[i], headers[i+1])
		}
		response, err := client.Do(request)
		check(t, err)
		defer response.Body.Close()
		text, err := io.ReadAll(response.Body)
		check(t, err)
		return response, string(text)
	}
	exemplar := `# {trace_id="` + journeyTrace + `"}`
	for found, tries := false, 0; !found; tries++ {
		if tries == 200 {
			t.Fatal("no append was timed: one in 32 is, unless the partition times another message just then")
		}
		response, text := ask(http.MethodPost, "/v1/workspaces/6/events", `{"kind": 1}`, "Content-Type", "application/json", "Traceparent", journeyParent)
		if got := response.Header.Get("Partita-Trace"); response.StatusCode != http.StatusCreated || got != journeyTrace {
			t.Fatalf("got %s, trace %q: %s", response.Status, got, text)
		}
		_, page := ask(http.MethodGet, "/metrics", "", "Accept", "application/openmetrics-text; version=1.0.0")
		found = strings.Contains(page, exemplar)
	}
	// The dump is written while nobody waits for it.
	awaitThat(t, "nothing was dumped", func() bool {
		text, err := os.ReadFile(dump)
		check(t, err)
		return strings.Contains(string(text), `"mn":"Appended"`)
	})
	if killed = kill(c); !killed {
		t.Fatalf("got status %d, want it killed", c.ProcessState.ExitCode())
	}
}

// journeyDelivered lets a subscription of another process handle the first event of workspace 6 and append because of it.
func journeyDelivered(t *testing.T, dir string) {
	t.Helper()
	want, err := ids.ParseTraceID(journeyTrace)
	check(t, err)
	exporter := tracetest.NewInMemoryExporter()
	s := spans.New(sdktrace.NewTracerProvider(sdktrace.WithSyncer(exporter)))
	store, err := bolt.OpenExisting(limit(t), dir, bolt.Options{})
	check(t, err)
	system := actor.NewActorSystem(actor.WithDeadLetterThrottleInterval(time.Millisecond))
	parts := partition.NewAppParts(system, partition.Options{Traces: ids.NewTraceGenerator(8, ids.TraceOptions{}), Tracer: s, Observer: s})
	app, err := parts.Deploy(limit(t), partition.Application{Descriptor: store.Descriptor()}, store)
	check(t, err)
	check(t, app.Ready(limit(t)))
	sequencer, err := app.SequencerOf(8)
	check(t, err)
	handled := make(chan ids.TraceID, 1)
	_, err = app.Subscribe(limit(t), partition.SubscriptionConfig{
		Name: "journey", Workspace: new(messages.WSID(6)), Batch: 1,
		Handler: func(ctx context.Context, d partition.Delivery) error {
			if d.Events[0].WLogOffset > 1 {
				return nil
			}
			_, err := sequencer.Append(ctx, partition.AppendTo{Workspace: 8, Kind: shop}, partition.Draft{})
			handled <- ids.TraceOf(ctx)
			return err
		},
	})
	check(t, err)
	select {
	case got := <-handled:
		if got != want {
			t.Errorf("handler: got trace %v, want %v", got, want)
		}
	case <-limit(t).Done():
		t.Fatal("nothing was delivered")
	}
	check(t, parts.Close(limit(t)))
	check(t, store.Close(limit(t)))
	system.Shutdown()
	journeySpans(t, exporter.GetSpans())
}

// journeySpans finds the span of the delivery, and below it that of the append.
func journeySpans(t *testing.T, all tracetest.SpanStubs) {
	t.Helper()
	ofTrace := func(name string) *tracetest.SpanStub {
		for i := range all {
			for _, a := range all[i].Attributes {
				if all[i].Name == name && a.Key == "partita.trace" && a.Value.Emit() == journeyTrace {
					return &all[i]
				}
			}
		}
		t.Fatalf("got no span %s of trace %s in %v", name, journeyTrace, all)
		return nil
	}
	delivered, appended := ofTrace("partita.deliver"), ofTrace("partita.append")
	if appended.Parent.SpanID() != delivered.SpanContext.SpanID() || appended.StartTime.Before(delivered.StartTime) {
		t.Errorf("got parent %v of the append, want the delivery %v", appended.Parent, delivered.SpanContext)
	}
}
