package spans

import (
	"context"
	"encoding/binary"
	"net/http"
	"slices"
	"sync"

	lru "github.com/hashicorp/golang-lru/v2"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/partita-go/partita/ids"
	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/partition"
)

// scope names the package to OpenTelemetry.
const scope = "github.com/partita-go/partita/spans"

// partitions is the group of partitions.
const partitions = "partition"

// remembered is how many callers' spans, and how many traces of events, are remembered. The first is more than requests
// are on their way from their callers to mailboxes; of older events deliveries begin a trace of their own.
const remembered = 1 << 14

// Spans makes spans of the requests that have a trace id. It is a [partition.Tracer] and a [partition.Observer], and must
// be given to an AppParts as both, with a generator of trace ids. It is safe for concurrent use.
type Spans struct {
	tracer trace.Tracer
	// callers are the spans in which requests are made.
	callers *lru.Cache[caller, trace.SpanContext]
	// origins are the spans that have written events last.
	origins *lru.Cache[workspace, trace.SpanContext]
	// handled are the spans in which handlers are called, by the messages that they are called because of.
	handled sync.Map
}

// caller names the span of a caller. Of one trace id there may be several of OpenTelemetry, whose ids are longer.
type caller struct {
	trace ids.TraceID
	span  ids.SpanID
}

var (
	_ partition.KeyedObserver = (*Spans)(nil)
	_ partition.Tracer        = (*Spans)(nil)
)

// New returns what makes spans with a provider.
func New(p trace.TracerProvider) *Spans {
	return &Spans{
		tracer:  p.Tracer(scope),
		callers: cache[caller](),
		origins: cache[workspace](),
	}
}

func cache[K comparable]() *lru.Cache[K, trace.SpanContext] {
	c, _ := lru.New[K, trace.SpanContext](remembered) // it fails for no size only
	return c
}

// Join implements [partition.Tracer]. What is done in a span is of the trace id that stands for that of OpenTelemetry, see
// [ids.TraceOfW3C], unless its context has one.
func (s *Spans) Join(ctx context.Context, id ids.TraceID) (ids.TraceID, ids.SpanID) {
	sc := trace.SpanContextFromContext(ctx)
	if !sc.IsValid() {
		return id, 0
	}
	if id == 0 {
		id = ids.TraceOfW3C(sc.TraceID())
	}
	own := sc.SpanID()
	c := caller{id, ids.SpanID(binary.BigEndian.Uint64(own[:]))}
	s.callers.Add(c, sc)
	return id, c.span
}

// Handling implements [partition.Tracer].
func (s *Spans) Handling(ctx context.Context, message any) context.Context {
	if span, found := s.handled.Load(message); found {
		return trace.ContextWithSpan(ctx, span.(trace.Span)) //nolint:errcheck // there is nothing else in it
	}
	return ctx
}

// Handler returns a handler that passes requests on with the span that their traceparent names, as W3C Trace Context has
// it. It is for programs that make no spans of HTTP requests, as package otelhttp does.
func (s *Spans) Handler(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx := propagation.TraceContext{}.Extract(r.Context(), propagation.HeaderCarrier(r.Header))
		next.ServeHTTP(w, r.WithContext(ctx))
	})
}

// ForActor implements [partition.KeyedObserver].
func (s *Spans) ForActor(key partition.ActorKey) partition.Observer {
	if key.IsMember() || slices.Contains([]string{partitions, "command-processor", "deliverer"}, key.Group) {
		return &actor{
			spans: s, key: key, requests: make(map[uint64]*request), waiting: make(map[any]*request),
			appends: make(map[workspace][]*request), transactions: make(map[uint64]*request), works: make(map[uint64][]trace.Span),
		}
	}
	return nil
}

// Posted makes it an observer, with Taken and Handled: but [Spans.ForActor] returns who is told.
func (*Spans) Posted(partition.ActorKey, any) {}

// Taken is as Posted.
func (*Spans) Taken(partition.ActorKey, any) {}

// Handled is as Posted.
func (*Spans) Handled(partition.ActorKey, any) {}

// parentOf returns a context with the span that a request was made in.
func (s *Spans) parentOf(id ids.TraceID, span ids.SpanID) context.Context {
	ctx := context.Background()
	if sc, found := s.callers.Get(caller{id, span}); found {
		ctx = trace.ContextWithSpanContext(ctx, sc)
	}
	return ctx
}

// originsOf returns a context with the span that has written events, if they are of one trace, else links to those spans.
func (s *Spans) originsOf(events []messages.LogEvent) (ctx context.Context, links []trace.Link) {
	seen := make(map[workspace]bool)
	for i := range events {
		e := &events[i].Event
		of := workspace{e.Trace, e.Workspace}
		if sc, found := s.origins.Get(of); found && !seen[of] {
			links = append(links, trace.Link{SpanContext: sc})
		}
		seen[of] = true
	}
	ctx = context.Background()
	if len(links) > 0 && messages.TraceOfDelivery(events) != 0 {
		ctx, links = trace.ContextWithSpanContext(ctx, links[0].SpanContext), links[1:]
	}
	return ctx, links
}
