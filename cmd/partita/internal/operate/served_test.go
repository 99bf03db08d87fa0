package operate

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/partita-go/partita/cmd/partita/internal/serve"
	"github.com/partita-go/partita/storage/bolt"
)

// serveProcess serves a store in a process of its own, ready.
func serveProcess(t *testing.T, dir string, args ...string) (url string, end func()) {
	t.Helper()
	address := freeAddress(t)
	server := process(t, append([]string{"serve", "--db", dir, "--listen", address}, args...)...)
	check(t, server.Start())
	url = "http://" + address
	asked(t, http.MethodGet, url+"/healthz")
	awaitReady(t, url)
	return url, func() { ends(t, server) }
}

// TestServedStoreIsLookedAfter: what commands find in a store that a server has open is what they find when nobody has,
// be it asked in the store's directory or by its URL.
func TestServedStoreIsLookedAfter(t *testing.T) {
	dir := newStore(t)
	keepSubscriptions(t, dir)
	_, end := serveProcess(t, dir)
	end() // all is flushed then: what a server flushes meanwhile makes no difference
	commands := [][]string{
		{"log"}, {"log", "--json"}, {"log", "--partition", "0", "--from", "2"}, {"log", "--workspace", "4", "--limit", "1"},
		{"log", "--trace", "0123456789abcdef", "--json"}, {"log", "--limit", "0"}, {"log", "--partition", "9"}, {"log", "--workspace", "x"},
		{"subscriptions", "list"}, {"subscriptions", "parked", "--name", "mails"}, {"numbers", "--workspace", "5"}, {"verify"},
	}
	want := make([]outcome, len(commands))
	for i, c := range commands {
		want[i] = run(t, append(c, "--db", dir)...)
	}
	url, end := serveProcess(t, dir)
	for _, where := range [][]string{{"--db", dir}, {"--url", url}} {
		for i, c := range commands {
			got := run(t, append(c, where...)...)
			if got.status != want[i].status || got.stdout != want[i].stdout || got.status == exitFine && got.stderr != want[i].stderr {
				t.Errorf("%s %s: got %+v, want %+v", c, where, got, want[i])
			}
		}
		numbers := run(t, append([]string{"numbers", "--workspace", bigWorkspace.String(), "--json"}, where...)...).has(t, exitFine).json(t)
		if numbers["store"] != dir || numbers["workspace"] != bigWorkspace.String() || len(numbers["sequences"].([]any)) != 4 {
			t.Errorf("got %v", numbers)
		}
		in := run(t, append([]string{"inspect", "--json"}, where...)...).has(t, exitFine).json(t)
		if in["store"] != dir || in["events"] != 5.0 || in["application"] != "shops" || in["subscriptions"] != 2.0 || len(in["files"].([]any)) < 3 {
			t.Errorf("got %v", in)
		}
		if text := run(t, append([]string{"inspect"}, where...)...).has(t, exitFine).stdout; !strings.Contains(text, `application "shops", 2 partitions`) {
			t.Errorf("got %s", text)
		}
		copied := filepath.Join(t.TempDir(), "copy")
		backup := run(t, append([]string{"backup", "--to", copied, "--json"}, where...)...).has(t, exitFine).json(t)
		if backup["from"] != where[1] || backup["events"] != 5.0 || backup["verified"] != true {
			t.Errorf("got %v", backup)
		}
		if got := run(t, "log", "--db", copied); got.stdout != want[0].stdout {
			t.Errorf("got %s, want %s", got.stdout, want[0].stdout)
		}
		if got := run(t, "subscriptions", "list", "--db", copied); got.stdout != want[8].stdout {
			t.Errorf("got %s, want %s", got.stdout, want[8].stdout)
		}
	}
	if got := run(t, "trace", "0123456789abcdef", "--db", dir, "--json").has(t, exitFine).stdout; !strings.Contains(got, `"workspace":"4"`) {
		t.Errorf("got %s", got)
	}
	run(t, "subscriptions", "pause", "--db", dir, "--name", "mails").has(t, exitFine)
	if s := subscriptions(t, "show", "--url", url, "--name", "mails")["subscription"].(map[string]any); s["state"] != "paused" {
		t.Errorf("got %v", s)
	}
	end()
}

