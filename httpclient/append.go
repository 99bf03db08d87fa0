package httpclient

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"

	"github.com/partita-go/partita/httpapi"
	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/partition"
)

// Append is the method of that name of [partition.Sequencer], for the workspace's partition. It is repeated until ctx
// ends: see the package. AppendTo.Wait does not matter: it always waits. Without a deduplication id it takes a random one,
// which the event keeps.
//
// Of its errors [messages.OffsetError] and [messages.BackwardError] are complete but for the number that was wanted, of
// others only errors.Is tells which it is, and the text more.
func (c *Client) Append(ctx context.Context, to partition.AppendTo, draft partition.Draft) (*partition.Appended, error) {
	body, err := httpapi.AppendBody(&to, &draft)
	if err != nil {
		return nil, unwritable(err)
	}
	var answer httpapi.Appended
	if err := c.post(ctx, &to, body, &answer); err != nil {
		return nil, err
	}
	done, err := answer.Read()
	if err != nil {
		return nil, err
	}
	return &done, nil
}

// AppendAll is the method of that name of [partition.Sequencer]; see Append.
func (c *Client) AppendAll(ctx context.Context, to partition.AppendTo, drafts []partition.Draft) ([]partition.Appended, error) {
	if len(drafts) == 0 {
		return nil, fmt.Errorf("%w: got none, want at least one", messages.ErrDraft)
	}
	body, err := httpapi.AppendAllBody(&to, drafts)
	if err != nil {
		return nil, unwritable(err)
	}
	var answer httpapi.AppendedAll
	if err := c.post(ctx, &to, body, &answer); err != nil {
		return nil, err
	}
	all := make([]partition.Appended, len(answer.Results))
	for i := range answer.Results {
		if all[i], err = answer.Results[i].Read(); err != nil {
			return nil, err
		}
	}
	return all, nil
}

func unwritable(err error) error { return fmt.Errorf("%w: %w", messages.ErrDraft, err) }

func (c *Client) post(ctx context.Context, to *partition.AppendTo, body []byte, answer any) error {
	id := to.DedupID
	for id.IsZero() {
		_, _ = rand.Read(id[:]) // never fails
	}
	q := &query{method: http.MethodPost, url: c.base.JoinPath("v1", "workspaces", to.Workspace.String(), "events"), body: body}
	q.header = http.Header{"Accept": {jsonType}, "Content-Type": {jsonType}}
	q.header.Set(httpapi.IdempotencyKey(id))
	return complete(to, c.ask(ctx, q, answer))
}

// complete fills in what the caller knows of the error.
func complete(to *partition.AppendTo, err error) error {
	if o, ok := errors.AsType[*messages.OffsetError](err); ok && to.Expected != nil {
		return &told{err: err, as: &messages.OffsetError{Workspace: to.Workspace, Got: o.Got, Want: *to.Expected}}
	}
	return err
}

// told is an error with one that says more of the same.
type told struct{ err, as error }

func (e *told) Error() string   { return e.err.Error() }
func (e *told) Unwrap() []error { return []error{e.as, e.err} }
