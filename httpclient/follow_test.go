package httpclient

import (
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"net/http"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/partita-go/partita/httpapi"
	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/partition"
	"github.com/partita-go/partita/storage"
	"github.com/partita-go/partita/storage/storagetest"
)

// cutting is an answer that breaks off behind so many bytes.
type cutting struct {
	http.ResponseWriter
	left int
}

func (c *cutting) Unwrap() http.ResponseWriter { return c.ResponseWriter }

func (c *cutting) Write(b []byte) (int, error) {
	n, err := c.ResponseWriter.Write(b[:min(len(b), c.left)])
	if c.left -= n; c.left == 0 {
		_ = http.NewResponseController(c.ResponseWriter).Flush()
		panic(http.ErrAbortHandler)
	}
	return n, err
}

// TestFollowCut: streams that break off anywhere leave no event out and give none twice, of each of the logs.
func TestFollowCut(t *testing.T) {
	r := newRig(t, httpapi.Options{}, Options{})
	const n = 200
	var cuts atomic.Int64
	r.put(func(api http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
			if request.Method == http.MethodGet {
				cuts.Add(1)
				w = &cutting{w, 1 + rand.IntN(5000)}
			}
			api.ServeHTTP(w, request)
		})
	})
	wrote := make(chan error, 1)
	go func() {
		for range n {
			if _, err := r.Client.Append(r.ctx, partition.AppendTo{Workspace: 4, Kind: shop}, invoice(`"an invoice"`)); err != nil {
				wrote <- err
				return
			}
		}
		wrote <- nil
	}()
	next := messages.WLogOffset(1)
	for e, err := range r.Client.FollowWLog(r.ctx, 4, 1) {
		check(t, err)
		if e.WLogOffset != next {
			t.Fatalf("got offset %d, want %d", e.WLogOffset, next)
		}
		if next++; next > n {
			break
		}
	}
	check(t, <-wrote)
	at := messages.PLogOffset(10)
	for e, err := range r.Client.FollowPLog(r.ctx, messages.PartitionOf(4, 3), at) {
		check(t, err)
		if e.PLogOffset != at {
			t.Fatalf("got offset %d, want %d", e.PLogOffset, at)
		}
		if at++; at > n {
			break
		}
	}
	feed, seen := r.Client.Feed(""), messages.PLogOffset(0)
	for e, err := range feed.Follow(r.ctx) {
		check(t, err)
		if seen++; e.PLogOffset != seen {
			t.Fatalf("got offset %d, want %d", e.PLogOffset, seen)
		}
		if seen == n {
			break
		}
	}
	if cuts.Load() < 20 {
		t.Errorf("got %d streams: nothing was cut", cuts.Load())
	}
}

// TestFollowEnds: a log that cannot be read further says why; so does the end of the context.
func TestFollowEnds(t *testing.T) {
	r := newRig(t, httpapi.Options{}, Options{})
	for range 3 {
		_, err := r.Client.Append(r.ctx, partition.AppendTo{Workspace: 4, Kind: shop}, invoice("1"))
		check(t, err)
	}
	follow := func(ctx context.Context, from messages.WLogOffset, each func()) (n int, last error) {
		for _, err := range r.Client.FollowWLog(ctx, 4, from) {
			if last = err; err == nil {
				n++
				each()
			}
		}
		return n, last
	}
	damage := &storage.DamagedError{Where: "log.db", Cause: errors.New("flipped")}
	r.App.Store.Plant(storagetest.Fault{Op: storagetest.OpWLog, Do: storagetest.Break(2, damage), Times: 1})
	if n, err := follow(r.ctx, 1, func() {}); n != 2 || !errors.Is(err, storage.ErrDamaged) {
		t.Errorf("got %d events, %v", n, err)
	}
	if n, err := follow(r.ctx, 9, func() {}); n != 0 || !errors.Is(err, partition.ErrCursor) {
		t.Errorf("got %d events, %v", n, err)
	}
	ctx, cancel := context.WithCancel(r.ctx)
	left := 3
	n, err := follow(ctx, 1, func() {
		if left--; left == 0 {
			cancel()
		}
	})
	if n != 3 || !errors.Is(err, context.Canceled) {
		t.Errorf("got %d events, %v", n, err)
	}
}

// TestFollowSilent: a stream of which nothing comes is opened anew; one that says that there is nothing new is not.
func TestFollowSilent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begun := time.Now()
		// The first stream dies behind an event and a minute of comments.
		first := func(r *http.Request) (*http.Response, error) {
			in, out := io.Pipe()
			context.AfterFunc(r.Context(), func() { _ = out.CloseWithError(context.Cause(r.Context())) })
			go func() {
				_, _ = io.WriteString(out, "id: 1\ndata: "+eventText+"\n\n")
				for range 4 {
					time.Sleep(15 * time.Second) //nolint:forbidigo // in a bubble
					_, _ = io.WriteString(out, ": nothing new\n\nid: 2\n")
				}
			}()
			return stream(r, in), nil
		}
		second := func(r *http.Request) (*http.Response, error) {
			in, out := io.Pipe()
			go func() {
				_, _ = io.WriteString(out, "id: 2\r\ndata: "+eventText+"\r\n\r\n")
				_ = out.Close()
			}()
			return stream(r, in), nil
		}
		fake := &answering{answers: []func(*http.Request) (*http.Response, error){first, second}}
		c, err := New("http://localhost:1", Options{Transport: fake})
		check(t, err)
		n := 0
		for _, err := range c.FollowWLog(t.Context(), 4, 1) {
			check(t, err)
			if n++; n == 2 {
				break
			}
		}
		if len(fake.asked) != 2 || fake.asked[0].URL.RawQuery != "" || fake.asked[1].URL.RawQuery != "after=1" {
			t.Errorf("got %d streams", len(fake.asked))
		}
		if took := time.Since(begun); took < 105*time.Second || took > 106*time.Second {
			t.Errorf("it took %v, want a minute and the silence of 45 s", took)
		}
	})
}

const eventText = `{"partition":1,"plog_offset":"1","workspace":"4","workspace_kind":1,"wlog_offset":"1",` +
	`"registered_at":"2026-11-21T17:00:00.000000Z","epoch":"1","numbers":[],"records":[],"body":1}`

func stream(r *http.Request, body io.ReadCloser) *http.Response {
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {streamType}}, Body: body, Request: r}
}
