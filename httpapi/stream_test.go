package httpapi

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/partita-go/partita/partition"
	"github.com/partita-go/partita/storage"
	"github.com/partita-go/partita/storage/storagetest"
)

// message is one of a stream.
type message struct{ id, name, data, comment string }

// reader reads the messages of a stream.
type reader struct {
	t     testing.TB
	body  io.Closer
	lines *bufio.Scanner
}

// openStream opens a stream at a server.
func openStream(ctx context.Context, t testing.TB, client *http.Client, url string, headers ...string) *reader {
	t.Helper()
	response := send(ctx, t, client, http.MethodGet, url, "", append([]string{"Accept", "text/html, " + streamType + ";q=0.9"}, headers...)...)
	if response.StatusCode != http.StatusOK {
		t.Fatalf("got %s", whole(t, url, response).body)
	}
	lines := bufio.NewScanner(response.Body)
	lines.Buffer(nil, 16<<20)
	return &reader{t, response.Body, lines}
}

// next returns the next message; ok is false at the end of the stream.
func (r *reader) next() (m message, ok bool) {
	r.t.Helper()
	for r.lines.Scan() {
		line := r.lines.Text()
		name, value, _ := strings.Cut(line, ": ")
		switch name {
		case "id":
			m.id = value
		case "event":
			m.name = value
		case "data":
			m.data = value
		case "":
			if line == "" {
				return m, true
			}
			m.comment = value
		}
	}
	return m, false
}

// take returns the data of n messages, and the last one's id.
func (r *reader) take(n int) (data []string, id string) {
	r.t.Helper()
	for len(data) < n {
		m, ok := r.next()
		if !ok {
			r.t.Fatalf("the stream ended behind %d messages: %v", len(data), r.lines.Err())
		}
		if m.data != "" {
			data, id = append(data, m.data), m.id
		}
	}
	return data, id
}

// TestStream: a stream has the events that are there and those that come, and goes on where
// it ended.
func TestStream(t *testing.T) {
	for _, log := range logs {
		r := newRig(t, Options{})
		s, client := serve(t, r.handler)
		r.write(42, 3)
		first := openStream(r.ctx, t, client, s.URL+log.target)
		got, id := first.take(3)
		r.write(42, 2)
		more, _ := first.take(1)
		sameResults(t, append(got, more...), r.logged(42)[:4])
		check(t, first.body.Close())
		// It connects again with its first URL.
		again := openStream(r.ctx, t, client, s.URL+log.target, headerLast, id)
		got, _ = again.take(2)
		r.write(42, 1)
		more, _ = again.take(1)
		sameResults(t, append(got, more...), r.logged(42)[3:])
		check(t, again.body.Close())
		eventually(r.ctx, t, "the ends of both", func() bool { return len(r.api.streams) == 0 })
	}
}

// TestStreamRefused: a position that is wrong is refused before the stream begins.
func TestStreamRefused(t *testing.T) {
	r := newRig(t, Options{Streams: 1})
	r.write(42, 2)
	for _, tt := range []struct {
		target, last string
		kind         *problemKind
		field        string
	}{
		{"/v1/workspaces/42/log", "x", malformed, headerLast},
		{"/v1/workspaces/42/log?after=x", "", malformed, "after"},
		{"/v1/workspaces/42/log", "3", aheadOfLog, headerLast},
		{"/v1/workspaces/42/log?after=3", "", aheadOfLog, "after"},
		{"/v1/partitions/2/log", "18446744073709551615", aheadOfLog, headerLast},
		{"/v1/log", "x", malformed, headerLast},
		{"/v1/log?after=x", "", malformed, "after"},
	} {
		headers := []string{"Accept", streamType}
		if tt.last != "" {
			headers = append(headers, headerLast, tt.last)
		}
		r.get(tt.target, headers...).problem(tt.kind, tt.field)
	}
	s, client := serve(t, r.handler)
	only := openStream(r.ctx, t, client, s.URL+"/v1/log")
	only.take(1)
	r.get("/v1/log", "Accept", streamType).problem(tooManyReaders, "")
	check(t, only.body.Close())
	eventually(r.ctx, t, "its end", func() bool { return len(r.api.streams) == 0 })
	// Without bounds of time there are no streams.
	r.get("/v1/log", "Accept", streamType).problem(internal, "")
	r.do(http.MethodHead, "/v1/log", "", "Accept", streamType).has(http.StatusOK)
}

