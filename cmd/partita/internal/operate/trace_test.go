package operate

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// storeTrace is that of the second event of workspace 4 in newStore.
const storeTrace = "0123456789abcdef"

// tracedDump writes a dump: before that event a request of its trace and one of another, then the batch that the event
// was in, and the answers.
func tracedDump(t *testing.T) string {
	t.Helper()
	at := func(micros, number, rest string) string {
		return `{"ts":"2023-11-14T22:13:20.` + micros + `Z","g":"partition","k":"0","s":` + number + `,"mp":"messages",` + rest + "}\n"
	}
	path := filepath.Join(t.TempDir(), "dump")
	check(t, os.WriteFile(path, []byte(
		at("000000", "1", `"d":"In","mn":"Append","mk":"Request","t":"`+storeTrace+`","m":{"Workspace":4},"c":7`)+
			at("000000", "2", `"d":"In","mn":"Append","mk":"Request","t":"0000000000000009","m":{"Workspace":4},"c":8`)+
			at("000001", "3", `"d":"Out","mn":"WriteEvents","mk":"Request","m":{"Events":[{"Trace":"0000000000000009"},{"Trace":"`+storeTrace+`"}]},"c":9`)+
			at("000004", "4", `"d":"In","mn":"EventsWritten","mk":"Response","m":{},"c":9`)+
			at("000005", "5", `"d":"Out","mn":"Appended","mk":"Response","t":"`+storeTrace+`","m":{},"c":7`)+
			at("000005", "6", `"d":"Out","mn":"Appended","mk":"Response","m":{},"c":8`)), 0o600))
	return path
}

// TestTrace: the events and the messages of a trace, those of batches of several too, in order of time, of a store, of a
// server, and of files alone.
func TestTrace(t *testing.T) {
	dir, dump := newStore(t), tracedDump(t)
	const (
		event = `2023-11-14T22:13:20.000002Z  event  partition 0/2  workspace 4/2  16:2  body "/wA=" in base 64` + "\n"
		asked = `2023-11-14T22:13:20.000000Z  partition/0  #1  In Request Append  trace 0123456789abcdef  {"Workspace":4}` + "\n" +
			`2023-11-14T22:13:20.000001Z  partition/0  #3  Out Request WriteEvents  {"Events":[{"Trace":"0000000000000009"},{"Trace":"0123456789abcdef"}]}` + "\n"
		answered = `2023-11-14T22:13:20.000004Z  partition/0  #4  In Response EventsWritten  {}` + "\n" +
			`2023-11-14T22:13:20.000005Z  partition/0  #5  Out Response Appended  trace 0123456789abcdef  {}` + "\n"
	)
	before := contents(t, dir)
	for want, args := range map[string][]string{
		event:                    {"--db", dir},
		asked + answered:         {dump},
		asked + event + answered: {dump, "--db", dir},
	} {
		if o := run(t, append([]string{"trace", storeTrace}, args...)...).has(t, exitFine); o.stdout != want || o.stderr != "" {
			t.Errorf("%q: got %s, want %s, stderr %s", args, o.stdout, want, o.stderr)
		}
	}
	untouched(t, dir, before)
	o := run(t, "trace", storeTrace, "--db", dir, dump, "--json").has(t, exitFine)
	lines := strings.Split(o.stdout, "\n")
	if len(lines) != 6 || !strings.HasPrefix(lines[0], `{"message":{"ts":"2023-11-14T22:13:20.000000000Z"`) ||
		!strings.HasPrefix(lines[2], `{"event":{"partition":0,"plog_offset":"2",`) || !strings.Contains(lines[2], `"trace":"0123456789abcdef"`) {
		t.Errorf("got %s", o.stdout)
	}
	server := startServe(t, dir)
	awaitReady(t, server.URL)
	if o := run(t, "trace", storeTrace, "--url", server.URL, dump).has(t, exitFine); o.stdout != asked+event+answered {
		t.Errorf("of a server: got %s", o.stdout)
	}
	server.stop()
	if o := run(t, "trace", "0000000000000001", "--db", dir, dump).has(t, exitFine); o.stdout != "" {
		t.Errorf("of another trace: got %s", o.stdout)
	}
}

// TestTraceUsage: what is wrong is said.
func TestTraceUsage(t *testing.T) {
	dump := tracedDump(t)
	for args, want := range map[string]string{
		"trace":               "no file",
		"trace 0123":          "0123",
		"trace " + storeTrace: "nothing to look at",
		"trace " + storeTrace + " --db x --url y":    "exclude each other",
		"trace " + storeTrace + " x --token-file y":  "--token-file goes with --url",
		"trace " + storeTrace + " --db x":            "x",
		"trace " + storeTrace + " --limit 1 " + dump: "more than 1 messages",
	} {
		run(t, strings.Fields(args)...).fails(t, exitBlind, want)
	}
}
