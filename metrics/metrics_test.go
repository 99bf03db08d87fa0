package metrics_test

import (
	"context"
	"errors"
	"math"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	dto "github.com/prometheus/client_model/go"

	"github.com/partita-go/partita/ids"
	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/metrics"
	"github.com/partita-go/partita/partition"
	"github.com/partita-go/partita/storage/bolt"
)

// What load has done, all in one workspace.
const (
	loadAppends      = 40
	loadTransactions = 10
	loadRepeats      = 3
	loadRefused      = 2
)

// load puts a short load on the application: appends, transactions, a command, refusals, a subscription, flushes.
func (r *rig) load() {
	r.t.Helper()
	handled := make(chan struct{}, 1000)
	subscription, err := r.app.Subscribe(r.ctx, partition.SubscriptionConfig{Name: "mails", Handler: func(_ context.Context, d partition.Delivery) error {
		for range d.Events {
			handled <- struct{}{}
		}
		return nil
	}})
	r.check(err)
	s, err := r.app.SequencerOf(4)
	r.check(err)
	to := partition.AppendTo{Workspace: 4, Kind: shop}
	for range loadAppends {
		_, err = s.Append(r.ctx, to, partition.Draft{Wanted: []partition.Wanted{{Seq: invoices}}})
		r.check(err)
	}
	to.DedupID = partition.DedupID{1}
	for range loadRepeats + 1 {
		_, err = s.Append(r.ctx, to, partition.Draft{})
		r.check(err)
	}
	to.DedupID, to.Expected = partition.DedupID{}, new(messages.WLogOffset)
	for range loadRefused {
		if _, err = s.Append(r.ctx, to, partition.Draft{}); !errors.Is(err, messages.ErrExpectedOffset) {
			r.t.Fatal(err)
		}
	}
	for range loadTransactions - 1 {
		tx, err := s.Start(r.ctx, shop, 4)
		r.check(err)
		r.check(tx.Commit(r.ctx, nil))
	}
	p, err := r.app.SpawnCommandProcessor(func(context.Context, *partition.CommandContext) error { return nil })
	r.check(err)
	_, err = p.Execute(r.ctx, messages.Command{Workspace: 4, Kind: shop})
	r.check(err)
	for range loadAppends + 1 + loadTransactions {
		select {
		case <-handled:
		case <-r.ctx.Done():
			r.t.Fatal("not all was delivered")
		}
	}
	r.check(subscription.Pause(r.ctx)) // so that what was handled is stored
	// Lanes look once more where they are: those that are halted have done so.
	for !r.halted(subscription) || slices.ContainsFunc(r.app.Actors(), func(s partition.ActorStatus) bool { return s.State != messages.StateNormal }) {
		runtime.Gosched()
		r.check(r.ctx.Err())
	}
}

// halted reports whether no lane of a subscription does anything.
func (r *rig) halted(s *partition.Subscription) bool {
	status, err := s.Status(r.ctx)
	r.check(err)
	return !slices.ContainsFunc(status.Lanes, func(l partition.LaneStatus) bool { return l.State != messages.LaneHalted })
}

