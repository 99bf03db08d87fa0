package operate

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/partita-go/partita/cmd/partita/internal/serve"
)

// configured is a process that serves a store by a file.
type configured struct {
	*serving
	process *exec.Cmd
	file    string
	dir     string
	// errors is the file that the process has as its stderr.
	errors string
}

func startConfigured(t *testing.T, content string) *configured {
	t.Helper()
	dir := newStore(t)
	c := &configured{serving: &serving{t: t}, dir: dir, file: filepath.Join(t.TempDir(), "partita.toml")}
	c.write(content)
	c.start("--config", c.file)
	return c
}

// start starts the process, with more arguments, and returns when it takes events.
func (c *configured) start(args ...string) {
	t := c.t
	t.Helper()
	c.process = exec.CommandContext(limit(t), os.Args[0], append([]string{programCommand, "serve", "--json"}, args...)...)
	c.process.Env = append(os.Environ(), "PARTITA_DB="+c.dir, "PARTITA_LISTEN=127.0.0.1:0")
	c.errors = filepath.Join(t.TempDir(), "stderr")
	stderr, err := os.Create(c.errors)
	check(t, err)
	defer stderr.Close()
	c.process.Stderr = stderr
	stdout, err := c.process.StdoutPipe()
	check(t, err)
	check(t, c.process.Start())
	t.Cleanup(func() { kill(c.process) })
	check(t, json.NewDecoder(stdout).Decode(c.serving))
	awaitReady(t, c.URL)
}

func (c *configured) write(content string) {
	c.t.Helper()
	check(c.t, os.WriteFile(c.file, []byte(content), 0o600))
}

// live returns what the server says of its configuration.
func (c *configured) live() (l serve.LiveConfig) {
	c.t.Helper()
	check(c.t, json.Unmarshal([]byte(c.get("/v1/config")), &l))
	return l
}

// hangup sends SIGHUP with a new file, and waits until that was taken over, or refused.
func (c *configured) hangup(content string) serve.LiveConfig {
	c.t.Helper()
	before := c.live()
	c.write(content)
	check(c.t, c.process.Process.Signal(syscall.SIGHUP))
	var now serve.LiveConfig
	awaitThat(c.t, "it does not heed SIGHUP", func() bool {
		now = c.live()
		return now.Refused != before.Refused || !reflect.DeepEqual(now.Changed, before.Changed)
	})
	return now
}

// awaitThat waits until something is done, else it fails with what is the matter.
func awaitThat(t *testing.T, what string, done func() bool) {
	t.Helper()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for ctx := limit(t); !done(); {
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatal(what)
		}
	}
}

// load appends until it is stopped, and then returns how many events were acknowledged.
func (c *configured) load() (stop func() int) {
	var acknowledged atomic.Int64
	var all sync.WaitGroup
	done := make(chan struct{})
	for ws := range 4 {
		all.Go(func() {
			url := fmt.Sprintf("%s/v1/workspaces/%d/events", c.URL, 4+ws)
			for {
				select {
				case <-done:
					return
				default:
				}
				response, err := http.Post(url, "application/json", strings.NewReader(`{"kind": 1}`))
				if err != nil {
					c.t.Error(err)
					return
				}
				_ = response.Body.Close()
				switch response.StatusCode {
				case http.StatusCreated:
					acknowledged.Add(1)
				case http.StatusServiceUnavailable: // a lane of one request is full
				default:
					c.t.Errorf("got %s", response.Status)
					return
				}
			}
		})
	}
	return func() int {
		close(done)
		all.Wait()
		http.DefaultClient.CloseIdleConnections()
		return int(acknowledged.Load())
	}
}

