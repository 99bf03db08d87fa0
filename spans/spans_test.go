package spans_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"
	"go.uber.org/goleak"

	"github.com/partita-go/partita/actors"
	"github.com/partita-go/partita/ids"
	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/partition"
	"github.com/partita-go/partita/partition/partitiontest"
	"github.com/partita-go/partita/spans"
	"github.com/partita-go/partita/storage/storagetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	shop     messages.WSKind = 1
	invoices messages.SeqID  = 16
)

// rig is an application of which spans are made.
type rig struct {
	*partitiontest.App
	t        *testing.T
	ctx      context.Context
	exporter *tracetest.InMemoryExporter
	tracer   trace.Tracer
	spans    *spans.Spans
	seq      *partition.Sequencer
}

// readyTraces gives ids at once: the second in which it was made is over.
func readyTraces() *ids.TraceGenerator {
	clock := new(movedClock)
	g := ids.NewTraceGenerator(7, ids.TraceOptions{Clock: clock})
	clock.seconds = 1
	return g
}

type movedClock struct{ seconds int64 }

func (c *movedClock) Now() time.Time                          { return time.Unix(c.seconds, 0) }
func (*movedClock) AfterFunc(time.Duration, func()) ids.Timer { return idleTimer{} }

type idleTimer struct{}

func (idleTimer) Stop() bool { return true }

func newRig(t *testing.T, more ...partition.Observer) *rig {
	t.Helper()
	return newSampledRig(t, sdktrace.AlwaysSample(), more...)
}

func newSampledRig(t *testing.T, sampler sdktrace.Sampler, more ...partition.Observer) *rig {
	t.Helper()
	return newRestartedRig(t, sampler, nil, more...)
}

// newRestartedRig is newSampledRig with policies of restarts.
func newRestartedRig(t *testing.T, sampler sdktrace.Sampler, restarts map[string]partition.RestartPolicy, more ...partition.Observer) *rig {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	t.Cleanup(cancel)
	exporter := tracetest.NewInMemoryExporter()
	provider := sdktrace.NewTracerProvider(sdktrace.WithSyncer(exporter), sdktrace.WithSampler(sampler))
	s := spans.New(provider)
	watched := &capturing{Spans: s}
	t.Cleanup(func() {
		// Behind the end of the application.
		if n := watched.open(); n != 0 {
			t.Errorf("got %d requests that are still remembered", n)
		}
	})
	app := partitiontest.Deploy(t, partition.Application{Descriptor: messages.Descriptor{
		Application: "billing", Partitions: 1,
		Kinds: []messages.Kind{{ID: shop, Name: "shop", Sequences: []messages.Sequence{{ID: invoices, Name: "Invoice", Initial: 1}}}},
	}}, partitiontest.Options{Runtime: partition.Options{
		Clock: actors.SystemClock(), Traces: readyTraces(), Tracer: s, Observer: partition.Observers(append([]partition.Observer{watched}, more...)...),
		Restarts: restarts,
	}})
	r := &rig{App: app, t: t, ctx: ctx, exporter: exporter, tracer: provider.Tracer("test"), spans: s}
	var err error
	r.seq, err = app.SequencerOf(7)
	r.check(err)
	return r
}

// capturing remembers the observers of actors.
type capturing struct {
	*spans.Spans
	mu  sync.Mutex
	all []partition.Observer
}

func (c *capturing) ForActor(key partition.ActorKey) partition.Observer {
	o := c.Spans.ForActor(key)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.all = append(c.all, o)
	return o
}

func (c *capturing) open() (n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, o := range c.all {
		n += spans.Open(o)
	}
	return n
}

func (r *rig) check(err error) {
	r.t.Helper()
	if err != nil {
		r.t.Fatal(err)
	}
}

func (r *rig) append(ctx context.Context) error {
	_, err := r.seq.Append(ctx, partition.AppendTo{Workspace: 7, Kind: shop}, partition.Draft{Wanted: []partition.Wanted{{Seq: invoices}}})
	return err
}

