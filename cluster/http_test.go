package cluster

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/partita-go/partita/httpapi"
	"github.com/partita-go/partita/httpclient"
	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage/replog"
)

// web serves the nodes over HTTP.
type web struct {
	*rig
	servers map[replog.NodeID]*httptest.Server
}

func (r *rig) serve() *web {
	w := &web{rig: r, servers: make(map[replog.NodeID]*httptest.Server)}
	for _, id := range names {
		w.servers[id] = httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, req *http.Request) {
			if n := r.node(id); n != nil {
				n.Handler().ServeHTTP(rw, req)
				return
			}
			rw.WriteHeader(http.StatusBadGateway)
		}))
		r.Cleanup(w.servers[id].Close)
	}
	return w
}

func (w *web) client(id replog.NodeID) *httpclient.Client {
	c, err := httpclient.New(w.servers[id].URL, httpclient.Options{MinDelay: 5 * time.Millisecond, MaxDelay: 50 * time.Millisecond})
	if err != nil {
		w.Fatal(err)
	}
	w.Cleanup(c.Close)
	return c
}

// ask asks a node, once.
func (w *web) ask(id replog.NodeID, method, target, body string, headers ...string) (int, string) {
	w.Helper()
	ctx, cancel := context.WithTimeout(w.ctx, patience)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, method, w.servers[id].URL+target, strings.NewReader(body))
	if err != nil {
		w.Fatal(err)
	}
	if body != "" {
		request.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i < len(headers); i += 2 {
		request.Header.Set(headers[i], headers[i+1])
	}
	response, err := http.DefaultTransport.RoundTrip(request)
	if err != nil {
		w.Fatalf("node %s: %s: %v", id, target, err)
	}
	defer response.Body.Close()
	content, err := io.ReadAll(response.Body)
	if err != nil {
		w.Fatalf("node %s: %s: %v", id, target, err)
	}
	return response.StatusCode, string(content)
}

// has asks a node, which must answer with a status. A read that found no leader is asked again if the machine stood still.
func (w *web) has(want int, id replog.NodeID, method, target, body string, headers ...string) string {
	w.Helper()
	status, content := w.ask(id, method, target, body, headers...)
	for read := method == http.MethodGet && want == http.StatusOK; read && status == http.StatusServiceUnavailable &&
		w.standing.long(failover) && w.ctx.Err() == nil; <-time.After(5 * time.Millisecond) {
		status, content = w.ask(id, method, target, body, headers...)
	}
	if status != want {
		w.Errorf("node %s: %s %s: got %d, %s, want %d", id, method, target, status, content, want)
	}
	return content
}

const event = `{"kind": 1, "wanted": [{"sequence": 16}], "body": {"n": 1}}`

// TestHTTPAtEachNode asks each node the same.
func TestHTTPAtEachNode(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	w := r.serve()
	owner := r.owner().o.Node
	w.has(http.StatusCreated, owner, http.MethodPost, "/v1/workspaces/1/events", event)
	for i, id := range names {
		if got := w.has(http.StatusCreated, id, http.MethodPost, "/v1/workspaces/1/events", event, "Idempotency-Key", "key "+string(id)); !strings.Contains(got, `"repeated":false`) {
			t.Errorf("node %s: got %s", id, got)
		}
		if got := w.has(http.StatusOK, id, http.MethodPost, "/v1/workspaces/1/events", event, "Idempotency-Key", "key "+string(id)); !strings.Contains(got, `"repeated":true`) {
			t.Errorf("node %s: got %s", id, got)
		}
		w.has(http.StatusUnprocessableEntity, id, http.MethodPost, "/v1/workspaces/1/events", `{"kind": 1, "wanted": [{"sequence": 99}]}`)
		w.has(http.StatusUnsupportedMediaType, id, http.MethodPost, "/v1/workspaces/1/events", event, "Content-Type", "text/plain")
		w.has(http.StatusRequestEntityTooLarge, id, http.MethodPost, "/v1/workspaces/1/events", `{"body":"`+strings.Repeat("x", 1<<20)+`"}`)
		for _, target := range []string{"/v1/nothing", seedPath, endsPath, positionPath + "?head=1", ownPrefix + "/v1/log"} {
			w.has(http.StatusNotFound, id, http.MethodGet, target, "")
		}
		w.has(http.StatusNotFound, id, http.MethodPost, clusterPath, "{}")
		w.has(http.StatusMethodNotAllowed, id, http.MethodPost, "/v1/log", "")
		for _, target := range []string{
			"/v1/workspaces/1/log", "/v1/workspaces/1/numbers", "/v1/log", "/v1/partitions/1/log", "/v1/partitions", "/v1/application",
			"/v1/status", "/v1/cluster", "/v1/openapi.json", "/", "/healthz", "/readyz", "/v1/workspaces/1/events/1",
		} {
			w.has(http.StatusOK, id, http.MethodGet, target, "")
		}
		want := `{"sequence":16,"name":"invoices","last":"` + string(rune('2'+i)) + `"`
		if got := w.has(http.StatusOK, id, http.MethodGet, "/v1/workspaces/1/numbers", ""); !strings.Contains(got, want) {
			t.Errorf("node %s: got %s, want %s", id, got, want)
		}
		if got := w.has(http.StatusOK, id, http.MethodGet, "/v1/workspaces/1/numbers?at_least="+string(rune('2'+i)), ""); !strings.Contains(got, want) {
			t.Errorf("node %s: at least: got %s, want %s", id, got, want)
		}
	}
}

