package operate

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/partita-go/partita/ids"
)

// served waits for the line with which serve says where it listens.
type served struct {
	bytes.Buffer
	line chan string
}

func (s *served) Write(b []byte) (int, error) {
	n, err := s.Buffer.Write(b)
	if strings.HasSuffix(s.String(), "}\n") {
		s.line <- s.String()
	}
	return n, err
}

// serving is a store that is served.
type serving struct {
	Command, Store, Application, URL string

	t      *testing.T
	stderr bytes.Buffer
	cancel context.CancelFunc
	ended  chan int
}

func startServe(t *testing.T, dir string, args ...string) *serving {
	t.Helper()
	ctx, cancel := context.WithCancel(limit(t))
	s := &serving{t: t, cancel: cancel, ended: make(chan int, 1)}
	t.Cleanup(cancel)
	stdout := &served{line: make(chan string, 1)}
	go func() {
		all := append([]string{"serve", "--db", dir, "--listen", "127.0.0.1:0", "--json"}, args...)
		s.ended <- Run(ctx, all, strings.NewReader(""), stdout, &s.stderr)
	}()
	select {
	case line := <-stdout.line:
		check(t, json.Unmarshal([]byte(line), s))
	case status := <-s.ended:
		t.Fatalf("got status %d, %s", status, &s.stderr)
	}
	return s
}

// stop interrupts the server, which must end cleanly.
func (s *serving) stop() {
	s.t.Helper()
	s.cancel()
	status := <-s.ended
	// The events of these stores are years old.
	told := slices.DeleteFunc(slices.Collect(strings.Lines(s.stderr.String())), func(line string) bool {
		return strings.Contains(line, "clock is far ahead")
	})
	if status != exitFine || len(told) > 0 {
		s.t.Errorf("got status %d, %q", status, told)
	}
}

// TestServe: the store is served until an interrupt, to those who have the token of the file
// or of the environment.
func TestServe(t *testing.T) {
	const token = "a-token-of-24-characters"
	file := filepath.Join(t.TempDir(), "token")
	check(t, os.WriteFile(file, []byte(token+"\n"), 0o600))
	for name, args := range map[string][]string{"file": {"--token-file", file}, "environment": nil} {
		t.Run(name, func(t *testing.T) {
			if args == nil {
				t.Setenv(tokenVariable, token)
			}
			dir := newStore(t)
			server := startServe(t, dir, args...)
			if server.Command != "serve" || server.Store != dir || server.Application != "shops" {
				t.Errorf("got %+v", server)
			}
			for authorization, want := range map[string]int{"Bearer " + token: http.StatusOK, "Bearer " + token + "x": http.StatusUnauthorized, "": http.StatusUnauthorized} {
				if got := askServer(t, server.URL+"/v1/workspaces/4/log", authorization); got != want {
					t.Errorf("with %q: got %d, want %d", authorization, got, want)
				}
			}
			awaitReady(t, server.URL)
			server.stop()
			run(t, "verify", "--db", dir).has(t, exitFine)
		})
	}
}

// awaitReady waits until every partition takes events: a stop before that is not clean.
func awaitReady(t *testing.T, url string) {
	t.Helper()
	awaitThat(t, "it was never ready", func() bool { return askServer(t, url+"/readyz", "") == http.StatusOK })
}

// get returns what a server that is served answers.
func (s *serving) get(path string) string {
	s.t.Helper()
	request, err := http.NewRequestWithContext(limit(s.t), http.MethodGet, s.URL+path, nil)
	check(s.t, err)
	response, err := http.DefaultClient.Do(request)
	check(s.t, err)
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	check(s.t, err)
	if response.StatusCode != http.StatusOK {
		s.t.Fatalf("%s: got %s: %s", path, response.Status, text)
	}
	return string(text)
}

func askServer(t *testing.T, url, authorization string) int {
	t.Helper()
	client := &http.Client{Transport: &http.Transport{}}
	defer client.CloseIdleConnections()
	request, err := http.NewRequestWithContext(limit(t), http.MethodGet, url, nil)
	check(t, err)
	request.Header.Set("Authorization", authorization)
	response, err := client.Do(request)
	check(t, err)
	check(t, response.Body.Close())
	return response.StatusCode
}

