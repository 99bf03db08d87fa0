package operate

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	"github.com/partita-go/partita/cluster"
)

// answering is a node of a cluster that answers as the test says. That real ones do so too, is tests/cluster's.
type answering struct {
	*httptest.Server
	mu sync.Mutex
	// changes are what was asked for.
	changes []string
	// refusals is how often a change is refused yet; head is what node n4 has, and step how much more at each look.
	refusals   int
	head, step uint64
	votes      bool
	comparison cluster.Comparison
}

func newAnswering(t *testing.T) *answering {
	a := &answering{}
	a.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		a.mu.Lock()
		defer a.mu.Unlock()
		var value any
		switch {
		case r.Method == http.MethodPost:
			body, err := io.ReadAll(r.Body)
			if err != nil {
				t.Error(err)
			}
			a.changes = append(a.changes, r.URL.Path+" "+string(body))
			if a.refusals > 0 {
				a.refusals--
				w.Header().Set("Content-Type", "application/problem+json")
				w.WriteHeader(http.StatusServiceUnavailable)
				_, _ = io.WriteString(w, `{"type": "/problems#timed-out", "title": "Timed out", "status": 503, "detail": "it took too long"}`)
				return
			}
			value = struct{}{}
		case r.URL.Path == "/v1/cluster/compare":
			value = a.comparison
		default:
			a.head += a.step
			value = cluster.StatusJSON{Members: []cluster.NodeJSON{{Node: "n1", Head: 99, Votes: true}, {Node: "n4", Head: a.head, Votes: a.votes}}}
		}
		if err := json.NewEncoder(w).Encode(value); err != nil {
			t.Error(err)
		}
	}))
	t.Cleanup(a.Close)
	return a
}

// TestClusterMembers: a node that is added is waited for as long as it catches up.
func TestClusterMembers(t *testing.T) {
	for name, test := range map[string]struct {
		a       *answering
		command string
		tries   int
		says    string
		status  int
	}{
		"at once":           {&answering{}, "add", 1, "node n4 takes part\n", exitFine},
		"catches up":        {&answering{refusals: 3, step: 10}, "add", 4, "node n4 takes part\n", exitFine},
		"stands still":      {&answering{refusals: 99, head: 10}, "add", 2, "took too long", exitBlind},
		"has nothing":       {&answering{refusals: 99}, "add", 1, "took too long", exitBlind},
		"votes already":     {&answering{refusals: 99, step: 1, votes: true}, "add", 1, "took too long", exitBlind},
		"removed":           {&answering{}, "remove", 1, "node n4 takes no part any more\n", exitFine},
		"cannot be removed": {&answering{refusals: 1, step: 1}, "remove", 1, "took too long", exitBlind},
	} {
		t.Run(name, func(t *testing.T) {
			a := newAnswering(t)
			a.refusals, a.head, a.step, a.votes = test.a.refusals, test.a.head, test.a.step, test.a.votes
			got := run(t, "cluster", test.command, "--node", "n4", "--url", a.URL)
			if test.status == exitFine {
				if got.has(t, exitFine); got.stdout != test.says {
					t.Errorf("got %q, want %q", got.stdout, test.says)
				}
			} else {
				got.fails(t, test.status, test.says)
			}
			if len(a.changes) != test.tries || a.changes[0] != fmt.Sprintf(`/v1/cluster/%s {"node":"n4"}`, test.command) {
				t.Errorf("it was asked for %q, want %d times", a.changes, test.tries)
			}
		})
	}
	run(t, "cluster", "add").fails(t, exitBlind, "--node")
}

// TestClusterCompare: nodes that differ are a failure.
func TestClusterCompare(t *testing.T) {
	a := newAnswering(t)
	a.comparison = cluster.Comparison{Same: true, Head: 7, Compared: 2, Members: []cluster.PositionJSON{
		{Node: "n1", Head: 7, Sum: "0a"}, {Node: "n2", Head: 7, Sum: "0a"}, {Node: "n3", Unknown: "it is away"},
	}}
	got := run(t, "cluster", "compare", "--url", a.URL).has(t, exitFine)
	if want := "n1 has 0a at entry 7\nn2 has 0a at entry 7\nn3 was not compared: it is away\n2 nodes have the same up to entry 7\n"; got.stdout != want {
		t.Errorf("got %q, want %q", got.stdout, want)
	}
	a.comparison.Same, a.comparison.Members[1].Sum = false, "0b"
	run(t, "cluster", "compare", "--url", a.URL).fails(t, exitFault, "nodes differ")
	if got := run(t, "cluster", "compare", "--json", "--url", a.URL).json(t); got["same"] != false || got["command"] != "cluster compare" {
		t.Errorf("got %v", got)
	}
}