// TestHeartbeat: a stream without events is not silent, and says where it is when it ends
// with a problem.
func TestHeartbeat(t *testing.T) {
	r := newRig(t, Options{Heartbeat: time.Millisecond})
	s, client := serve(t, r.handler)
	r.write(42, 1)
	for _, log := range logs {
		quiet := openStream(r.ctx, t, client, s.URL+log.target)
		quiet.take(1)
		for range 3 {
			if m, ok := quiet.next(); !ok || m.comment == "" || m.id != "" {
				t.Errorf("got %+v, %v", m, ok)
			}
		}
		// One that comes with the end of a wait for a heartbeat is met at the next wait.
		r.store.Plant(storagetest.Fault{Op: log.op, Do: storagetest.Fail(storage.ErrClosed)})
		for {
			m, ok := quiet.next()
			if !ok {
				t.Fatal("the stream ended without a word")
			}
			if m.comment != "" {
				continue
			}
			check(t, r.contract.valid(pointer{"components", "schemas", "Problem"}, []byte(m.data)))
			if m.name != "problem" || m.id == "" {
				t.Errorf("got %+v", m)
			}
			break
		}
		if m, ok := quiet.next(); ok {
			t.Errorf("got %+v behind the end", m)
		}
		check(t, quiet.body.Close())
		r.store.Heal()
	}
}

// TestStopEndsStreams: a server that is stopped has neither streams nor long polls left.
func TestStopEndsStreams(t *testing.T) {
	r := newRig(t, Options{})
	s := httptest.NewUnstartedServer(r.handler)
	s.Config.RegisterOnShutdown(r.api.Stop)
	s.Start()
	client := s.Client()
	r.write(42, 1)
	var streams []*reader
	polls := make(chan answer)
	for _, log := range logs {
		one := openStream(r.ctx, t, client, s.URL+log.target)
		one.take(1)
		streams = append(streams, one)
		target := r.get(log.target).page().PollMore + "&wait=60"
		go func() { polls <- whole(t, target, send(r.ctx, t, client, http.MethodGet, s.URL+target, "")) }()
	}
	eventually(r.ctx, t, "long polls", func() bool { return len(r.api.polls) == len(logs) })
	check(t, s.Config.Shutdown(r.ctx))
	for range logs {
		if p := (<-polls).page(); len(p.Results) != 0 || p.Next != nil {
			t.Errorf("got %+v", p)
		}
	}
	for _, one := range streams {
		if m, ok := one.next(); ok || one.lines.Err() != nil {
			t.Errorf("got %+v, %v, want the end", m, one.lines.Err())
		}
		check(t, one.body.Close())
	}
	client.CloseIdleConnections()
	s.Close()
}

// TestSlowClient: a client that reads nothing keeps nobody waiting, and loses its place when
// its time is up.
func TestSlowClient(t *testing.T) {
	r := newRig(t, Options{WriteTimeout: 100 * time.Millisecond})
	s, _ := serve(t, r.handler)
	conn, err := net.Dial("tcp", s.Listener.Addr().String())
	check(t, err)
	defer conn.Close()
	_, err = fmt.Fprintf(conn, "GET /v1/workspaces/42/log HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\n\r\n")
	check(t, err)
	eventually(r.ctx, t, "the stream", func() bool { return len(r.api.streams) == 1 })
	// More than any buffer between the two takes.
	for range 8 {
		appendBody(r, 2<<20)
	}
	var got []string
	for next := new("/v1/workspaces/42/log"); next != nil; {
		p := ask(r.ctx, t, r.api, http.MethodGet, *next, "").page()
		got, next = append(got, p.results()...), p.Next
	}
	if want := r.logged(42); !slices.Equal(got, want) {
		t.Errorf("got %d events, want %d", len(got), len(want))
	}
	eventually(r.ctx, t, "the end of the stream", func() bool { return len(r.api.streams) == 0 })
	check(t, conn.SetDeadline(time.Now().Add(patience)))
	if n, err := io.Copy(io.Discard, conn); n >= 16<<20 || errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %d bytes, %v", n, err)
	}
}

