package httpclient

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"net/url"
	"strconv"

	"github.com/partita-go/partita/httpapi"
	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/partition"
	"github.com/partita-go/partita/storage"
)

// pageLimit is how much of a list is asked for at a time: the server gives no more.
const pageLimit = 200

// PLog returns the events of a partition from an offset on (0 means 1), as far as its log goes when the last page is read.
// Unlike there, an offset that is further behind the log's end than the next event is refused with ErrCursor of package
// partition: the log was restored from an older copy, or is another one.
func (c *Client) PLog(ctx context.Context, p messages.PartitionID, from messages.PLogOffset) iter.Seq2[messages.Event, error] {
	return c.events(ctx, c.plog(p), offsetBefore(from), pageLimit)
}

// WLog is PLog for a workspace.
func (c *Client) WLog(ctx context.Context, ws messages.WSID, from messages.WLogOffset) iter.Seq2[messages.Event, error] {
	return c.events(ctx, c.wlog(ws), offsetBefore(from), pageLimit)
}

// PLogPage returns at most limit events of a partition from an offset on (0 means 1); less only if the log ends there. A
// limit below 1 is taken for 1.
func (c *Client) PLogPage(ctx context.Context, p messages.PartitionID, from messages.PLogOffset, limit int) ([]messages.Event, error) {
	return page(c.events(ctx, c.plog(p), offsetBefore(from), limit), limit)
}

// WLogPage is PLogPage for a workspace.
func (c *Client) WLogPage(ctx context.Context, ws messages.WSID, from messages.WLogOffset, limit int) ([]messages.Event, error) {
	return page(c.events(ctx, c.wlog(ws), offsetBefore(from), limit), limit)
}

func page(events iter.Seq2[messages.Event, error], limit int) (all []messages.Event, err error) {
	for e, err := range events {
		if err != nil {
			return nil, err
		}
		if all = append(all, e); len(all) >= limit {
			break
		}
	}
	return all, nil
}

func (c *Client) plog(p messages.PartitionID) *query {
	return c.get("v1", "partitions", p.String(), "log")
}
func (c *Client) wlog(ws messages.WSID) *query { return c.get("v1", "workspaces", ws.String(), "log") }

// offsetBefore is the position of the log from which the event at an offset is the next one, "" for the first.
func offsetBefore[O ~uint64](from O) string {
	if from <= 1 {
		return ""
	}
	return strconv.FormatUint(uint64(from)-1, 10)
}

// events returns the events of a log behind a position, in pages of limit events.
func (c *Client) events(ctx context.Context, q *query, after string, limit int) iter.Seq2[messages.Event, error] {
	return func(yield func(messages.Event, error) bool) {
		q.url.RawQuery = logQuery(after, limit).Encode()
		for event, err := range pages[httpapi.Event](ctx, c, q) {
			var e messages.Event
			if err == nil {
				e, err = event.Read()
			}
			if !yield(e, err) || err != nil {
				return
			}
		}
	}
}

func logQuery(after string, limit int) url.Values {
	values := url.Values{"limit": {strconv.Itoa(max(1, min(limit, pageLimit)))}}
	if after != "" {
		values.Set("after", after)
	}
	return values
}

// pages follows the links of a list to its end.
func pages[T any](ctx context.Context, c *Client, q *query) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		var none T
		for at := *q; ; {
			var page httpapi.Page[T]
			if err := c.ask(ctx, &at, &page); err != nil {
				yield(none, err)
				return
			}
			for _, one := range page.Results {
				if !yield(one, nil) {
					return
				}
			}
			if page.Next == nil {
				return
			}
			next, ok := page.NextOf(at.url)
			if !ok {
				yield(none, fmt.Errorf("%s: the answer is no page: it goes on at %.200q", at.url.Redacted(), *page.Next))
				return
			}
			at.url = next
		}
	}
}

// PartitionEvent returns the event of a partition at an offset, or ErrNoEvent of package partition.
func (c *Client) PartitionEvent(ctx context.Context, p messages.PartitionID, offset messages.PLogOffset) (messages.Event, error) {
	return c.event(ctx, c.get("v1", "partitions", p.String(), "events", offset.String()))
}

