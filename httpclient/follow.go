package httpclient

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/partita-go/partita/httpapi"
	"github.com/partita-go/partita/messages"
)

// FollowPLog is PLog, and goes on with what is appended, until ctx ends, over as many connections as it needs.
func (c *Client) FollowPLog(ctx context.Context, p messages.PartitionID, from messages.PLogOffset) iter.Seq2[messages.Event, error] {
	return c.follow(ctx, c.plog(p), offsetBefore(from), ignored)
}

// FollowWLog is WLog, and goes on like FollowPLog.
func (c *Client) FollowWLog(ctx context.Context, ws messages.WSID, from messages.WLogOffset) iter.Seq2[messages.Event, error] {
	return c.follow(ctx, c.wlog(ws), offsetBefore(from), ignored)
}

func ignored(string) {}

// follow returns the events of a log behind a position. Moved is told the position behind an event before that is given.
func (c *Client) follow(ctx context.Context, q *query, after string, moved func(position string)) iter.Seq2[messages.Event, error] {
	return followed(ctx, follower[messages.Event]{client: c, query: q, after: after, moved: moved, parse: parseEvent})
}

func parseEvent(data []byte) (messages.Event, error) {
	var j httpapi.Event
	if err := json.Unmarshal(data, &j); err != nil {
		return messages.Event{}, err
	}
	return j.Read()
}

// followed returns what comes to whoever follows something.
func followed[T any](ctx context.Context, begin follower[T]) iter.Seq2[T, error] {
	begin.query.header.Set("Accept", streamType)
	begin.retry.options = &begin.client.options
	return func(yield func(T, error) bool) {
		f := begin
		f.yield = yield
		for {
			err := f.connect(ctx)
			if f.ended {
				return
			}
			if err = f.retry.wait(ctx, err); err != nil {
				var none T
				yield(none, fmt.Errorf("%s: %w", f.query.url.Redacted(), err))
				return
			}
		}
	}
}

// follower follows a log, or statuses.
type follower[T any] struct {
	client *Client
	query  *query
	// after is the position behind the last event that was given, "" if there is none.
	after string
	moved func(string)
	// parse reads the data of a message.
	parse func([]byte) (T, error)
	yield func(T, error) bool
	// ended says that the caller wants no more.
	ended bool
	retry retry
}

// connect opens a stream and reads it to its end. It returns why it has ended.
func (f *follower[T]) connect(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	watch := time.AfterFunc(f.client.options.Silence, func() { cancel(errSilent) })
	defer watch.Stop()
	if f.query.url.RawQuery = ""; f.after != "" {
		f.query.url.RawQuery = url.Values{"after": {f.after}}.Encode()
	}
	response, err := f.client.send(ctx, f.query)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK || !strings.HasPrefix(response.Header.Get("Content-Type"), streamType) {
		content, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer))
		if err != nil {
			return &lost{sent: true, err: causeOf(ctx, err)}
		}
		return refusal(response, content)
	}
	err = f.read(&watched{response.Body, watch, f.client.options.Silence})
	if _, cut := errors.AsType[*lost](err); cut && ctx.Err() != nil {
		return &lost{sent: true, err: context.Cause(ctx)}
	}
	return err
}

// watched is a stream of which something comes in time.
type watched struct {
	io.Reader
	watch *time.Timer
	limit time.Duration
}

func (w *watched) Read(b []byte) (int, error) {
	w.watch.Reset(w.limit)
	n, err := w.Reader.Read(b)
	w.watch.Stop() // while the caller handles what has come
	return n, err
}

// read gives the events of a stream of server-sent events. What has no empty line behind it has not wholly come: it will
// come again.
func (f *follower[T]) read(stream io.Reader) error {
	lines := bufio.NewScanner(stream)
	lines.Buffer(nil, maxAnswer)
	var m message
	for lines.Scan() {
		name, value, _ := strings.Cut(lines.Text(), ":")
		value = strings.TrimPrefix(value, " ")
		switch name {
		case "id":
			m.id = value
		case "event":
			m.name = value
		case "data":
			m.data = append(m.data, value...)
		case "":
			if lines.Text() != "" {
				continue // a comment: nothing new
			}
			if err := f.give(m); err != nil || f.ended {
				return err
			}
			m = message{}
		}
	}
	return &lost{sent: true, err: errors.Join(errBroken, lines.Err())}
}

// message is one of a stream's.
type message struct {
	id, name string
	data     []byte
}

func (f *follower[T]) give(m message) error {
	switch {
	case m.name == "problem":
		if p, ok := httpapi.ReadProblem(m.data); ok {
			return p
		}
		return &strange{status: http.StatusOK}
	case m.data == nil:
		return nil
	}
	value, err := f.parse(m.data)
	if err != nil {
		return fmt.Errorf("behind %q: %w", f.after, err)
	}
	f.after, f.retry.failures = m.id, 0
	f.moved(m.id)
	f.ended = !f.yield(value, nil)
	return nil
}
