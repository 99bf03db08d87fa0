package operate

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// runPython runs a program beside a file of examples, and returns the last line that it prints.
func runPython(t *testing.T, program string, args ...string) string {
	t.Helper()
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("python3 is missing: the client for Python is not tested")
	}
	c := exec.CommandContext(limit(t), python, append([]string{"-c", program}, args...)...)
	c.Stderr = t.Output()
	out, err := c.Output()
	check(t, err)
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	return lines[len(lines)-1]
}

// pythonAppend appends once and prints what becomes of it.
const pythonAppend = `
import sys
sys.path.insert(0, sys.argv[1])
import partita
try:
    partita.Client(sys.argv[2]).append(4, {"kind": 1})
    print("done")
except Exception as e:
    print(type(e).__name__, getattr(e.__cause__, "status", ""))
`

// TestPythonClientOutcome: when a first try may have been written, only a refusal that comes from behind the search for its
// key says that it was not.
func TestPythonClientOutcome(t *testing.T) {
	const unknown = `{"type":"x#outcome-unknown","title":"Unknown","status":500,"detail":"d","error":"messages.ErrOutcomeUnknown"}`
	problem := func(status int, kind, name string) string {
		return `{"type":"x#` + kind + `","title":"T","status":` + strconv.Itoa(status) + `,"detail":"d","error":"` + name + `"}`
	}
	for _, tt := range []struct {
		first  int
		status int
		body   string
		want   string
	}{
		{500, 403, "<html>", "Unknown 403"},
		{500, 401, `{"type":"x#unauthorized","title":"Token","status":401,"detail":"d"}`, "Unknown 401"},
		{500, 422, problem(422, "invalid-event", "messages.ErrUnknownKind"), "Unknown 422"},
		{500, 409, problem(409, "kind-mismatch", "messages.ErrKindMismatch"), "Problem"},
		{500, 409, problem(409, "record-exists", "storage.ErrConflict"), "Problem"},
		{503, 403, "<html>", "Problem"}, // the first one was not written
	} {
		var mu sync.Mutex
		tries := 0
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			mu.Lock()
			defer mu.Unlock()
			_, _ = io.Copy(io.Discard, r.Body)
			status, body := tt.status, tt.body
			if tries++; tries == 1 {
				status, body = tt.first, unknown
				if tt.first == http.StatusServiceUnavailable {
					body = problem(503, "busy", "messages.ErrBusy")
				}
			}
			w.WriteHeader(status)
			_, _ = io.WriteString(w, body)
		}))
		if got := runPython(t, pythonAppend, root+"examples/python", s.URL); strings.TrimSpace(got) != tt.want || tries != 2 {
			t.Errorf("%d, then %d %s: got %q after %d tries, want %q", tt.first, tt.status, tt.body, got, tries, tt.want)
		}
		s.Close()
	}
}

// pythonToken prints what a client says of URLs when it has a token.
const pythonToken = `
import sys
sys.path.insert(0, sys.argv[1])
import partita
said = []
for url in sys.argv[2:]:
    try:
        partita.Client(url, token="t" * 24)
        said.append("y")
    except ValueError:
        said.append("n")
partita.Client(sys.argv[2])
print("".join(said))
`

// TestPythonClientToken: the client for Python sends no token where others can read it.
func TestPythonClientToken(t *testing.T) {
	urls := []string{"http://shop.example:7420", "http://192.0.2.1", "http://localhost.evil.example", "http://", "https://shop.example", "http://localhost:7420", "http://127.3.2.1", "http://[::1]:7420"}
	want := "nnnnyyyy"
	if got := runPython(t, pythonToken, append([]string{root + "examples/python"}, urls...)...); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// pythonPatience prints how long the poller waits for an answer, and how long it lets the server hold that.
const pythonPatience = `
import re, sys
sys.path.insert(0, sys.argv[1])
import poller
class Client:
    def __init__(self, url, token=None, timeout=30.0):
        self.timeout = timeout
    def get(self, path, deadline):
        print(self.timeout > float(re.search("wait=([0-9]+)", path)[1]) + 5)
        sys.exit()
poller.Client = Client
poller.main("http://localhost:1", ":memory:", False)
`

// TestAuditPollerPatience: the poller does not give an answer up that the server holds until there is an event.
func TestAuditPollerPatience(t *testing.T) {
	if got := runPython(t, pythonPatience, root+"examples/audit"); got != "True" {
		t.Errorf("got %s", got)
	}
}
