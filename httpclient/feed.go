package httpclient

import (
	"context"
	"iter"

	"github.com/partita-go/partita/httpapi"
	"github.com/partita-go/partita/messages"
)

// Feed gives the events of all partitions of the application, as [partition.Feed] does: the order within each partition
// is kept. It is not safe for concurrent use.
type Feed struct {
	client *Client
	cursor string
}

// Feed returns the feed from a cursor on: one of this feed, or the text of one of [partition.Feed]; "" is the beginning.
// The server looks at it when events are asked for, and refuses a wrong one with ErrCursor of package partition.
func (c *Client) Feed(cursor string) *Feed { return &Feed{c, cursor} }

// Cursor returns the position behind the last event that was given, as text to be kept.
func (f *Feed) Cursor() string { return f.cursor }

// Follow goes on with what is there, and then with what is appended, until ctx ends, over as many connections as it needs.
func (f *Feed) Follow(ctx context.Context) iter.Seq2[messages.Event, error] {
	return f.client.follow(ctx, f.client.get("v1", "log"), f.cursor, func(position string) { f.cursor = position })
}

// Page returns at most limit events, none if all logs end there. A limit below 1 is taken for 1. It can be less than the
// limit before that, if the events are large or the limit is above 200. If it fails, the feed stays where it was.
func (f *Feed) Page(ctx context.Context, limit int) ([]messages.Event, error) {
	q := f.client.get("v1", "log")
	q.url.RawQuery = logQuery(f.cursor, limit).Encode()
	var answer struct {
		Results []httpapi.Event
		More    string `json:"poll_more"`
	}
	if err := f.client.ask(ctx, q, &answer); err != nil {
		return nil, err
	}
	events := make([]messages.Event, len(answer.Results))
	for i := range answer.Results {
		var err error
		if events[i], err = answer.Results[i].Read(); err != nil {
			return nil, err
		}
	}
	more, err := q.url.Parse(answer.More)
	if err != nil {
		return nil, err
	}
	f.cursor = more.Query().Get("after")
	return events, nil
}