// TestMetricsAreWhatWasDone: the metrics of a run equal what was done in it.
func TestMetricsAreWhatWasDone(t *testing.T) {
	r := newRig(t, metrics.Options{})
	r.load()
	g := r.gather()
	const all = loadAppends + 1 + loadTransactions
	g.want(all, "partita_events_total", "application=billing")
	g.want(loadAppends+1, "partita_appends_total")
	g.want(loadTransactions, "partita_transactions_total")
	g.want(loadRepeats, "partita_repeated_appends_total")
	g.want(loadRefused, "partita_refusals_total", "reason=expected-offset")
	g.want(0, "partita_refusals_total", "reason=mailbox-full")
	g.want(loadAppends+1+loadRepeats+loadRefused, "partita_sent_messages_total", "actor_group=partition", "message=Append", "protocol=messages")
	g.want(loadTransactions, "partita_sent_messages_total", "actor_group=partition", "message=Start")
	g.want(1, "partita_sent_messages_total", "actor_group=command-processor", "message=Command")
	g.want(1, "partita_message_handling_time_seconds", "actor_group=command-processor", "message=Command")
	g.want(2, "partita_active_actors", "actor_group=partition", "status=normal")
	g.want(0, "partita_active_actors", "actor_group=partition", "status=failed")
	g.want(1, "partita_active_actors", "actor_group=command-processor", "status=normal")
	g.want(2, "partita_active_actors", "actor_group=lane", "status=normal")
	g.want(2, "partita_actor_status_changes_total", "status=normal", "actor_group=partition")
	g.want(1, "partita_actor_status_changes_total", "status=normal", "actor_group=command-processor")
	g.want(0, "partita_actor_status_changes_total", "status=failed", "actor_group=lane")
	for _, limit := range []string{"RequestLane", "RequestLaneBytes", "BusyLimit", "BusyEvents", "Memory"} {
		g.want(0, "partita_busy_refusals_total", "limit="+limit)
	}
	g.want(0, "partita_restarting_actors", "actor_group=lane")
	g.want(0, "partita_open_transactions")
	g.want(0, "partita_lane_requests", "actor_group=partition", "actor_key=")
	g.want(1024, "partita_lane_limit_requests", "actor_group=partition")
	g.want(all, "partita_subscription_delivered_total", "subscription=mails")
	g.want(0, "partita_subscription_lag_events", "subscription=mails")
	g.want(1, "partita_subscription_status", "status=paused")
	g.want(0, "partita_collection_failures_total")
	if sum := g.find("partita_commit_events")[0].Histogram.GetSampleSum(); sum != all {
		t.Errorf("got %v events in commits, want %d", sum, all)
	}
	// One in 32, the first of them: but not while another one is.
	if n := g.value("partita_message_handling_time_seconds", "actor_group=partition", "message=Append"); n < 1 || n > (loadAppends+1+loadRepeats+loadRefused+31)/32 {
		t.Errorf("got %v appends that were timed", n)
	}
	for _, name := range []string{"partita_busy_time_seconds_total", "partita_message_waiting_time_seconds"} {
		if g.value(name, "actor_group=partition") <= 0 {
			t.Errorf("%s: got 0", name)
		}
	}
	for _, name := range []string{"partita_recovery_seconds", "partita_commit_duration_seconds", "partita_cache_misses_total"} {
		if g.value(name) <= 0 {
			t.Errorf("%s: got 0", name)
		}
	}
	if h := g.find("partita_message_handling_time_seconds", "message=Append")[0].Histogram; len(h.GetPositiveSpan()) == 0 || len(h.GetBucket()) == 0 {
		t.Errorf("got %v, want a native histogram and a classic one", h)
	}
}

// TestMetricsWhileItWorks: what is open and what waits is seen.
func TestMetricsWhileItWorks(t *testing.T) {
	r := newRig(t, metrics.Options{}, func(a *partition.Application) {
		a.RequestLane, a.Settings.FlushInterval = 4, partition.Settings{}.WithDefaults().TransactionLimit
	})
	s, err := r.app.SequencerOf(4)
	r.check(err)
	tx, err := s.Start(r.ctx, shop, 4)
	r.check(err)
	r.check(tx.Commit(r.ctx, nil))
	tx, err = s.Start(r.ctx, shop, 4)
	r.check(err)
	g := r.gather()
	g.want(1, "partita_open_transactions")
	g.want(1, "partita_unflushed_events")
	for _, name := range []string{"partita_open_transaction_oldest_seconds", "partita_unflushed_oldest_seconds", "partita_unflushed_bytes"} {
		if g.value(name) <= 0 {
			t.Errorf("%s: got 0", name)
		}
	}
	r.check(tx.Cancel(r.ctx))
	r.gather().want(0, "partita_open_transactions")
}

// TestMetricsWithKeys: actors of a group that is named have series of their own; others have not.
func TestMetricsWithKeys(t *testing.T) {
	r := newRig(t, metrics.Options{Keys: []string{"partition"}})
	r.load()
	g := r.gather()
	g.want(loadTransactions, "partita_sent_messages_total", "actor_key=0", "message=Start")
	if found := g.find("partita_sent_messages_total", "actor_key=1", "message=Start"); len(found) != 0 {
		t.Errorf("got %v", found)
	}
	g.want(0, "partita_lane_requests", "actor_group=partition", "actor_key=1")
	g.want(1, "partita_sent_messages_total", "actor_group=command-processor", "actor_key=", "message=Command")
}