// ended waits until so many spans have ended: an answer arrives before its span is looked at.
func (r *rig) ended(n int) tracetest.SpanStubs {
	r.t.Helper()
	for {
		all := r.exporter.GetSpans()
		if len(all) >= n {
			slices.SortStableFunc(all, func(a, b tracetest.SpanStub) int {
				return cmp.Or(a.StartTime.Compare(b.StartTime), cmp.Compare(a.Name, b.Name))
			})
			return all
		}
		select {
		case <-time.After(time.Millisecond):
		case <-r.ctx.Done():
			r.t.Fatalf("got %d spans, want %d: %s", len(all), n, tree(all))
		}
	}
}

// tree returns the names of spans, each below its parent.
func tree(all tracetest.SpanStubs) string {
	var b strings.Builder
	var show func(parent trace.SpanID, depth int)
	show = func(parent trace.SpanID, depth int) {
		for _, s := range all {
			if s.Parent.SpanID() == parent {
				_, _ = fmt.Fprintf(&b, "%s%s\n", strings.Repeat(" ", depth), s.Name)
				show(s.SpanContext.SpanID(), depth+1)
			}
		}
	}
	show(trace.SpanID{}, 0)
	return b.String()
}

// has fails the test unless the spans are these, each below its parent, of one trace, and within the time of its parent.
func (r *rig) has(want string) tracetest.SpanStubs {
	r.t.Helper()
	want = strings.TrimPrefix(want, "\n")
	all := r.ended(strings.Count(want, "\n"))
	if got := tree(all); got != want {
		r.t.Fatalf("got\n%swant\n%s", got, want)
	}
	for _, s := range all {
		i := slices.IndexFunc(all, func(p tracetest.SpanStub) bool { return p.SpanContext.SpanID() == s.Parent.SpanID() })
		if s.EndTime.Before(s.StartTime) {
			r.t.Errorf("%s ends before it begins", s.Name)
		}
		if i < 0 {
			continue
		}
		p := all[i]
		if s.SpanContext.TraceID() != p.SpanContext.TraceID() {
			r.t.Errorf("%s is of trace %v, want %v", s.Name, s.SpanContext.TraceID(), p.SpanContext.TraceID())
		}
		if late := s.Name != "partita.deliver"; late && (s.StartTime.Before(p.StartTime) || s.EndTime.After(p.EndTime)) {
			r.t.Errorf("%s from %v to %v is not within %s, %v to %v", s.Name, s.StartTime, s.EndTime, p.Name, p.StartTime, p.EndTime)
		}
	}
	r.exporter.Reset()
	return all
}

func find(all tracetest.SpanStubs, name string) *tracetest.SpanStub {
	for i := range all {
		if all[i].Name == name {
			return &all[i]
		}
	}
	return nil
}

func attributeOf(s *tracetest.SpanStub, name string) string {
	for _, a := range s.Attributes {
		if a.Key == attribute.Key(name) {
			return a.Value.Emit()
		}
	}
	return ""
}