// TestServedNumbersOfNobody: what a server does not find is told in the words of a store that nobody has open, without
// an address that nobody typed.
func TestServedNumbersOfNobody(t *testing.T) {
	dir := newStore(t)
	want := run(t, "numbers", "--db", dir, "--workspace", "99").has(t, exitBlind).stderr
	url, end := serveProcess(t, dir)
	if got := run(t, "numbers", "--db", dir, "--workspace", "99").has(t, exitBlind).stderr; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	byURL := strings.Replace(want, dir, url, 1)
	if got := run(t, "numbers", "--url", url, "--workspace", "99").has(t, exitBlind).stderr; got != byURL {
		t.Errorf("got %s, want %s", got, byURL)
	}
	end()
}

// TestServedExport: what is exported of a store that a server has open is what is exported when nobody has, and of the
// copy for it nothing is left.
func TestServedExport(t *testing.T) {
	dir := newStore(t)
	keepSubscriptions(t, dir)
	export := func(args ...string) outcome { return run(t, append([]string{"export"}, args...)...) }
	const workspace = "4"
	whole, part := export("--db", dir, "--to", "-").has(t, exitFine).stdout, export("--db", dir, "--to", "-", "--workspace", workspace).has(t, exitFine).stdout
	url, end := serveProcess(t, dir)
	temporary := t.TempDir()
	t.Setenv("TMPDIR", temporary)
	for _, where := range [][]string{{"--db", dir}, {"--url", url}} {
		to := t.TempDir()
		file, subscriptions := filepath.Join(to, "events"), filepath.Join(to, "subscriptions")
		done := export(append(where, "--to", file, "--subscriptions", subscriptions, "--json")...).has(t, exitFine).json(t)
		if done["store"] != where[1] || done["events"] != 5.0 || done["subscriptions"] != 2.0 {
			t.Errorf("got %v", done)
		}
		if got := bytesOf(t, to); got["events"] != whole || len(got) != 2 {
			t.Errorf("got %v, want %s", got, whole)
		}
		export(append(where, "--to", file)...).fails(t, exitBlind, file, "file already exists", "export of "+where[1])
		export(append(where, "--to", filepath.Join(to, "none"), "--workspace", "99")...).fails(t, exitBlind, where[1]+": ", "workspace 99")
		// No copy can be made in a directory that is not there: this is told before.
		never := filepath.Join(to, "never", "events")
		export(append(where, "--to", never, "--workspace", "99")...).fails(t, exitBlind, where[1]+": ", "workspace 99")
		export(append(where, "--to", never, "--subscriptions", subscriptions)...).fails(t, exitBlind, subscriptions, "file already exists")
		if got := export(append(where, "--to", "-", "--workspace", workspace)...).has(t, exitFine).stdout; got != part {
			t.Errorf("got %s, want %s", got, part)
		}
		if left := len(bytesOf(t, to)) + len(bytesOf(t, temporary)); left != 2 {
			t.Errorf("got %d files, want those of the export", left)
		}
	}
	end()
}

// TestServedBy: a command that wants a store that nobody has open says which process serves it, and where.
func TestServedBy(t *testing.T) {
	dir := newStore(t)
	address := freeAddress(t)
	server := process(t, "serve", "--db", dir, "--listen", address)
	check(t, server.Start())
	asked(t, http.MethodGet, "http://"+address+"/healthz")
	awaitReady(t, "http://"+address)
	by := fmt.Sprintf("%s: store is in use by another process: %s: process %d serves it, at http://%s. ", dir, filepath.Join(dir, "log.db"), server.Process.Pid, address)
	to := filepath.Join(t.TempDir(), "to")
	run(t, "compact", "--db", dir, "--to", to).fails(t, exitBlind, by, "partita backup copies it meanwhile. For compact stop the server")
	run(t, "restore", "--from", dir, "--to", to).fails(t, exitBlind, by, "For restore stop the server")
	run(t, "serve", "--db", dir, "--listen", "127.0.0.1:0").fails(t, exitBlind, by, "nothing was started")
	run(t, "serve", "--db", dir, "--listen", address).fails(t, exitBlind, "address already in use: ", by[strings.Index(by, "process "+fmt.Sprint(server.Process.Pid)):])
	ends(t, server)
}

