package cluster

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"slices"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/partita-go/partita/httpapi"
	"github.com/partita-go/partita/ids"
	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/partition"
	"github.com/partita-go/partita/storage/replog"
	"github.com/partita-go/partita/storage/replog/raftlog"
)

const (
	// maxForwards is how many streams to one other node may be open at the same time. Who comes later waits.
	maxForwards = 1024
	// idleTime is for how long one stays open that nobody uses.
	idleTime = time.Minute
	// headerTime is how long the first bytes of a request may take, and maxHeader how many it may have. Both are those of
	// other nodes, which we trust: this is against mistakes.
	headerTime = 10 * time.Second
	maxHeader  = 1 << 20
	// maxProblem is the largest answer that is read whole, in bytes.
	maxProblem = 64 << 10
	// maxEnd is how many bytes of an answer the end of a partition's log may have.
	maxEnd = 24
	// maxAnswer is that of an append.
	maxAnswer = 64 << 20
	// ownPrefix is where the appends of other nodes' own programs come.
	ownPrefix = "/own"
	// headerMoved says in an answer that the node's leadership had ended: whatever the refusal says, another node is to be
	// asked.
	headerMoved = "Partita-Moved"
	// headerKey makes an append safe to repeat.
	headerKey = "Idempotency-Key"
	// headerShard says which shard a request of another node is about, as "1/3": the second of three, numbered from 0. Where
	// there is one it is missing.
	headerShard = "Partita-Shard"
	// headerTrace names the trace that a request belongs to.
	headerTrace = "Partita-Trace"
)

// peers are the other nodes: what they ask this one as the owner, and what it asks them. It is HTTP over the streams of the
// node's port.
type peers struct {
	node     *Node
	requests *raftlog.Requests
	server   *http.Server
	served   chan struct{}
	// transport knows a node by the host of a URL, in hexadecimal: see hostOf.
	transport *http.Transport
}

// startPeers serves other nodes.
func (n *Node) startPeers() (*peers, error) {
	requests, err := n.port.Requests()
	if err != nil {
		return nil, err
	}
	errorLog, err := zap.NewStdLogAt(n.o.Logger.Named("peers"), zap.InfoLevel)
	if err != nil {
		return nil, errors.Join(err, requests.Close())
	}
	p := &peers{node: n, requests: requests, served: make(chan struct{})}
	p.server = &http.Server{
		Handler: http.HandlerFunc(p.answer), ReadHeaderTimeout: headerTime, IdleTimeout: 2 * idleTime, MaxHeaderBytes: maxHeader,
		ErrorLog: errorLog,
	}
	p.transport = &http.Transport{
		DialContext: func(ctx context.Context, _, host string) (net.Conn, error) {
			id, err := nodeOf(host)
			if err != nil {
				return nil, err
			}
			return requests.Dial(ctx, id)
		},
		MaxConnsPerHost: maxForwards, MaxIdleConnsPerHost: 64, IdleConnTimeout: idleTime, DisableCompression: true,
	}
	go func() {
		defer close(p.served)
		_ = p.server.Serve(requests) // it ends when the streams are closed
	}()
	return p, nil
}

func (p *peers) close(ctx context.Context) error {
	// Requests under way are ended: nothing runs here any more.
	err := errors.Join(p.server.Close(), p.requests.Close())
	p.transport.CloseIdleConnections()
	select {
	case <-p.served:
	case <-ctx.Done():
		err = errors.Join(err, context.Cause(ctx))
	}
	return err
}

// answer answers another node that takes this one for the owner, or asks where it stands. It passes nothing on: so no request
// goes round in circles.
func (p *peers) answer(w http.ResponseWriter, r *http.Request) {
	s, err := p.node.marked(r)
	if err == nil && s.part() == nil {
		err = &OwnerError{} // it is about to join
	}
	if err != nil {
		httpapi.Refuse(w, r, err)
		return
	}
	if own := ownAnswers[r.URL.Path]; own != nil {
		own(s, w, r)
		return
	}
	reign := s.awaitReign(r.Context())
	if reign == nil {
		httpapi.Refuse(w, r, &OwnerError{s.Leader()})
		return
	}
	tagged := &tagging{ResponseWriter: w, reign: reign}
	if path, own := strings.CutPrefix(r.URL.Path, ownPrefix); own {
		r.URL.Path, r.URL.RawPath = path, ""
		reign.own.ServeHTTP(tagged, r)
		return
	}
	if c := changes[r.URL.Path]; c != nil && r.Method == http.MethodPost {
		body, err := s.part().api.ReadBody(tagged, r)
		s.makeChange(tagged, r, c, body, err)
		return
	}
	if r.URL.Path == generatorPath && r.Method == http.MethodPost {
		s.answerGenerator(tagged, r)
		return
	}
	reign.api.ServeHTTP(tagged, r)
}

// ownAnswers are those about this node, by their paths.
var ownAnswers = map[string]func(*Shard, http.ResponseWriter, *http.Request){
	clusterPath:  func(s *Shard, w http.ResponseWriter, _ *http.Request) { answer(w, s.json()) },
	positionPath: (*Shard).answerPosition,
	seedPath:     (*Shard).answerSeed,
	endsPath:     (*Shard).answerEnds,
}

