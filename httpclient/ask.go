package httpclient

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"strconv"
	"time"

	"github.com/partita-go/partita/httpapi"
	"github.com/partita-go/partita/ids"
)

const (
	jsonType   = "application/json"
	streamType = "text/event-stream"
	// headerTrace names the trace that a request belongs to.
	headerTrace = "Partita-Trace"
	// maxAnswer is the largest answer, or event of a stream, that is read, in bytes.
	maxAnswer = 64 << 20
)

// query is a request that can be repeated.
type query struct {
	method string
	url    *url.URL
	header http.Header
	body   []byte
}

// get returns a request for what lies under a path, of which each part is given.
func (c *Client) get(parts ...string) *query {
	return &query{method: http.MethodGet, url: c.base.JoinPath(parts...), header: http.Header{"Accept": {jsonType}}}
}

// ask sends a request, again and again if need be, and reads the answer into a value.
func (c *Client) ask(ctx context.Context, q *query, value any) error {
	for r := (retry{options: &c.options, writes: q.method != http.MethodGet}); ; {
		err := c.try(ctx, q, value)
		if err == nil {
			return nil
		}
		if err := r.wait(ctx, err); err != nil {
			return fmt.Errorf("%s: %w", q.url.Redacted(), err)
		}
	}
}

// try sends a request once.
func (c *Client) try(ctx context.Context, q *query, value any) error {
	ctx, cancel := context.WithTimeoutCause(ctx, c.options.Timeout, errSlow)
	defer cancel()
	response, err := c.send(ctx, q)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	content, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer))
	switch {
	case err != nil:
		return &lost{sent: true, err: causeOf(ctx, err)}
	case response.StatusCode != http.StatusOK && response.StatusCode != http.StatusCreated:
		return refusal(response, content)
	}
	if err := json.Unmarshal(content, value); err != nil {
		return &strange{status: response.StatusCode}
	}
	return nil
}

// send sends a request once and returns the answer, of which the body is still to be read. Its error is a *lost.
func (c *Client) send(ctx context.Context, q *query) (*http.Response, error) {
	// What had no connection was not sent.
	sent := false
	traced := httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { sent = true }})
	request, err := http.NewRequestWithContext(traced, q.method, q.url.String(), bytes.NewReader(q.body))
	if err != nil {
		return nil, err
	}
	request.Header = q.header.Clone()
	if c.options.Token != "" {
		request.Header.Set("Authorization", "Bearer "+c.options.Token)
	}
	if trace := ids.TraceOf(ctx); trace != 0 {
		request.Header.Set(headerTrace, trace.String())
	}
	response, err := c.http.Do(request)
	if err != nil {
		return nil, &lost{sent: sent, err: causeOf(ctx, err)}
	}
	return response, nil
}

// causeOf names why a context has ended, if it has: what failed because of that says less.
func causeOf(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	// The URL is told by ask.
	if u, ok := errors.AsType[*url.Error](err); ok {
		return u.Err
	}
	return err
}

// refusal returns the error that an answer is.
func refusal(response *http.Response, content []byte) error {
	after := retryAfter(response.Header.Get("Retry-After"), response.Header.Get("Date"))
	if p, ok := httpapi.ReadProblem(content); ok {
		p.RetryAfter = after
		return p
	}
	return &strange{status: response.StatusCode, after: after}
}

// retryAfter reads the header of that name, which has seconds or a time. Of that only what is left by the server's own
// clock counts.
func retryAfter(text, now string) time.Duration {
	if seconds, err := strconv.ParseUint(text, 10, 31); err == nil {
		return time.Duration(seconds) * time.Second
	}
	until, err := http.ParseTime(text)
	if err != nil {
		return 0
	}
	at, err := http.ParseTime(now)
	if err != nil {
		return 0
	}
	return max(0, until.Sub(at))
}
