package httpapi

import (
	"context"
	"fmt"
	"mime"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/partita-go/partita/messages"
)

// Bounds of a page.
const (
	// DefaultLimit is how much a page has at the most if the request does not say it.
	DefaultLimit = 100
	maxLimit     = 200
	// maxWait is how long a long poll may last, in seconds.
	maxWait = 60
)

// headerLast is where a client that reads a stream says how far it has come.
const headerLast = "Last-Event-ID"

func (a *API) workspaceLog(c *call) error {
	ws, err := c.workspace()
	if err != nil {
		return err
	}
	return c.readLog(func(field, after string) (source, error) {
		offset, err := position(field, after, messages.ParseWLogOffset)
		if err == nil && offset > 0 {
			err = c.come(field, func(ctx context.Context) error { return a.reader.AwaitWLog(ctx, ws, offset) })
		}
		return a.wlog(ws, offset), err
	})
}

func (a *API) partitionLog(c *call) error {
	p, err := c.partition()
	if err != nil {
		return err
	}
	return c.readLog(func(field, after string) (source, error) {
		offset, err := position(field, after, messages.ParsePLogOffset)
		if err == nil && offset > 0 {
			err = c.come(field, func(ctx context.Context) error { return a.reader.AwaitPLog(ctx, p, offset) })
		}
		return a.plog(p, offset), err
	})
}

func (a *API) applicationLog(c *call) error {
	return c.readLog(func(field, after string) (source, error) { return a.newFeed(c, field, after) })
}

// position reads an offset behind which to go on; 0 is the beginning.
func position[O ~uint64](field, text string, parse func(string) (O, error)) (O, error) {
	if text == "" {
		return 0, nil
	}
	offset, err := parsed(field, text, parse)
	if err == nil && offset+1 == 0 {
		return 0, ahead(fmt.Sprintf("there is no event behind offset %d", offset))
	}
	return offset, err
}

// readLog answers with a page of a log, or a stream of it. It opens the log behind a
// position, which stands in the field named.
func (c *call) readLog(open func(field, after string) (source, error)) error {
	streams := WantsStream(c.r)
	field, after := paramAfter, c.query.Get(paramAfter)
	// A client that connects again asks with its first URL.
	if last := c.r.Header.Get(headerLast); streams && last != "" {
		field, after = headerLast, last
	}
	for _, name := range []string{paramLimit, paramWait} {
		if streams && c.query.Has(name) {
			return &problem{kind: malformed, field: name, detail: "a stream does not take it: it has no pages, and always waits"}
		}
	}
	if c.query.Has(paramAfter) && c.query.Get(paramAfter) == "" {
		return &problem{kind: malformed, field: paramAfter, detail: "it is empty; leave it out to begin at the beginning"}
	}
	limit, err := c.whole(paramLimit, DefaultLimit, 1, maxLimit)
	if err != nil {
		return err
	}
	wait, err := c.whole(paramWait, 0, 0, maxWait)
	if err != nil {
		return err
	}
	log, err := open(field, after)
	if err != nil {
		return at(field, err)
	}
	if streams {
		return at(field, c.stream(log))
	}
	return c.page(log, limit, time.Duration(wait)*time.Second)
}

// at lets a problem with a position name the field in which that stood.
func at(field string, err error) error {
	if err == nil {
		return nil
	}
	if p := problemOf(err); p.field == paramAfter {
		p.field = field
		return p
	}
	return err
}

// WantsStream reports whether a request accepts a stream of events, instead of a page.
func WantsStream(r *http.Request) bool {
	if r.Method != http.MethodGet {
		return false
	}
	for _, accept := range r.Header.Values("Accept") {
		for part := range strings.SplitSeq(accept, ",") {
			if t, params, err := mime.ParseMediaType(part); err == nil && t == streamType && !isZero(params["q"]) {
				return true
			}
		}
	}
	return false
}

// isZero reports whether a weight says that something is not acceptable.
func isZero(weight string) bool {
	q, err := strconv.ParseFloat(weight, 64)
	return err == nil && q == 0
}

// pageJSON is some events of a log, and where it goes on.
type pageJSON struct {
	Results []Event `json:"results"`
	// Next is nil if the log ended behind the results.
	Next     *string `json:"next"`
	PollMore string  `json:"poll_more"`
}

// page answers with the events behind a log's position, and waits for some if it may.
func (c *call) page(log source, limit int, wait time.Duration) error {
	page, err := c.collect(log, limit)
	if err == nil && len(page.Results) == 0 {
		err = log.check(c.r.Context())
		if err == nil && wait > 0 {
			page, err = c.collectLater(log, limit, wait)
		}
	}
	if err != nil {
		return err
	}
	return c.sendJSON(http.StatusOK, jsonType, page)
}

// collect reads a page. That it goes on is known when it has: so it looks behind its end.
func (c *call) collect(log source, limit int) (*pageJSON, error) {
	size, full := 0, false
	page := &pageJSON{Results: []Event{}}
	for e, err := range log.events(c.r.Context()) {
		if err != nil && (len(page.Results) == 0 || c.r.Context().Err() != nil) {
			return nil, err
		}
		if full || err != nil {
			page.Next = &page.PollMore // to the next event, or the error
			break
		}
		page.Results = append(page.Results, EventOf(&e, c.api.printer))
		size += sizeOf(&e)
		if full = len(page.Results) == limit || size >= c.api.options.PageBytes; full {
			page.PollMore = c.linkBehind(log)
		}
	}
	if !full {
		page.PollMore = c.linkBehind(log)
	}
	return page, nil
}

// collectLater is collect when there is an event. If none comes in time, or the API is
// stopped, there are no events.
func (c *call) collectLater(log source, limit int, wait time.Duration) (*pageJSON, error) {
	if !c.api.polls.take() {
		return nil, tooMany("requests that wait", cap(c.api.polls))
	}
	defer c.api.polls.free()
	ctx, cancel := c.api.whileRunning(c.r.Context())
	defer cancel()
	waiting, stop := context.WithTimeout(ctx, wait)
	defer stop()
	if err := log.await(waiting); err != nil && waiting.Err() == nil {
		return nil, err
	}
	return c.collect(log, limit)
}

func tooMany(what string, most int) error {
	return &problem{kind: tooManyReaders, detail: fmt.Sprintf("there are %d %s already", most, what), retryAfter: retrySoon}
}

// whileRunning returns a context that ends with the request or when the API is stopped.
func (a *API) whileRunning(request context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(request)
	unhook := context.AfterFunc(a.stopping, cancel)
	return ctx, func() {
		unhook()
		cancel()
	}
}

// linkBehind is where a log goes on.
func (c *call) linkBehind(log source) string {
	query := url.Values{paramAfter: {log.position()}}
	c.keep(query, paramLimit)
	c.keep(query, paramWait)
	if ReadsLocally(c.query) {
		query.Set(paramConsistency, consistencyLocal)
	}
	return c.link(query)
}

// keep repeats a parameter of the request.
func (c *call) keep(query url.Values, name string) {
	if c.query.Has(name) {
		query.Set(name, c.query.Get(name))
	}
}

// link returns the path of the request with another query. It has no scheme and no host:
// what of these the client used is not known behind a proxy.
func (c *call) link(query url.Values) string {
	path := c.r.URL.EscapedPath()
	// The handler may be mounted under a prefix that is stripped.
	if asked, err := url.ParseRequestURI(c.r.RequestURI); err == nil {
		path = asked.EscapedPath()
	}
	return path + "?" + query.Encode()
}
