package operate

import (
	"net/http"
	"testing"
)

// TestServeAllowOrigin: the pages of the origins named may ask from a browser, and no others; that needs no token, the
// request itself does.
func TestServeAllowOrigin(t *testing.T) {
	for _, wrong := range []string{"*", "shop.example", "https://shop.example/", "https://shop.example/path", "ftp://shop.example", "https://", "null", "https://*", "https://*.shop.example", "http://localhost:*"} {
		run(t, "serve", "--db", "x", "--allow-origin", wrong).fails(t, exitBlind, "origin")
	}
	t.Setenv(tokenVariable, secret)
	server := startServe(t, newStore(t), "--allow-origin", "https://shop.example", "--allow-origin", "http://localhost:3000")
	awaitReady(t, server.URL)
	client := &http.Client{Transport: &http.Transport{}}
	defer client.CloseIdleConnections()
	for _, tt := range []struct {
		method, origin string
		headers        []string
		status         int
		allowed        string
	}{
		{http.MethodOptions, "https://shop.example", []string{"Access-Control-Request-Method", "POST", "Access-Control-Request-Headers", "authorization,content-type,idempotency-key"}, 204, "https://shop.example"},
		{http.MethodOptions, "http://localhost:3000", []string{"Access-Control-Request-Method", "GET"}, 204, "http://localhost:3000"},
		{http.MethodOptions, "https://evil.example", []string{"Access-Control-Request-Method", "GET"}, 204, ""},
		{http.MethodGet, "https://shop.example", []string{"Authorization", "Bearer " + secret}, 200, "https://shop.example"},
		{http.MethodGet, "https://shop.example", nil, 401, "https://shop.example"},
		{http.MethodGet, "https://evil.example", []string{"Authorization", "Bearer " + secret}, 200, ""},
		{http.MethodGet, "", []string{"Authorization", "Bearer " + secret}, 200, ""},
	} {
		request, err := http.NewRequestWithContext(limit(t), tt.method, server.URL+"/v1/workspaces/4/log", nil)
		check(t, err)
		if tt.origin != "" {
			request.Header.Set("Origin", tt.origin)
		}
		for i := 0; i < len(tt.headers); i += 2 {
			request.Header.Set(tt.headers[i], tt.headers[i+1])
		}
		response, err := client.Do(request)
		check(t, err)
		check(t, response.Body.Close())
		if got := response.Header.Get("Access-Control-Allow-Origin"); response.StatusCode != tt.status || got != tt.allowed {
			t.Errorf("%+v: got %s, origin %q", tt, response.Status, got)
		}
	}
	server.stop()
}