// TestConfigWhileItRuns: a process takes dumps, log levels, keys of metrics, settings and bounds of lanes from its file, at
// SIGHUP and by request, under load; what is refused changes nothing; no append that was acknowledged is lost.
func TestConfigWhileItRuns(t *testing.T) {
	dump := filepath.Join(t.TempDir(), "messages.dump")
	first := fmt.Sprintf("dump = %q\ndump_groups = []\n", dump)
	c := startConfigured(t, first)
	stop := c.load()

	c.hangup(strings.Replace(first, "[]", `["partition"]`, 1) + `
[settings]
flush_interval = "50ms"
transaction_limit = "9s"
[application]
request_lane = 77
[groups.partition.telemetry]
keys = true
[groups.serve.logging]
level = "error"
`)
	awaitThat(t, "nothing is dumped", func() bool {
		text, err := os.ReadFile(dump)
		check(t, err)
		return strings.Contains(string(text), `"g":"partition"`)
	})
	page := c.get("/metrics")
	for _, want := range []string{
		`partita_lane_limit_requests{actor_group="partition",application="shops"} 77`, `actor_group="partition",actor_key="1"`,
	} {
		if !strings.Contains(page, want) {
			t.Errorf("want %s in %s", want, page)
		}
	}
	if text, err := os.ReadFile(dump); err != nil || strings.Contains(string(text), `"g":"appender"`) {
		t.Errorf("more is dumped than was asked for, or %v", err)
	}

	// One wrong setting, and one that cannot change: nothing changes, not even what could.
	before := c.live().Settings
	now := c.hangup(first + "log_level = \"debug\"\nconnections = 9\n")
	if !reflect.DeepEqual(now.Settings, before) || !strings.Contains(now.Refused, "connections: got 9, want 1024 as it is: it cannot change while the server runs, since") {
		t.Errorf("got %+v", now)
	}
	now = c.hangup(first + "log_level = \"debug\"\n[settings]\nflush_threshold = -1\n")
	if !reflect.DeepEqual(now.Settings, before) || !strings.Contains(now.Refused, c.file+": settings.flush_threshold: ") {
		t.Errorf("got %+v", now)
	}
	if page := c.get("/metrics"); !strings.Contains(page, `} 77`) {
		t.Error("a configuration that was refused has changed the lanes")
	}

	c.apply(first)
	if text := c.stderrText(); strings.Contains(text, "configuration was taken over") || strings.Count(text, "configuration is refused, nothing has changed") != 4 {
		// The group serve writes errors only.
		t.Errorf("got %s", text)
	}
	acknowledged := stop()
	kill(c.process)
	if acknowledged == 0 {
		t.Error("there was no load")
	}
	run(t, "verify", "--db", c.dir).has(t, exitFine)
	const there = 5 // of the store as it was made
	if got := strings.Count(run(t, "log", "--db", c.dir, "--json").has(t, exitFine).stdout, "\n"); got != acknowledged+there {
		t.Errorf("got %d events, want %d", got, acknowledged+there)
	}
}

// stderrText returns what the server has written: each line before it answers about the configuration.
func (c *configured) stderrText() string {
	c.t.Helper()
	text, err := os.ReadFile(c.errors)
	check(c.t, err)
	return string(text)
}

// apply gives the server files by request: one that is refused, and one that is taken.
func (c *configured) apply(content string) {
	c.t.Helper()
	other := filepath.Join(c.t.TempDir(), "other.yaml")
	check(c.t, os.WriteFile(other, []byte("connections: 9\nlog_rate: 5\n"), 0o600))
	run(c.t, "config", "apply", other, "--url", c.URL).fails(c.t, exitBlind, "The configuration is refused", "connections: got", "it cannot change while the server runs")
	check(c.t, os.WriteFile(other, []byte("log_rate: [5]\n"), 0o600))
	run(c.t, "config", "apply", other, "--url", c.URL).fails(c.t, exitBlind, "the document: log_rate: got [5], want 1 to 1000000000")
	taken := filepath.Join(c.t.TempDir(), "taken.toml")
	check(c.t, os.WriteFile(taken, []byte(content+"log_rate = 5\n[groups.serve.logging]\nlevel = \"error\"\n[application]\nrequest_lane = 3\n"), 0o600))
	run(c.t, "config", "apply", taken, "--url", c.URL).has(c.t, exitFine)
	shown := run(c.t, "config", "show", "--url", c.URL).has(c.t, exitFine).stdout
	for _, want := range []string{"application.request_lane 3 ", "log_rate 5 the document: log_rate", "PARTITA_LISTEN"} {
		if !strings.Contains(strings.Join(strings.Fields(shown), " "), want) {
			c.t.Errorf("want %s in %s", want, shown)
		}
	}
}

