package httpapi

import (
	"net/http"
	"strings"
	"testing"
)

// TestRequireToken lets in whoever has the token, and probes.
func TestRequireToken(t *testing.T) {
	r := newRig(t, Options{})
	h := RequireToken(r.api, "0123456789abcdef")
	for header, ok := range map[string]bool{
		"": false, "Bearer": false, "Bearer ": false, "Bearer 0123456789abcde": false, "Bearer 0123456789abcdef0": false,
		"Basic 0123456789abcdef": false, "0123456789abcdef": false, "Bearer  0123456789abcdef": false,
		"Bearer 0123456789abcdef": true, "bearer 0123456789abcdef": true,
	} {
		a := ask(r.ctx, t, h, http.MethodGet, "/v1/partitions", "", "Authorization", header)
		if ok {
			a.has(http.StatusOK)
			continue
		}
		if a.problem(unauthorized, "Authorization"); a.header.Get("WWW-Authenticate") == "" {
			t.Errorf("%q: no challenge", header)
		}
		ask(r.ctx, t, h, http.MethodGet, "/healthz", "", "Authorization", header).has(http.StatusOK)
		ask(r.ctx, t, h, http.MethodGet, "/readyz", "", "Authorization", header).has(http.StatusOK)
	}
	for _, header := range []string{"", "Bearer ", "Bearer"} {
		ask(r.ctx, t, RequireToken(r.api, ""), http.MethodGet, "/v1/partitions", "", "Authorization", header).problem(unauthorized, "Authorization")
	}
}

// TestOnlyLoopback lets in whoever asks for this machine by a name that nobody else can have.
func TestOnlyLoopback(t *testing.T) {
	r := newRig(t, Options{})
	h := OnlyLoopback(r.api)
	for host, ok := range map[string]bool{
		"localhost": true, "LOCALHOST:80": true, "127.0.0.1": true, "127.9.9.9:7420": true, "[::1]": true, "[::1]:7420": true,
		"example.com": false, "localhost.example.com": false, "10.0.0.1:7420": false, "[2001:db8::1]": false, "127.0.0.1.example.com:7420": false,
	} {
		a := ask(r.ctx, t, h, http.MethodGet, "http://"+host+"/v1/partitions", "")
		if ok {
			a.has(http.StatusOK)
		} else {
			a.problem(wrongHost, "Host")
		}
	}
}

// TestOptions names the option that is wrong.
func TestOptions(t *testing.T) {
	r := newRig(t, Options{})
	if _, err := New(r.app, r.app.Reader(), Options{Heartbeat: -1}); err == nil || err.Error() != "bad option: Heartbeat: got -1, want at least 1" {
		t.Errorf("got %v", err)
	}
}

// TestNotReady: a server without an application says that it lives, and for anything else why it is not ready.
func TestNotReady(t *testing.T) {
	why := "rebuilding state.db: 40 %"
	h := NotReady(func() string { return why })
	ask(t.Context(), t, h, http.MethodGet, "/healthz", "").has(http.StatusOK)
	for _, path := range []string{"/readyz", "/v1/log", "/", "/nowhere"} {
		for _, method := range []string{http.MethodGet, http.MethodPost} {
			a := ask(t.Context(), t, h, method, path, "")
			if a.problem(notReady, ""); a.header.Get("Retry-After") == "" || !strings.Contains(a.body, why) {
				t.Errorf("%s %s: got %+v", method, path, a)
			}
		}
	}
}