// TestMetricsOfDumps: what became of their lines, until nobody watches them any more.
func TestMetricsOfDumps(t *testing.T) {
	r := newRig(t, metrics.Options{})
	g := r.gather()
	g.want(5, "partita_emitted_dumps_total", "actor_group=partition")
	g.want(3, "partita_limited_dumps_total", "actor_group=partition")
	g.want(2, "partita_lost_dumps_total", "actor_group=partition")
	g.want(1, "partita_emitted_dumps_total", "actor_group=lane")
	g.want(4, "partita_unwritten_dumps_total")
	m := metrics.New(metrics.Options{})
	forget := m.WatchDumps(dumped{})
	registry := prometheus.NewPedanticRegistry()
	r.check(registry.Register(m))
	for _, want := range []bool{true, false} {
		families, err := registry.Gather()
		r.check(err)
		if got := slices.ContainsFunc(families, func(f *dto.MetricFamily) bool { return f.GetName() == "partita_lost_dumps_total" }); got != want {
			t.Errorf("there are dumps: got %v, want %v", got, want)
		}
		forget()
		forget()
	}
}

// TestMetricsHaveExemplars: of a message that was timed in a trace, its trace id; of others none.
func TestMetricsHaveExemplars(t *testing.T) {
	r := newRig(t, metrics.Options{})
	s, err := r.app.SequencerOf(4)
	r.check(err)
	const given ids.TraceID = 0x0123456789abcdef
	exemplar := func(message string) (got string) {
		for _, series := range r.gather().find("partita_message_handling_time_seconds", "actor_group=partition", "message="+message) {
			for _, b := range series.Histogram.GetBucket() {
				for _, l := range b.GetExemplar().GetLabel() {
					got += l.GetName() + "=" + l.GetValue()
				}
			}
		}
		return got
	}
	got := ""
	for got == "" { // on a busy machine another message may be timed meanwhile
		_, err = s.Append(ids.ContextWithTrace(r.ctx, given), partition.AppendTo{Workspace: 4, Kind: shop}, partition.Draft{})
		r.check(err)
		got = exemplar("Append")
	}
	if want := "trace_id=" + given.String(); got != want {
		t.Errorf("Append: got exemplar %q, want %q", got, want)
	}
	r.check(r.app.Reconfigure(r.ctx, partition.Settings{}))
	if got := exemplar("Reconfigure"); got != "" {
		t.Errorf("Reconfigure: got exemplar %q, want none", got)
	}
	w := httptest.NewRecorder()
	q := httptest.NewRequestWithContext(r.ctx, http.MethodGet, "/metrics", nil)
	q.Header.Set("Accept", "application/openmetrics-text; version=1.0.0")
	r.metrics.Handler().ServeHTTP(w, q)
	if !strings.Contains(w.Body.String(), `# {trace_id="`+given.String()+`"}`) {
		t.Errorf("got %s", w.Body)
	}
}

// TestMetricsForget: of what nobody watches any more nothing is told; of what cannot be asked, that.
func TestMetricsForget(t *testing.T) {
	r := newRig(t, metrics.Options{})
	r.check(r.store.Close(r.ctx))
	g := r.gather()
	g.want(2, "partita_collection_failures_total") // the store, and the subscriptions that it keeps
	g.want(0, "partita_events_total")
	r.forget()
	r.forget()
	g = r.gather()
	g.want(2, "partita_collection_failures_total")
	if found := g.find("partita_events_total"); len(found) != 0 {
		t.Errorf("got %v", found)
	}
}

// TestMetricsOfNamesThatAreNoText: Prometheus takes text alone. No store begins with such a name any more, but one may
// have it.
func TestMetricsOfNamesThatAreNoText(t *testing.T) {
	dir, d := filepath.Join(t.TempDir(), "store"), descriptor(2)
	d.Application = "\xffbilling"
	if _, err := bolt.Import(t.Context(), dir, d, func(func(messages.Event, error) bool) {}, bolt.ImportOptions{}); err != nil {
		t.Fatal(err)
	}
	r := newRigIn(t, dir, metrics.Options{}, func(a *partition.Application) { a.Descriptor = d })
	r.gather().want(0, "partita_events_total", "application=\uFFFDbilling")
}

// TestMetricsOfActorsThatEnd: whoever has ended is not active.
func TestMetricsOfActorsThatEnd(t *testing.T) {
	r := newRig(t, metrics.Options{})
	r.load()
	r.check(r.parts.Undeploy(r.ctx, "billing"))
	g := r.gather()
	for _, group := range []string{"lane", "deliverer", "command-processor", "flusher", "reader", "actualizer"} {
		g.want(0, "partita_active_actors", "actor_group="+group, "status=normal")
	}
	g.want(2, "partita_active_actors", "actor_group=partition", "status=terminated")
	g.want(2, "partita_active_actors", "actor_group=lane", "status=terminated")
	g.want(1, "partita_active_actors", "actor_group=command-processor", "status=terminated")
}