// TestSpansOfAnAppend: its steps follow each other below the caller's span; it is of the trace id that stands for the
// caller's trace, and says where the event is.
func TestSpansOfAnAppend(t *testing.T) {
	r := newRig(t)
	ctx, caller := r.tracer.Start(r.ctx, "caller")
	r.check(r.append(ctx))
	caller.End()
	all := r.has(`
caller
 partita.append
  partita.wait
  partita.number
  partita.read
  partita.commit
`)
	want := ids.TraceOfW3C(caller.SpanContext().TraceID())
	events, err := r.events()
	r.check(err)
	s := find(all, "partita.append")
	if got := attributeOf(s, "partita.trace"); got != want.String() || events[0].Trace != want {
		t.Errorf("got trace %s, and %v in the event, want %v", got, events[0].Trace, want)
	}
	for name, want := range map[string]string{"partita.actor": "partition/0", "partita.workspace": "7", "partita.plog_offset": "1", "partita.wlog_offset": "1"} {
		if got := attributeOf(s, name); got != want {
			t.Errorf("%s: got %q, want %q", name, got, want)
		}
	}
	if wait, number, commit := find(all, "partita.wait"), find(all, "partita.number"), find(all, "partita.commit"); wait.EndTime.After(number.StartTime) ||
		number.EndTime.After(commit.StartTime) {
		t.Errorf("the steps overlap: wait %v, number %v, commit %v", wait, number, commit)
	}
	// Whoever has no span of his own begins a trace.
	r.check(r.append(r.ctx))
	all = r.has(`
partita.append
 partita.wait
 partita.number
 partita.commit
`)
	if id, err := ids.ParseTraceID(attributeOf(&all[0], "partita.trace")); err != nil || id.Node() != 7 {
		t.Errorf("got %v, want a new trace id", all[0].Attributes)
	}
}

func (r *rig) events() (all []messages.Event, err error) {
	for e, err := range r.Reader().PLog(r.ctx, 0, 1) {
		if err != nil {
			return nil, err
		}
		all = append(all, e)
	}
	return all, nil
}

// TestSpansTakeTheTimeOfTheirSteps: whoever waits for the batch before numbers for as long, and whoever waits for the
// disk commits.
func TestSpansTakeTheTimeOfTheirSteps(t *testing.T) {
	r := newRig(t)
	r.check(r.append(r.ctx))
	r.ended(5)
	r.exporter.Reset()
	gate := r.HoldWrites()
	outcomes := make(chan error, 2)
	go func() { outcomes <- r.append(r.ctx) }()
	r.check(gate.Await(r.ctx))
	held := time.Now()
	go func() { outcomes <- r.append(r.ctx) }()
	released := time.Now()
	gate.Release()
	r.check(errors.Join(<-outcomes, <-outcomes))
	all := r.has(`
partita.append
 partita.wait
 partita.number
 partita.commit
partita.append
 partita.wait
 partita.number
 partita.commit
`)
	first := find(all, "partita.commit")
	if first.StartTime.After(held) || first.EndTime.Before(released) {
		t.Errorf("the first commit: got %v to %v, held from %v to %v", first.StartTime, first.EndTime, held, released)
	}
	for _, s := range all[1:] {
		if s.Name == "partita.commit" && s.SpanContext.SpanID() != first.SpanContext.SpanID() && s.StartTime.Before(released) {
			t.Errorf("the second commit began at %v, held until %v", s.StartTime, released)
		}
	}
}

// together lets appends arrive when all of them are on their way.
type together struct{ missing sync.WaitGroup }

func (b *together) Posted(_ partition.ActorKey, message any) {
	if _, found := message.(*messages.Append); found {
		b.missing.Done()
		b.missing.Wait()
	}
}

func (*together) Taken(partition.ActorKey, any)   {}
func (*together) Handled(partition.ActorKey, any) {}

// TestSpansOfConcurrentCallers: requests of one trace, made in several of its spans at the same time, lie below their own.
func TestSpansOfConcurrentCallers(t *testing.T) {
	const callers = 8
	meeting := new(together)
	meeting.missing.Add(callers)
	r := newRig(t, meeting)
	ctx, root := r.tracer.Start(r.ctx, "root")
	outcomes := make(chan error, callers)
	for range callers {
		go func() {
			ctx, span := r.tracer.Start(ctx, "caller")
			defer span.End()
			outcomes <- r.append(ctx)
		}()
	}
	for range callers {
		r.check(<-outcomes)
	}
	root.End()
	all := r.ended(1 + callers*5)
	for _, s := range all {
		if s.Name != "caller" {
			continue
		}
		below := 0
		for _, b := range all {
			if b.Parent.SpanID() == s.SpanContext.SpanID() {
				below++
			}
		}
		if below != 1 {
			t.Errorf("got %d spans below a caller: %s", below, tree(all))
		}
	}
}

