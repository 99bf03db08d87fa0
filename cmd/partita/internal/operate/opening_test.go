package operate

import (
	"encoding/json"
	"io"
	"math"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/partita-go/partita/storage"
	"github.com/partita-go/partita/storage/bolt"
)

// freeAddress returns an address of this machine on which nobody listens.
func freeAddress(t testing.TB) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	check(t, err)
	defer l.Close()
	return l.Addr().String()
}

// process is the program in a process of its own.
func process(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	p := exec.CommandContext(limit(t), os.Args[0], append([]string{programCommand}, args...)...)
	p.Stderr = t.Output()
	return p
}

// ends interrupts a program, which must end well.
func ends(t *testing.T, p *exec.Cmd) {
	t.Helper()
	check(t, p.Process.Signal(syscall.SIGTERM))
	check(t, p.Wait())
}

// answered is what a server answers.
type answered struct {
	status int
	header http.Header
	body   string
}

// asked asks a server until it listens.
func asked(t testing.TB, method, url string) answered {
	t.Helper()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	for ctx := limit(t); ; {
		request, err := http.NewRequestWithContext(ctx, method, url, nil)
		check(t, err)
		response, err := client.Do(request)
		if err != nil {
			check(t, ctx.Err())
			continue
		}
		defer response.Body.Close()
		body, err := io.ReadAll(response.Body)
		check(t, err)
		return answered{response.StatusCode, response.Header, string(body)}
	}
}

// TestServeAnswersWhileItOpens: a server whose store does not open yet says that it lives, and what it does, to
// whoever asks for anything. When the store is open it serves it.
func TestServeAnswersWhileItOpens(t *testing.T) {
	dir, address := newStore(t), freeAddress(t)
	release := holds(t, dir)
	config := filepath.Join(t.TempDir(), "partita.toml")
	check(t, os.WriteFile(config, []byte("[store]\nlock_timeout = \"2m\"\n"), 0o600))
	server := process(t, "serve", "--config", config, "--db", dir, "--listen", address)
	check(t, server.Start())
	url := "http://" + address
	if got := asked(t, http.MethodGet, url+"/healthz"); got.status != http.StatusOK || got.body != `{"status":"ok"}` {
		t.Errorf("got %+v", got)
	}
	for path, method := range map[string]string{
		"/readyz": http.MethodGet, "/v1/workspaces/4/log": http.MethodGet, "/v1/workspaces/4/events": http.MethodPost, "/metrics": http.MethodGet,
		"/nowhere": http.MethodGet,
	} {
		got := asked(t, method, url+path)
		var p struct{ Type, Detail string }
		check(t, json.Unmarshal([]byte(got.body), &p))
		if got.status != http.StatusServiceUnavailable || got.header.Get("Content-Type") != "application/problem+json" ||
			got.header.Get("Retry-After") != "1" || !strings.HasSuffix(p.Type, "#not-ready") || p.Detail != "opening the store" {
			t.Errorf("%s: got %+v", path, got)
		}
	}
	run(t, "health", "--url", url).has(t, exitFine)
	run(t, "health", "--url", url, "--ready").fails(t, exitBlind, "opening the store")
	release()
	awaitReady(t, url)
	if got := asked(t, http.MethodGet, url+"/v1/workspaces/4/log"); got.status != http.StatusOK {
		t.Errorf("got %+v", got)
	}
	ends(t, server)
}

// TestServeTellsHowFarItIs: a service manager hears what a start does that takes long, is asked for time each time, and
// is told that it is ready only then.
func TestServeTellsHowFarItIs(t *testing.T) {
	dir := newStore(t)
	fill(t, dir, 30_000)
	remove(t, dir, "state.db")
	told := newManager(t)
	server := process(t, "serve", "--db", dir, "--listen", "127.0.0.1:0")
	server.Env = append(os.Environ(), "NOTIFY_SOCKET="+told.name)
	check(t, server.Start())
	var all []string
	for len(all) == 0 || !strings.HasPrefix(all[len(all)-1], "READY=1") {
		all = append(all, told.next())
	}
	before := all[:len(all)-1]
	isRebuilt := func(s string) bool { return strings.HasPrefix(s, "STATUS=rebuilding state.db: ") }
	for _, s := range before {
		if !strings.HasPrefix(s, "STATUS=") || !strings.HasSuffix(s, "\nEXTEND_TIMEOUT_USEC=120000000") {
			t.Errorf("got %q", s)
		}
	}
	if !strings.HasPrefix(all[0], "STATUS=opening the store\n") || !slices.ContainsFunc(before, isRebuilt) {
		t.Errorf("got %q", all)
	}
	ends(t, server)
	run(t, "verify", "--db", dir).has(t, exitFine)
}

// fill appends so many events of workspace 6, which nothing is told of but the log.
func fill(t testing.TB, dir string, events int) {
	t.Helper()
	s, err := bolt.OpenExisting(limit(t), dir, bolt.Options{TailEvents: math.MaxInt32, Memory: 8 << 30}) // nothing is flushed
	check(t, err)
	const ws = 6
	r, err := s.TakeEpoch(limit(t), 0)
	check(t, err)
	for n := 1; n <= events; {
		b := storage.Batch{Partition: 0, Epoch: r.Epoch}
		for ; len(b.Events) < 5000 && n <= events; n++ {
			e := event(ws, n)
			e.Epoch, e.PLogOffset, e.RegisteredAt = r.Epoch, r.Last+1, e.RegisteredAt+10
			b.Events = append(b.Events, e)
			r.Last++
		}
		check(t, s.Append(limit(t), b))
	}
	check(t, s.Close(limit(t)))
}

// serviceManager is one that hears what a service tells.
type serviceManager struct {
	t    *testing.T
	name string
	conn *net.UnixConn
}

func newManager(t *testing.T) *serviceManager {
	t.Helper()
	dir, err := os.MkdirTemp("", "n") //nolint:usetesting // the name of a socket must be short
	check(t, err)
	t.Cleanup(func() { check(t, os.RemoveAll(dir)) })
	m := &serviceManager{t: t, name: filepath.Join(dir, "s")}
	m.conn, err = net.ListenUnixgram("unixgram", &net.UnixAddr{Name: m.name, Net: "unixgram"})
	check(t, err)
	t.Cleanup(func() { _ = m.conn.Close() })
	deadline, _ := limit(t).Deadline()
	check(t, m.conn.SetReadDeadline(deadline))
	return m
}

// next returns what it was told next.
func (m *serviceManager) next() string {
	m.t.Helper()
	b := make([]byte, 1000)
	n, err := m.conn.Read(b)
	check(m.t, err)
	return string(b[:n])
}

// post sends JSON to a server, and returns what it answers.
func post(t *testing.T, url, body string) (status int, answer string) {
	t.Helper()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	request, err := http.NewRequestWithContext(limit(t), http.MethodPost, url, strings.NewReader(body))
	check(t, err)
	request.Header.Set("Content-Type", "application/json")
	response, err := client.Do(request)
	check(t, err)
	defer response.Body.Close()
	content, err := io.ReadAll(response.Body)
	check(t, err)
	return response.StatusCode, string(content)
}
