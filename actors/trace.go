package actors

import (
	"context"

	"github.com/partita-go/partita/ids"
)

// TraceOf returns the trace that what is done with ctx belongs to: the context's, else a new one. It is none without a
// generator, and if ctx ends before there is an id.
func TraceOf(ctx context.Context, g *ids.TraceGenerator) ids.TraceID {
	if g == nil {
		return 0
	}
	if id := ids.TraceOf(ctx); id != 0 {
		return id
	}
	id, _ := g.Next(ctx)
	return id
}