// TestServedSocket: the socket is for the owner alone, who needs no token; over the net it takes one. The socket of a
// server that was killed is in nobody's way, and one of a server that has stopped is gone.
func TestServedSocket(t *testing.T) {
	const token = "a-token-of-24-characters"
	dir, file := newStore(t), filepath.Join(t.TempDir(), "token")
	check(t, os.WriteFile(file, []byte(token), 0o600))
	path := filepath.Join(dir, serve.SocketName)
	for _, kill := range []bool{true, false} {
		address := freeAddress(t)
		server := process(t, "serve", "--db", dir, "--listen", address, "--token-file", file)
		check(t, server.Start())
		url := "http://" + address
		asked(t, http.MethodGet, url+"/healthz")
		awaitReady(t, url)
		info, err := os.Lstat(path)
		check(t, err)
		if info.Mode() != fs.ModeSocket|0o600 {
			t.Errorf("got %v", info.Mode())
		}
		run(t, "inspect", "--db", dir).has(t, exitFine)
		run(t, "inspect", "--url", url).fails(t, exitBlind, "needs a token")
		run(t, "log", "--url", url).fails(t, exitBlind, "needs a token")
		run(t, "backup", "--url", url, "--to", filepath.Join(t.TempDir(), "to")).fails(t, exitBlind, "needs a token")
		run(t, "inspect", "--url", url, "--token-file", file).has(t, exitFine)
		run(t, "log", "--url", url, "--token-file", file).has(t, exitFine)
		if !kill {
			ends(t, server)
			break
		}
		check(t, server.Process.Kill())
		_ = server.Wait()
		if _, err := os.Lstat(path); err != nil {
			t.Fatal(err)
		}
		run(t, "inspect", "--db", dir).has(t, exitFine)
	}
	if _, err := os.Lstat(path); !os.IsNotExist(err) {
		t.Errorf("got %v, want no socket", err)
	}
	run(t, "inspect", "--db", dir).has(t, exitFine)
}

// TestServedWithoutASocket: where there can be none the server runs without, says why, and so do the commands.
func TestServedWithoutASocket(t *testing.T) {
	long := filepath.Join(t.TempDir(), strings.Repeat("a-long-name", 12))
	check(t, os.Rename(newStore(t), long))
	taken := newStore(t)
	check(t, os.WriteFile(filepath.Join(taken, serve.SocketName), []byte("mine"), 0o600))
	for dir, why := range map[string]string{long: "that of a socket at most", taken: "is no socket, and is left as it is"} {
		server := startServe(t, dir)
		awaitReady(t, server.URL)
		if dir == long {
			lockedBy(t, dir, why)
		}
		run(t, "inspect", "--url", server.URL).has(t, exitFine)
		server.cancel()
		if status := <-server.ended; status != exitFine || !strings.Contains(server.stderr.String(), why) {
			t.Errorf("got status %d, %s", status, &server.stderr)
		}
	}
	if content, err := os.ReadFile(filepath.Join(taken, serve.SocketName)); err != nil || string(content) != "mine" {
		t.Errorf("got %q, %v", content, err)
	}
}

// lockedBy fails unless a command that is told of a store's directory says why nobody answers there.
func lockedBy(t *testing.T, dir, why string) {
	t.Helper()
	run(t, "inspect", "--db", dir).fails(t, exitBlind, "a running process has it open", "--url", why)
}

