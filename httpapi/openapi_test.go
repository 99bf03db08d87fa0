package httpapi

import (
	"context"
	"errors"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/partita-go/partita/storage"
	"github.com/partita-go/partita/storage/storagetest"
)

// TestDocument: the document has the routes and their parameters, and all that it says
// of values is a schema.
func TestDocument(t *testing.T) {
	k := newContract(t)
	routes := make(map[string][]string)
	for _, r := range (&API{}).routes() {
		routes[r.method+" "+strings.TrimSuffix(r.path, "{$}")] = r.query
	}
	ids := make(map[string]bool)
	documented := make(map[string]bool)
	for name := range k.documented() {
		pattern := strings.Join(strings.Fields(name)[:2], " ")
		documented[pattern] = true
		o, _ := k.find(operation(pattern))
		ids[o.(map[string]any)["operationId"].(string)] = true
	}
	if got, want := slices.Sorted(maps.Keys(documented)), slices.Sorted(maps.Keys(routes)); !slices.Equal(got, want) || len(ids) != len(want) {
		t.Errorf("got operations %q with %d names, the routes are %q", got, len(ids), want)
	}
	for pattern, query := range routes {
		if got := k.parameters(t, pattern); !slices.Equal(got, slices.Sorted(slices.Values(query))) {
			t.Errorf("%s: got parameters %q, want %q", pattern, got, query)
		}
	}
	for _, kind := range []string{"schemas", "parameters"} {
		all, _ := k.find(pointer{"components", kind})
		for name := range all.(map[string]any) {
			at := pointer{"components", kind, name}
			if kind == "parameters" {
				at = append(at, "schema")
			}
			_, err := k.compiler.Compile(documentName + at.String())
			check(t, err)
		}
	}
}

// parameters returns those of an operation that stand in the query, and checks that the path
// has those that are said to stand there.
func (k *contract) parameters(t *testing.T, pattern string) (query []string) {
	t.Helper()
	list, _ := k.find(append(operation(pattern), "parameters"))
	inPath := 0
	each, _ := list.([]any)
	for _, p := range each {
		ref := p.(map[string]any)["$ref"].(string)
		value, _ := k.find(strings.Split(strings.TrimPrefix(ref, "#/"), "/"))
		parameter := value.(map[string]any)
		name := parameter["name"].(string)
		switch parameter["in"] {
		case "query":
			query = append(query, name)
		case "path":
			inPath++
			if !strings.Contains(pattern, "{"+name+"}") {
				t.Errorf("%s has no %s", pattern, name)
			}
		}
	}
	if inPath != strings.Count(pattern, "{") {
		t.Errorf("%s: got %d parameters in the path", pattern, inPath)
	}
	slices.Sort(query)
	return query
}

// reading are requests that read, and the operation of the store that each needs.
var reading = []struct {
	target string
	op     storagetest.Op
}{
	{"/v1/workspaces/42/events/1", storagetest.OpWLog},
	{"/v1/workspaces/42/log", storagetest.OpWLog},
	{"/v1/workspaces/42/numbers", storagetest.OpNumbers},
	{"/v1/workspaces/42/records/16", storagetest.OpRecords},
	{"/v1/workspaces/42/records/16/1", storagetest.OpRecords},
	{"/v1/partitions/2/events/1", storagetest.OpPLog},
	{"/v1/partitions/2/log", storagetest.OpPLog},
	{"/v1/log", storagetest.OpPLog},
}

var others = []string{"/", "/v1/application", "/v1/status", "/v1/partitions", "/v1/partitions/2", "/v1/openapi.json", "/healthz", "/readyz"}

// TestEveryDocumentedAnswer gets each answer that the document has, and no other; each is
// valid against its schema.
func TestEveryDocumentedAnswer(t *testing.T) {
	r := newRig(t, Options{MaxBody: 4096, BodyTimeout: 50 * time.Millisecond, AppendTimeout: time.Second})
	r.write(42, 3)
	r.answersOfReaders()
	r.answersOfAppends()
	r.answersOfSubscriptions()
	r.timeouts()
	r.guards()
	r.streams()
	r.api.Stop()
	r.get("/readyz").problem(notReady, "")
	documented := r.contract.documented()
	for name := range documented {
		if !r.contract.seen[name] {
			t.Errorf("not seen: %s", name)
		}
	}
	if len(documented) < 190 {
		t.Errorf("got %d answers", len(documented))
	}
}

func (r *rig) answersOfReaders() {
	r.t.Helper()
	for _, c := range reading {
		r.get(c.target).has(http.StatusOK)
		r.get(c.target+"?form=1").problem(malformed, "form")
		fail := func(err error) { r.store.Plant(storagetest.Fault{Op: c.op, Do: storagetest.Fail(err), Times: 1}) }
		fail(&storage.DamagedError{Where: "log.db", Cause: errors.New("flipped")})
		r.get(c.target).problem(damaged, "")
		fail(storage.ErrClosed)
		r.get(c.target).problem(unavailable, "")
	}
	for _, target := range others {
		r.get(target).has(http.StatusOK)
		r.get(target+"?form=1").problem(malformed, "form")
	}
	for target, field := range map[string]string{
		"/v1/workspaces/42/events/4": "offset", "/v1/workspaces/43/numbers": "wsid", "/v1/workspaces/42/records/16/9": "number", "/v1/workspaces/42/records/x": "sequence",
		"/v1/partitions/4": "id", "/v1/partitions/2/events/4": "offset", "/v1/partitions/4/log": "id",
	} {
		r.get(target).problem(notFound, field)
	}
	other := newRig(r.t, Options{})
	other.write(42, 4)
	_, cursor, _ := strings.Cut(other.get("/v1/log").page().PollMore, "after=")
	for target, after := range map[string]string{"/v1/workspaces/42/log": "4", "/v1/partitions/2/log": "4", "/v1/log": cursor} {
		r.get(target+"?after="+after).problem(aheadOfLog, "after")
	}
}

