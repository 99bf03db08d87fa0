package httpapi

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/partita-go/partita/actors"
	"github.com/partita-go/partita/ids"
	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/partition"
)

const (
	jsonType    = "application/json"
	problemType = "application/problem+json"
)

// call is one request and its answer.
type call struct {
	api     *API
	w       http.ResponseWriter
	r       *http.Request
	query   url.Values
	control *http.ResponseController
	// received says that the whole body of the request was read.
	received bool
	// trace is the one that it belongs to, zero if it belongs to none.
	trace ids.TraceID
	// known are the problems that some errors of this call are.
	known []knownError
}

// serve answers a request; an error becomes a problem.
func (a *API) serve(w http.ResponseWriter, r *http.Request, to route) {
	c := newCall(a, w, r)
	err := c.beginTrace()
	if err == nil {
		err = c.parseQuery(to.query)
	}
	if err == nil && (to.method == http.MethodGet || to.method == http.MethodDelete) && !c.received {
		// As long as it is not there, net/http does not answer, nor see that the client has gone.
		err = &problem{kind: malformed, detail: "the path takes no body"}
	}
	if err == nil || to.method == "" {
		err = to.handle(c)
	}
	if err != nil {
		c.fail(err)
	}
}

// newCall bounds how long the request's body may take: what of it the handler does not read,
// net/http reads itself, for as long as it takes.
func newCall(a *API, w http.ResponseWriter, r *http.Request) *call {
	c := &call{api: a, w: w, r: r, control: http.NewResponseController(w), received: r.ContentLength == 0}
	if !c.received {
		c.boundBody()
	}
	return c
}

// boundBody gives the client time to send the body. Where there is no deadline, whoever embeds
// the handler bounds the time.
func (c *call) boundBody() {
	_ = c.control.SetReadDeadline(time.Now().Add(c.api.options.BodyTimeout))
}

// fail answers with a problem. That the client has gone meanwhile does no harm.
func (c *call) fail(err error) {
	p := problemOf(err, c.known...)
	p.trace = c.trace
	c.log(p, err)
	p.setHeaders(c.w.Header())
	if !c.received && c.r.ProtoMajor == 1 {
		c.w.Header().Set("Connection", "close") // else the answer waits for the body
	}
	_ = c.sendJSON(p.kind.status, problemType, p)
}

// log tells the cause of a problem that does not tell it, unless it is that the client has
// gone.
func (c *call) log(p *problem, err error) {
	if p.hides && c.r.Context().Err() == nil {
		c.api.options.Logger.Error(p.kind.title, zap.String("problem", p.kind.name),
			zap.String("method", c.r.Method), zap.String("path", c.r.URL.Path), actors.TraceField(c.trace), zap.Error(err))
	}
}

// parseQuery refuses parameters that are unknown or given twice: a reader with a misspelt
// position would begin at the beginning again and again.
func (c *call) parseQuery(known []string) (err error) {
	if c.query, err = url.ParseQuery(c.r.URL.RawQuery); err != nil {
		return &problem{kind: malformed, field: "query", detail: fmt.Sprintf("the query cannot be read: %v", err)}
	}
	for name, values := range c.query {
		switch {
		case !slices.Contains(known, name):
			return &problem{kind: malformed, field: name, detail: fmt.Sprintf("unknown parameter %.40q, want one of %q", name, known)}
		case len(values) > 1:
			return &problem{kind: malformed, field: name, detail: fmt.Sprintf("got %d values, want one", len(values))}
		}
	}
	return nil
}

// whole returns a parameter that is a small whole number, or the default.
func (c *call) whole(name string, unset, least, most int) (int, error) {
	if !c.query.Has(name) {
		return unset, nil
	}
	n, err := strconv.Atoi(c.query.Get(name))
	if err != nil || n < least || n > most {
		return 0, &problem{kind: malformed, field: name, detail: fmt.Sprintf("got %.40q, want a whole number from %d to %d", c.query.Get(name), least, most)}
	}
	return n, nil
}

// inQuery returns a parameter, or zero.
func inQuery[T any](c *call, name string, parse func(string) (T, error)) (value T, err error) {
	if !c.query.Has(name) {
		return value, nil
	}
	return parsed(name, c.query.Get(name), parse)
}