// TestConfigShowAndCheck: what serve would do is shown; what is wrong is told before it does it.
func TestConfigShowAndCheck(t *testing.T) {
	dir := t.TempDir()
	good, bad := filepath.Join(dir, "good.json"), filepath.Join(dir, "bad.toml")
	check(t, os.WriteFile(good, []byte(`{"token": "a-token-of-24-characters", "log_level": "info"}`), 0o600))
	check(t, os.WriteFile(bad, []byte("listen = \"0.0.0.0:80\"\n"), 0o600))
	t.Setenv("PARTITA_CONNECTIONS", "9")
	o := run(t, "config", "show", "--config", good, "--log-format", "json", "--json").has(t, exitFine)
	var result configResult
	check(t, json.Unmarshal([]byte(o.stdout), &result))
	if strings.Contains(o.stdout, "a-token") {
		t.Errorf("the token is shown: %s", o.stdout)
	}
	got := make(map[string]string)
	for _, s := range result.Settings {
		got[s.Key] = fmt.Sprint(s.Value, " ", s.Source, " ", s.Place)
	}
	for key, want := range map[string]string{
		"token": "<hidden> file " + good + ": token", "log_level": "info file " + good + ": log_level", "connections": "9 environment PARTITA_CONNECTIONS",
		"log_format": "json flag --log-format", "listen": "127.0.0.1:7420 default ", "settings.flush_interval": "500ms default ",
	} {
		if got[key] != want {
			t.Errorf("%s: got %s, want %s", key, got[key], want)
		}
	}
	if text := run(t, "config", "show").has(t, exitFine).stdout; !strings.Contains(text, "settings.flush_threshold") || !strings.Contains(text, "PARTITA_CONNECTIONS") {
		t.Errorf("got %s", text)
	}
	run(t, "config", "check", good).has(t, exitFine)
	run(t, "config", "check", bad).fails(t, exitBlind, "needs a certificate and a token")
	run(t, "config", "check", bad+"x").fails(t, exitBlind, "want a file whose name ends with")
	run(t, "config", "check", good, bad).fails(t, exitBlind, "got 2 files, want one")
	run(t, "serve", "--config", bad, "--db", "x").fails(t, exitBlind, "needs a certificate and a token")
	t.Setenv("PARTITA_CONNECTIONS", "3")
	run(t, "config", "show").fails(t, exitBlind, "PARTITA_CONNECTIONS: got 3, want 4 to 1048576")
}

// TestDumpWhileItRuns: a server that began without a dump and without trace ids gets both from its file, at once; the dump
// changes its file, and ends. What is no file for a dump is refused, and changes nothing.
func TestDumpWhileItRuns(t *testing.T) {
	c := startConfigured(t, "")
	dir := t.TempDir()
	first, second := filepath.Join(dir, "first.dump"), filepath.Join(dir, "second.dump")
	write := func() (trace string) {
		response, err := http.Post(c.URL+"/v1/workspaces/5/events", "application/json", strings.NewReader(`{"kind": 1}`))
		check(t, err)
		check(t, response.Body.Close())
		if response.StatusCode != http.StatusCreated {
			t.Fatalf("got %v", response.Status)
		}
		return response.Header.Get("Partita-Trace")
	}
	if got := write(); got != "" {
		t.Errorf("got trace %s of a server that gives none", got)
	}
	now := c.hangup(fmt.Sprintf("dump = %q\nlog_rate = 5\n", dir))
	if !strings.Contains(now.Refused, "dump: not a file for a dump: "+dir+": got a directory, want a regular file") || now.Changed != nil {
		t.Errorf("got %+v", now)
	}
	c.hangup(fmt.Sprintf("trace_node = 7\ndump = %q\n", first))
	trace := write()
	if trace == "" {
		t.Error("got no trace")
	}
	c.hangup(fmt.Sprintf("trace_node = 7\ndump = %q\ndump_memory = 3\n", second))
	write()
	now = c.hangup("log_rate = 7\n")
	if !strings.Contains(now.Refused, "trace_node: got <nil>, want 7 as it is: it cannot change while the server runs, since ids of traces were given with it") {
		t.Errorf("got %+v", now)
	}
	c.hangup("trace_node = 7\n")
	write()
	check(t, c.process.Process.Signal(syscall.SIGTERM))
	check(t, c.process.Wait())
	for path, others := range map[string]string{first: trace, second: ""} {
		text, err := os.ReadFile(path)
		check(t, err)
		if got := strings.Count(string(text), `"g":"partition","k":"1","n":7,`); got < 2 || strings.Count(string(text), `"d":"In","cl":"runtime","mn":"Append"`) != 1 {
			t.Errorf("%s: got %s, want one append of node 7", path, text)
		}
		if !strings.Contains(string(text), others) {
			t.Errorf("%s: got %s, want trace %s", path, text, others)
		}
	}
}