// TestSpansOfRefusals: a refusal is the status of its span, whoever refuses.
func TestSpansOfRefusals(t *testing.T) {
	r := newRig(t)
	to := partition.AppendTo{Workspace: 7, Kind: shop, Expected: new(messages.WLogOffset(9))}
	if _, err := r.seq.Append(r.ctx, to, partition.Draft{}); !errors.Is(err, messages.ErrExpectedOffset) {
		t.Fatal(err)
	}
	all := r.has(`
partita.append
 partita.wait
 partita.number
 partita.read
`)
	if s := find(all, "partita.append").Status; s.Code != codes.Error || !strings.Contains(s.Description, "offset") {
		t.Errorf("got %+v", s)
	}
	r.Store.Plant(storagetest.Fault{Op: storagetest.OpAppend, Times: 1, Do: storagetest.Full()})
	if err := r.append(r.ctx); err == nil {
		t.Fatal("got no error of a full disk")
	}
	all = r.has(`
partita.append
 partita.wait
 partita.number
 partita.commit
`)
	for _, name := range []string{"partita.append", "partita.commit"} {
		if s := find(all, name); s.Status.Code != codes.Error {
			t.Errorf("%s: got %+v", name, s.Status)
		}
	}
}

// TestSpansOfTransactions: from Start until what ends it, whatever that is; one waits while another is open.
func TestSpansOfTransactions(t *testing.T) {
	r := newRig(t)
	tx, err := r.seq.Start(r.ctx, shop, 7)
	r.check(err)
	ctx, caller := r.tracer.Start(r.ctx, "caller")
	second := make(chan error, 1)
	go func() {
		tx, err := r.seq.Start(ctx, shop, 7)
		if err == nil {
			err = tx.Cancel(ctx)
		}
		caller.End()
		second <- err
	}()
	r.check(tx.Commit(r.ctx, nil))
	r.check(<-second)
	r.has(`
partita.transaction
 partita.wait
 partita.read
caller
 partita.transaction
  partita.wait
`)
	tx, err = r.seq.Start(r.ctx, shop, 7)
	r.check(err)
	r.check(tx.Actualize(r.ctx))
	all := r.has("partita.transaction\n partita.wait\n")
	if all[0].Status.Code != codes.Error {
		t.Errorf("got %+v", all[0].Status)
	}
}

// TestSpansOfCommands: what a handler does lies below the command, whose span its context has.
func TestSpansOfCommands(t *testing.T) {
	r := newRig(t)
	p, err := r.SpawnAppendProcessor(func(ctx context.Context, _ *partition.DraftContext) error {
		_, span := r.tracer.Start(ctx, "draft")
		span.End()
		return nil
	})
	r.check(err)
	ctx, caller := r.tracer.Start(r.ctx, "caller")
	_, err = p.Execute(ctx, messages.Command{Workspace: 7, Kind: shop})
	r.check(err)
	caller.End()
	r.has(`
caller
 partita.command
  partita.wait
  draft
  partita.append
   partita.wait
   partita.number
   partita.read
   partita.commit
`)
}

// TestSpansOfGroups: a command has its span also at a member of a group.
func TestSpansOfGroups(t *testing.T) {
	r := newRig(t)
	group, err := r.SpawnGroup(partition.GroupConfig{
		Name: "bills", Members: 2, Drafter: func(context.Context, *partition.DraftContext) error { return nil },
	})
	r.check(err)
	ctx, caller := r.tracer.Start(r.ctx, "caller")
	_, err = group.Ask(ctx, messages.Command{Workspace: 7, Kind: shop})
	r.check(err)
	caller.End()
	r.has(`
caller
 partita.command
  partita.wait
  partita.append
   partita.wait
   partita.number
   partita.read
   partita.commit
`)
}

