package httpapi

import (
	"context"
	"errors"
	"net/http"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/partition"
	"github.com/partita-go/partita/storage"
)

// changeAnswers are the problems that errors of changing a subscription are; all others have
// the same as elsewhere.
var changeAnswers = []knownError{
	{err: partition.ErrNotHandled, kind: notHandled},
	{err: partition.ErrNotRunning, kind: notRunning},
	{err: partition.ErrNotParked, kind: notFound, field: "offset"},
	{err: messages.ErrOutcomeUnknown, kind: outcomeUnknown, detail: "it is not known whether the subscription was changed: look where it stands, and send the request again if it was not"},
	{err: messages.ErrStopped, kind: unavailable, detail: "the subscription is ending; nothing was changed", retryAfter: retrySoon},
	{err: messages.ErrInterrupted, kind: unavailable, detail: "the subscription is starting again; nothing was changed", retryAfter: retrySoon},
	{err: context.DeadlineExceeded, kind: timedOut, detail: "the handler has not returned in time; nothing was changed. A parked event that it was given stays parked"},
	{err: context.Canceled, kind: unavailable, detail: "the server is stopping; nothing was changed. A parked event that the handler was given stays parked", retryAfter: retrySoon},
}

// changed changes the subscription of the path. It waits for the handler, but not when the
// API is stopped.
func (c *call) changed(name string, change func(ctx context.Context, name string) error) error {
	// Not with the request: see appendEvent.
	ctx, cancel := c.api.whileRunning(context.WithoutCancel(c.r.Context()))
	defer cancel()
	limited, stop := context.WithTimeout(ctx, c.api.options.ChangeTimeout)
	defer stop()
	c.known = changeAnswers
	if err := change(limited, name); err != nil {
		return err
	}
	return c.sendJSON(http.StatusOK, jsonType, okJSON{"ok"})
}

func (a *API) deleteSubscription(c *call) error {
	return c.withSubscription(func(name string) error { return c.changed(name, a.subscriptions.Delete) })
}

// changeTo returns what changes the subscription of the path, by what the members of the
// body say.
func changeTo(read func(*object) func(ctx context.Context, name string) error) func(*call) error {
	return func(c *call) error {
		name, err := c.subscription()
		if err != nil {
			return err
		}
		body, err := c.body()
		if err != nil {
			return err
		}
		if err := wellFormed(body); err != nil {
			return err
		}
		o := newObject(invalidChange, "", body)
		change := read(o)
		if err := o.end(); err != nil {
			return err
		}
		return c.changed(name, change)
	}
}

// plainly is a change that needs no members.
func plainly(change func(ctx context.Context, name string) error) func(*call) error {
	return changeTo(func(*object) func(context.Context, string) error { return change })
}

// eventChange is a change that is about an event of a log.
func eventChange(change func(ctx context.Context, name string, at partition.ParkedEvent) error) func(*call) error {
	return changeTo(func(o *object) func(context.Context, string) error {
		var at partition.ParkedEvent
		var there bool
		if at.Partition, there = member[messages.PartitionID](o, "partition", "a number"); !there {
			o.fail("partition", "it is missing")
		}
		switch at.Offset, there = textMember(o, "offset", parseOffset); {
		case !there:
			o.fail("offset", "it is missing")
		case at.Offset == 0:
			o.fail("offset", "got 0, want at least 1")
		}
		return func(ctx context.Context, name string) error { return change(ctx, name, at) }
	})
}

// rewind says which member it is, if the subscription cannot go there.
func (a *API) rewind(ctx context.Context, name string, to partition.ParkedEvent) error {
	err := a.subscriptions.Rewind(ctx, name, to.Partition, to.Offset)
	if !errors.Is(err, storage.ErrSubscription) {
		return err
	}
	wrong := &problem{kind: invalidChange, field: "offset", detail: err.Error()}
	status, statusErr := a.subscriptions.Status(ctx, name)
	if statusErr == nil && !status.Source.Reads(&a.descriptor, to.Partition) {
		wrong.field = "partition"
	}
	return wrong
}
