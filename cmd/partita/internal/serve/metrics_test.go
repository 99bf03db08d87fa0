package serve

import (
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/partita-go/partita/dumps"
)

// TestMetrics: whoever may ask the API may ask for the metrics, and nobody else. What was done stands in them.
func TestMetrics(t *testing.T) {
	r := start(t, Config{Dir: newStore(t), Listen: "127.0.0.1:0", Connections: 8, Token: token})
	r.expect(http.StatusUnauthorized, http.MethodGet, "/metrics", "")
	bearer := []string{"Authorization", "Bearer " + token}
	r.awaitReady()
	r.expect(http.StatusCreated, http.MethodPost, "/v1/workspaces/42/events", `{"kind": 1}`, bearer...)
	r.expect(http.StatusMethodNotAllowed, http.MethodPost, "/metrics", "{}", bearer...)
	page := r.expect(http.StatusOK, http.MethodGet, "/metrics", "", bearer...)
	for _, want := range []string{
		`partita_events_total{application="shops"} 1`,
		`partita_http_requests_total{route="POST /v1/workspaces/{wsid}/events",status="201"} 1`,
		`partita_http_requests_total{route="none",status="401"} 1`,
		`partita_http_connections `,
		`go_goroutines `,
	} {
		if !strings.Contains(page, "\n"+want) {
			t.Errorf("got %s\nwant %s", page, want)
		}
	}
	page = r.expect(http.StatusOK, http.MethodGet, "/metrics", "", bearer...)
	if want := `partita_http_requests_total{route="GET /metrics",status="200"} 1`; !strings.Contains(page, want) {
		t.Errorf("got %s\nwant %s", page, want)
	}
}

// TestMetricsOfOthersNames: without a token, whoever asks for another host gets nothing.
func TestMetricsOfOthersNames(t *testing.T) {
	r := start(t, Config{Dir: newStore(t), Listen: "127.0.0.1:0", Connections: 8})
	r.expect(http.StatusMisdirectedRequest, http.MethodGet, "/metrics", "", "Host", "example.com")
	r.expect(http.StatusOK, http.MethodGet, "/metrics", "")
}

// TestMetricsOfDumpsAndKeys: what was dumped is counted, and a group that is named is told apart by its actors.
func TestMetricsOfDumpsAndKeys(t *testing.T) {
	r := start(t, Config{
		Dir: newStore(t), Listen: "127.0.0.1:0", Connections: 8, Keys: []string{"partition"},
		Dump: filepath.Join(t.TempDir(), "dump"), Dumps: dumps.Options{Groups: map[string]dumps.Group{"partition": {Messages: []string{"Append"}}}},
	})
	r.awaitReady()
	r.expect(http.StatusCreated, http.MethodPost, "/v1/workspaces/43/events", `{"kind": 1}`)
	page := r.expect(http.StatusOK, http.MethodGet, "/metrics", "")
	for _, want := range []string{
		`partita_emitted_dumps_total{actor_group="partition"} 1`,
		`partita_limited_dumps_total{actor_group="partition"} 0`,
		`partita_lost_dumps_total{actor_group="partition"} 0`,
		`partita_unwritten_dumps_total 0`,
		`partita_sent_messages_total{actor_group="partition",actor_key="1",message="Append",protocol="messages"} 1`,
		`partita_message_waiting_time_seconds_count{actor_group="actualizer",actor_key=""} `,
	} {
		if !strings.Contains(page, "\n"+want) {
			t.Errorf("got %s\nwant %s", page, want)
		}
	}
}
