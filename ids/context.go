package ids

import "context"

// traceKey is the key of a trace id in a context.
type traceKey struct{}

// ContextWithTrace returns a context that carries a trace id: what is called with it goes on under that id. With the zero
// id it returns ctx.
func ContextWithTrace(ctx context.Context, t TraceID) context.Context {
	if t == 0 {
		return ctx
	}
	return context.WithValue(ctx, traceKey{}, t)
}

// TraceOf returns the trace id that a context carries, zero if it carries none.
func TraceOf(ctx context.Context) TraceID {
	t, _ := ctx.Value(traceKey{}).(TraceID)
	return t
}
