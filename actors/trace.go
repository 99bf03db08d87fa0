package actors

import (
	"context"
	"sync/atomic"

	"github.com/partita-go/partita/ids"
)

// Tracer joins the traces of the runtime with those of the program around it, as package spans does. Its methods must be
// safe for concurrent use, and must not block.
type Tracer interface {
	// Join returns the trace of a request that is made with ctx: id, unless that is zero; then the one that ctx
	// belongs to in the program around, zero if there is none. The span is the one that
	// the request is made in, zero for none.
	Join(ctx context.Context, id ids.TraceID) (joined ids.TraceID, span ids.SpanID)
	// Handling returns the context for a handler that is called because of a message, a command or a batch of events.
	Handling(ctx context.Context, message any) context.Context
}

// Traces say which trace a request belongs to. The zero value is: to that of its context.
type Traces struct {
	// Generator makes new ids. Without one only that is of a trace for which the context names one.
	Generator *atomic.Pointer[ids.TraceGenerator]
	// Tracer may be nil.
	Tracer Tracer
}

// Of returns the trace that what is done with ctx belongs to: the context's, else a new one; and the caller's span, zero
// if nobody knows it. It is none if there is no generator, or ctx ends before there is an id.
func (t *Traces) Of(ctx context.Context) (id ids.TraceID, span ids.SpanID) {
	id = ids.TraceOf(ctx)
	var generator *ids.TraceGenerator
	if t.Generator != nil {
		generator = t.Generator.Load()
	}
	if generator == nil {
		return id, 0
	}
	if t.Tracer != nil {
		id, span = t.Tracer.Join(ctx, id)
	}
	if id == 0 {
		id, _ = generator.Next(ctx)
	}
	return id, span
}

// handling returns the context for a handler that is called because of a message of a trace.
func (t *Traces) handling(ctx context.Context, id ids.TraceID, message any) context.Context {
	ctx = ids.ContextWithTrace(ctx, id)
	if t.Tracer == nil {
		return ctx
	}
	return t.Tracer.Handling(ctx, message)
}
