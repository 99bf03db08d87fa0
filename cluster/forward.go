package cluster

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"io"
	"maps"
	"net/http"
	"net/http/httptrace"
	"net/http/httputil"
	"strings"
	"time"

	"github.com/partita-go/partita/httpapi"
	"github.com/partita-go/partita/storage/replog"
)

// forward is a request that the owner is to answer, wherever it is.
type forward struct {
	s *Shard
	w http.ResponseWriter
	r *http.Request
	// body is that of the request, kept so that it can be sent again.
	body []byte
	// refused is the last answer that was held back.
	refused *held
}

// forward answers as the owner does. What says that it is not the owner any more is not the client's answer: it goes on as
// [Node.Append] does, for as long as an append may take; a try under way may take as long again.
func (s *Shard) forward(w http.ResponseWriter, r *http.Request) {
	body, err := s.node.readBody(w, r)
	if err != nil {
		httpapi.Refuse(w, r, err)
		return
	}
	s.forwardWith(w, r, body)
}

// readBody reads what a change has, nil if there is nothing.
func (n *Node) readBody(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	if r.ContentLength == 0 || isRead(r) {
		return nil, nil
	}
	return n.shards[0].part().api.ReadBody(w, r)
}

// forwardWith is forward of a request whose body was read.
func (s *Shard) forwardWith(w http.ResponseWriter, r *http.Request, body []byte) {
	f := &forward{s: s, w: w, r: r, body: body}
	p := pursuit{
		shard: s, writes: !isRead(r), repeatable: isRead(r) || isAppend(r) && r.Header.Get(headerKey) != "", try: f.try,
		limit: s.o.HTTP.AppendTimeout,
	}
	// A client that only sends no more has not gone, but net/http takes it so: then nobody would know what became of it.
	ctx := context.WithoutCancel(r.Context())
	if isRead(r) {
		var cancel context.CancelFunc
		ctx, cancel = context.WithCancel(r.Context())
		defer cancel()
		defer context.AfterFunc(s.node.serving, cancel)()
	}
	err := p.run(ctx)
	switch {
	case err == nil:
	case f.refused != nil && f.refused.err == err: //nolint:errorlint // it is the very same
		f.refused.send(w)
	default:
		httpapi.Refuse(w, r, err)
	}
}

// limit is how long one try of a change may take.
func (f *forward) limit() time.Duration {
	if strings.HasPrefix(f.r.URL.Path, "/v1/subscriptions/") {
		return f.s.o.HTTP.ChangeTimeout
	}
	return f.s.o.HTTP.AppendTimeout
}

// try lets the owner answer. Its error is an answer that was held back, or why there is none; nil if the client has an
// answer, or its beginning.
func (f *forward) try(ctx context.Context, o owner) error {
	f.refused = nil
	if !isRead(f.r) {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, f.limit())
		defer cancel()
	}
	r := f.r.Clone(ctx)
	if f.body != nil {
		r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(f.body)), int64(len(f.body))
	}
	if o.here == nil {
		return f.there(r, o.node)
	}
	h := &holding{ResponseWriter: f.w, header: maps.Clone(f.w.Header()), mayBeHeld: f.mayBeHeld}
	o.here.api.ServeHTTP(h, r)
	if h.held == nil {
		return nil
	}
	return f.hold(h.held)
}

// hold keeps an answer that may not be the client's.
func (f *forward) hold(h *held) error {
	f.refused = h
	h.err = refusal(h.status, h.header, h.body.Bytes())
	return h.err
}

