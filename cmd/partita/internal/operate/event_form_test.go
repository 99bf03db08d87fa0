package operate

import (
	"encoding/json"
	"strings"
	"testing"
)

// TestOneFormOfEvents: an event has the same JSON over HTTP, in the log of a store, and in an export but for what its store has
// given it.
func TestOneFormOfEvents(t *testing.T) {
	dir := newStore(t)
	server := startServe(t, dir)
	awaitReady(t, server.URL)
	var page struct{ Results []json.RawMessage }
	check(t, json.Unmarshal([]byte(server.get("/v1/workspaces/4/log")), &page))
	server.stop()
	logged := strings.Split(strings.TrimSpace(run(t, "log", "--db", dir, "--workspace", "4", "--json").has(t, exitFine).stdout), "\n")
	exported := run(t, "export", "--db", dir, "--to", "-", "--workspace", "4").has(t, exitFine).stdout
	if len(page.Results) != 3 || len(logged) != 3 {
		t.Fatalf("got %d events and %d", len(page.Results), len(logged))
	}
	for i, served := range page.Results {
		_, behind, _ := strings.Cut(logged[i], `",`) // the LSN
		if got := "{" + behind; got != string(served) {
			t.Errorf("the log has\n%s\nHTTP has\n%s", got, served)
		}
		_, own, _ := strings.Cut(string(served), `,"workspace":`) // behind partition and plog_offset
		if want := `{"workspace":` + own; !strings.Contains(exported, want) {
			t.Errorf("there is no\n%s\nin the export\n%s", want, exported)
		}
	}
}