// TestLogFollow: whoever follows a log gets what is appended, as text and as JSON, of all and of a workspace, and is
// told when the server stops.
func TestLogFollow(t *testing.T) {
	dir := newStore(t)
	url, end := serveProcess(t, dir)
	type follower struct {
		lines *bufio.Scanner
		wait  func() error
	}
	var all []follower
	for _, args := range [][]string{{"--json"}, {"--workspace", "6", "--json"}, {"--json", "--partition", "0", "--limit", "5"}} {
		p := process(t, append([]string{"log", "--follow", "--db", dir}, args...)...)
		p.Stderr = nil
		out, err := p.StdoutPipe()
		check(t, err)
		check(t, p.Start())
		all = append(all, follower{bufio.NewScanner(out), p.Wait})
	}
	next := func(f follower) (workspace, offset string) {
		t.Helper()
		if !f.lines.Scan() {
			t.Fatal(f.lines.Err())
		}
		var e struct {
			Workspace string `json:"workspace"`
			Offset    string `json:"wlog_offset"`
			LSN       string `json:"lsn"`
		}
		check(t, json.Unmarshal(f.lines.Bytes(), &e))
		if e.LSN == "" {
			t.Errorf("got %s", f.lines.Bytes())
		}
		return e.Workspace, e.Offset
	}
	for range 5 {
		next(all[0])
	}
	for range 3 {
		next(all[2])
	}
	for n := 1; n <= 2; n++ {
		if status, answer := post(t, url+"/v1/workspaces/6/events", `{"kind": 1}`); status != http.StatusCreated {
			t.Fatal(answer)
		}
		for i, f := range all {
			if ws, offset := next(f); ws != "6" || offset != fmt.Sprint(n) {
				t.Errorf("%d: got workspace %s, offset %s", i, ws, offset)
			}
		}
	}
	check(t, all[2].wait()) // it has had as many as it wanted
	end()
	for _, f := range all[:2] {
		if f.lines.Scan() || f.wait() == nil {
			t.Errorf("got %s, want it to be told that the server stops", f.lines.Bytes())
		}
	}
	run(t, "log", "--follow", "--db", dir).fails(t, exitBlind, "no server has")
}

// TestBackupCutOff: what a server does not write to its end is no backup, and is not kept.
func TestBackupCutOff(t *testing.T) {
	dir := newStore(t)
	s, err := bolt.OpenExisting(limit(t), dir, bolt.Options{ReadOnly: true})
	check(t, err)
	var whole strings.Builder
	check(t, s.WriteBackup(limit(t), &whole, bolt.CopyOptions{}))
	check(t, s.Close(limit(t)))
	to := filepath.Join(t.TempDir(), "to")
	for _, tt := range []struct {
		length  int
		trailer string
		abort   bool
		want    string
	}{
		{whole.Len() / 2, "", true, "the answer was cut off"}, {whole.Len() / 2, "", false, "not a whole backup: it was cut off"},
		{whole.Len() / 2, "the disk is on fire", false, "the answer is not whole: the disk is on fire"}, {0, "", false, "not a whole backup"},
		{whole.Len(), "", false, ""},
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Trailer", serve.ErrorTrailer)
			_, _ = w.Write([]byte(whole.String()[:tt.length]))
			_ = http.NewResponseController(w).Flush()
			if tt.abort {
				panic(http.ErrAbortHandler)
			}
			if tt.trailer != "" {
				w.Header().Set(serve.ErrorTrailer, tt.trailer)
			}
		}))
		o := run(t, "backup", "--url", server.URL, "--to", to)
		server.Close()
		if tt.want == "" {
			o.has(t, exitFine)
			break
		}
		o.fails(t, exitBlind, tt.want)
		if entries, err := os.ReadDir(filepath.Dir(to)); err != nil || len(entries) != 0 {
			t.Errorf("got %v, %v", entries, err)
		}
	}
	if got, want := run(t, "log", "--db", to), run(t, "log", "--db", dir); !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

// TestOperationsAreAskedWrongly: what is asked for wrongly is told, and what is no operation is not there.
func TestOperationsAreAskedWrongly(t *testing.T) {
	url, end := serveProcess(t, newStore(t))
	for path, want := range map[string]int{
		"inspect?x=1": http.StatusBadRequest, "numbers": http.StatusBadRequest, "numbers?workspace=5": http.StatusNotFound,
		"log?from=x": http.StatusBadRequest, "log?partition=9": http.StatusBadRequest, "log?partition=0&workspace=1": http.StatusBadRequest,
		"log?limit=1&limit=2": http.StatusBadRequest, "log?trace=1": http.StatusBadRequest, "backup?to=x": http.StatusBadRequest,
		"server?x=1": http.StatusBadRequest, "server": http.StatusOK, "log": http.StatusOK, "nothing": http.StatusNotFound, "": http.StatusNotFound,
	} {
		if got := asked(t, http.MethodGet, url+serve.OperationsPath+path); got.status != want || want != http.StatusOK && !strings.Contains(got.body, "docs/http.md#") {
			t.Errorf("%s: got %+v, want %d", path, got, want)
		}
	}
	if got := asked(t, http.MethodPost, url+serve.OperationsPath+"log"); got.status != http.StatusMethodNotAllowed || got.header.Get("Allow") != "GET" {
		t.Errorf("got %+v", got)
	}
	end()
}
