package httpapi

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/partita-go/partita/actors"
	"github.com/partita-go/partita/calendar"
	"github.com/partita-go/partita/internal/quiet"
	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/partition"
	"github.com/partita-go/partita/partition/partitiontest"
	"github.com/partita-go/partita/storage/storagetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// shared is the actor system of all tests.
var shared = quiet.NewSystem()

// patience is how long a test waits for what must happen.
const patience = 30 * time.Second

const (
	shop     messages.WSKind = 1
	depot    messages.WSKind = 2
	office   messages.WSKind = 3
	invoices messages.SeqID  = 16
	// rare is a sequence with one number.
	rare messages.SeqID = 17
	// letters restart each year, and have a format.
	letters messages.SeqID = 18
	// big is not exact as a floating point number.
	big messages.WSID = 1<<63 + 1
)

func descriptor() messages.Descriptor {
	return messages.Descriptor{Application: "billing", Partitions: 4, Kinds: []messages.Kind{
		{ID: shop, Name: "shop", Sequences: []messages.Sequence{
			{ID: invoices, Name: "Invoice", Initial: 1}, {ID: rare, Name: "Rare", Initial: messages.LargestDefault},
		}},
		{ID: depot, Name: "depot"},
		{ID: office, Name: "office", Sequences: []messages.Sequence{{
			ID: letters, Name: "Letter", Initial: 1, Largest: 2, Restart: messages.Restart{Rule: calendar.Rule{Every: calendar.Year}},
			Formats: []string{"L-{yyyy}/{n:03}"},
		}}},
	}}
}

// rig is an API over an application in memory.
type rig struct {
	t        testing.TB
	ctx      context.Context
	store    *storagetest.Faulty
	app      *partition.App
	api      *API
	contract *contract
	// handler is the API; each of its answers is checked against the document.
	handler http.Handler
}

func newRig(t testing.TB, o Options, change ...func(*partition.Application)) *rig {
	t.Helper()
	return newRigOver(t, o, partitiontest.Options{}, change...)
}

// newRigOver returns a rig over an application that was deployed as the kit's options say. Its clock is the machine's.
func newRigOver(t testing.TB, o Options, kit partitiontest.Options, change ...func(*partition.Application)) *rig {
	t.Helper()
	application := partition.Application{Descriptor: descriptor(), WorkspaceZero: true}
	for _, f := range change {
		f(&application)
	}
	if kit.Runtime.Clock == nil {
		kit.Runtime.Clock = actors.SystemClock()
	}
	app := partitiontest.Deploy(t, application, kit)
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	if _, endless := t.(*testing.F); endless {
		cancel()
		ctx, cancel = context.WithCancel(context.Background())
	}
	t.Cleanup(cancel)
	api, err := New(app.App, app.Reader(), o)
	check(t, err)
	t.Cleanup(api.Stop)
	r := &rig{t: t, ctx: ctx, store: app.Store, app: app.App, api: api, contract: newContract(t)}
	r.handler = r.contract.watch(t, api)
	return r
}

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// answer is what came back.
type answer struct {
	t      testing.TB
	what   string
	status int
	header http.Header
	body   string
}

// do sends a request to the handler. The headers are names and values in turn.
func (r *rig) do(method, target, body string, headers ...string) answer {
	r.t.Helper()
	return ask(r.ctx, r.t, r.handler, method, target, body, headers...)
}

