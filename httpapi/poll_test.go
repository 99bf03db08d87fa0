package httpapi

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage/storagetest"
)

// logs are the three logs that have the events of workspace 42.
var logs = []struct {
	target string
	op     storagetest.Op
}{
	{"/v1/workspaces/42/log", storagetest.OpAwaitWLog},
	{"/v1/partitions/2/log", storagetest.OpAwaitPLog},
	{"/v1/log", storagetest.OpAwaitAny},
}

// TestLongPoll: a request that waits is answered by the append, not by looking again and
// again.
func TestLongPoll(t *testing.T) {
	for _, log := range logs {
		r := newRig(t, Options{})
		r.write(42, 1)
		p := r.get(log.target + "?wait=60").page()
		reads := []storagetest.Op{storagetest.OpWLog, storagetest.OpPLog, storagetest.OpRegister, log.op}
		before := r.calls(reads)
		waiting := storagetest.NewLookout(r.ctx)
		given := make(chan answer, 1)
		go func() { given <- ask(waiting, t, r.handler, http.MethodGet, p.PollMore, "") }()
		eventually(r.ctx, t, "a long poll", func() bool { return len(r.api.polls) == 1 && r.calls(reads) > before })
		r.write(42, 1)
		p = (<-given).page()
		if e := p.events(t); len(e) != 1 || e[0].WLogOffset != "2" || p.Next != nil || len(r.api.polls) != 0 {
			t.Errorf("%s: got %d events", log.target, len(e))
		}
		// The feed looks at the ends of four partitions, a few times.
		if n := r.calls(reads) - before; n > 40 {
			t.Errorf("%s: the store was asked %d times", log.target, n)
		}
	}
}

func (r *rig) calls(ops []storagetest.Op) (n int) {
	for _, op := range ops {
		n += r.store.Calls(op)
	}
	return n
}

// TestLongPollEnds: with an empty page when its time is up, and at once when the API is
// stopped.
func TestLongPollEnds(t *testing.T) {
	r := newRig(t, Options{})
	r.write(42, 1)
	for _, log := range logs {
		p := r.get(log.target).page()
		empty := r.get(p.PollMore + "&wait=1").page()
		if len(empty.Results) != 0 || empty.Next != nil || empty.PollMore != p.PollMore+"&wait=1" {
			t.Errorf("%s: got %+v", log.target, empty)
		}
	}
	given := make(chan answer)
	for _, log := range logs {
		target := r.get(log.target).page().PollMore + "&wait=60"
		go func() { given <- ask(r.ctx, t, r.handler, http.MethodGet, target, "") }()
	}
	eventually(r.ctx, t, "three long polls", func() bool { return len(r.api.polls) == len(logs) })
	r.api.Stop()
	for range logs {
		if p := (<-given).page(); len(p.Results) != 0 {
			t.Errorf("got %d results", len(p.Results))
		}
	}
	// Afterwards nobody waits any more.
	r.get("/v1/workspaces/42/log?after=1&wait=60").page()
}

// TestTooManyPolls: who comes when all places are taken is told so, and those who do not
// wait are served.
func TestTooManyPolls(t *testing.T) {
	r := newRig(t, Options{LongPolls: 2})
	var waiting sync.WaitGroup
	for range 2 {
		waiting.Go(func() { ask(r.ctx, t, r.handler, http.MethodGet, "/v1/workspaces/42/log?wait=60", "").page() })
	}
	eventually(r.ctx, t, "two long polls", func() bool { return len(r.api.polls) == 2 })
	a := r.get("/v1/workspaces/42/log?wait=60").problem(tooManyReaders, "")
	if a.header.Get("Retry-After") != "1" {
		t.Errorf("got Retry-After %q", a.header.Get("Retry-After"))
	}
	r.get("/v1/workspaces/42/log").page()
	r.write(42, 1)
	waiting.Wait()
	r.get("/v1/workspaces/42/log?wait=60").page()
}

// TestPollFails: a partition that cannot be written any more does not keep readers waiting.
func TestPollFails(t *testing.T) {
	r := newRig(t, Options{})
	r.store.Plant(storagetest.Fault{Op: storagetest.OpAwaitWLog, Do: storagetest.Fail(messages.ErrPartitionFailed), Times: 1})
	r.get("/v1/workspaces/42/log?wait=60").problem(unavailable, "")
}

// TestGoneWhilePolling: a client that goes gives its place back.
func TestGoneWhilePolling(t *testing.T) {
	r := newRig(t, Options{})
	s, client := serve(t, r.handler)
	ctx, cancel := context.WithCancel(r.ctx)
	ended := make(chan error, 1)
	go func() {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, s.URL+"/v1/log?wait=60", nil)
		if err == nil {
			_, err = client.Do(request) //nolint:bodyclose // there is none
		}
		ended <- err
	}()
	eventually(r.ctx, t, "a long poll", func() bool { return len(r.api.polls) == 1 })
	cancel()
	if err := <-ended; err == nil || !strings.Contains(err.Error(), "canceled") {
		t.Errorf("got %v", err)
	}
	eventually(r.ctx, t, "its end", func() bool { return len(r.api.polls) == 0 })
}

// TestSeesTheAnswer: whoever polls when an append was answered sees that event, in every log,
// whoever else writes.
func TestSeesTheAnswer(t *testing.T) {
	r := newRig(t, Options{})
	var all sync.WaitGroup
	for ws := range messages.WSID(4) {
		all.Go(func() {
			feed := ask(r.ctx, t, r.handler, http.MethodGet, "/v1/log?limit=200", "").page()
			for range 100 {
				var e event
				ask(r.ctx, t, r.handler, http.MethodPost, "/v1/workspaces/"+ws.String()+"/events", `{"kind": 2}`, "Content-Type", jsonType).decode(&e)
				ask(r.ctx, t, r.handler, http.MethodGet, "/v1/workspaces/"+ws.String()+"/events/"+e.WLogOffset, "").has(http.StatusOK)
				p := ask(r.ctx, t, r.handler, http.MethodGet, "/v1/partitions/"+ws.String()+"/log?limit=1&after="+before(t, e.PLogOffset), "").page()
				if len(p.Results) != 1 {
					t.Errorf("workspace %d: event %s is not in the partition's log", ws, e.WLogOffset)
				}
				seen := false
				for feed = ask(r.ctx, t, r.handler, http.MethodGet, feed.PollMore, "").page(); ; feed = ask(r.ctx, t, r.handler, http.MethodGet, *feed.Next, "").page() {
					for _, got := range feed.events(t) {
						seen = seen || got.Workspace == ws.String() && got.WLogOffset == e.WLogOffset
					}
					if feed.Next == nil {
						break
					}
				}
				if !seen {
					t.Errorf("workspace %d: event %s is not in the feed", ws, e.WLogOffset)
				}
			}
		})
	}
	all.Wait()
}

// before returns the offset before another.
func before(t testing.TB, offset string) string {
	t.Helper()
	o, err := messages.ParsePLogOffset(offset)
	check(t, err)
	return (o - 1).String()
}
