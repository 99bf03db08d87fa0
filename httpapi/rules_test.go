package httpapi

import (
	"bytes"
	"compress/gzip"
	"io"
	"net/http"
	"strings"
	"testing"
)

// TestContentTypes: a body that is not JSON in UTF-8, as it is, is refused before it is read.
func TestContentTypes(t *testing.T) {
	r := newRig(t, Options{})
	post := func(headers ...string) answer {
		return r.do(http.MethodPost, "/v1/workspaces/42/events", `{"kind": 1}`, headers...)
	}
	for _, good := range []string{"application/json", "Application/JSON", "application/json; charset=utf-8", `application/json;charset="UTF-8"`, "application/json; x=y"} {
		post("Content-Type", good).has(http.StatusCreated)
	}
	post("Content-Type", jsonType, "Content-Encoding", "identity").has(http.StatusCreated)
	for _, bad := range []string{"", "text/plain", "application/json; charset=latin1", "application/json; charset=utf-16"} {
		post("Content-Type", bad).problem(wrongType, "Content-Type")
	}
	for _, bad := range []string{"gzip", "br", "identity, gzip", "gzip, identity"} {
		post("Content-Type", jsonType, "Content-Encoding", bad).problem(wrongType, "Content-Encoding")
	}
	post("Content-Type", jsonType, "Content-Encoding", "identity", "Content-Encoding", "gzip").problem(wrongType, "Content-Encoding")
}

// TestCompressed: whoever asks for gzip gets large answers compressed, and nobody else does.
func TestCompressed(t *testing.T) {
	r := newRig(t, Options{})
	r.write(42, 20)
	plain := r.get("/v1/workspaces/42/log")
	ask := func(accepts ...string) answer {
		headers := make([]string, 0, 2*len(accepts))
		for _, a := range accepts {
			headers = append(headers, "Accept-Encoding", a)
		}
		return ask(r.ctx, t, r.api, http.MethodGet, "/v1/workspaces/42/log", "", headers...).has(http.StatusOK)
	}
	for _, accepts := range [][]string{{"gzip"}, {"br, GZIP;q=0.5"}, {"deflate", "gzip"}} {
		a := ask(accepts...)
		if a.header.Get("Content-Encoding") != "gzip" || a.header.Get("Vary") != "Accept-Encoding" || len(a.body) >= len(plain.body)/2 {
			t.Errorf("%q: got %v, %d bytes of %d", accepts, a.header, len(a.body), len(plain.body))
		}
		z, err := gzip.NewReader(strings.NewReader(a.body))
		check(t, err)
		b, err := io.ReadAll(z)
		check(t, err)
		if !bytes.Equal(b, []byte(plain.body)) {
			t.Errorf("%q: got %s", accepts, b)
		}
	}
	for _, accepts := range [][]string{nil, {""}, {"br"}, {"gzip;q=0"}, {"gzip; q=0.0, br"}, {"x-gzip"}} {
		if a := ask(accepts...); a.header.Get("Content-Encoding") != "" || a.body != plain.body {
			t.Errorf("%q: got %v", accepts, a.header)
		}
	}
	if a := r.get("/healthz", "Accept-Encoding", "gzip"); a.header.Get("Content-Encoding") != "" {
		t.Errorf("a small answer is compressed: %v", a.header)
	}
	s, client := serve(t, r.api)
	response := send(r.ctx, t, client, http.MethodGet, s.URL+"/v1/workspaces/42/log", "", "Accept", streamType, "Accept-Encoding", "gzip")
	if got := response.Header.Get("Content-Encoding"); got != "" {
		t.Errorf("a stream is compressed: %q", got)
	}
	check(t, response.Body.Close())
}

// TestRoot: whoever asks for nothing in particular is told what there is.
func TestRoot(t *testing.T) {
	r := newRig(t, Options{})
	if a := r.get("/").has(http.StatusOK); a.body != string(openAPI) {
		t.Errorf("got %.100s", a.body)
	}
	r.get("/v1").problem(notFound, "")
}

// TestOptionsOfPaths: OPTIONS tells the methods of a path.
func TestOptionsOfPaths(t *testing.T) {
	r := newRig(t, Options{})
	for target, want := range map[string]string{
		"/v1/workspaces/42/events": "POST, OPTIONS", "/v1/log": "GET, HEAD, OPTIONS", "/": "GET, HEAD, OPTIONS",
		"/v1/subscriptions/mails": "GET, DELETE, HEAD, OPTIONS",
	} {
		a := r.do(http.MethodOptions, target, "").is(http.StatusNoContent, "")
		if got := a.header.Get("Allow"); got != want {
			t.Errorf("%s: got %q, want %q", target, got, want)
		}
	}
	r.do(http.MethodOptions, "/nowhere", "").problem(notFound, "")
}

// TestStreamParameters: a stream refuses what only a page takes.
func TestStreamParameters(t *testing.T) {
	r := newRig(t, Options{})
	for _, log := range []string{"/v1/log", "/v1/partitions/2/log", "/v1/workspaces/42/log"} {
		r.get(log+"?limit=1", "Accept", streamType).problem(malformed, "limit")
		r.get(log+"?wait=1", "Accept", streamType).problem(malformed, "wait")
		r.get(log+"?limit=1", "Accept", jsonType).has(http.StatusOK)
	}
}
