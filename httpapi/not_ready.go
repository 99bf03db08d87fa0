package httpapi

import "net/http"

// NotReady returns a handler for a server that has no application to serve yet, as while it opens the store: so it can
// listen at once, and whoever looks after it sees that it lives, and what it does. It answers /healthz, and everything
// else with the problem not-ready, whose detail is what why returns. That is called for each request, by many
// goroutines.
func NotReady(why func() string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/healthz" {
			refuse(w, r, &problem{kind: notReady, detail: why(), retryAfter: retrySoon})
			return
		}
		c := outside(w, r)
		if err := c.sendJSON(http.StatusOK, jsonType, okJSON{"ok"}); err != nil {
			c.fail(err)
		}
	})
}