// TestSpansOfActorsThatEnd: what an actor has not answered when it ends has a span that says so: a command in its hands.
func TestSpansOfActorsThatEnd(t *testing.T) {
	p := new(panics)
	r := newRestartedRig(t, sdktrace.AlwaysSample(), map[string]partition.RestartPolicy{"command-processor": {Mode: partition.RestartNever}}, p)
	c, err := r.SpawnAppendProcessor(func(context.Context, *partition.DraftContext) error { return nil })
	r.check(err)
	p.command.Store(true)
	if _, err := c.Execute(r.ctx, messages.Command{Workspace: 7, Kind: shop}); !errors.Is(err, messages.ErrInterrupted) {
		t.Fatalf("got %v", err)
	}
	all := r.has("partita.command\n partita.wait\n")
	if s := find(all, "partita.command").Status; s.Code != codes.Error {
		t.Errorf("got %+v", s)
	}
}

// TestSpansOfDeliveries: a handler is called below the span that has written the event, and what it appends lies below
// that.
func TestSpansOfDeliveries(t *testing.T) {
	r := newRig(t)
	_, err := r.Subscribe(r.ctx, partition.SubscriptionConfig{
		Name: "mails", Workspace: new(messages.WSID(7)),
		Handler: func(ctx context.Context, _ partition.Delivery) error {
			_, err := r.seq.Append(ctx, partition.AppendTo{Workspace: 8, Kind: shop}, partition.Draft{})
			return err
		},
	})
	r.check(err)
	r.check(r.append(r.ctx))
	all := r.has(`
partita.append
 partita.wait
 partita.number
 partita.read
 partita.commit
 partita.deliver
  partita.append
   partita.wait
   partita.number
   partita.read
   partita.commit
`)
	if s := find(all, "partita.deliver"); s.SpanKind != trace.SpanKindConsumer || attributeOf(s, "partita.events") != "1" {
		t.Errorf("got %+v", s)
	}
}

// TestSpansOfBatches: a batch of several traces has links to the spans that have written its events, and a failure is the
// span's.
func TestSpansOfBatches(t *testing.T) {
	r := newRig(t)
	r.check(r.append(r.ctx))
	r.check(r.append(r.ctx))
	written := r.ended(9)
	r.exporter.Reset()
	_, err := r.Subscribe(r.ctx, partition.SubscriptionConfig{
		Name: "mails", Workspace: new(messages.WSID(7)), MaxTries: 1, OnPoison: partition.Stop,
		Handler: func(context.Context, partition.Delivery) error {
			return &partition.BatchError{Index: 0, Err: errors.New("no such address")}
		},
	})
	r.check(err)
	all := r.has("partita.deliver\n")
	var want, got []trace.SpanID
	for _, s := range written {
		if s.Name == "partita.append" {
			want = append(want, s.SpanContext.SpanID())
		}
	}
	for _, l := range all[0].Links {
		got = append(got, l.SpanContext.SpanID())
	}
	if !slices.Equal(got, want) || all[0].Status.Code != codes.Error || attributeOf(&all[0], "partita.events") != "2" {
		t.Errorf("got links to %v, want %v; status %+v", got, want, all[0].Status)
	}
}

// TestSpansOfTraceparent: over HTTP, W3C's header names the parent.
func TestSpansOfTraceparent(t *testing.T) {
	r := newRig(t)
	h := r.spans.Handler(http.HandlerFunc(func(_ http.ResponseWriter, q *http.Request) { r.check(r.append(q.Context())) }))
	q := httptest.NewRequestWithContext(r.ctx, http.MethodPost, "/", nil)
	q.Header.Set("Traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")
	h.ServeHTTP(httptest.NewRecorder(), q)
	for _, s := range r.ended(5) {
		if s.SpanContext.TraceID().String() != "0af7651916cd43dd8448eb211c80319c" {
			t.Errorf("%s: got trace %v", s.Name, s.SpanContext.TraceID())
		}
		if s.Name == "partita.append" && (s.Parent.SpanID().String() != "b7ad6b7169203331" || !s.Parent.IsRemote() || attributeOf(&s, "partita.trace") != "0448eb211c80319c") {
			t.Errorf("got parent %v, %v", s.Parent.SpanID(), s.Attributes)
		}
	}
}