// TestServeToken: a file without a token is no permission for everybody.
func TestServeToken(t *testing.T) {
	file := filepath.Join(t.TempDir(), "token")
	check(t, os.WriteFile(file, []byte(" \n"), 0o600))
	run(t, "serve", "--db", "x", "--token-file", file).fails(t, exitBlind, "there is no token in it")
	run(t, "serve", "--db", "x", "--token-file", file+"x").fails(t, exitBlind, "no such file")
	t.Setenv(tokenVariable, "short")
	run(t, "serve", "--db", "x").fails(t, exitBlind, "token: got 5 bytes, want at least 16")
}

// TestServeTokenNobodyCanSend is refused at the start.
func TestServeTokenNobodyCanSend(t *testing.T) {
	file := filepath.Join(t.TempDir(), "token")
	for _, token := range []string{"a token with spaces in it", "a-token-that-has-a\nline-end", "ein-geheimes-Wort-für-alle"} {
		check(t, os.WriteFile(file, []byte(token), 0o600))
		run(t, "serve", "--db", "x", "--token-file", file).fails(t, exitBlind, "no client can send")
	}
}

// TestServeTraces: what comes to a server that gives traces has one.
func TestServeTraces(t *testing.T) {
	for _, wrong := range []string{"", "-1", "65536", "x"} {
		run(t, "serve", "--db", t.TempDir(), "--trace-node", wrong).has(t, exitBlind)
	}
	dir := newStore(t)
	server := startServe(t, dir, "--trace-node", "7")
	awaitReady(t, server.URL)
	client := &http.Client{Transport: &http.Transport{}}
	defer client.CloseIdleConnections()
	request, err := http.NewRequestWithContext(limit(t), http.MethodPost, server.URL+"/v1/workspaces/6/events", strings.NewReader(`{"kind": 1}`))
	check(t, err)
	request.Header.Set("Content-Type", "application/json")
	response, err := client.Do(request)
	check(t, err)
	check(t, response.Body.Close())
	trace := response.Header.Get("Partita-Trace")
	if id, err := ids.ParseTraceID(trace); response.StatusCode != http.StatusCreated || err != nil || id.Node() != 7 {
		t.Errorf("got %s, trace %q", response.Status, trace)
	}
	server.stop()
	if o := run(t, "log", "--db", dir, "--trace", trace, "--json").has(t, exitFine); o.json(t)["trace"] != trace || o.json(t)["workspace"] != "6" {
		t.Errorf("got %s", o.stdout)
	}
}

// TestServeLogs: lines from the level on, in the format that was asked for, and counted.
func TestServeLogs(t *testing.T) {
	server := startServe(t, newStore(t), "--log-level", "info", "--log-format", "json")
	awaitReady(t, server.URL)
	// A partition is seen ready before its line is counted.
	want := `partita_emitted_events_total{actor_group="partition",level="info"} 2`
	awaitThat(t, "want "+want, func() bool { return strings.Contains(server.get("/metrics"), want+"\n") })
	server.cancel()
	if status := <-server.ended; status != exitFine {
		t.Errorf("got status %d, %s", status, &server.stderr)
	}
	told := 0
	for line := range strings.Lines(server.stderr.String()) {
		var l struct{ Level, Logger, Msg, Actor string }
		check(t, json.Unmarshal([]byte(line), &l))
		if l.Level == "info" && l.Logger == "shops.partition" && l.Msg == "partition is normal" && strings.HasPrefix(l.Actor, "partition/") {
			told++
		}
	}
	if told != 2 {
		t.Errorf("got %s", &server.stderr)
	}
	run(t, "serve", "--db", "x", "--log-level", "loud").fails(t, exitBlind, "log-level", "want debug, info, warn or error")
	run(t, "serve", "--db", "x", "--log-format", "xml").fails(t, exitBlind, "log-format", "want console or json")
}

// TestServeStoppedEarly: a stop before anything was done is clean and says nothing, be it before the store is open or
// before a partition takes events.
func TestServeStoppedEarly(t *testing.T) {
	ctx, cancel := context.WithCancel(limit(t))
	cancel()
	var stdout, stderr bytes.Buffer
	if status := Run(ctx, []string{"serve", "--db", newStore(t), "--listen", "127.0.0.1:0"}, strings.NewReader(""), &stdout, &stderr); status != exitFine || stderr.Len() > 0 {
		t.Errorf("got status %d, %q", status, &stderr)
	}
	dir := newStore(t)
	for range 10 {
		startServe(t, dir).stop()
	}
	run(t, "verify", "--db", dir).has(t, exitFine)
}