// WorkspaceEvent returns the event of a workspace at an offset, or ErrNoEvent of package partition.
func (c *Client) WorkspaceEvent(ctx context.Context, ws messages.WSID, offset messages.WLogOffset) (messages.Event, error) {
	return c.event(ctx, c.get("v1", "workspaces", ws.String(), "events", offset.String()))
}

func (c *Client) event(ctx context.Context, q *query) (messages.Event, error) {
	var answer httpapi.Event
	if err := c.ask(ctx, q, &answer); err != nil {
		return messages.Event{}, err
	}
	return answer.Read()
}

// Record returns a row of a workspace as it stands, or ErrNoRecord of package partition.
func (c *Client) Record(ctx context.Context, ws messages.WSID, id messages.RecordID) (storage.Row, error) {
	var answer httpapi.Row
	if err := c.ask(ctx, c.records(ws, id.Seq, id.Number.String()), &answer); err != nil {
		return storage.Row{}, err
	}
	return answer.Read()
}

// Records returns the rows of a workspace whose ids lie in a range, in their order.
func (c *Client) Records(ctx context.Context, ws messages.WSID, in storage.RecordRange) iter.Seq2[storage.Row, error] {
	return func(yield func(storage.Row, error) bool) {
		q := c.records(ws, in.Seq)
		values := url.Values{"limit": {strconv.Itoa(pageLimit)}}
		if in.From != 0 {
			values.Set("from", in.From.String())
		}
		if in.To != 0 {
			values.Set("to", in.To.String())
		}
		q.url.RawQuery = values.Encode()
		for answer, err := range pages[httpapi.Row](ctx, c, q) {
			var row storage.Row
			if err == nil {
				row, err = answer.Read()
			}
			if !yield(row, err) || err != nil {
				return
			}
		}
	}
}

func (c *Client) records(ws messages.WSID, seq messages.SeqID, number ...string) *query {
	return c.get(append([]string{"v1", "workspaces", ws.String(), "records", strconv.Itoa(int(seq))}, number...)...)
}

// Numbers returns the last numbers given out to a workspace, ordered by sequence and period, as [partition.Reader] does:
// of its result the kind and the numbers are there. A workspace without events has kind 0 and no numbers.
func (c *Client) Numbers(ctx context.Context, ws messages.WSID) (storage.WorkspaceNumbers, error) {
	var answer struct {
		Kind      messages.WSKind `json:"workspace_kind"`
		Sequences []json.RawMessage
	}
	err := c.ask(ctx, c.get("v1", "workspaces", ws.String(), "numbers"), &answer)
	if p, ok := errors.AsType[*httpapi.ProblemError](err); ok && p.Kind() == "not-found" && p.Field == "wsid" {
		return storage.WorkspaceNumbers{Workspace: ws}, nil
	}
	if err != nil {
		return storage.WorkspaceNumbers{}, err
	}
	numbers := storage.WorkspaceNumbers{Workspace: ws, Kind: answer.Kind}
	for _, raw := range answer.Sequences {
		n, err := httpapi.ReadLast(raw)
		if err != nil {
			return storage.WorkspaceNumbers{}, err
		}
		if n.Number != 0 {
			numbers.Numbers = append(numbers.Numbers, n)
		}
	}
	return numbers, nil
}

// Application returns the application that is served, and the limits of requests.
func (c *Client) Application(ctx context.Context) (httpapi.Application, error) {
	var answer httpapi.Application
	err := c.ask(ctx, c.get("v1", "application"), &answer)
	return answer, err
}

// Status returns the state of each partition, with what the server tells of it: its epoch, last offset, events replayed,
// restarts, error and sequences that are nearly used.
func (c *Client) Status(ctx context.Context) ([]partition.Status, error) {
	var answer struct{ Partitions []httpapi.PartitionStatus }
	if err := c.ask(ctx, c.get("v1", "partitions"), &answer); err != nil {
		return nil, err
	}
	all := make([]partition.Status, len(answer.Partitions))
	for i := range answer.Partitions {
		var err error
		if all[i], err = answer.Partitions[i].Read(); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// Ready waits until the server is ready: every partition takes events.
func (c *Client) Ready(ctx context.Context) error {
	var answer struct{ Status string }
	return c.ask(ctx, c.get("readyz"), &answer)
}
