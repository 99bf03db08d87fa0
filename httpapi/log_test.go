package httpapi

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/partita-go/partita/actors/actorstest"
	"github.com/partita-go/partita/partition"
	"github.com/partita-go/partita/partition/partitiontest"
	"github.com/partita-go/partita/storage"
	"github.com/partita-go/partita/storage/storagetest"
)

// TestPages: pages of any size, one after the other, are the log.
func TestPages(t *testing.T) {
	r := newRig(t, Options{})
	r.write(42, 5)
	r.write(2, 3)
	want := r.logged(42)
	for _, limit := range []int{1, 2, 5, 200} {
		var got []string
		target := fmt.Sprintf("/v1/workspaces/42/log?limit=%d&wait=0", limit)
		for pages := 1; ; pages++ {
			p := r.get(target).page()
			got = append(got, p.results()...)
			if len(p.Results) > limit || pages > len(want) {
				t.Fatalf("page %d: got %d results, want at most %d", pages, len(p.Results), limit)
			}
			if p.Next == nil {
				if end := fmt.Sprintf("/v1/workspaces/42/log?after=5&limit=%d&wait=0", limit); p.PollMore != end {
					t.Errorf("got %q, want %q", p.PollMore, end)
				}
				break
			}
			target = *p.Next
		}
		sameResults(t, got, want)
	}
	r.get("/v1/workspaces/42/log?after=5").is(http.StatusOK, `{"results":[],"next":null,"poll_more":"/v1/workspaces/42/log?after=5"}`)
	r.get("/v1/workspaces/1000/log").is(http.StatusOK, `{"results":[],"next":null,"poll_more":"/v1/workspaces/1000/log?after=0"}`)
	p := r.get("/v1/partitions/2/log?limit=7").page()
	if len(p.Results) != 7 || p.Next == nil || *p.Next != "/v1/partitions/2/log?after=7&limit=7" {
		t.Errorf("got %d results, next %v", len(p.Results), p.Next)
	}
	p = r.get(*p.Next).page()
	if len(p.Results) != 1 || p.Next != nil {
		t.Errorf("got %d results, next %v", len(p.Results), p.Next)
	}
}

// TestPageOfLargeEvents: a page is bounded in bytes, and never empty for that.
func TestPageOfLargeEvents(t *testing.T) {
	r := newRig(t, Options{PageBytes: 2500})
	for range 4 {
		r.post(42, `{"kind": 1, "body": "`+strings.Repeat("x", 1000)+`"}`).has(http.StatusCreated)
	}
	r.post(42, `{"kind": 1, "body": "`+strings.Repeat("x", 5000)+`"}`).has(http.StatusCreated)
	var sizes []int
	for target := "/v1/workspaces/42/log"; ; {
		p := r.get(target).page()
		sizes = append(sizes, len(p.Results))
		if p.Next == nil || len(sizes) > 3 {
			break
		}
		target = *p.Next
	}
	if !slices.Equal(sizes, []int{2, 2, 1}) {
		t.Errorf("got pages of %v", sizes)
	}
}

// TestFeed: the feed has the events of all partitions, each partition's in its order, and
// its positions are opaque.
func TestFeed(t *testing.T) {
	r := newRig(t, Options{})
	for ws := range 8 {
		r.write(42, ws%2)
		r.write(3, ws%3)
	}
	last := make(map[int]string)
	total := 0
	for target := "/v1/log?limit=3"; ; {
		p := r.get(target).page()
		for _, e := range p.events(t) {
			if want := fmt.Sprint(number(t, last[e.Partition]) + 1); e.PLogOffset != want {
				t.Errorf("partition %d: got %s, want %s", e.Partition, e.PLogOffset, want)
			}
			last[e.Partition] = e.PLogOffset
			total++
		}
		if p.Next == nil {
			break
		}
		target = *p.Next
	}
	if total != 4+7 {
		t.Errorf("got %d events", total)
	}
	for _, after := range []string{"5", "AAAA", "!", strings.Repeat("A", 500)} {
		r.get("/v1/log?after="+after).problem(malformed, "after")
	}
}

func number(t testing.TB, text string) (n int) {
	t.Helper()
	if text != "" {
		_, err := fmt.Sscan(text, &n)
		check(t, err)
	}
	return n
}