// TestMetricsOfActorsThatFail: whoever has failed is active again when it was restarted.
func TestMetricsOfActorsThatFail(t *testing.T) {
	r := newRig(t, metrics.Options{})
	o := r.metrics.ForActor(partition.ActorKey{Group: "flusher", ID: "7"})
	post := func(messages ...any) {
		for _, m := range messages {
			o.Posted(partition.ActorKey{}, m)
		}
	}
	post(started)
	r.gather().want(1, "partita_active_actors", "actor_group=flusher")
	post(suspended)
	g := r.gather()
	g.want(0, "partita_active_actors", "actor_group=flusher")
	g.want(1, "partita_restarting_actors", "actor_group=flusher")
	post(resumed)
	g = r.gather()
	g.want(1, "partita_active_actors", "actor_group=flusher")
	g.want(0, "partita_restarting_actors", "actor_group=flusher")
	post(suspended, stopped, stopped)
	g = r.gather()
	g.want(0, "partita_active_actors", "actor_group=flusher")
	g.want(0, "partita_restarting_actors", "actor_group=flusher")
}

// TestMetricsOfStatuses: partitions, command processors and lanes are counted by what they say of themselves.
func TestMetricsOfStatuses(t *testing.T) {
	r := newRig(t, metrics.Options{}, func(a *partition.Application) { a.Kinds[0].Sequences[0].Largest = 1 })
	r.gather().want(0, "partita_active_actors", "actor_group=partition", "status=alarming")
	p, err := r.app.SpawnCommandProcessor(func(context.Context, *partition.CommandContext) error { return nil })
	r.check(err)
	sequencer, err := r.app.SequencerOf(4)
	r.check(err)
	_, err = sequencer.Append(r.ctx, partition.AppendTo{Workspace: 4, Kind: shop}, partition.Draft{Wanted: []partition.Wanted{{Seq: invoices}}})
	r.check(err)
	r.check(p.Stop(r.ctx))
	counted := make(map[string]map[string]int)
	for _, s := range r.app.Actors() {
		if counted[s.Group] == nil {
			counted[s.Group] = make(map[string]int)
		}
		counted[s.Group][s.State.String()]++
	}
	if counted["partition"]["alarming"] != 1 || counted["command-processor"]["terminated"] != 1 {
		t.Errorf("got %v", counted)
	}
	g := r.gather()
	for group, states := range counted {
		for s := messages.StateInitializing; s <= messages.StateFailed; s++ {
			g.want(float64(states[s.String()]), "partita_active_actors", "actor_group="+group, "status="+s.String())
		}
	}
}

// TestMetricsTimeTheNextAfterARefusal: a message that was not taken is not timed, and the next one is.
func TestMetricsTimeTheNextAfterARefusal(t *testing.T) {
	r := newRig(t, metrics.Options{})
	o := r.metrics.ForActor(partition.ActorKey{Group: "reader"})
	refused, taken := &messages.LoadNumbers{}, &messages.LoadNumbers{Load: 1}
	o.Posted(partition.ActorKey{}, refused)
	o.Handled(partition.ActorKey{}, refused)
	o.Posted(partition.ActorKey{}, taken)
	o.Taken(partition.ActorKey{}, taken)
	o.Handled(partition.ActorKey{}, taken)
	g := r.gather()
	g.want(2, "partita_sent_messages_total", "actor_group=reader", "message=LoadNumbers")
	g.want(1, "partita_message_handling_time_seconds", "actor_group=reader", "message=LoadNumbers")
}

// TestMetricsOfMessagesWithoutSize: all messages of no size have one address, so that none of them can be told from
// another one, of which there may be no time.
func TestMetricsOfMessagesWithoutSize(t *testing.T) {
	r := newRig(t, metrics.Options{})
	o := r.metrics.ForActor(partition.ActorKey{Group: "reader"})
	o.Posted(partition.ActorKey{}, &messages.Stop{})
	for _, other := range []any{&actor.Restarting{}, &messages.Stop{}} {
		o.Taken(partition.ActorKey{}, other)
		o.Handled(partition.ActorKey{}, other)
	}
	g := r.gather()
	g.want(1, "partita_sent_messages_total", "actor_group=reader", "message=Stop")
	if got := g.find("partita_message_handling_time_seconds", "actor_group=reader"); len(got) > 0 {
		t.Errorf("got %v", got)
	}
}

