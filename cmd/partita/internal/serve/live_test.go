package serve

import (
	"encoding/json"
	"net/http"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/partita-go/partita/cmd/partita/internal/config"
)

func loadDocument(t *testing.T, members map[string]any) *config.Loaded {
	t.Helper()
	document, err := json.Marshal(members)
	check(t, err)
	l, err := config.NewSource("", func(string) string { return "" }, nil).LoadDocument(document)
	check(t, err)
	return l
}

// member is a document with one setting; names of sections are in its key.
func member(key string, value any) map[string]any {
	names := strings.Split(key, ".")
	for i := len(names) - 1; i > 0; i-- {
		value = map[string]any{names[i]: value}
	}
	return map[string]any{"dump": "x.dump", names[0]: value}
}

// other returns another value than a setting has.
func other(s config.Setting) any {
	switch v := s.Value.(type) {
	case bool:
		return !v
	case int:
		return v + 1
	case int64:
		return v + 1
	case *uint16:
		return 3
	case []string:
		if strings.HasSuffix(s.Key, "messages") {
			return []string{"Append"}
		}
		return []string{"lane"}
	case string:
		if d, err := time.ParseDuration(v); err == nil {
			return (d + time.Second).String()
		}
		if another := map[string]string{"warn": "debug", "console": "json", "on-failure": "never"}[v]; another != "" {
			return another
		}
	}
	return "another"
}

// TestEverySettingIsUsed: a server is told of each setting that there is.
func TestEverySettingIsUsed(t *testing.T) {
	plain := func(l *config.Loaded) Config {
		c := ConfigOf(l, nil)
		c.loaded, c.Store.Progress = nil, nil // a function is never the same
		return c
	}
	first := loadDocument(t, member("dump", "x.dump"))
	before := plain(first)
	settings := first.Settings()
	for _, name := range config.ActorGroups {
		settings = append(settings,
			config.Setting{Key: "groups." + name + ".dumping.messages", Value: []string(nil)}, config.Setting{Key: "groups." + name + ".dumping.rate", Value: 1},
			config.Setting{Key: "groups." + name + ".dumping.longest", Value: 98}, config.Setting{Key: "groups." + name + ".dumping.bodies", Value: false},
			config.Setting{Key: "groups." + name + ".telemetry.keys", Value: false})
	}
	for _, name := range config.RestartGroups {
		settings = append(settings, config.Setting{Key: "groups." + name + ".restart.mode", Value: "on-failure"},
			config.Setting{Key: "groups." + name + ".restart.min_delay", Value: "1ms"}, config.Setting{Key: "groups." + name + ".restart.max_delay", Value: "1s"},
			config.Setting{Key: "groups." + name + ".restart.most_failures", Value: 0})
	}
	for _, name := range config.LogGroups {
		settings = append(settings, config.Setting{Key: "groups." + name + ".logging.level", Value: "warn"}, config.Setting{Key: "groups." + name + ".logging.rate", Value: 1})
	}
	for _, s := range settings {
		if reflect.DeepEqual(plain(loadDocument(t, member(s.Key, other(s)))), before) {
			t.Errorf("%s = %v changes nothing", s.Key, other(s))
		}
	}
}

// TestConfigOverHTTP: whoever may ask the API may ask for the configuration and change it, and nobody else.
func TestConfigOverHTTP(t *testing.T) {
	source := config.NewSource("", func(name string) string {
		return map[string]string{"PARTITA_DB": newStore(t), "PARTITA_LISTEN": "127.0.0.1:0", "PARTITA_TOKEN": token}[name]
	}, nil)
	loaded, err := source.Load()
	check(t, err)
	r := start(t, ConfigOf(loaded, source))
	bearer := []string{"Authorization", "Bearer " + token}
	for _, method := range []string{http.MethodGet, http.MethodPut} {
		r.expect(http.StatusUnauthorized, method, "/v1/config", "{}")
	}
	before := r.expect(http.StatusOK, http.MethodGet, "/v1/config", "", bearer...)
	if !strings.Contains(before, `"key":"token","value":"\u003chidden`) || strings.Contains(before, token) {
		t.Errorf("got %s", before)
	}
	problem := r.expect(http.StatusUnprocessableEntity, http.MethodPut, "/v1/config", `{"log_rate": 0, "connections": 4}`, bearer...)
	if !strings.Contains(problem, "log_rate: got 0, want 1 to ") {
		t.Errorf("got %s", problem)
	}
	problem = r.expect(http.StatusUnprocessableEntity, http.MethodPut, "/v1/config", `{"log_rate": 7, "connections": 4}`, bearer...)
	if !strings.Contains(problem, "connections: got 4, want 1024 as it is: it cannot change") {
		t.Errorf("got %s", problem)
	}
	r.expect(http.StatusUnsupportedMediaType, http.MethodPut, "/v1/config", `{}`, append(bearer, "Content-Type", "text/plain")...)
	r.expect(http.StatusMethodNotAllowed, http.MethodPost, "/v1/config", `{}`, bearer...)
	r.expect(http.StatusBadRequest, http.MethodGet, "/v1/config?key=log_rate", "", bearer...)
	r.expect(http.StatusUnprocessableEntity, http.MethodPut, "/v1/config", `{`, bearer...)
	r.expect(http.StatusBadRequest, http.MethodPut, "/v1/config", `{"a": "`+strings.Repeat("x", maxDocument)+`"}`, bearer...)
	after := r.expect(http.StatusOK, http.MethodPut, "/v1/config", `{"log_rate": 7, "groups": {"serve": {"logging": {"level": "error"}}}}`, bearer...)
	if !strings.Contains(after, `{"key":"log_rate","value":7,"source":"file","place":"the document: log_rate"}`) || !strings.Contains(after, `"changed":"`) ||
		strings.Contains(after, `"refused"`) {
		t.Errorf("got %s", after)
	}
	for path, allow := range map[string]string{"/v1/config": "GET, HEAD, PUT, OPTIONS", "/metrics": "GET, HEAD, OPTIONS", "/healthz": "GET, HEAD, OPTIONS"} {
		for method, status := range map[string]int{http.MethodOptions: http.StatusNoContent, http.MethodPatch: http.StatusMethodNotAllowed} {
			response := r.send(method, path, "", bearer...)
			check(t, response.Body.Close())
			if got := response.Header.Get("Allow"); got != allow || response.StatusCode != status {
				t.Errorf("%s %s: got %s, %q, want %d, %q", method, path, response.Status, got, status, allow)
			}
		}
	}
	r.stop()
	if n := strings.Count(r.notes.String(), "configuration is refused"); n != 3 {
		t.Errorf("got %d refusals in %s", n, r.notes)
	}
}
