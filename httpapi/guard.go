package httpapi

import (
	"crypto/sha256"
	"crypto/subtle"
	"net"
	"net/http"
	"strings"
)

// RequireToken returns a handler that passes on what comes with a bearer token (RFC 6750),
// and what asks for /healthz or /readyz. Nothing comes with the empty token.
func RequireToken(next http.Handler, token string) http.Handler {
	// Sums have one length, so that the comparison does not tell the token's.
	want := sha256.Sum256([]byte(token))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got := sha256.Sum256([]byte(bearer(r)))
		if subtle.ConstantTimeCompare(got[:], want[:]) == 1 && token != "" || isProbe(r) {
			next.ServeHTTP(w, r)
			return
		}
		refuse(w, r, &problem{kind: unauthorized, field: "Authorization", detail: "the bearer token is missing or wrong"})
	})
}

func bearer(r *http.Request) string {
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return ""
	}
	return token
}

func isProbe(r *http.Request) bool {
	return (r.Method == http.MethodGet || r.Method == http.MethodHead) && (r.URL.Path == "/healthz" || r.URL.Path == "/readyz")
}

// OnlyLoopback returns a handler that passes on what asks for a host of this machine. A
// server that needs no token must not be asked by the pages of a browser: those can let a
// name of their own point to it.
func OnlyLoopback(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if isLoopback(r.Host) {
			next.ServeHTTP(w, r)
			return
		}
		refuse(w, r, &problem{kind: wrongHost, field: "Host", detail: "this server answers for localhost only"})
	})
}

func isLoopback(hostport string) bool {
	host, _, err := net.SplitHostPort(hostport)
	if err != nil {
		host = strings.Trim(hostport, "[]")
	}
	return strings.EqualFold(host, "localhost") || net.ParseIP(host).IsLoopback()
}

func refuse(w http.ResponseWriter, r *http.Request, p *problem) { outside(w, r).fail(p) }

// outside is a call that comes to no API.
func outside(w http.ResponseWriter, r *http.Request) *call {
	return newCall(&API{options: Options{}.WithDefaults()}, w, r)
}
