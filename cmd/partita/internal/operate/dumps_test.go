package operate

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/partita-go/partita/cmd/partita/internal/serve"
)

// append appends an event to a workspace of a store that is served.
func (s *serving) append(ws int) {
	s.t.Helper()
	url := fmt.Sprintf("%s/v1/workspaces/%d/events", s.URL, ws)
	for { // it may not be ready yet
		request, err := http.NewRequestWithContext(limit(s.t), http.MethodPost, url, strings.NewReader(`{"kind": 1, "body": "attack at dawn"}`))
		check(s.t, err)
		request.Header.Set("Content-Type", "application/json")
		response, err := http.DefaultClient.Do(request)
		check(s.t, err)
		check(s.t, response.Body.Close())
		switch response.StatusCode {
		case http.StatusCreated:
			return
		case http.StatusServiceUnavailable, http.StatusTooManyRequests:
		default:
			s.t.Fatalf("got %s", response.Status)
		}
	}
}

// TestServeDumps: serve writes what its actors get and send; SIGHUP opens the file anew, and does not end it. What is
// in both files is found, joined and without a hole.
func TestServeDumps(t *testing.T) {
	path := filepath.Join(t.TempDir(), "messages.dump")
	s := startServe(t, newStore(t), "--dump", path, "--log-level", "error")
	s.append(4)
	moved := path + ".1"
	check(t, os.Rename(path, moved))
	check(t, syscall.Kill(os.Getpid(), syscall.SIGHUP))
	awaitFile(t, path)
	s.append(4)
	s.stop()
	for _, name := range []string{path, moved} {
		text, err := os.ReadFile(name)
		check(t, err)
		if strings.Contains(string(text), "attack") || !strings.Contains(string(text), "<hidden>") {
			t.Errorf("%s: got %s", name, text)
		}
	}
	o := run(t, "dumps", path, moved, "--holes").has(t, exitFine)
	if !strings.Contains(o.stdout, " 0 numbers are missing in 0 holes") {
		t.Errorf("got %s", o.stdout)
	}
	o = run(t, "dumps", path, moved, "--join", "--workspace", "4", "--group", "partition", "--json").has(t, exitFine)
	appends := 0
	for line := range strings.Lines(o.stdout) {
		var e exchangeResult
		check(t, json.Unmarshal([]byte(strings.Replace(line, `"took":`, `"-":`, 1)), &e))
		if e.Request.Message == "Append" {
			appends++
			if e.Response == nil || e.Response.Message != "Appended" || !strings.Contains(line, `"took":0.`) {
				t.Errorf("got %s", line)
			}
		}
	}
	if appends != 2 {
		t.Errorf("got %d appends in %s", appends, o.stdout)
	}
}

// TestDumpsReopen: who asks a server has it open its dump anew, over the socket and by its URL; without a dump, or a server,
// that is told.
func TestDumpsReopen(t *testing.T) {
	path := filepath.Join(t.TempDir(), "messages.dump")
	dir := newStore(t)
	s := startServe(t, dir, "--dump", path, "--log-level", "error")
	for i, args := range [][]string{{"--db", dir}, {"--url", s.URL}} {
		s.append(4)
		check(t, os.Rename(path, fmt.Sprint(path, ".", i)))
		o := run(t, append([]string{"dumps", "reopen"}, args...)...).has(t, exitFine)
		if o.stdout != path+": opened anew\n" {
			t.Errorf("got %s", o.stdout)
		}
		if _, err := os.Stat(path); err != nil {
			t.Error(err)
		}
	}
	if got := asked(t, http.MethodGet, s.URL+serve.OperationsPath+serve.ReopenDump); got.status != http.StatusMethodNotAllowed || got.header.Get("Allow") != "POST" {
		t.Errorf("got %+v", got)
	}
	reopen := s.URL + serve.OperationsPath + serve.ReopenDump
	if got := asked(t, http.MethodPost, reopen); got.status != http.StatusUnsupportedMediaType { // as any web page could ask
		t.Errorf("got %+v", got)
	}
	post := func(u string, want int, words string) {
		t.Helper()
		response, err := http.Post(u, "application/json; charset=utf-8", strings.NewReader("{}"))
		check(t, err)
		defer response.Body.Close()
		if text, err := io.ReadAll(response.Body); err != nil || response.StatusCode != want || !strings.Contains(string(text), words) {
			t.Errorf("got %s, %s, %v, want %d", response.Status, text, err, want)
		}
	}
	post(reopen+"?x=1", http.StatusBadRequest, "got 1 parameters")
	check(t, os.Rename(path, path+".2"))
	check(t, os.Mkdir(path, 0o700))
	post(reopen, http.StatusConflict, path+": got a directory, want a regular file")
	check(t, os.Remove(path))
	check(t, os.Rename(path+".2", path))
	s.stop()
	if o := run(t, "dumps", path, path+".0", path+".1", "--holes").has(t, exitFine); !strings.Contains(o.stdout, " 0 numbers are missing in 0 holes") {
		t.Errorf("got %s", o.stdout)
	}
	run(t, "dumps", "reopen", "--db", dir).fails(t, exitBlind, "no server has the store open")
	without := startServe(t, dir)
	run(t, "dumps", "reopen", "--db", dir).fails(t, exitBlind, "no messages are dumped")
	without.stop()
}

