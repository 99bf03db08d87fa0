package dumps

import (
	"testing"
	"time"

	"github.com/partita-go/partita/messages"
)

var noon = time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)

// at returns a line of a group, so many seconds after noon.
func at(second int, number uint64, kind Kind, d Direction, c uint64, body string) Line {
	return Line{
		Time: noon.Add(time.Duration(second) * time.Second), Group: "g", Key: "1", Number: number, Kind: kind, Direction: d, Correlation: c, Body: []byte(body),
		Message: string(kind),
	}
}

// TestJoin: requests are joined with their answers at one actor, those that it was asked and those that it asks.
func TestJoin(t *testing.T) {
	lines := []Line{
		at(1, 1, Request, In, 7, ``), at(2, 2, Request, Out, 7, ``), at(3, 3, Request, In, 8, ``), at(4, 4, Response, In, 7, ``),
		at(6, 5, Response, Out, 7, ``), at(7, 6, Request, In, 7, ``), at(8, 7, Response, Out, 9, ``), at(9, 8, Response, Out, 7, ``),
		at(10, 9, Regular, In, 0, ``),
	}
	want := []time.Duration{5 * time.Second, 2 * time.Second, 0, 2 * time.Second}
	got := Join(lines)
	if len(got) != len(want) {
		t.Fatalf("got %+v", got)
	}
	for i, e := range got {
		if e.Took() != want[i] || (e.Response == nil) != (want[i] == 0) {
			t.Errorf("%d: got %v", i, e.Took())
		}
	}
}

// TestHoles: of each process and group those numbers that are missing between others.
func TestHoles(t *testing.T) {
	var lines []Line
	other := at(2, 7, Regular, In, 0, ``)
	other.Group = "h"
	lines = append(lines, other)
	for i, n := range []uint64{2, 1, 3, 6, 5, 9, 1, 2, 5} { // then the process has begun anew
		lines = append(lines, at(i, n, Regular, In, 0, ``))
	}
	got := Holes(lines)
	want := [][2]uint64{{4, 4}, {7, 8}, {3, 4}}
	if len(got) != len(want) {
		t.Fatalf("got %+v", got)
	}
	for _, w := range want {
		found := false
		for _, h := range got {
			found = found || h.Group == "g" && h.First == w[0] && h.Last == w[1] && h.Count() == w[1]-w[0]+1
		}
		if !found {
			t.Errorf("got %+v, want %v", got, w)
		}
	}
	// The process before has lost its first lines to the rotation.
	late := []Line{at(1, 1_000_000, Regular, In, 0, ``), at(2, 2, Regular, In, 0, ``), at(3, 1, Regular, In, 0, ``), at(4, 3, Regular, In, 0, ``)}
	if got := Holes(late); len(got) > 0 {
		t.Errorf("got %+v", got)
	}
}

// TestQuery: each thing that is asked for, and the answer to the request of a workspace.
func TestQuery(t *testing.T) {
	ws := messages.WSID(42)
	lines := []Line{
		at(1, 1, Request, In, 7, `{"Workspace":42,"Kind":1}`), at(2, 2, Request, In, 8, `{"Workspace":421}`),
		at(3, 3, Response, Out, 8, `{"PLogOffset":42}`), at(4, 4, Response, Out, 7, `{"PLogOffset":1}`),
		at(5, 5, Regular, Out, 0, `{"Err":"\"Workspace\":42}"}`), at(6, 6, Response, Out, 7, `{}`), at(7, 7, Regular, Out, 0, `{"A":[{"Workspace":42}]}`),
	}
	lines[4].Trace = 5
	for name, tt := range map[string]struct {
		query Query
		want  []int
	}{
		"all":       {Query{}, []int{0, 1, 2, 3, 4, 5, 6}},
		"workspace": {Query{Workspace: &ws}, []int{0, 3, 6}},
		"answers":   {Query{Workspace: &ws, Message: "Response"}, []int{3}},
		"trace":     {Query{Trace: 5}, []int{4}},
		"time":      {Query{From: lines[2].Time, To: lines[4].Time}, []int{2, 3}},
		"message":   {Query{Message: "Request"}, []int{0, 1}},
		"group":     {Query{Group: "h"}, nil},
	} {
		var got []int
		for i := range lines {
			if tt.query.Finds(&lines[i]) {
				got = append(got, i)
			}
		}
		if len(got) != len(tt.want) {
			t.Errorf("%s: got %v, want %v", name, got, tt.want)
			continue
		}
		for i := range got {
			if got[i] != tt.want[i] {
				t.Errorf("%s: got %v, want %v", name, got, tt.want)
			}
		}
	}
}

// TestQueryLearns: whoever lets a query see all requests before finds answers that come first, and each once.
func TestQueryLearns(t *testing.T) {
	ws := messages.WSID(42)
	lines := []Line{at(1, 2, Response, Out, 7, `{}`), at(2, 1, Request, In, 7, `{"Workspace":42}`), at(3, 3, Response, Out, 8, `{}`)}
	lines[1].Trace = 5
	for name, q := range map[string]*Query{"workspace": {Workspace: &ws}, "trace": {Trace: 5}, "both": {Workspace: &ws, Trace: 5}} {
		if q.Finds(&lines[0]) {
			t.Errorf("%s: finds an answer to what it has not seen", name)
		}
		for i := range lines {
			q.Learn(&lines[i])
		}
		if q.Learned() != 1 || !q.Finds(&lines[0]) || !q.Finds(&lines[1]) || q.Finds(&lines[2]) {
			t.Errorf("%s: does not find the request and its answer", name)
		}
	}
	for name, q := range map[string]*Query{"another workspace": {Workspace: new(ws + 1), Trace: 5}, "another trace": {Workspace: &ws, Trace: 6}, "all": {}} {
		for i := range lines {
			q.Learn(&lines[i])
		}
		if q.Learned() != 0 {
			t.Errorf("%s: got %d requests", name, q.Learned())
		}
	}
}