// TestStatusOfEachNode says who leads, and who does not answer.
func TestStatusOfEachNode(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	w := r.serve()
	owner := r.owner()
	r.append(owner, 1, 1)
	gone := r.others(owner)[0].o.Node
	r.stop(gone)
	asked := r.others(owner)[0]
	var all StatusJSON
	r.soon(func() error {
		all = StatusJSON{}
		if err := json.Unmarshal([]byte(w.has(http.StatusOK, asked.o.Node, http.MethodGet, clusterPath, "")), &all); err != nil {
			return err
		} else if all.Node != asked.o.Node || all.Leader != owner.o.Node || len(all.Members) != 3 {
			return fmt.Errorf("got %+v, want node %s to say that %s leads", all, asked.o.Node, owner.o.Node)
		}
		return nil
	})
	for _, m := range all.Members {
		if (m.Unreachable != "") != (m.Node == gone) || m.Serves != (m.Node == owner.o.Node) || m.Address == "" {
			t.Errorf("got %+v", m)
		}
	}
	w.has(http.StatusBadRequest, asked.o.Node, http.MethodPost, transferPath, `{"to": "n9"}`)
	w.has(http.StatusOK, asked.o.Node, http.MethodPost, transferPath, `{"to": "`+string(asked.o.Node)+`"}`)
	if now := r.owner(owner.o.Node); now != asked {
		t.Errorf("node %s leads, want %s", now.o.Node, asked.o.Node)
	}
}