func (r *rig) answersOfAppends() {
	r.t.Helper()
	const key = "11111111-2222-3333-4444-555555555555"
	const good = `{"kind": 1, "wanted": [{"sequence": 16}], "body": {"total": 12}}`
	r.post(42, good, headerKey, key).has(http.StatusCreated)
	r.post(42, good, headerKey, key).has(http.StatusOK)
	r.post(42, `{"kind": 1}`, headerKey, key).problem(keyReused, headerKey)
	r.post(42, `{"kind": `).problem(malformed, "")
	r.post(42, `{"kind": 1, "expected_offset": "3"}`).problem(expectedOffset, "expected_offset")
	r.post(42, `{"kind": 1, "body": "`+strings.Repeat("x", 4096)+`"}`).problem(tooLarge, "")
	r.do(http.MethodPost, "/v1/workspaces/42/events", good, "Content-Type", "text/plain").problem(wrongType, "Content-Type")
	r.store.Plant(storagetest.Fault{Op: storagetest.OpAppend, Do: storagetest.Full(), Times: 1})
	r.post(42, good).problem(unavailable, "")
	r.store.Plant(storagetest.Fault{Op: storagetest.OpAppend, Do: storagetest.Fail(context.DeadlineExceeded), Times: 1})
	r.post(42, good).problem(timedOut, "")
	gate := storagetest.NewGate()
	r.store.Plant(storagetest.Fault{Op: storagetest.OpAppend, Do: storagetest.HoldAnswer(gate), Times: 1})
	limited, cancel := context.WithCancel(r.ctx)
	given := make(chan answer, 1)
	go func() {
		given <- ask(limited, r.t, r.handler, http.MethodPost, "/v1/workspaces/42/events", good, "Content-Type", jsonType)
	}()
	check(r.t, gate.Await(r.ctx))
	cancel()
	(<-given).problem(outcomeUnknown, "")
	gate.Release()
}

// timeouts sends bodies that do not come.
func (r *rig) timeouts() {
	r.t.Helper()
	s, _ := serve(r.t, r.handler)
	for _, to := range r.api.routes() {
		if to.method == http.MethodPost {
			r.timeout(s, targetOf(to.path))
		}
	}
}

func (r *rig) timeout(s *httptest.Server, target string) {
	r.t.Helper()
	conn, err := net.Dial("tcp", s.Listener.Addr().String())
	check(r.t, err)
	defer conn.Close()
	check(r.t, conn.SetDeadline(time.Now().Add(patience)))
	_, err = io.WriteString(conn, "POST "+target+" HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{")
	check(r.t, err)
	status := make([]byte, len("HTTP/1.1 408"))
	if _, err := io.ReadFull(conn, status); err != nil || string(status) != "HTTP/1.1 408" {
		r.t.Errorf("%s: got %q, %v", target, status, err)
	}
}

func (r *rig) guards() {
	r.t.Helper()
	for _, to := range r.api.routes() {
		target := targetOf(to.path)
		for _, guard := range []struct {
			http.Handler
			kind *problemKind
		}{{RequireToken(r.api, "a good token"), unauthorized}, {OnlyLoopback(r.api), wrongHost}} {
			if guard.kind == unauthorized && isProbe(&http.Request{Method: to.method, URL: &url.URL{Path: to.path}}) {
				continue
			}
			a := ask(r.ctx, r.t, guard, to.method, "http://example.com"+target, "", "Authorization", "Bearer a bad token").has(guard.kind.status)
			if err := r.contract.checkAnswer(to.method+" "+to.path, a.status, a.header, []byte(a.body)); err != nil {
				r.t.Errorf("%s: %v", a.what, err)
			}
		}
	}
}

func (r *rig) streams() {
	r.t.Helper()
	s, client := serve(r.t, r.handler)
	for _, target := range []string{"/v1/workspaces/42/log", "/v1/partitions/2/log", "/v1/log", "/v1/status"} {
		response := send(r.ctx, r.t, client, http.MethodGet, s.URL+target, "", "Accept", streamType)
		if response.StatusCode != http.StatusOK || response.Header.Get("Content-Type") != streamType {
			r.t.Errorf("%s: got %d, %s", target, response.StatusCode, response.Header.Get("Content-Type"))
		}
		check(r.t, response.Body.Close())
	}
	// The answer counts when it has ended.
	eventually(r.ctx, r.t, "the ends of streams", func() bool { return len(r.api.streams) == 0 })
	s.Close()
	r.get("/v1/status", "Accept", streamType).problem(internal, "") // there is no bound of time
	for r.api.streams.take() {
	}
	r.get("/v1/status", "Accept", streamType).problem(tooManyReaders, "")
	for range cap(r.api.streams) {
		r.api.streams.free()
	}
}