// TestSpansThatAreNotSampled: whoever is not sampled has no spans, and handlers learn that.
func TestSpansThatAreNotSampled(t *testing.T) {
	r := newSampledRig(t, sdktrace.ParentBased(sdktrace.NeverSample()))
	var seen atomic.Bool
	p, err := r.SpawnCommandProcessor(func(ctx context.Context, _ *partition.CommandContext) error {
		sc := trace.SpanContextFromContext(ctx)
		seen.Store(sc.IsValid() && !sc.IsSampled())
		return nil
	})
	r.check(err)
	_, err = p.Execute(r.ctx, messages.Command{Workspace: 7, Kind: shop})
	r.check(err)
	if n := len(r.exporter.GetSpans()); n != 0 || !seen.Load() {
		t.Errorf("got %d spans, the handler's is not sampled: %v", n, seen.Load())
	}
}

// TestSpansOfCallersThatGo: whoever does not wait any more has a span that says so.
func TestSpansOfCallersThatGo(t *testing.T) {
	r := newRig(t)
	tx, err := r.seq.Start(r.ctx, shop, 7)
	r.check(err)
	ctx, cancel := context.WithCancel(r.ctx)
	outcome := make(chan error, 1)
	go func() { outcome <- r.append(ctx) }()
	for r.Figures().Partitions[0].Requests.Requests == 0 {
		<-time.After(time.Millisecond)
	}
	cancel()
	if err := <-outcome; !errors.Is(err, context.Canceled) {
		t.Fatalf("got %v", err)
	}
	r.check(tx.Cancel(r.ctx))
	all := r.has(`
partita.transaction
 partita.wait
 partita.read
partita.append
 partita.wait
`)
	if s := find(all, "partita.append").Status; s.Code != codes.Error || !strings.Contains(s.Description, "wait") {
		t.Errorf("got %+v", s)
	}
}

// panics lets the partition panic over its next append, if it is armed, and a command processor over its next command.
type panics struct{ armed, command atomic.Bool }

func (*panics) Posted(partition.ActorKey, any) {}

func (p *panics) Taken(key partition.ActorKey, message any) {
	if _, found := message.(*messages.Append); found && p.armed.CompareAndSwap(true, false) {
		panic("injected")
	}
	if _, found := message.(*messages.Command); found && p.command.CompareAndSwap(true, false) {
		panic("injected")
	}
}

func (*panics) Handled(partition.ActorKey, any) {}

// TestSpansOfActorsThatFail: what an actor had in its hands when it has failed ends, and what comes later has spans again.
func TestSpansOfActorsThatFail(t *testing.T) {
	p := new(panics)
	r := newRig(t, p)
	tx, err := r.seq.Start(r.ctx, shop, 7)
	r.check(err)
	p.armed.Store(true)
	outcome := make(chan error, 1)
	go func() { outcome <- r.append(r.ctx) }()
	for r.Figures().Partitions[0].Requests.Requests == 0 {
		<-time.After(time.Millisecond)
	}
	r.check(tx.Cancel(r.ctx))
	if err := <-outcome; !errors.Is(err, messages.ErrInterrupted) {
		t.Fatalf("got %v", err)
	}
	all := r.ended(5)
	r.exporter.Reset()
	if s := find(all, "partita.append"); s == nil || s.Status.Code != codes.Error {
		t.Errorf("got %s", tree(all))
	}
	r.check(r.append(r.ctx))
	r.ended(4)
}