// inPath returns a part of the path.
func inPath[T any](c *call, name string, parse func(string) (T, error)) (T, error) {
	return parsed(name, c.r.PathValue(name), parse)
}

func parsed[T any](field, text string, parse func(string) (T, error)) (T, error) {
	value, err := parse(text)
	if err != nil {
		return value, &problem{kind: malformed, field: field, detail: err.Error()}
	}
	return value, nil
}

func (c *call) workspace() (messages.WSID, error) { return inPath(c, "wsid", messages.ParseWSID) }

// partition returns the partition of the path, which exists.
func (c *call) partition() (messages.PartitionID, error) {
	id, err := inPath(c, "id", messages.ParsePartitionID)
	if n := c.api.descriptor.Partitions; err == nil && uint32(id) >= n {
		return 0, &problem{kind: notFound, field: "id", cause: partition.ErrUnknownPartition, detail: fmt.Sprintf("no such partition: got %d, want 0 to %d", id, n-1)}
	}
	return id, err
}

// body reads the request's body, which is JSON and is said to be: the forms of another
// site's page cannot say that.
func (c *call) body() ([]byte, error) {
	if err := checkType(c.r.Header); err != nil {
		return nil, err
	}
	o := &c.api.options
	c.boundBody()
	body, err := io.ReadAll(http.MaxBytesReader(c.w, c.r.Body, o.MaxBody))
	switch {
	case err == nil:
		_ = c.control.SetReadDeadline(time.Time{})
		c.received = true
		return body, nil
	case isTooLarge(err):
		return nil, &problem{kind: tooLarge, cause: messages.ErrTooLarge, detail: fmt.Sprintf("the body is larger than %d bytes", o.MaxBody)}
	case errors.Is(err, os.ErrDeadlineExceeded):
		return nil, &problem{kind: tooSlow, detail: fmt.Sprintf("the body was not sent within %v", o.BodyTimeout)}
	}
	return nil, &problem{kind: malformed, detail: "the body cannot be read"}
}

// checkType returns a problem unless a body is said to be JSON in UTF-8, as it is.
func checkType(h http.Header) error {
	got := h.Get("Content-Type")
	t, params, err := mime.ParseMediaType(got)
	switch {
	case err != nil || t != jsonType:
		return &problem{kind: wrongType, field: "Content-Type", detail: fmt.Sprintf("got %.80q, want %s", got, jsonType)}
	case !strings.EqualFold(cmp.Or(params["charset"], "utf-8"), "utf-8"):
		return &problem{kind: wrongType, field: "Content-Type", detail: fmt.Sprintf("got charset %.40q, want utf-8", params["charset"])}
	}
	if encoding := strings.Join(h.Values("Content-Encoding"), ", "); encoding != "" && !strings.EqualFold(encoding, "identity") {
		return &problem{kind: wrongType, field: "Content-Encoding", detail: fmt.Sprintf("got %.40q, want the body as it is", encoding)}
	}
	return nil
}

func isTooLarge(err error) bool {
	_, ok := errors.AsType[*http.MaxBytesError](err)
	return ok
}

// sendJSON answers with a value. It fails only if nothing was sent yet.
func (c *call) sendJSON(status int, contentType string, value any) error {
	b, err := encode(value)
	if err != nil {
		return err
	}
	return c.send(status, contentType, b)
}

func (c *call) send(status int, contentType string, body []byte) error {
	// Where there is no deadline, whoever embeds the handler bounds the time.
	_ = c.control.SetWriteDeadline(time.Now().Add(c.api.options.WriteTimeout))
	h := c.w.Header()
	setCommon(h, contentType)
	body = c.compressed(body)
	h.Set("Content-Length", strconv.Itoa(len(body)))
	c.w.WriteHeader(status)
	_, _ = c.w.Write(body) //nolint:gosec // JSON that is not sniffed; whoever does not listen any more is not told
	return nil
}

func setCommon(h http.Header, contentType string) {
	h.Set("Content-Type", contentType)
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
}

// encode returns a value as JSON in one line. What is JSON already, like the body of an
// event, stays as it is.
func encode(value any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(value); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte{'\n'}), nil
}
