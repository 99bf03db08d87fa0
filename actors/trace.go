package actors

import (
	"context"

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

// Traces say which trace a request belongs to. The zero value is: to none.
type Traces struct {
	// Generator makes new ids. Without one nothing is of a trace.
	Generator *ids.TraceGenerator
	// Tracer may be nil.
	Tracer Tracer
}

// Of returns the trace that what is done with ctx belongs to: the context's, else a new one; and the caller's span, zero
// if nobody knows it. It is none if ctx ends before there is an id.
func (t *Traces) Of(ctx context.Context) (id ids.TraceID, span ids.SpanID) {
	if t.Generator == nil {
		return 0, 0
	}
	id = ids.TraceOf(ctx)
	if t.Tracer != nil {
		id, span = t.Tracer.Join(ctx, id)
	}
	if id == 0 {
		id, _ = t.Generator.Next(ctx)
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