// TestFollowedAcrossOwners follows logs at each node while owners change: each event comes once, in order.
func TestFollowedAcrossOwners(t *testing.T) {
	t.Parallel()
	const events = 60
	r := newRig(t, nil)
	w := r.serve()
	r.owner()
	ended := make(chan error, 2*len(names))
	for _, id := range names {
		c := w.client(id)
		go func() {
			next := messages.WLogOffset(1)
			for e, err := range c.FollowWLog(r.ctx, 1, 1) {
				if err != nil || e.WLogOffset != next {
					ended <- errors.Join(err, errWant("event", next, e.WLogOffset))
					return
				}
				if next++; next > events {
					break
				}
			}
			ended <- nil
		}()
		go func() {
			seen, f := messages.WLogOffset(0), c.Feed("")
			for seen < events {
				page, err := f.Page(r.ctx, 7)
				if err != nil {
					ended <- err
					return
				}
				for i := range page {
					if seen++; page[i].WLogOffset != seen {
						ended <- errWant("event of the feed", seen, page[i].WLogOffset)
						return
					}
				}
			}
			ended <- nil
		}()
	}
	for i := range events {
		r.append(r.node(names[i%len(names)]), 1, i+1)
		if i%15 == 14 {
			was := r.owner()
			r.handOver(was)
		}
	}
	for range 2 * len(names) {
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
}

func errWant(what string, want, got any) error {
	return &wantError{what, want, got}
}

type wantError struct {
	what      string
	want, got any
}

func (e *wantError) Error() string {
	b, _ := json.Marshal([]any{e.what, e.got, e.want})
	return string(bytes.TrimSpace(b))
}

// TestLongPollAcrossOwners waits at a follower for what a later owner appends.
func TestLongPollAcrossOwners(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	w := r.serve()
	owner := r.owner()
	asked := r.others(owner)[0]
	polled := make(chan string, 1)
	go func() {
		defer close(polled) // also if it fails the test
		polled <- w.has(http.StatusOK, asked.o.Node, http.MethodGet, "/v1/workspaces/1/log?wait=60", "")
	}()
	r.handOver(owner)
	r.append(owner, 1, 1)
	if got := <-polled; !strings.Contains(got, `"wlog_offset":"1"`) {
		t.Errorf("got %s", got)
	}
}

// TestHTTPWithoutQuorum asks nodes that hear nobody.
func TestHTTPWithoutQuorum(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(_ replog.NodeID, o *Options) { o.HTTP = httpapi.Options{AppendTimeout: time.Second} })
	w := r.serve()
	owner := r.owner()
	r.append(owner, 1, 1)
	for _, n := range r.others(nil) {
		if err := n.Reader().AwaitWLog(r.ctx, 1, 1); err != nil {
			t.Fatal(err)
		}
	}
	for _, id := range names {
		r.isolate(id)
	}
	for _, n := range r.others(nil) {
		for n.Leader() != "" && r.ctx.Err() == nil {
			<-time.After(5 * time.Millisecond)
		}
	}
	for _, id := range names {
		got := w.has(http.StatusServiceUnavailable, id, http.MethodPost, "/v1/workspaces/1/events", event, "Idempotency-Key", "k")
		if !strings.Contains(got, "#busy") || !strings.Contains(got, "no quorum") {
			t.Errorf("node %s: got %s", id, got)
		}
		w.has(http.StatusServiceUnavailable, id, http.MethodGet, "/v1/workspaces/1/log", "")
		w.has(http.StatusServiceUnavailable, id, http.MethodGet, "/readyz", "")
		w.has(http.StatusOK, id, http.MethodGet, "/healthz", "")
		w.has(http.StatusOK, id, http.MethodGet, "/v1/cluster", "")
		if got := w.has(http.StatusOK, id, http.MethodGet, "/v1/workspaces/1/log?consistency=local", ""); !strings.Contains(got, `"wlog_offset":"1"`) {
			t.Errorf("node %s: got %s", id, got)
		}
	}
}

// TestStop ends what waits, at the owner and at other nodes, so that a server can be shut down. Appends go on.
func TestStop(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	w := r.serve()
	r.append(r.owner(), 1, 1)
	var streams []io.ReadCloser
	for _, id := range names {
		for _, query := range []string{"", "?consistency=local"} {
			streams = append(streams, w.stream(id, "/v1/workspaces/1/log"+query))
		}
	}
	for _, n := range r.others(nil) {
		n.Stop()
	}
	for _, s := range streams {
		_, _ = io.Copy(io.Discard, s) // it ends
	}
	for _, id := range names {
		w.has(http.StatusServiceUnavailable, id, http.MethodGet, "/readyz", "")
		w.has(http.StatusCreated, id, http.MethodPost, "/v1/workspaces/1/events", event)
	}
}

// stream opens a stream, and waits for its first event: again, if the owner changes meanwhile.
func (w *web) stream(id replog.NodeID, target string) io.ReadCloser {
	w.Helper()
	for end := time.Now().Add(patience); ; {
		request, err := http.NewRequestWithContext(w.ctx, http.MethodGet, w.servers[id].URL+target, nil)
		if err != nil {
			w.Fatal(err)
		}
		request.Header.Set("Accept", "text/event-stream")
		response, err := http.DefaultTransport.RoundTrip(request)
		if err != nil {
			w.Fatal(err)
		}
		w.Cleanup(func() { _ = response.Body.Close() })
		first := make([]byte, 5)
		_, err = io.ReadFull(response.Body, first)
		if string(first) == "id: 1" {
			return response.Body
		}
		if time.Now().After(end) {
			w.Fatalf("node %s: %s: got %q, %v", id, target, first, err)
		}
	}
}