// mark says which shard a request to another node is about.
func (s *Shard) mark(h http.Header) {
	h.Del(headerShard)
	if len(s.node.shards) > 1 {
		h.Set(headerShard, s.of)
	}
}

// marked returns the shard that a request of another node is about. It refuses one of a node that has another number of shards,
// or takes a partition for another shard's.
func (n *Node) marked(r *http.Request) (*Shard, error) {
	text := cmp.Or(r.Header.Get(headerShard), "0/1")
	index := slices.IndexFunc(n.shards, func(s *Shard) bool { return s.of == text })
	if index < 0 {
		return nil, httpapi.Malformed(headerShard, fmt.Sprintf("got %.40q, want one of the %d shards of node %s", text, len(n.shards), n.o.Node))
	}
	s := n.shards[index]
	if p, is := n.partitionIn(strings.TrimPrefix(r.URL.Path, ownPrefix)); is && n.ShardOf(p) != s {
		return nil, httpapi.Malformed(headerShard, fmt.Sprintf("got %.40q, partition %d is in shard %d", text, p, n.ShardOf(p).index))
	}
	return s, nil
}

// tagging says in a refusal that the leadership has ended meanwhile.
type tagging struct {
	http.ResponseWriter
	reign *reign
}

// WriteHeader implements [http.ResponseWriter].
func (t *tagging) WriteHeader(status int) {
	if status == http.StatusServiceUnavailable && t.reign.ctx.Err() != nil {
		t.Header().Set(headerMoved, "1")
	}
	t.ResponseWriter.WriteHeader(status)
}

// Unwrap is for [http.ResponseController].
func (t *tagging) Unwrap() http.ResponseWriter { return t.ResponseWriter }

// post lets another node append.
func (s *Shard) post(ctx context.Context, to replog.NodeID, what *partition.AppendTo, body []byte, answer any) error {
	sent := false
	traced := httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { sent = true }})
	path := ownPrefix + "/v1/workspaces/" + what.Workspace.String() + "/events"
	request, err := s.request(traced, http.MethodPost, to, path, bytes.NewReader(body))
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", "application/json")
	if !what.DedupID.IsZero() {
		request.Header.Set(httpapi.IdempotencyKey(what.DedupID))
	}
	if trace := ids.TraceOf(ctx); trace != 0 {
		request.Header.Set(headerTrace, trace.String())
	}
	response, err := s.node.peers.transport.RoundTrip(request)
	if err != nil {
		return &lostError{sent, causeOf(ctx, err)}
	}
	defer response.Body.Close()
	content, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer))
	switch {
	case err != nil:
		return &lostError{true, causeOf(ctx, err)}
	case response.StatusCode == http.StatusOK || response.StatusCode == http.StatusCreated:
		if err := json.Unmarshal(content, answer); err != nil {
			return &lostError{true, err}
		}
		return nil
	}
	refused := refusal(response.StatusCode, response.Header, content)
	if _, ok := httpapi.ReadProblem(content); !ok { // nobody knows what that means
		return &lostError{true, refused}
	}
	return complete(what, refused)
}

// request returns one to another node, about the shard.
func (s *Shard) request(ctx context.Context, method string, to replog.NodeID, path string, body io.Reader) (*http.Request, error) {
	request, err := http.NewRequestWithContext(ctx, method, "http://"+hostOf(to)+path, body)
	if err == nil {
		s.mark(request.Header)
	}
	return request, err
}

// ask asks another node for what it answers as JSON. The error is a lostError if there is no answer, or not all of it.
func (s *Shard) ask(ctx context.Context, to replog.NodeID, path string, value any) error {
	return s.exchange(ctx, http.MethodGet, to, path, nil, value)
}

// exchange is ask with a body, which is JSON, if it is not nil.
func (s *Shard) exchange(ctx context.Context, method string, to replog.NodeID, path string, body []byte, value any) error {
	request, err := s.request(ctx, method, to, path, bytes.NewReader(body))
	if err != nil {
		return err
	}
	if body != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	response, err := s.node.peers.transport.RoundTrip(request)
	if err != nil {
		return &lostError{true, causeOf(ctx, err)}
	}
	defer response.Body.Close()
	content, err := io.ReadAll(io.LimitReader(response.Body, s.maxTold()))
	switch {
	case err != nil:
		return &lostError{true, causeOf(ctx, err)}
	case response.StatusCode != http.StatusOK:
		return refusal(response.StatusCode, response.Header, content)
	}
	if err := json.Unmarshal(content, value); err != nil {
		return &lostError{true, fmt.Errorf("%w: %w", errAnswer, err)}
	}
	return nil
}

// maxTold is the largest answer of a node about itself, in bytes: it may tell something of each partition.
func (s *Shard) maxTold() int64 {
	return maxProblem + maxEnd*int64(s.o.Application.Descriptor.Partitions)
}

// complete fills in what the caller knows of the error.
func complete(to *partition.AppendTo, err error) error {
	if o, ok := errors.AsType[*messages.OffsetError](err); ok && to.Expected != nil {
		return errors.Join(&messages.OffsetError{Workspace: to.Workspace, Got: o.Got, Want: *to.Expected}, err)
	}
	return err
}
