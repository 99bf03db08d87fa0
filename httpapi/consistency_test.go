package httpapi

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/partita-go/partita/storage/replog"
)

// TestLocalReads asks for what the server itself has, which is all here.
func TestLocalReads(t *testing.T) {
	t.Parallel()
	r := newRig(t, Options{})
	r.write(42, 3)
	for _, c := range reading {
		r.get(c.target + "?consistency=local").has(http.StatusOK)
		r.get(c.target+"?consistency=all").problem(malformed, paramConsistency)
		if c.target == "/v1/log" {
			r.get(c.target+"?at_least=3").problem(malformed, paramAtLeast)
			continue
		}
		r.get(c.target + "?at_least=3").has(http.StatusOK)
		r.get(c.target+"?at_least=x").problem(malformed, paramAtLeast)
	}
	for _, target := range []string{"/v1/workspaces/42/log", "/v1/log"} {
		page := r.get(target + "?consistency=local").page()
		if !strings.Contains(page.PollMore, "consistency=local") {
			t.Errorf("%s: goes on at %s", target, page.PollMore)
		}
		r.get(page.PollMore).has(http.StatusOK)
	}
	if page := r.get("/v1/workspaces/42/log?at_least=3").page(); strings.Contains(page.PollMore, paramAtLeast) {
		t.Errorf("it goes on at %s", page.PollMore)
	}
}

// TestBehind waits for what does not come, and for what does.
func TestBehind(t *testing.T) {
	t.Parallel()
	other := newRig(t, Options{})
	other.write(42, 4)
	_, cursor, _ := strings.Cut(other.get("/v1/log").page().PollMore, "after=")
	r := newRig(t, Options{CatchUp: time.Millisecond})
	r.write(42, 3)
	for target, field := range map[string]string{
		"/v1/workspaces/42/numbers?at_least=4":                         paramAtLeast,
		"/v1/partitions/2/log?at_least=4":                              paramAtLeast,
		"/v1/workspaces/42/log?consistency=local&after=4":              paramAfter,
		"/v1/partitions/2/log?consistency=local&after=4":               paramAfter,
		"/v1/log?consistency=local&after=" + cursor:                    paramAfter,
		"/v1/workspaces/42/events/4?at_least=4":                        paramAtLeast,
		"/v1/workspaces/42/records/16/1?at_least=18446744073709551615": paramAtLeast,
	} {
		r.get(target).problem(behind, field)
	}
	r = newRig(t, Options{CatchUp: patience})
	come := make(chan answer, 1)
	go func() { come <- r.get("/v1/workspaces/43/log?at_least=1") }()
	r.write(43, 1)
	if page := (<-come).has(http.StatusOK).page(); len(page.Results) != 1 {
		t.Errorf("got %d events, want 1", len(page.Results))
	}
}

// TestReplica has what can be read, and nothing of the application.
func TestReplica(t *testing.T) {
	t.Parallel()
	r := newRig(t, Options{})
	r.write(42, 3)
	replica, err := NewReplica(r.api.reader, Options{})
	check(t, err)
	for _, c := range reading {
		ask(r.ctx, t, replica, http.MethodGet, c.target, "").has(http.StatusOK)
	}
	ask(r.ctx, t, replica, http.MethodGet, "/healthz", "").has(http.StatusOK)
	for _, target := range []string{"/v1/application", "/v1/partitions", "/v1/status", "/readyz", "/v1/subscriptions"} {
		ask(r.ctx, t, replica, http.MethodGet, target, "").problem(notFound, "")
	}
	if _, err := NewReplica(r.api.reader, Options{MaxBody: -1}); err == nil {
		t.Error("a wrong option is taken")
	}
	refused := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { Refuse(w, r, replog.ErrNotOwner) })
	ask(r.ctx, t, refused, http.MethodGet, "/v1/log", "").problem(notOwner, "")
}