// TestMetricsBusyTimeStandsForAll: a message that is timed stands for those before it that were not.
func TestMetricsBusyTimeStandsForAll(t *testing.T) {
	r := newRig(t, metrics.Options{})
	o := r.metrics.ForActor(partition.ActorKey{Group: "deliverer"})
	timed, other := &messages.ReadLog{}, &messages.ReadLog{From: 1}
	const others = 9
	o.Posted(partition.ActorKey{}, timed)
	for range others {
		o.Posted(partition.ActorKey{}, other) // none of them is timed meanwhile
	}
	o.Taken(partition.ActorKey{}, timed)
	o.Handled(partition.ActorKey{}, timed)
	g := r.gather()
	took := g.find("partita_message_handling_time_seconds", "actor_group=deliverer")[0].Histogram
	if got, want := g.value("partita_busy_time_seconds_total", "actor_group=deliverer"), (others+1)*took.GetSampleSum(); math.Abs(got-want) > 1e-9 || took.GetSampleCount() != 1 {
		t.Errorf("got %v, want %v: %v", got, want, took)
	}
}

// TestMetricsAreNamedWell: as Prometheus' own linter has it.
func TestMetricsAreNamedWell(t *testing.T) {
	r := newRig(t, metrics.Options{})
	r.load()
	r.requests()
	var all []*dto.MetricFamily
	for _, f := range r.gather().all {
		all = append(all, f)
		if !strings.HasPrefix(f.GetName(), "partita_") {
			t.Errorf("%s: want a name that begins with partita_", f.GetName())
		}
	}
	problems, err := promlint.NewWithMetricFamilies(all).Lint()
	r.check(err)
	for _, p := range problems {
		t.Errorf("%s: %s", p.Metric, p.Text)
	}
}

// requests sends some requests through a mux.
func (r *rig) requests() {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v1/things/{id}", func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusEarlyHints)
		w.WriteHeader(http.StatusTeapot)
		w.WriteHeader(http.StatusOK) // in vain
	})
	mux.HandleFunc("GET /v1/plain", func(w http.ResponseWriter, _ *http.Request) {
		if err := http.NewResponseController(w).Flush(); err != nil {
			r.t.Error(err)
		}
		_, _ = w.Write([]byte("plain"))
	})
	h := r.metrics.CountRequests(mux)
	for _, path := range []string{"/v1/things/1", "/v1/things/2", "/v1/plain", "/nowhere"} {
		h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(r.ctx, http.MethodGet, path, nil))
	}
}

// TestHTTPRequests: requests are counted by route and status, not by what stands in their paths; and connections.
func TestHTTPRequests(t *testing.T) {
	r := newRig(t, metrics.Options{})
	r.requests()
	g := r.gather()
	g.want(2, "partita_http_requests_total", "route=GET /v1/things/{id}", "status=418")
	g.want(1, "partita_http_requests_total", "route=GET /v1/plain", "status=200")
	g.want(1, "partita_http_requests_total", "route=none", "status=404")
	g.want(2, "partita_http_request_duration_seconds", "route=GET /v1/things/{id}")
	g.want(0, "partita_http_connections")
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		r.gather().want(1, "partita_http_connections")
	}))
	server.Config.ConnState = r.metrics.ConnState
	server.Start()
	answer, err := server.Client().Get(server.URL)
	r.check(err)
	r.check(answer.Body.Close())
	server.Close()
	r.gather().want(0, "partita_http_connections")
}

// TestHandler: all in one page, with the Go runtime.
func TestHandler(t *testing.T) {
	r := newRig(t, metrics.Options{})
	w := httptest.NewRecorder()
	r.metrics.Handler().ServeHTTP(w, httptest.NewRequestWithContext(r.ctx, http.MethodGet, "/metrics", nil))
	for _, want := range []string{"\npartita_events_total{application=\"billing\"} 0\n", "\ngo_goroutines ", "\nprocess_start_time_seconds "} {
		if !strings.Contains(w.Body.String(), want) {
			t.Errorf("got %d, want %s in %s", w.Code, want, w.Body)
		}
	}
}
