package httpapi

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/partition"
	"github.com/partita-go/partita/storage/storagetest"
)

var anyTime = regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z`)

// timeless replaces times, which differ from run to run.
func (a answer) timeless() answer {
	a.body = anyTime.ReplaceAllString(a.body, "TIME")
	return a
}

// TestAppend: what was answered is what can be read, with all that the request had.
func TestAppend(t *testing.T) {
	r := newRig(t, Options{})
	a := r.post(big, `{
		"kind": 1, "expected_offset": "0",
		"wanted": [{"sequence": 16, "count": 2}, {"sequence": 2}],
		"records": [
			{"number_index": 1, "new": true, "data": {"a": [1, 2.50, "<&>"]}},
			{"sequence": 3, "number": "322680000131100", "new": true, "data_base64": "AAH/"},
			{"number_index": 2}
		],
		"body": { "n": 9007199254740993, "text": "é <b>" }
	}`, headerKey, "0123ABCD-4567-89ab-cdef-000102030405")
	a.timeless().is(http.StatusCreated, `{"workspace":"9223372036854775809","wlog_offset":"1","partition":1,"plog_offset":"1","registered_at":"TIME",`+
		`"numbers":[{"sequence":16,"number":"1"},{"sequence":16,"number":"2"},{"sequence":2,"number":"322685000131072"}],"repeated":false}`)
	location := a.header.Get("Location")
	if location != "/v1/workspaces/9223372036854775809/events/1" {
		t.Errorf("got location %q", location)
	}
	const want = `{"partition":1,"plog_offset":"1","workspace":"9223372036854775809","workspace_kind":1,"wlog_offset":"1","registered_at":"TIME","epoch":"1",` +
		`"numbers":[{"sequence":16,"number":"1"},{"sequence":16,"number":"2"},{"sequence":2,"number":"322685000131072"}],` +
		`"records":[{"sequence":16,"number":"2","new":true,"data":{"a":[1,2.50,"<&>"]}},{"sequence":3,"number":"322680000131100","new":true,"data_base64":"AAH/"},` +
		`{"sequence":2,"number":"322685000131072","new":false,"data_base64":""}],"dedup_id":"0123abcd456789abcdef000102030405",` +
		`"body":{"n":9007199254740993,"text":"é <b>"}}`
	r.get(location).timeless().is(http.StatusOK, want)
	r.get("/v1/partitions/1/events/1").timeless().is(http.StatusOK, want)
	r.get("/v1/workspaces/9223372036854775809/records/16/2").is(http.StatusOK,
		`{"sequence":16,"number":"2","data":{"a":[1,2.50,"<&>"]},"partition":1,"plog_offset":"1"}`)
	r.get("/v1/workspaces/9223372036854775809/numbers").is(http.StatusOK, `{"workspace":"9223372036854775809","workspace_kind":1,"as_of_offset":"1","sequences":[`+
		`{"sequence":1,"name":"WLogOffset","last":"1","largest":"18446744073709551615","nearly_used":false},`+
		`{"sequence":2,"name":"CRecordID","last":"322685000131072","largest":"18446744073709551615","nearly_used":false},`+
		`{"sequence":3,"name":"OWRecordID","last":"322680000131100","largest":"322685000131071","nearly_used":false},`+
		`{"sequence":16,"name":"Invoice","last":"2","largest":"9223372036854775807","nearly_used":false},`+
		`{"sequence":17,"name":"Rare","last":"0","largest":"9223372036854775807","nearly_used":false}]}`)
	if err := r.contract.valid(pointer{"components", "schemas", "Append"}, []byte(`{"kind": 1, "body": 1, "body_base64": ""}`)); err == nil {
		t.Error("the document allows two bodies")
	}
}

// TestAppendOnce: a key makes a request happen once, whatever form it has.
func TestAppendOnce(t *testing.T) {
	r := newRig(t, Options{})
	sum := sha256.Sum256([]byte("order 7"))
	for i, tt := range []struct{ key, same, id string }{
		{"00000000-0000-0000-0000-0000000000ff", "00000000-0000-0000-0000-0000000000FF", "000000000000000000000000000000ff"},
		{"order 7", `"order 7"`, fmt.Sprintf("%x", sum[:16])},
	} {
		first := r.post(5, `{"kind": 1, "body": [1, 2]}`, headerKey, tt.key).has(http.StatusCreated)
		// White space does not make another event.
		again := r.post(5, `{"kind":1,"body":[1,2]}`, headerKey, tt.same)
		again.is(http.StatusOK, strings.Replace(first.body, `"repeated":false`, `"repeated":true`, 1))
		r.post(5, `{"kind": 1, "body": [2, 1]}`, headerKey, tt.key).problem(keyReused, headerKey)
		var e event
		r.get(fmt.Sprintf("/v1/workspaces/5/events/%d", i+1)).decode(&e)
		if e.DedupID != tt.id {
			t.Errorf("%s: got id %s, want %s", tt.key, e.DedupID, tt.id)
		}
	}
	for _, key := range []string{"", `""`, "00000000-0000-0000-0000-000000000000", strings.Repeat("x", 256), "é", "a\tb"} {
		r.post(5, `{"kind": 1}`, headerKey, key).problem(malformed, headerKey)
	}
	r.post(5, `{"kind": 1}`, headerKey, "a", headerKey, "b").problem(malformed, headerKey)
	if got := len(r.logged(5)); got != 2 {
		t.Errorf("got %d events, want 2", got)
	}
}

// TestAppendRefused: each request that cannot be an event leaves nothing, and the answer
// names what is wrong.
func TestAppendRefused(t *testing.T) {
	r := newRig(t, Options{})
	r.post(7, `{"kind": 2}`).has(http.StatusCreated)
	r.post(4, `{"kind": 1, "wanted": [{"sequence": 17}], "records": [{"number_index": 0, "new": true}]}`).has(http.StatusCreated)
	for _, tt := range []struct {
		body  string
		kind  *problemKind
		field string
	}{
		{``, malformed, ""},
		{`{"kind": 1} {}`, malformed, ""},
		{"{\"kind\": 1, \"body\": \"\xff\"}", malformed, ""},
		{`null`, invalidEvent, ""},
		{`[]`, invalidEvent, ""},
		{`{}`, invalidEvent, "kind"},
		{`{"kind": 9}`, invalidEvent, "kind"},
		{`{"kind": "1"}`, invalidEvent, "kind"},
		{`{"kind": 65536}`, invalidEvent, "kind"},
		{`{"kind": 2}`, kindMismatch, "kind"},
		{`{"kind": 1, "boddy": 1}`, invalidEvent, "boddy"},
		{`{"kind": 1, "expected_offset": 1}`, invalidEvent, "expected_offset"},
		{`{"kind": 1, "expected_offset": null}`, invalidEvent, "expected_offset"},
		{`{"kind": 1, "expected_offset": "-1"}`, invalidEvent, "expected_offset"},
		{`{"kind": 1, "expected_offset": "2"}`, expectedOffset, "expected_offset"},
		{`{"kind": 1, "wanted": [{"sequence": 16}, {"sequence": 1}]}`, invalidEvent, "wanted[1].sequence"},
		{`{"kind": 1, "wanted": [{"sequence": 18}]}`, invalidEvent, "wanted[0].sequence"},
		{`{"kind": 1, "wanted": [{"sequence": "16"}]}`, invalidEvent, "wanted[0].sequence"},
		{`{"kind": 1, "wanted": [{}]}`, invalidEvent, "wanted[0].sequence"},
		{`{"kind": 1, "wanted": [null]}`, invalidEvent, "wanted[0]"},
		{`{"kind": 1, "wanted": {}}`, invalidEvent, "wanted"},
		{`{"kind": 1, "wanted": null}`, invalidEvent, "wanted"},
		{`{"kind": 1, "wanted": [{"sequence": 16, "Count": 1}]}`, invalidEvent, "wanted[0].Count"},
		{`{"kind": 1, "wanted": [{"sequence": 16, "count": 0}]}`, invalidEvent, "wanted[0].count"},
		{`{"kind": 1, "wanted": [{"sequence": 16, "count": 131072}, {"sequence": 16}]}`, invalidEvent, "wanted[1].count"},
		{`{"kind": 1, "wanted": [{"sequence": 17}]}`, exhausted, ""},
		{`{"kind": 1, "records": [{}]}`, invalidEvent, "records[0].number_index"},
		{`{"kind": 1, "records": [{"number_index": 0}]}`, invalidEvent, "records[0].number_index"},
		{`{"kind": 1, "wanted": [{"sequence": 16}], "records": [{"number_index": -1}]}`, invalidEvent, "records[0].number_index"},
		{`{"kind": 1, "wanted": [{"sequence": 16}], "records": [{"number_index": 0, "sequence": 16, "number": "5"}]}`, invalidEvent, "records[0].number_index"},
		{`{"kind": 1, "records": [{"sequence": 1, "number": "5"}]}`, invalidEvent, "records[0].sequence"},
		{`{"kind": 1, "records": [{"number": "5"}]}`, invalidEvent, "records[0].number_index"},
		{`{"kind": 1, "records": [{"sequence": 16}]}`, invalidEvent, "records[0].number_index"},
		{`{"kind": 1, "records": [{"sequence": 16, "number": "5", "new": null}]}`, invalidEvent, "records[0].new"},
		{`{"kind": 1, "records": [{"sequence": 16, "number": 5}]}`, invalidEvent, "records[0].number"},
		{`{"kind": 1, "records": [{"sequence": 16, "number": "0"}]}`, invalidEvent, "records[0].number"},
		{`{"kind": 1, "records": [{"sequence": 16, "number": "5"}, {"sequence": 16, "number": "18446744073709551615", "new": true}]}`, invalidEvent, "records[1].number"},
		{`{"kind": 1, "records": [{"sequence": 16, "number": "5", "data": 1, "data_base64": ""}]}`, invalidEvent, "records[0].data"},
		{`{"kind": 1, "records": [{"sequence": 16, "number": "5", "data_base64": "x"}]}`, invalidEvent, "records[0].data_base64"},
		{`{"kind": 1, "records": [{"sequence": 17, "number": "9223372036854775807", "new": true}]}`, recordExists, "records[0]"},
		{`{"kind": 1, "body": 1, "body_base64": ""}`, invalidEvent, "body"},
		{`{"kind": 1, "body_base64": null}`, invalidEvent, "body_base64"},
	} {
		ws := messages.WSID(4)
		if tt.kind == kindMismatch {
			ws = 8
			r.post(ws, `{"kind": 1}`).has(http.StatusCreated)
		}
		a := r.post(ws, tt.body)
		if a.status != tt.kind.status {
			t.Errorf("%s: got %s", tt.body, a.body)
			continue
		}
		a.problem(tt.kind, tt.field)
	}
	r.do(http.MethodPost, "/v1/workspaces/x/events", "").problem(malformed, "wsid")
	r.do(http.MethodPost, "/v1/workspaces/18446744073709551616/events", "").problem(malformed, "wsid")
	var moved struct {
		Last string `json:"last_offset"`
	}
	r.post(4, `{"kind": 1, "expected_offset": "2"}`).decode(&moved)
	if got := len(r.logged(4)); got != 1 || moved.Last != "1" {
		t.Errorf("got %d events, last offset %q", got, moved.Last)
	}
}

// TestEventTooLarge: an event that takes more than one append may is refused as a body that
// is too large is, and says by how much.
func TestEventTooLarge(t *testing.T) {
	r := newRig(t, Options{}, func(a *partition.Application) { a.Settings.GroupBytes = 300 })
	r.post(4, `{"kind": 1, "body": "small"}`)
	a := r.post(4, fmt.Sprintf(`{"kind": 1, "body": %q}`, strings.Repeat("x", 100)))
	a.problem(tooLarge, "")
	if !strings.Contains(a.body, "want at most 300") || len(r.logged(4)) != 1 {
		t.Errorf("got %s, %d events", a.body, len(r.logged(4)))
	}
}

// TestBusy: whoever comes when the lane is full is told when to come again, and is not kept.
func TestBusy(t *testing.T) {
	for limit, narrow := range map[string]func(*partition.Application){
		"RequestLane":      func(a *partition.Application) { a.RequestLane = 1 },
		"RequestLaneBytes": func(a *partition.Application) { a.RequestLaneBytes = 1 },
	} {
		t.Run(limit, func(t *testing.T) { busyWhenFull(t, limit, narrow) })
	}
}

// busyWhenFull has a lane with room for one, by a limit.
func busyWhenFull(t *testing.T, limit string, narrow func(*partition.Application)) {
	t.Helper()
	r := newRig(t, Options{}, func(a *partition.Application) {
		narrow(a)
		a.Settings.InFlightEvents = 1
	})
	gate := storagetest.NewGate()
	r.store.Plant(storagetest.Fault{Op: storagetest.OpAppend, Do: storagetest.Hold(gate), Times: 1})
	// One is at the gate, one may be next, one in the lane.
	answers := make(chan answer)
	const callers = 6
	for range callers {
		go func() {
			answers <- ask(r.ctx, t, r.handler, http.MethodPost, "/v1/workspaces/4/events", `{"kind": 1}`, "Content-Type", jsonType)
		}()
	}
	for range callers - 3 {
		a := <-answers
		if a.problem(busy, ""); a.header.Get("Retry-After") != "1" {
			t.Errorf("got Retry-After %q", a.header.Get("Retry-After"))
		}
		p, _ := ReadProblem([]byte(a.body))
		b, isBusy := errors.AsType[*messages.BusyError](p)
		if !isBusy || b.Reason != messages.BusyMailboxFull || b.Limit != limit {
			t.Errorf("got %+v of %s, want a full mailbox by %s", b, a.body, limit)
		}
	}
	gate.Release()
	created := 0
	for range 3 {
		if a := <-answers; a.status == http.StatusCreated {
			created++
		} else {
			a.problem(busy, "")
		}
	}
	if got := len(r.logged(4)); got != created || created == 0 {
		t.Errorf("got %d events, %d answers say so", got, created)
	}
}

// TestOutcomeUnknown: whoever gives up while the store has the event in its hands is told that
// nobody knows, and the same request with the same key tells that it was written.
func TestOutcomeUnknown(t *testing.T) {
	r := newRig(t, Options{AppendTimeout: time.Second})
	gate := storagetest.NewGate()
	r.store.Plant(storagetest.Fault{Op: storagetest.OpAppend, Do: storagetest.Hold(gate), Times: 1})
	const body = `{"kind": 1, "wanted": [{"sequence": 16}], "body": "once"}`
	post := func(ctx context.Context) answer {
		return ask(ctx, t, r.handler, http.MethodPost, "/v1/workspaces/9/events", body, "Content-Type", jsonType, headerKey, "k")
	}
	impatient, cancel := context.WithCancel(r.ctx)
	given := make(chan answer, 1)
	go func() { given <- post(impatient) }()
	check(t, gate.Await(r.ctx))
	cancel()
	(<-given).problem(outcomeUnknown, "")
	gate.Release()
	var e event
	post(r.ctx).has(http.StatusOK).decode(&e)
	if got := len(r.logged(9)); got != 1 || e.WLogOffset != "1" {
		t.Errorf("got %d events, want 1, answered as event %s", got, e.WLogOffset)
	}
}

// TestAppendTimeout: an append that the partition has not come to in time leaves nothing.
func TestAppendTimeout(t *testing.T) {
	r := newRig(t, Options{}, func(a *partition.Application) { a.Settings.InFlightEvents = 1 })
	hasty, err := New(r.app, r.app.Reader(), Options{AppendTimeout: time.Millisecond})
	check(t, err)
	gate := storagetest.NewGate()
	r.store.Plant(storagetest.Fault{Op: storagetest.OpAppend, Do: storagetest.Hold(gate), Times: 1})
	first := make(chan answer, 1)
	go func() {
		first <- ask(r.ctx, t, r.handler, http.MethodPost, "/v1/workspaces/4/events", `{"kind": 1, "body": 1}`, "Content-Type", jsonType)
	}()
	check(t, gate.Await(r.ctx))
	ask(r.ctx, t, hasty, http.MethodPost, "/v1/workspaces/4/events", `{"kind": 1, "body": 2}`, "Content-Type", jsonType).problem(timedOut, "")
	gate.Release()
	(<-first).has(http.StatusCreated)
	r.post(4, `{"kind": 1, "body": 3}`).has(http.StatusCreated)
	p := r.get("/v1/workspaces/4/log").page()
	if e := p.events(t); len(e) != 2 || string(e[0].Body) != "1" || string(e[1].Body) != "3" {
		t.Errorf("got %q", p.results())
	}
}

// TestSequenceEnds: whoever asks for more than there is learns which sequence has ended; the numbers and the
// partition's status said before that it would.
func TestSequenceEnds(t *testing.T) {
	r := newRig(t, Options{})
	r.post(4, `{"kind": 1}`).has(http.StatusCreated)
	if a := r.get("/v1/partitions/0"); strings.Contains(a.body, "nearly_used") {
		t.Errorf("got %s", a.body)
	}
	r.post(4, `{"kind": 1, "wanted": [{"sequence": 17, "count": 2}]}`).problem(exhausted, "")
	r.post(4, `{"kind": 1, "wanted": [{"sequence": 17}]}`).has(http.StatusCreated)
	const use = `"last":"9223372036854775807","largest":"9223372036854775807"`
	if a := r.get("/v1/workspaces/4/numbers"); !strings.Contains(a.body, `"name":"Rare",`+use+`,"nearly_used":true}`) {
		t.Errorf("got %s", a.body)
	}
	if a := r.get("/v1/partitions/0"); !strings.Contains(a.body, `"nearly_used":[{"workspace":"4","sequence":17,"name":"Rare",`+use+`}]`) {
		t.Errorf("got %s", a.body)
	}
	r.post(4, `{"kind": 1, "wanted": [{"sequence": 16}, {"sequence": 17}]}`).is(http.StatusConflict,
		`{"type":"`+problemBase+`sequence-exhausted","title":"The sequence has not as many numbers left","status":409,`+
			`"detail":"sequence is exhausted: workspace 4, sequence 17 \"Rare\": got 1 wanted after 9223372036854775807, want at most 9223372036854775807","error":"messages.ErrOverflow",`+
			`"sequence":17,"name":"Rare","largest":"9223372036854775807"}`)
	if got := len(r.logged(4)); got != 2 {
		t.Errorf("got %d events, want 2", got)
	}
}
