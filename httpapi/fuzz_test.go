package httpapi

import (
	"bytes"
	"context"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

// FuzzRequest: whatever the path, the query and the headers are, the answer is one that the
// document has, and never that the server has failed.
func FuzzRequest(f *testing.F) {
	r := newRig(f, Options{Heartbeat: time.Millisecond})
	r.write(42, 3)
	cursor := strings.TrimPrefix(r.get("/v1/log").page().PollMore, "/v1/log?")
	for _, to := range r.api.routes() {
		path := targetOf(to.path)
		f.Add(to.method, path, "", "", "")
		f.Add(to.method, path, "after=1&limit=2&wait=1", "", "7")
		f.Add(to.method, path, "from=1&to=2&limit=1", streamType, "")
	}
	f.Add("GET", "/v1/log", cursor, "", "")
	f.Add("GET", "/v1/log", cursor+"&wait=9", streamType, strings.TrimPrefix(cursor, "after="))
	f.Add("HEAD", "/v1/workspaces/18446744073709551615/log", "after=18446744073709551615", "", "")
	f.Add("OPTIONS", "*", "", "", "")
	f.Add("GET", "/v1/subscriptions/mails/parked", "after=2-1&limit=1", "", "")
	f.Add("GET", "/v1/subscriptions/a/../é", "after=%00", "", "")
	f.Add("GET", "/v1/%2e%2e/log", "after=%zz", "text/event-stream;q=0", "")
	f.Fuzz(func(t *testing.T, method, path, query, accept, last string) {
		target := &url.URL{Path: path, RawQuery: query}
		check(t, r.put("mails", 2)) // it may have been deleted
		// What waits ends, as it does when a client goes.
		ctx, cancel := context.WithTimeout(r.ctx, 10*time.Millisecond)
		defer cancel()
		request, err := http.NewRequestWithContext(ctx, method, "http://localhost/", http.NoBody)
		if err != nil {
			return // no client could send it
		}
		request.URL, request.RequestURI = target, target.RequestURI()
		request.Header.Set("Accept", accept)
		if last != "" {
			request.Header.Set(headerLast, last)
		}
		w := httptest.NewRecorder()
		r.api.ServeHTTP(&bounded{w}, request)
		wellAnswered(t, r.contract, request, w)
	})
}

// bounded is a recorder that takes deadlines, as a server does.
type bounded struct{ *httptest.ResponseRecorder }

func (bounded) SetWriteDeadline(time.Time) error { return nil }
func (bounded) SetReadDeadline(time.Time) error  { return nil }

// wellAnswered fails the test unless the answer is one that a client can understand.
func wellAnswered(t *testing.T, k *contract, request *http.Request, w *httptest.ResponseRecorder) {
	t.Helper()
	switch w.Code {
	case http.StatusInternalServerError:
		t.Errorf("%s %s: %s", request.Method, request.URL, w.Body)
	case http.StatusGatewayTimeout, http.StatusServiceUnavailable:
		// The client has gone while it waited.
		check(t, k.valid(pointer{"components", "schemas", "Problem"}, w.Body.Bytes()))
	default:
		if err := k.checkAnswer(request.Pattern, w.Code, w.Header(), w.Body.Bytes()); err != nil {
			t.Errorf("%s %s: %d: %v in %s", request.Method, request.URL, w.Code, err, w.Body)
		}
	}
}

// FuzzAppend: whatever is sent, the answer is one that the document has; what was written
// can be read, and what is read makes the same event.
func FuzzAppend(f *testing.F) {
	r := newRig(f, Options{})
	f.Add([]byte(`{"kind": 1, "body": {"total": 12.50, "text": "\u2028<é>"}}`), "")
	f.Add([]byte(`{"kind": 1, "expected_offset": "0", "wanted": [{"sequence": 16, "count": 2}, {"sequence": 2}], "records": [{"number_index": 1, "new": true, "data": 1}]}`), "k")
	f.Add([]byte(`{"kind": 2, "records": [{"sequence": 2, "number": "5", "data_base64": "AA=="}], "body_base64": "/w=="}`), `"quoted"`)
	f.Add([]byte(`{"kind": 1, "body": `+strings.Repeat("[", 40)+strings.Repeat("]", 40)+`}`), "00000000-0000-0000-0000-000000000001")
	f.Add([]byte(`{"kind": 1, "wanted": [{"sequence": 17, "count": 131072}]}`), "\x00")
	f.Add([]byte(`[null, {"kind": 1e2}, "\ud800"]`), strings.Repeat("x", 300))
	f.Fuzz(func(t *testing.T, body []byte, key string) {
		post := func(body []byte) *httptest.ResponseRecorder {
			request := httptest.NewRequestWithContext(r.ctx, http.MethodPost, "/v1/workspaces/7/events", bytes.NewReader(body))
			request.Header.Set("Content-Type", jsonType)
			if key != "" {
				request.Header.Set(headerKey, key)
			}
			w := httptest.NewRecorder()
			r.api.ServeHTTP(w, request)
			wellAnswered(t, r.contract, request, w)
			return w
		}
		w := post(body)
		if w.Code != http.StatusCreated {
			return
		}
		check(t, r.contract.valid(pointer{"components", "schemas", "Append"}, body))
		location := w.Header().Get("Location")
		a := ask(r.ctx, t, r.api, http.MethodGet, location, "").has(http.StatusOK)
		check(t, r.contract.valid(pointer{"components", "schemas", "Event"}, []byte(a.body)))
		if !utf8.ValidString(a.body) {
			t.Errorf("the event is not UTF-8: %q", a.body)
		}
		var e event
		a.decode(&e)
		again := `{"kind": 2, "body": ` + string(e.Body) + `}`
		if e.BodyBase64 != nil {
			again = `{"kind": 2, "body_base64": "` + *e.BodyBase64 + `"}`
		}
		var read request
		check(t, r.api.decode([]byte(again), &read))
		back, err := encode(contentOf(read.drafts[0].Body))
		check(t, err)
		first, err := encode(content{JSON: e.Body, Base64: e.BodyBase64})
		check(t, err)
		if !bytes.Equal(back, first) {
			t.Errorf("got %s, want %s", back, first)
		}
	})
}

// FuzzChange: whatever is to be changed in which subscription, the answer is one that the
// document has, and what is left is a subscription that can be shown.
func FuzzChange(f *testing.F) {
	r := newRig(f, Options{})
	r.write(42, 3)
	r.subscribe("runs", new(mailer).handle)
	for i, c := range changes {
		f.Add(uint8(i), "mails", []byte(c.body))
		f.Add(uint8(i), "runs", []byte(c.body))
	}
	f.Add(uint8(len(changes)), "mails", []byte(changes[2].body))
	f.Add(uint8(len(changes)), "runs", []byte(`{"partition": 2, "offset": "18446744073709551615"}`))
	f.Add(uint8(len(changes)), "runs", []byte(`{"partition": 1, "offset": "1"}`))
	f.Add(uint8(4), "a/..", []byte(`{"partition": 4294967296, "offset": "01"}`))
	f.Fuzz(func(t *testing.T, which uint8, name string, body []byte) {
		check(t, r.put("mails", 2))
		verb := "replay"
		if i := int(which) % (len(changes) + 1); i < len(changes) {
			verb = changes[i].verb
		}
		target := &url.URL{Path: "/v1/subscriptions/" + name + "/" + verb, RawPath: "/v1/subscriptions/" + url.PathEscape(name) + "/" + verb}
		request, err := http.NewRequestWithContext(r.ctx, http.MethodPost, "http://localhost/", bytes.NewReader(body))
		check(t, err)
		request.URL, request.RequestURI = target, target.RequestURI()
		request.Header.Set("Content-Type", jsonType)
		w := httptest.NewRecorder()
		r.api.ServeHTTP(w, request)
		wellAnswered(t, r.contract, request, w)
		schema := "Nothing"
		if verb == "rewind" || verb == "drop" || verb == "replay" {
			schema = "EventOfLog"
		}
		if w.Code == http.StatusOK {
			check(t, r.contract.valid(pointer{"components", "schemas", schema}, body))
		}
		list := ask(r.ctx, t, r.api, http.MethodGet, "/v1/subscriptions", "").has(http.StatusOK)
		check(t, r.contract.valid(pointer{"components", "schemas", "Subscriptions"}, []byte(list.body)))
	})
}

// FuzzContent: any bytes are shown as JSON or as base64, and are the same when they come back.
func FuzzContent(f *testing.F) {
	for _, text := range []string{"", "null", `{"a":1}`, ` {"a":1}`, "\xff", `"\ud800"`, strings.Repeat("[", 33) + strings.Repeat("]", 33), `"[\"["`, "1e999"} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		text, err := encode(dataOf(b))
		check(t, err)
		o := newObject(invalidEvent, "", text)
		back := o.content("data")
		check(t, o.end())
		if !bytes.Equal(back, b) {
			t.Errorf("got %q, want %q, by way of %s", back, b, text)
		}
	})
}
