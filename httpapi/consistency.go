package httpapi

import (
	"context"
	"fmt"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage/replog"
)

const (
	paramConsistency = "consistency"
	paramAtLeast     = "at_least"
	// consistencyLocal is what asks for what the server's own replica has.
	consistencyLocal = "local"
)

// ReadsLocally reports whether a query asks for what the server's own replica has, and not for all that anybody was told to
// be there: any node can answer it. A store that is no replica has all.
func ReadsLocally(query map[string][]string) bool {
	return len(query[paramConsistency]) > 0 || len(query[paramAtLeast]) > 0
}

// ofWorkspace lets a request that reads a workspace say how new that has to be.
func (a *API) ofWorkspace(handle func(*call) error) func(*call) error {
	return func(c *call) error {
		ws, err := c.workspace()
		if err != nil {
			return err
		}
		return atLeast(c, messages.ParseWLogOffset, handle, func(ctx context.Context, offset messages.WLogOffset) error {
			return a.reader.AwaitWLog(ctx, ws, offset)
		})
	}
}

// ofPartition is ofWorkspace for a partition.
func (a *API) ofPartition(handle func(*call) error) func(*call) error {
	return func(c *call) error {
		p, err := c.partition()
		if err != nil {
			return err
		}
		return atLeast(c, messages.ParsePLogOffset, handle, func(ctx context.Context, offset messages.PLogOffset) error {
			return a.reader.AwaitPLog(ctx, p, offset)
		})
	}
}

// ofAll is ofWorkspace for the log of all partitions, which has no offsets.
func ofAll(handle func(*call) error) func(*call) error {
	return func(c *call) error {
		if err := c.readLocally(); err != nil {
			return err
		}
		return handle(c)
	}
}

// atLeast waits until a log has come to the offset that the request wants, and reads it then.
func atLeast[O ~uint64](
	c *call, parse func(string) (O, error), handle func(*call) error, await func(context.Context, O) error,
) error {
	if err := c.readLocally(); err != nil {
		return err
	}
	offset, err := inQuery(c, paramAtLeast, parse)
	if err == nil && offset > 0 {
		err = c.come(paramAtLeast, func(ctx context.Context) error { return await(ctx, offset) })
	}
	if err != nil {
		return err
	}
	return handle(c)
}

// readLocally lets the request read what is here, if it wants no more.
func (c *call) readLocally() error {
	if c.query.Has(paramConsistency) && c.query.Get(paramConsistency) != consistencyLocal {
		return &problem{
			kind: malformed, field: paramConsistency,
			detail: fmt.Sprintf("got %.40q, want %s, or leave it out", c.query.Get(paramConsistency), consistencyLocal),
		}
	}
	if ReadsLocally(c.query) {
		c.r = c.r.WithContext(replog.Local(c.r.Context()))
	}
	return nil
}

// come waits until what is here has come to a place that stands in a field, if the request reads that: the client may have
// seen more elsewhere.
func (c *call) come(field string, await func(context.Context) error) error {
	if !replog.IsLocal(c.r.Context()) {
		return nil
	}
	if !c.api.polls.take() {
		return tooMany("requests that wait", cap(c.api.polls))
	}
	defer c.api.polls.free()
	running, cancel := c.api.whileRunning(c.r.Context())
	defer cancel()
	ctx, stop := context.WithTimeout(running, c.api.options.CatchUp)
	defer stop()
	err := await(ctx)
	if err != nil && ctx.Err() != nil && c.r.Context().Err() == nil {
		return &problem{kind: behind, field: field, retryAfter: retrySoon, detail: "what this server has does not go so far yet"}
	}
	return err
}