// TestParameters: what cannot be understood is refused and named, never passed over.
func TestParameters(t *testing.T) {
	r := newRig(t, Options{})
	r.write(42, 2)
	for _, tt := range []struct {
		target string
		kind   *problemKind
		field  string
	}{
		{"/v1/workspaces/42/log?limit=0", malformed, "limit"},
		{"/v1/workspaces/42/log?limit=201", malformed, "limit"},
		{"/v1/workspaces/42/log?limit=", malformed, "limit"},
		{"/v1/workspaces/42/log?wait=61", malformed, "wait"},
		{"/v1/workspaces/42/log?wait=-1", malformed, "wait"},
		{"/v1/workspaces/42/log?after=1&after=2", malformed, "after"},
		{"/v1/workspaces/42/log?after=-1", malformed, "after"},
		{"/v1/workspaces/42/log?After=1", malformed, "After"},
		{"/v1/workspaces/42/log?after=1;limit=2", malformed, "query"},
		{"/v1/workspaces/42/log?after=3", aheadOfLog, "after"},
		{"/v1/workspaces/42/log?after=18446744073709551615", aheadOfLog, "after"},
		{"/v1/workspaces/1000/log?after=1", aheadOfLog, "after"},
		{"/v1/workspaces/-1/log", malformed, "wsid"},
		{"/v1/partitions/2/log?after=18446744073709551614", aheadOfLog, "after"},
		{"/v1/partitions/2/log?after=18446744073709551615", aheadOfLog, "after"},
		{"/v1/partitions/4/log", notFound, "id"},
		{"/v1/partitions/4294967296/log", malformed, "id"},
		{"/v1/partitions/4/events/1", notFound, "id"},
		{"/v1/partitions/2/events/0", notFound, "offset"},
		{"/v1/partitions/2/events/18446744073709551615", notFound, "offset"},
		{"/v1/workspaces/42/events/0", notFound, "offset"},
		{"/v1/workspaces/42/events/18446744073709551615", notFound, "offset"},
		{"/v1/workspaces/42/events/x", malformed, "offset"},
		{"/v1/workspaces/42/records/x", notFound, "sequence"},
		{"/v1/workspaces/42/records/70000", malformed, "sequence"},
		{"/v1/workspaces/42/records/16/x", malformed, "number"},
		{"/v1/workspaces/42/records/16/0", notFound, "number"},
		{"/v1/workspaces/42/records/16?from=x", malformed, "from"},
		{"/v1/workspaces/42/records/16?to=0", malformed, "to"},
		{"/v1/workspaces/42/records/16?from=2&to=1", malformed, "to"},
		{"/v1/workspaces/42", notFound, ""},
		{"/v1/log/", notFound, ""},
		{"//v1/log", notFound, ""},
		{"/v1/workspaces/../log", notFound, ""},
	} {
		a := r.get(tt.target)
		if a.status != tt.kind.status {
			t.Errorf("%s: got %d %s", tt.target, a.status, a.body)
			continue
		}
		a.problem(tt.kind, tt.field)
	}
	a := r.do(http.MethodDelete, "/v1/log", "").problem(wrongMethod, "")
	if got := a.header.Get("Allow"); got != "GET, HEAD, OPTIONS" {
		t.Errorf("got Allow %q", got)
	}
}

// TestRecords: the records of a workspace, page by page.
func TestRecords(t *testing.T) {
	r := newRig(t, Options{})
	r.write(42, 5)
	var got []string
	target := "/v1/workspaces/42/records/16?from=2&to=4&limit=2"
	for target != "" {
		var p struct {
			Results []struct{ Number string }
			Next    *string
		}
		r.get(target).has(http.StatusOK).decode(&p)
		for _, row := range p.Results {
			got = append(got, row.Number)
		}
		target = ""
		if p.Next != nil {
			target = *p.Next
		}
	}
	if !slices.Equal(got, []string{"2", "3", "4"}) {
		t.Errorf("got %q", got)
	}
	r.get("/v1/workspaces/42/records/99").is(http.StatusOK, `{"results":[],"next":null}`)
}