func awaitFile(t *testing.T, path string) {
	t.Helper()
	awaitThat(t, "it was never opened", func() bool {
		_, err := os.Stat(path)
		if err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
		return err == nil
	})
}

// dumpLine is a line of a dump, some seconds after noon.
func dumpLine(second, number int, rest string) string {
	return fmt.Sprintf(`{"ts":"2026-11-23T12:00:%02dZ","g":"partition","k":"0","s":%d,"mp":"messages",%s}`+"\n", second, number, rest)
}

var dumped = []string{
	dumpLine(1, 1, `"d":"In","mn":"Append","mk":"Request","m":{"Workspace":4},"c":7`),
	dumpLine(3, 4, `"d":"Out","mn":"Appended","mk":"Response","m":{"PLogOffset":1},"c":7`),
	dumpLine(2, 2, `"d":"In","mn":"Start","mk":"Request","t":"0000000000000009","m":{"Workspace":5,"Evil":"\u001b[2J"},"c":8`),
}

// TestDumps: text in order of time, files that are packed, and lines that are none.
func TestDumps(t *testing.T) {
	dir := t.TempDir()
	plain, packed := filepath.Join(dir, "dump"), filepath.Join(dir, "dump.gz")
	check(t, os.WriteFile(plain, []byte(dumped[1]+"{\n"+dumped[2]), 0o600))
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	_, err := z.Write([]byte(dumped[0]))
	check(t, err)
	check(t, z.Close())
	check(t, os.WriteFile(packed, b.Bytes(), 0o600))
	old := time.Now().Add(-time.Hour)
	check(t, os.Chtimes(packed, old, old))
	o := run(t, "dumps", plain, packed).has(t, exitFine)
	want := `2026-11-23T12:00:01.000000Z  partition/0  #1  In Request Append  {"Workspace":4}
2026-11-23T12:00:02.000000Z  partition/0  #2  In Request Start  trace 0000000000000009  {"Workspace":5,"Evil":"\u001b[2J"}
2026-11-23T12:00:03.000000Z  partition/0  #4  Out Response Appended  {"PLogOffset":1}
`
	if o.stdout != want || !strings.Contains(o.stderr, "dump: line 2: not a line of a dump") {
		t.Errorf("got %s, stderr %s", o.stdout, o.stderr)
	}
	for args, want := range map[string]string{
		"--join --workspace 4":            "→ Appended after 2s",
		"--join --trace 0000000000000009": "→ no answer",
		"--holes":                         "partition: #3 to #3, 1 lines, between",
		"--workspace 4 --json":            `"mn":"Appended","mp":"messages","mk":"Response","m":{"PLogOffset":1},"c":7}`,
		"--holes --json":                  `{"group":"partition","first":3,"last":3,"count":1,`,
		"--message Start":                 "#2  In",
		"--from 2026-11-23T12:00:03Z --to 2026-11-23T12:00:04Z": "#4  Out",
	} {
		o := run(t, append([]string{"dumps", plain, packed}, strings.Fields(args)...)...).has(t, exitFine)
		if !strings.Contains(o.stdout, want) {
			t.Errorf("%s: got %s", args, o.stdout)
		}
	}
	run(t, "dumps", packed, packed, "--limit", "1").fails(t, exitBlind, "more than 1 messages")
	run(t, "dumps", filepath.Join(dir, "none")).fails(t, exitBlind, fs.ErrNotExist.Error()[:4])
}

// written is what a command has written by now.
type written struct {
	mu   sync.Mutex
	text strings.Builder
	some chan struct{}
}

func (w *written) Write(b []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	select {
	case w.some <- struct{}{}:
	default:
	}
	return w.text.Write(b)
}

// await waits until so many lines are there.
func (w *written) await(t *testing.T, lines int) {
	t.Helper()
	for ctx := limit(t); ; {
		w.mu.Lock()
		n := strings.Count(w.text.String(), "\n")
		w.mu.Unlock()
		if n >= lines {
			return
		}
		select {
		case <-w.some:
		case <-ctx.Done():
			t.Fatalf("got %d lines, want %d", n, lines)
		}
	}
}

// TestDumpsFollow: what comes is printed, also when a line comes in pieces, and when the file is exchanged.
func TestDumpsFollow(t *testing.T) {
	path := filepath.Join(t.TempDir(), "dump")
	check(t, os.WriteFile(path, []byte(dumped[0]), 0o600))
	ctx, cancel := context.WithCancel(limit(t))
	defer cancel()
	w := &written{some: make(chan struct{}, 1)}
	var stderr bytes.Buffer
	ended := make(chan int, 1)
	go func() { ended <- Run(ctx, []string{"dumps", path, "--follow"}, strings.NewReader(""), w, &stderr) }()
	w.await(t, 1)
	f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	check(t, err)
	for _, piece := range []string{dumped[2][:10], dumped[2][10:]} {
		_, err = f.WriteString(piece)
		check(t, err)
	}
	w.await(t, 2)
	check(t, os.Rename(path, path+".1"))
	_, err = f.WriteString(dumped[1]) // the writer has not opened the other one yet
	check(t, err)
	check(t, f.Close())
	check(t, os.WriteFile(path, []byte(dumped[0]), 0o600))
	w.await(t, 4)
	cancel()
	if status := <-ended; status != exitBlind || !strings.Contains(stderr.String(), "interrupted") {
		t.Errorf("got status %d, %s", status, &stderr)
	}
}
