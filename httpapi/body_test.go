package httpapi

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage"
	"github.com/partita-go/partita/storage/storagetest"
)

// TestUnreadBody: whoever announces a body and does not send it is answered, and loses the
// connection.
func TestUnreadBody(t *testing.T) {
	const limit = 100 * time.Millisecond
	r := newRig(t, Options{BodyTimeout: limit})
	for _, tt := range []struct {
		handler http.Handler
		head    string
		status  int
	}{
		{r.api, "GET /healthz HTTP/1.1\r\nContent-Length: 10\r\n", http.StatusBadRequest},
		{r.api, "GET /healthz HTTP/1.1\r\nTransfer-Encoding: chunked\r\n", http.StatusBadRequest},
		{r.api, "GET /v1/log?wait=60 HTTP/1.1\r\nContent-Length: 10\r\n", http.StatusBadRequest},
		{r.api, "GET /v1/log HTTP/1.1\r\nAccept: text/event-stream\r\nContent-Length: 10\r\n", http.StatusBadRequest},
		{r.api, "HEAD /healthz HTTP/1.1\r\nContent-Length: 10\r\n", http.StatusBadRequest},
		{r.api, "GET /nowhere HTTP/1.1\r\nContent-Length: 10\r\n", http.StatusNotFound},
		{r.api, "POST /v1/workspaces/42/events HTTP/1.1\r\nContent-Length: 10\r\n", http.StatusUnsupportedMediaType},
		{r.api, "POST /v1/workspaces/x/events HTTP/1.1\r\nContent-Length: 10\r\n", http.StatusBadRequest},
		{RequireToken(r.api, "secret"), "GET /v1/log HTTP/1.1\r\nContent-Length: 10\r\n", http.StatusUnauthorized},
	} {
		s := httptest.NewServer(tt.handler)
		c, err := net.Dial("tcp", s.Listener.Addr().String())
		check(t, err)
		check(t, c.SetDeadline(time.Now().Add(patience)))
		_, err = fmt.Fprint(c, tt.head+"Host: localhost\r\n\r\n")
		check(t, err)
		in := bufio.NewReader(c)
		response, err := http.ReadResponse(in, &http.Request{Method: strings.Fields(tt.head)[0]})
		check(t, err)
		whole(t, tt.head, response).has(tt.status)
		if tt.status != http.StatusUnauthorized { // its limit is 10 s
			if _, err = in.ReadByte(); err == nil {
				t.Errorf("%q: the connection goes on", tt.head)
			}
		}
		check(t, c.Close())
		s.Close()
	}
}

// TestUpdateAhead: a record cannot be updated before its number was given out, and the
// answer names it.
func TestUpdateAhead(t *testing.T) {
	r := newRig(t, Options{})
	next := `{"kind": 1, "wanted": [{"sequence": 16}], "records": [{"number_index": 0, "new": true}]}`
	r.post(42, next).has(http.StatusCreated)
	ahead := `{"kind": 1, "records": [{"sequence": 16, "number": "1"}, {"sequence": 16, "number": "2"}]}`
	a := r.post(42, ahead).problem(invalidEvent, "records[1].number")
	if want := "updated record is ahead of its sequence: workspace 42: got an update of 16/2, want at most 1, or a new record"; !strings.Contains(a.body, want) {
		t.Errorf("got %s, want %q in it", a.body, want)
	}
	r.post(42, next).has(http.StatusCreated)
	r.post(42, ahead).has(http.StatusCreated)
}

// TestTakenNumber: a store may have a record that was written, not as a new one, before its
// number was given out. That is told from a failure of the server, and there is a way on.
func TestTakenNumber(t *testing.T) {
	r := newRig(t, Options{})
	r.write(42, 1)
	at, err := r.store.Register(r.ctx, 2)
	check(t, err)
	check(t, r.store.Append(r.ctx, storage.Batch{Partition: 2, Epoch: at.Epoch, Events: []messages.Event{{
		Kind: messages.EventBusiness, Epoch: at.Epoch, Partition: 2, PLogOffset: 2, Workspace: 42, WorkspaceKind: shop, WLogOffset: 2,
		RegisteredAt: messages.TimestampOf(time.Now()), Records: []messages.Record{{ID: messages.RecordID{Seq: invoices, Number: 2}}},
	}}}))
	next := `{"kind": 1, "wanted": [{"sequence": 16}], "records": [{"number_index": 0, "new": true}]}`
	r.post(42, next).problem(recordExists, "records")
	update := `{"kind": 1, "records": [{"sequence": 16, "number": "2"}]}`
	r.post(42, update).problem(invalidEvent, "records[0].number")
	r.post(42, `{"kind": 1, "records": [{"sequence": 16, "number": "3", "new": true}]}`).has(http.StatusCreated)
	r.post(42, next).has(http.StatusCreated)
	r.post(42, update).has(http.StatusCreated)
}

// TestBehindDamage: whoever goes on behind a damaged event can have a stream, too.
func TestBehindDamage(t *testing.T) {
	r := newRig(t, Options{})
	r.write(42, 3)
	s, client := serve(t, r.api)
	damage := &storage.DamagedError{Where: "log.db", Cause: errors.New("flipped")}
	r.store.Plant(storagetest.Fault{Op: storagetest.OpWLog, Do: storagetest.Break(0, damage), Times: 1})
	stream := openStream(r.ctx, t, client, s.URL+"/v1/workspaces/42/log?after=2")
	got, _ := stream.take(1)
	sameResults(t, got, r.logged(42)[2:])
	check(t, stream.body.Close())
}

// TestTwice: a member that is there twice is refused.
func TestTwice(t *testing.T) {
	r := newRig(t, Options{})
	r.post(42, `{"kind": 1, "body": 1, "body": 2}`).problem(invalidEvent, "body")
	r.post(42, `{"kind": 1, "records": [{"sequence": 16, "number": "1", "data": 1, "data": 1}]}`).problem(invalidEvent, "records[0].data")
	r.post(42, `{"kind": 1, "body": null}`).has(http.StatusCreated)
	if e := r.get("/v1/workspaces/42/log").page().events(t); string(e[0].Body) != "null" {
		t.Errorf("got %s", e[0].Body)
	}
}

// TestHalfClosed: a client that sends no more while its event is written is answered.
func TestHalfClosed(t *testing.T) {
	r := newRig(t, Options{})
	gate := storagetest.NewGate()
	s, _ := serve(t, http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		// It ends when net/http has seen that the client sends no more.
		context.AfterFunc(request.Context(), gate.Release)
		r.handler.ServeHTTP(w, request)
	}))
	r.store.Plant(storagetest.Fault{Op: storagetest.OpAppend, Do: storagetest.Hold(gate), Times: 1})
	c, err := net.Dial("tcp", s.Listener.Addr().String())
	check(t, err)
	defer c.Close()
	check(t, c.SetDeadline(time.Now().Add(patience)))
	_, err = fmt.Fprint(c, "POST /v1/workspaces/42/events HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 10\r\n\r\n{\"kind\":1}")
	check(t, err)
	check(t, c.(*net.TCPConn).CloseWrite())
	response, err := http.ReadResponse(bufio.NewReader(c), nil)
	check(t, err)
	whole(t, "half-closed", response).has(http.StatusCreated)
}