// appendBody appends an event of workspace 42 with a body of so many bytes.
func appendBody(r *rig, bytes int) {
	r.t.Helper()
	sequencer, err := r.app.SequencerOf(42)
	check(r.t, err)
	_, err = sequencer.Append(r.ctx, partition.AppendTo{Workspace: 42, Kind: shop}, partition.Draft{Body: make([]byte, bytes)})
	check(r.t, err)
}

// streamTo streams the log of workspace 42 to w until the context ends.
func streamTo(ctx context.Context, r *rig, w http.ResponseWriter) {
	request := httptest.NewRequestWithContext(ctx, http.MethodGet, "/v1/workspaces/42/log", nil)
	request.Header.Set("Accept", streamType)
	r.api.ServeHTTP(w, request)
}

// strict is a recorder that wants each write to be bounded anew.
type strict struct {
	*httptest.ResponseRecorder
	t       *testing.T
	bounded bool
	wrote   func(text string)
}

func (s *strict) SetWriteDeadline(at time.Time) error {
	s.bounded = time.Until(at) > 0
	return nil
}

func (s *strict) Write(b []byte) (int, error) {
	s.use("write")
	s.wrote(string(b))
	return s.ResponseRecorder.Write(b)
}

func (s *strict) FlushError() error {
	s.use("flush")
	return nil
}

func (s *strict) use(what string) {
	if !s.bounded {
		s.t.Errorf("a %s that is not bounded", what)
	}
	s.bounded = false
}

// TestStreamEndsWithinAnEvent: whoever takes a large event slowly does not hold up a stop.
func TestStreamEndsWithinAnEvent(t *testing.T) {
	r := newRig(t, Options{WriteTimeout: time.Hour})
	appendBody(r, 200<<10)
	ctx, cancel := context.WithCancel(r.ctx)
	defer cancel()
	pieces := 0
	w := &strict{ResponseRecorder: httptest.NewRecorder(), t: t, wrote: func(string) {
		if pieces++; pieces == 3 {
			cancel()
		}
	}}
	streamTo(ctx, r, w)
	if pieces != 3 {
		t.Errorf("got %d pieces, want the 3 before the end", pieces)
	}
}

// TestEveryWriteIsBounded: a client has its time for each piece of an event and each comment, not
// for the whole stream.
func TestEveryWriteIsBounded(t *testing.T) {
	r := newRig(t, Options{Heartbeat: time.Millisecond, WriteTimeout: time.Hour})
	r.write(42, 3)
	appendBody(r, 200<<10)
	ctx, cancel := context.WithCancel(r.ctx)
	defer cancel()
	events, comments, longest := 0, 0, 0
	w := &strict{ResponseRecorder: httptest.NewRecorder(), t: t, wrote: func(text string) {
		longest = max(longest, len(text))
		if strings.HasPrefix(text, "id: ") {
			events++
		}
		if strings.HasPrefix(text, ": ") {
			comments++
		}
		if comments == 3 {
			cancel()
		}
	}}
	streamTo(ctx, r, w)
	if events != 4 || comments != 3 || longest != streamPiece {
		t.Errorf("got %d events, %d comments, up to %d bytes at a time", events, comments, longest)
	}
	var got []string
	for line := range strings.Lines(w.Body.String()) {
		if data, ok := strings.CutPrefix(line, "data: "); ok {
			got = append(got, strings.TrimSuffix(data, "\n"))
		}
	}
	if want := r.logged(42); !slices.Equal(got, want) {
		t.Errorf("got %d events that are as they were appended, want %d", len(got), len(want))
	}
}