// TestNumbersOfTheTail: numbers are those of the last event, also when nothing of the
// workspace is in the projections yet, and when all of it is.
func TestNumbersOfTheTail(t *testing.T) {
	r := newRig(t, Options{})
	flush := r.store.Plant(storagetest.Fault{Op: storagetest.OpFlush, Do: storagetest.Full()})
	last := func() string {
		var n struct {
			AsOf      string `json:"as_of_offset"`
			Sequences []struct {
				Sequence int
				Last     string
			}
		}
		r.get("/v1/workspaces/42/numbers").has(http.StatusOK).decode(&n)
		return fmt.Sprint(n.AsOf, n.Sequences)
	}
	r.post(42, `{"kind": 1, "wanted": [{"sequence": 16}], "records": [{"sequence": 16, "number": "9", "new": true}, {"sequence": 2, "number": "5", "new": true}]}`).has(http.StatusCreated)
	r.write(42, 2)
	// The low id of another record lifts nothing.
	const want = "3[{1 3} {2 0} {3 0} {16 11} {17 0}]"
	if got := last(); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	flush.Heal()
	eventually(r.ctx, t, "a flush", func() bool {
		n, err := r.store.Numbers(r.ctx, 42)
		check(t, err)
		return n.Kind != 0
	})
	if got := last(); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	r.write(42, 1)
	if got, want := last(), "4[{1 4} {2 0} {3 0} {16 12} {17 0}]"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// TestDamage: what is before a damaged event can be read, and whoever goes on is told.
func TestDamage(t *testing.T) {
	r := newRig(t, Options{})
	r.write(42, 3)
	damage := &storage.DamagedError{Where: "log.db", Cause: errors.New("flipped")}
	r.store.Plant(storagetest.Fault{Op: storagetest.OpWLog, Do: storagetest.Break(2, damage), Times: 1})
	p := r.get("/v1/workspaces/42/log").page()
	if len(p.Results) != 2 || p.Next == nil {
		t.Fatalf("got %d results, next %v", len(p.Results), p.Next)
	}
	r.store.Plant(storagetest.Fault{Op: storagetest.OpWLog, Do: storagetest.Break(0, damage), Times: 1})
	if a := r.get(*p.Next).problem(damaged, ""); strings.Contains(a.body, "flipped") {
		t.Errorf("the answer tells the cause: %s", a.body)
	}
}

// TestLogged: the cause of a problem that does not tell it is logged, and not for each of
// many requests.
func TestLogged(t *testing.T) {
	core, lines := observer.New(zap.DebugLevel)
	r := newRig(t, Options{Logger: zap.New(core)})
	r.write(42, 1)
	r.get("/v1/workspaces/42/events/9").problem(notFound, "offset")
	if lines.Len() != 0 {
		t.Errorf("got %v", lines.All())
	}
	r.store.Plant(storagetest.Fault{Op: storagetest.OpWLog, Do: storagetest.Fail(errors.New("the cause"))})
	for range 200 {
		r.get("/v1/workspaces/42/log").problem(internal, "")
	}
	// The seconds of a slow machine are counted one by one.
	if n := lines.Len(); n == 0 || n > 100 || lines.All()[0].ContextMap()["error"] != "the cause" {
		t.Errorf("got %d lines: %v", n, lines.All())
	}
}

// TestMounted: links lead back to where the handler is.
func TestMounted(t *testing.T) {
	r := newRig(t, Options{})
	r.write(42, 2)
	h := http.StripPrefix("/billing", r.api)
	p := ask(r.ctx, t, h, http.MethodGet, "/billing/v1/workspaces/42/log?limit=1", "").page()
	if p.Next == nil || *p.Next != "/billing/v1/workspaces/42/log?after=1&limit=1" {
		t.Fatalf("got %v", p.Next)
	}
	if p = ask(r.ctx, t, h, http.MethodGet, *p.Next, "").page(); len(p.Results) != 1 {
		t.Errorf("got %d results", len(p.Results))
	}
}

// TestStatus tells where each partition stands.
func TestStatus(t *testing.T) {
	r := newRig(t, Options{})
	r.write(42, 3)
	r.get("/v1/partitions/2").is(http.StatusOK, `{"partition":2,"state":"normal","epoch":"1","last_offset":"3","replayed":"0","restarts":"0"}`)
	var all struct {
		Application string
		Partitions  []struct{ Partition int }
	}
	r.get("/v1/partitions").has(http.StatusOK).decode(&all)
	if all.Application != "billing" || len(all.Partitions) != 4 || all.Partitions[3].Partition != 3 {
		t.Errorf("got %+v", all)
	}
	r.get("/healthz").is(http.StatusOK, `{"status":"ok"}`)
	r.get("/readyz").is(http.StatusOK, `{"status":"ok"}`)
	r.api.Stop()
	r.get("/readyz").problem(notReady, "")
	r.get("/healthz").has(http.StatusOK)
	r.write(42, 1)
}

// TestNotReadyWithAWrongClock: a partition takes no events then, until the clock is right again.
func TestNotReadyWithAWrongClock(t *testing.T) {
	clock := actorstest.NewFakeClock(time.Now())
	r := newRigOver(t, Options{}, partitiontest.Options{Runtime: partition.Options{Clock: clock}}, func(a *partition.Application) {
		a.Settings.ClockJump = time.Hour
	})
	right := clock.Now()
	r.write(42, 1)
	clock.Set(right.AddDate(1, 0, 0))
	r.post(42, `{"kind": 1}`).problem(unavailable, "")
	r.get("/readyz").problem(notReady, "")
	clock.Set(right)
	r.write(42, 1)
	r.get("/readyz").is(http.StatusOK, `{"status":"ok"}`)
}

// TestStreamNotAccepted: whoever does not accept a stream of all things gets a page.
func TestStreamNotAccepted(t *testing.T) {
	r := newRig(t, Options{})
	for _, accept := range []string{streamType + ";q=0", "application/json, " + streamType + "; q=0.000", "text/*;q=0.5", "*/*"} {
		r.get("/v1/workspaces/42/log?after=0", "Accept", accept).has(http.StatusOK)
	}
}

// TestEmptyPosition: a program that has lost its position is told so, and does not begin
// again; what a stream does not use is checked all the same.
func TestEmptyPosition(t *testing.T) {
	r := newRig(t, Options{})
	for _, target := range []string{"/v1/workspaces/42/log", "/v1/partitions/2/log", "/v1/log"} {
		r.get(target+"?after=").problem(malformed, "after")
		r.get(target+"?limit=201", "Accept", "text/event-stream").problem(malformed, "limit")
		r.get(target+"?wait=-1", "Accept", "text/event-stream").problem(malformed, "wait")
	}
}