func ask(ctx context.Context, t testing.TB, h http.Handler, method, target, body string, headers ...string) answer {
	t.Helper()
	request := httptest.NewRequestWithContext(ctx, method, target, strings.NewReader(body))
	for i := 0; i < len(headers); i += 2 {
		request.Header.Add(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, request)
	return answer{t, method + " " + target, w.Code, w.Header(), w.Body.String()}
}

func (r *rig) get(target string, headers ...string) answer {
	r.t.Helper()
	return r.do(http.MethodGet, target, "", headers...)
}

// post appends an event.
func (r *rig) post(ws messages.WSID, body string, headers ...string) answer {
	r.t.Helper()
	return r.do(http.MethodPost, fmt.Sprintf("/v1/workspaces/%d/events", ws), body, append([]string{"Content-Type", jsonType}, headers...)...)
}

// targetOf fills in the path of a route.
func targetOf(path string) string {
	return strings.NewReplacer("{wsid}", "42", "{id}", "2", "{offset}", "1", "{sequence}", "16", "{number}", "1", "{name}", "mails", "{$}", "").Replace(path)
}

// write appends n events to a workspace.
func (r *rig) write(ws messages.WSID, n int) {
	r.t.Helper()
	for i := range n {
		r.post(ws, fmt.Sprintf(`{"kind": 1, "wanted": [{"sequence": 16}], "records": [{"number_index": 0, "new": true, "data": "row"}], "body": %d}`, i)).has(http.StatusCreated)
	}
}

func (a answer) has(status int) answer {
	a.t.Helper()
	if a.status != status {
		a.t.Fatalf("%s: got status %d, want %d: %s", a.what, a.status, status, a.body)
	}
	return a
}

// is checks the status and the body.
func (a answer) is(status int, body string) answer {
	a.t.Helper()
	a.has(status)
	if a.body != body {
		a.t.Fatalf("%s: got:\n%s\nwant:\n%s", a.what, a.body, body)
	}
	return a
}

// problem checks that the answer is a problem of a kind which names a field.
func (a answer) problem(kind *problemKind, field string) answer {
	a.t.Helper()
	a.has(kind.status)
	var p struct{ Type, Field string }
	a.decode(&p)
	if p.Type != problemBase+kind.name || p.Field != field || a.header.Get("Content-Type") != problemType {
		a.t.Fatalf("%s: got %s, %s, want %s of field %q", a.what, a.header.Get("Content-Type"), a.body, kind.name, field)
	}
	return a
}

func (a answer) decode(value any) {
	a.t.Helper()
	if err := json.Unmarshal([]byte(a.body), value); err != nil {
		a.t.Fatalf("%s: %v: %s", a.what, err, a.body)
	}
}

// page is a page of a log as a client sees it.
type page struct {
	Results  []json.RawMessage
	Next     *string
	PollMore string `json:"poll_more"`
}

func (a answer) page() page {
	a.t.Helper()
	var p page
	a.has(http.StatusOK).decode(&p)
	return p
}

// event is what clients look at of an event.
type event struct {
	Partition  int
	PLogOffset string `json:"plog_offset"`
	Workspace  string
	WLogOffset string `json:"wlog_offset"`
	Body       json.RawMessage
	BodyBase64 *string `json:"body_base64"`
	DedupID    string  `json:"dedup_id"`
}

func (p page) events(t testing.TB) []event {
	t.Helper()
	all := make([]event, len(p.Results))
	for i, raw := range p.Results {
		check(t, json.Unmarshal(raw, &all[i]))
	}
	return all
}

// serve runs a handler as a server, and returns its URL and a client.
func serve(t testing.TB, h http.Handler) (*httptest.Server, *http.Client) {
	t.Helper()
	s := httptest.NewServer(h)
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 100}, Timeout: patience}
	t.Cleanup(func() {
		client.CloseIdleConnections()
		s.Close()
	})
	return s, client
}

// send sends a request to a server and returns its open answer.
func send(ctx context.Context, t testing.TB, client *http.Client, method, url, body string, headers ...string) *http.Response {
	t.Helper()
	request, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader(body))
	check(t, err)
	for i := 0; i < len(headers); i += 2 {
		request.Header.Add(headers[i], headers[i+1])
	}
	response, err := client.Do(request)
	check(t, err)
	return response
}

func whole(t testing.TB, what string, response *http.Response) answer {
	t.Helper()
	body, err := io.ReadAll(response.Body)
	check(t, err)
	check(t, response.Body.Close())
	return answer{t, what, response.StatusCode, response.Header, string(body)}
}

// eventually waits until a condition holds.
func eventually(ctx context.Context, t testing.TB, what string, holds func() bool) {
	t.Helper()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for !holds() {
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatalf("waited in vain for %s", what)
		}
	}
}

// logged returns the events of a workspace as they should be answered.
func (r *rig) logged(ws messages.WSID) []string {
	r.t.Helper()
	var all []string
	for e, err := range r.app.Reader().WLog(r.ctx, ws, 0) {
		check(r.t, err)
		b, err := encode(EventOf(&e, messages.Printer{}))
		check(r.t, err)
		all = append(all, string(b))
	}
	return all
}

// results are the results of a page as text.
func (p page) results() []string {
	all := make([]string, 0, len(p.Results))
	for _, raw := range p.Results {
		all = append(all, string(raw))
	}
	return all
}

// sameResults fails the test unless two lists of events are equal.
func sameResults(t testing.TB, got, want []string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Fatalf("got %d events:\n%s\nwant %d:\n%s", len(got), strings.Join(got, "\n"), len(want), strings.Join(want, "\n"))
	}
}
