package operate

import (
	"bufio"
	"cmp"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"testing"

	"github.com/partita-go/partita/httpclient"
	"github.com/partita-go/partita/partition"
)

// browserEvents is how many events the followers of these tests are given.
const browserEvents = 120

// feeding lets a server have events of workspace 4, a few at a time, as somebody has seen those before.
type feeding struct {
	t      *testing.T
	server *serverProcess
	client *httpclient.Client
	there  int
}

func startFeeding(t *testing.T, args ...string) *feeding {
	t.Helper()
	t.Setenv(tokenVariable, secret)
	f := &feeding{t: t, server: startServer(t, args...)}
	var err error
	f.client, err = httpclient.New(f.server.url(), httpclient.Options{Token: secret})
	check(t, err)
	t.Cleanup(f.client.Close)
	f.seen(nil)
	return f
}

// seen checks what a follower has seen. It appends more, and kills the server now and then: before or behind that.
func (f *feeding) seen(offsets []int) {
	f.t.Helper()
	for i, offset := range offsets {
		if offset != i+1 {
			f.t.Fatalf("got offsets %d, want 1 to %d", offsets, len(offsets))
		}
	}
	if len(offsets) < f.there || f.there == browserEvents {
		return
	}
	if f.there%40 == 20 {
		f.server.kill()
		f.server.start()
	}
	for range 10 {
		_, err := f.client.Append(limit(f.t), partition.AppendTo{Workspace: 4, Kind: shop}, partition.Draft{
			Wanted: []partition.Wanted{{Seq: invoice}}, Body: []byte(`{"text":"größer\nals ein Byte"}`),
		})
		check(f.t, err)
	}
	f.there += 10
}

// nodeProgram follows a log with the file of the example, and says what it has seen after each event.
const nodeProgram = `
const [, file, url, token, n] = process.argv;
const { follow, Problem } = await import(file);
const log = url + "/v1/workspaces/4/log";
const seen = [];
let after;
for await (const { position, event } of follow(log, { token })) {
  seen.push(Number(event.wlog_offset));
  if (event.body.text !== "größer\nals ein Byte") throw new Error(JSON.stringify(event));
  console.log(JSON.stringify({ seen }));
  if (seen.length === 10) after = position;
  if (seen.length === Number(n)) break;
}
const told = { seen };
for await (const { event } of follow(log, { token, after })) {
  told.behind = Number(event.wlog_offset);
  break;
}
const said = async (url, options) => {
  try {
    for await (const _ of follow(url, options)) break;
  } catch (e) {
    return e instanceof Problem ? e.kind : "error";
  }
};
told.refused = await said(log, { token: "wrong" + token });
told.wrong = await said(log + "?limit=1", { token });
told.insecure = await said("http://192.0.2.1/v1/log", { token });
const stopped = new AbortController();
setTimeout(() => stopped.abort(), 10);
for await (const _ of follow(url.replace(/\d+$/, "1") + "/v1/log", { signal: stopped.signal }));
told.silent = 0;
for await (const _ of follow(log, { token, after: n, silence: 20, signal: AbortSignal.timeout(500), onFailure: () => told.silent++ }));
console.log(JSON.stringify(told));
`

// TestBrowserStream: the file for web pages gives each event of a log once, in order, while the server is killed and started
// again; it tells what is refused, and ends when it is to. Node runs it.
func TestBrowserStream(t *testing.T) {
	node, err := exec.LookPath("node")
	if err != nil {
		t.Skip("node is missing: the example for browsers is not tested by it")
	}
	f := startFeeding(t)
	file, err := filepath.Abs(root + "examples/browser/follow.mjs")
	check(t, err)
	program := exec.CommandContext(limit(t), node, "--input-type=module", "-e", nodeProgram, file, f.server.url(), secret, strconv.Itoa(browserEvents))
	program.Stderr = t.Output()
	out, err := program.StdoutPipe()
	check(t, err)
	check(t, program.Start())
	var told struct {
		Seen                     []int
		Behind, Silent           int
		Refused, Wrong, Insecure string
	}
	for lines := bufio.NewScanner(out); lines.Scan(); {
		check(t, json.Unmarshal(lines.Bytes(), &told))
		f.seen(told.Seen)
	}
	check(t, program.Wait())
	if len(told.Seen) != browserEvents || told.Behind != 11 || told.Refused != "unauthorized" || told.Wrong != "malformed" || told.Insecure != "error" || told.Silent < 2 {
		t.Errorf("got %+v", told)
	}
}

// browserPage follows a log from another origin than the server's, and tells its own what it has seen.
const browserPage = `<!doctype html><script type="module">
import { follow } from "./follow.mjs";
const seen = [];
const asked = new URLSearchParams(location.search);
for await (const { event } of follow(asked.get("url") + "/v1/workspaces/4/log", { token: asked.get("token") })) {
  seen.push(Number(event.wlog_offset));
  await fetch("/seen", { method: "POST", body: JSON.stringify(seen) });
}
</script>`

// TestBrowserStreamInBrowser is TestBrowserStream in a real browser, whose page is of an origin that the server allows.
func TestBrowserStreamInBrowser(t *testing.T) {
	chromium, err := exec.LookPath("chromium")
	other, otherErr := exec.LookPath("google-chrome")
	if err != nil && otherErr != nil {
		t.Skip("there is no Chromium: the example for browsers is not tested in one")
	}
	reports := make(chan []int)
	mux := http.NewServeMux()
	mux.HandleFunc("/page.html", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, browserPage) })
	mux.HandleFunc("/follow.mjs", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/javascript")
		http.ServeFile(w, r, root+"examples/browser/follow.mjs")
	})
	mux.HandleFunc("POST /seen", func(_ http.ResponseWriter, r *http.Request) {
		var seen []int
		if err := json.NewDecoder(r.Body).Decode(&seen); err != nil {
			t.Error(err)
		}
		select {
		case reports <- seen:
		case <-r.Context().Done():
		}
	})
	pages := httptest.NewServer(mux)
	defer pages.Close()
	f := startFeeding(t, "--allow-origin", pages.URL)
	browser := exec.CommandContext(limit(t), cmp.Or(chromium, other), "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run",
		"--user-data-dir="+t.TempDir(), pages.URL+"/page.html?url="+f.server.url()+"&token="+secret)
	check(t, browser.Start())
	defer func() {
		_ = browser.Process.Kill()
		_ = browser.Wait()
	}()
	for ctx, last := limit(t), []int(nil); len(last) < browserEvents; {
		select {
		case last = <-reports:
			f.seen(slices.Clone(last))
		case <-ctx.Done():
			t.Fatalf("the page has seen %d events", len(last))
		}
	}
}