// there lets another node answer.
func (f *forward) there(r *http.Request, id replog.NodeID) (failed error) {
	if all, is := f.w.(*recorded); is {
		defer all.forgetBroken(r.Context(), &failed)
	}
	sent := false
	r = r.WithContext(httptrace.WithClientTrace(r.Context(), &httptrace.ClientTrace{
		GotConn: func(httptrace.GotConnInfo) { sent = true },
	}))
	proxy := httputil.ReverseProxy{
		Rewrite: func(p *httputil.ProxyRequest) {
			p.Out.URL.Scheme, p.Out.URL.Host = "http", hostOf(id)
			p.Out.URL.RawQuery = p.In.URL.RawQuery // what is wrong with it, the API says
			p.Out.Header.Del("Authorization")
			f.s.mark(p.Out.Header)
			if !isAppend(p.In) { // net/http repeats by itself what has such a header
				p.Out.Header.Del(headerKey)
				p.Out.Header.Del("X-" + headerKey)
			}
		},
		Transport: f.s.node.peers.transport,
		ModifyResponse: func(response *http.Response) error {
			if !f.mayBeHeld(response.StatusCode) {
				return nil
			}
			h := &held{status: response.StatusCode, header: response.Header}
			if _, err := h.body.ReadFrom(io.LimitReader(response.Body, maxProblem)); err != nil {
				return err
			}
			return f.hold(h)
		},
		ErrorHandler: func(_ http.ResponseWriter, r *http.Request, err error) {
			if failed = err; f.refused == nil {
				failed = &lostError{sent, causeOf(r.Context(), err)}
			}
		},
		ErrorLog: f.s.node.peers.server.ErrorLog,
	}
	proxy.ServeHTTP(&accepting{ResponseWriter: f.w, limit: f.s.o.HTTP.WriteTimeout}, r)
	return failed
}

// mayBeHeld reports whether an answer may be one that the client does not get. What refuses a change may be wrong about an
// earlier try, whose answer was lost.
func (f *forward) mayBeHeld(status int) bool {
	if !isRead(f.r) {
		return status >= http.StatusBadRequest
	}
	return status == http.StatusServiceUnavailable || status == http.StatusInternalServerError
}

// isAppend reports whether a request appends: it is the one change that a key makes safe to repeat.
func isAppend(r *http.Request) bool {
	return r.Method == http.MethodPost && strings.HasPrefix(r.URL.Path, "/v1/workspaces/") && strings.HasSuffix(r.URL.Path, "/events")
}

// held is an answer that was held back.
type held struct {
	status int
	header http.Header
	body   bytes.Buffer
	err    error
}

func (h *held) send(w http.ResponseWriter) {
	h.header.Del(headerMoved)
	maps.Copy(w.Header(), h.header)
	w.WriteHeader(h.status)
	_, _ = w.Write(h.body.Bytes())
}

// holding holds back an answer, if it may be one that the client does not get.
type holding struct {
	http.ResponseWriter
	mayBeHeld func(status int) bool
	header    http.Header
	held      *held
	begun     bool
}

// Header implements [http.ResponseWriter].
func (h *holding) Header() http.Header { return h.header }

// WriteHeader implements [http.ResponseWriter].
func (h *holding) WriteHeader(status int) {
	if h.begun || h.held != nil {
		return
	}
	if h.mayBeHeld(status) {
		h.held = &held{status: status, header: h.header}
		return
	}
	h.begun = true
	maps.Copy(h.ResponseWriter.Header(), h.header)
	h.ResponseWriter.WriteHeader(status)
}

// Write implements [http.ResponseWriter].
func (h *holding) Write(b []byte) (int, error) {
	h.WriteHeader(http.StatusOK)
	if h.held != nil {
		return h.held.body.Write(b)
	}
	return h.ResponseWriter.Write(b)
}

// Unwrap is for [http.ResponseController].
func (h *holding) Unwrap() http.ResponseWriter { return h.ResponseWriter }

// accepting gives the client time to accept what is written next.
type accepting struct {
	http.ResponseWriter
	limit time.Duration
}

// Write implements [http.ResponseWriter].
func (a *accepting) Write(b []byte) (int, error) {
	_ = http.NewResponseController(a.ResponseWriter).SetWriteDeadline(time.Now().Add(a.limit))
	return a.ResponseWriter.Write(b)
}

// Unwrap is for [http.ResponseController].
func (a *accepting) Unwrap() http.ResponseWriter { return a.ResponseWriter }

// refusal is the error that an answer of a node is.
func refusal(status int, header http.Header, content []byte) error {
	p, ok := httpapi.ReadProblem(content)
	if !ok {
		p = &httpapi.ProblemError{
			Status: status, Title: cmp.Or(http.StatusText(status), "Unknown"), Detail: "the answer of the other node cannot be read",
		}
	}
	if header.Get(headerMoved) != "" {
		return &movedError{p}
	}
	return p
}

// causeOf names why a context has ended, if it has.
func causeOf(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil && errors.Is(err, ctx.Err()) {
		return cause
	}
	return err
}
