package serve

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/rs/cors"
)

// preflight is how long a browser may remember what it was allowed.
const preflight = 10 * time.Minute

// checkOrigins returns ErrConfig unless each is an origin. That of any page is none, nor is a pattern, which package cors would
// take: whoever wants that has no use for a token.
func checkOrigins(origins []string) error {
	for _, origin := range origins {
		u, err := url.Parse(origin)
		if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || strings.Contains(u.Host, "*") || origin != u.Scheme+"://"+u.Host {
			return fmt.Errorf("%w: origin %.80q: want it as https://shop.example, with a port if it has one, and nothing behind", ErrConfig, origin)
		}
	}
	return nil
}

// allowOrigins lets the pages of some origins ask from a browser (CORS), with a token in the header.
func allowOrigins(next http.Handler, origins []string) http.Handler {
	if len(origins) == 0 {
		return next
	}
	return cors.New(cors.Options{
		AllowedOrigins: origins,
		AllowedMethods: []string{http.MethodGet, http.MethodHead, http.MethodPost, http.MethodDelete},
		AllowedHeaders: []string{"Authorization", "Content-Type", "Idempotency-Key", "Last-Event-ID", "Partita-Trace", "Traceparent"},
		ExposedHeaders: []string{"Location", "Partita-Trace", "Retry-After"},
		MaxAge:         int(preflight.Seconds()),
	}).Handler(next)
}
