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
	// refusals is how often a change is refused yet; head is what node n4 has, and step how much more at each look. others is
	// how much more node n1 has at each.
	refusals           int
	head, step, others uint64
	votes              bool
	// later are how n4 stands in other shards than the first one, at each look.
	later      [][]cluster.NodeJSON
	looks      int
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
			most := 99 + a.others*uint64(a.looks)
			all := []cluster.NodeJSON{{Node: "n1", Head: most, Votes: true}, {Node: "n4", Head: a.head, Votes: a.votes}}
			if len(a.later) > 0 {
				all = append(all, a.later[min(a.looks, len(a.later)-1)]...)
				for i := range all[2:] {
					all = append(all, cluster.NodeJSON{Node: "n1", Shard: i + 1, Head: most, Votes: true})
				}
			}
			a.looks++
			value = cluster.StatusJSON{Members: all}
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
		"never arrives":     {&answering{refusals: 99, step: 10, others: 10}, "add", 2, "took too long", exitBlind},
		"cannot be removed": {&answering{refusals: 1, step: 1}, "remove", 1, "took too long", exitBlind},
	} {
		t.Run(name, func(t *testing.T) {
			a := newAnswering(t)
			a.refusals, a.head, a.step, a.others, a.votes = test.a.refusals, test.a.head, test.a.step, test.a.others, test.a.votes
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

// TestClusterMembersOfShards: a node that is added to several shards is waited for as long as it comes nearer in one.
func TestClusterMembersOfShards(t *testing.T) {
	in := func(shard int, head uint64, votes bool) cluster.NodeJSON {
		return cluster.NodeJSON{Node: "n4", Shard: shard, Head: head, Votes: votes}
	}
	waits := [][]cluster.NodeJSON{{in(1, 9, false), in(2, 9, false)}, {in(1, 59, false), in(2, 9, false)}, {in(1, 98, true), in(2, 9, false)}}
	done := [][]cluster.NodeJSON{{in(1, 9, false), in(2, 9, false)}, {in(1, 99, true), in(2, 99, true)}}
	for name, test := range map[string]struct {
		later  [][]cluster.NodeJSON
		others uint64
		flags  []string
		tries  int
		fine   bool
	}{
		"one after the other":      {waits, 30, nil, 4, false},
		"votes in all at last":     {done, 0, nil, 2, true},
		"votes in one only":        {waits[2:], 0, nil, 2, false},
		"votes in the one meant":   {waits[1:], 0, []string{"--shard", "1"}, 2, true},
		"not nearer in that one":   {waits, 30, []string{"--shard", "2"}, 2, false},
		"is not in the one meant":  {waits, 0, []string{"--shard", "3"}, 1, false},
		"voted before in that one": {waits, 0, []string{"--shard", "0"}, 1, false},
	} {
		t.Run(name, func(t *testing.T) {
			a := newAnswering(t)
			a.refusals, a.head, a.votes, a.later, a.others = 99, 99, true, test.later, test.others
			got := run(t, append([]string{"cluster", "add", "--node", "n4", "--url", a.URL}, test.flags...)...)
			if test.fine {
				got.has(t, exitFine)
			} else {
				got.fails(t, exitBlind, "took too long")
			}
			if len(a.changes) != test.tries {
				t.Errorf("it was asked for %q, want %d times", a.changes, test.tries)
			}
		})
	}
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
