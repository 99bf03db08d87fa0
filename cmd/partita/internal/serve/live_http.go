package serve

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"
	"strings"
	"time"

	"github.com/partita-go/partita/cmd/partita/internal/config"
)

const (
	configPath = "/v1/config"
	// maxDocument is how large a configuration may be, in bytes.
	maxDocument = 1 << 20
)

// LiveConfig is what the server answers about its configuration.
type LiveConfig struct {
	Settings []config.Setting `json:"settings,omitempty"`
	// Changed is when it was taken over last while the server ran.
	Changed *time.Time `json:"changed,omitempty"`
	// Refused says why the last try was refused, or is not in force everywhere.
	Refused string `json:"refused,omitempty"`
}

func (l *live) show() LiveConfig {
	l.mu.Lock()
	defer l.mu.Unlock()
	shown := LiveConfig{Settings: l.now.Settings()}
	if !l.changed.IsZero() {
		shown.Changed = new(l.changed) // the answer is written without the lock
	}
	if l.refused != nil {
		shown.Refused = inLine(l.refused)
	}
	return shown
}

// inLine returns the text of several errors in one line.
func inLine(err error) string { return strings.ReplaceAll(err.Error(), "\n", "; ") }

// withConfig answers whoever asks for the configuration, or for another one; the API answers all others.
func (s *server) withConfig(l *live, api http.Handler) http.Handler {
	if l == nil {
		return api
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path != configPath:
			api.ServeHTTP(w, r)
		case r.URL.RawQuery != "":
			r.Pattern = configPath
			problem(w, "http.md#malformed", http.StatusBadRequest, "The request cannot be understood", "the path takes no parameters")
		case r.Method == http.MethodGet || r.Method == http.MethodHead:
			r.Pattern = "GET " + configPath // it counts by it
			answer(w, http.StatusOK, "application/json", l.show())
		case r.Method == http.MethodPut:
			r.Pattern = "PUT " + configPath
			l.put(w, r)
		default:
			r.Pattern = configPath
			tellMethods(w, r, "GET, HEAD, PUT, OPTIONS")
		}
	})
}

// wantJSON says what isJSON wants.
const wantJSON = "want the content type application/json"

func isJSON(r *http.Request) bool {
	kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	return err == nil && kind == "application/json"
}

// put takes the body of a request in place of the file.
func (l *live) put(w http.ResponseWriter, r *http.Request) {
	if !isJSON(r) {
		refuse(w, http.StatusUnsupportedMediaType, "The body is not JSON", wantJSON)
		return
	}
	deadlines := http.NewResponseController(w)
	_ = deadlines.SetReadDeadline(time.Now().Add(headerTimeout)) // a client must not keep the connection
	document, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxDocument))
	_ = deadlines.SetReadDeadline(time.Time{})
	if err != nil {
		refuse(w, http.StatusBadRequest, "The request cannot be understood", err.Error())
		return
	}
	switch err = l.replace(context.WithoutCancel(r.Context()), document); {
	case errors.Is(err, ErrConfig):
		refuse(w, http.StatusUnprocessableEntity, "The configuration is refused", inLine(err))
	case err != nil:
		refuse(w, http.StatusServiceUnavailable, "Not everything has changed", inLine(err))
	default:
		answer(w, http.StatusOK, "application/json", l.show())
	}
}

// tellMethods answers whoever asks with none of the methods that do something at a path.
func tellMethods(w http.ResponseWriter, r *http.Request, methods string) {
	w.Header().Set("Allow", methods)
	if r.Method == http.MethodOptions {
		w.WriteHeader(http.StatusNoContent)
		return
	}
	problem(w, "http.md#wrong-method", http.StatusMethodNotAllowed, "The path does not have this method", "the methods of this path are "+methods)
}

// refuse answers that a configuration is not taken.
func refuse(w http.ResponseWriter, status int, title, detail string) {
	problem(w, "operating.md#configuration", status, title, detail)
}

// problem answers with a problem (RFC 9457), which a page explains.
func problem(w http.ResponseWriter, page string, status int, title, detail string) {
	answer(w, status, "application/problem+json", map[string]any{
		"type": "https://github.com/partita-go/partita/blob/main/docs/" + page, "title": title, "status": status, "detail": detail,
	})
}

func answer(w http.ResponseWriter, status int, contentType string, body any) {
	content, err := json.Marshal(body)
	if err != nil {
		status = http.StatusInternalServerError // nothing that is shown can fail
	}
	w.Header().Set("Content-Type", contentType)
	w.WriteHeader(status)
	_, _ = w.Write(content)
}
