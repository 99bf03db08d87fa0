package httpapi

import (
	"bytes"
	"encoding/json"
	"net/http"
	"os"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/partita-go/partita/messages"
)

const documentation = "../docs/http.md"

var blocks = regexp.MustCompile("(?s)```console\n(.*?)```")

// TestExamples: the answers of the documentation's examples are those of the server.
func TestExamples(t *testing.T) {
	r := newRig(t, Options{})
	text, err := os.ReadFile(documentation)
	check(t, err)
	subscribed := sync.OnceFunc(r.subscribeMails)
	examples := 0
	for _, block := range blocks.FindAllStringSubmatch(string(text), -1) {
		for _, example := range strings.Split(block[1], "$ curl ")[1:] {
			if strings.Contains(example, "/v1/subscriptions") {
				subscribed()
			}
			r.example(words(t, example))
			examples++
		}
	}
	if examples < 19 {
		t.Errorf("got %d examples", examples)
	}
}

// subscribeMails starts the subscription of the examples.
func (r *rig) subscribeMails() {
	r.t.Helper()
	check(r.t, r.put("mails", 1))
	r.subscribe("mails", new(mailer).handle)
	r.settles("mails", messages.LaneWaiting)
}

var rareSequence = regexp.MustCompile(`,\{"sequence":17,"name":"Rare",[^}]*\}`)

// words splits a command as a shell does, and takes the rest of its last line, if that does
// not end in a backslash or within quotes, for the answer.
func words(t *testing.T, text string) (args []string, answer string) {
	t.Helper()
	word, quoted, begun := "", false, false
	for i, c := range text {
		switch {
		case c == '\'':
			quoted, begun = !quoted, true
		case quoted:
			word += string(c)
		case c == '\n' && !strings.HasSuffix(text[:i], `\`):
			if begun {
				args = append(args, word)
			}
			return args, strings.TrimSpace(text[i:])
		case c == ' ' || c == '\\' || c == '\n':
			if begun {
				args = append(args, word)
			}
			word, begun = "", false
		default:
			word += string(c)
			begun = true
		}
	}
	t.Fatalf("no end in %s", text)
	return nil, ""
}

// example sends what a command line says.
func (r *rig) example(args []string, want string) {
	r.t.Helper()
	method, target, body := http.MethodGet, "", ""
	var headers []string
	for i := 0; i < len(args); i++ {
		switch args[i] {
		case "-s":
		case "-H":
			i++
			name, value, _ := strings.Cut(args[i], ": ")
			headers = append(headers, name, value)
		case "-d":
			i++
			method, body = http.MethodPost, args[i]
		case "-X":
			i++
			method = args[i]
		default:
			target = args[i]
		}
	}
	got := ask(r.ctx, r.t, r.handler, method, target, body, headers...).timeless().body
	// The application of the page has no such sequence, and no such kind.
	got = rareSequence.ReplaceAllString(got, "")
	got = strings.Replace(got, `{"kind":2,"name":"depot","sequences":[]},`, "", 1)
	// The page breaks long answers, which the server sends in one line.
	var line bytes.Buffer
	check(r.t, json.Compact(&line, []byte(want)))
	if want = anyTime.ReplaceAllString(line.String(), "TIME"); got != want {
		r.t.Errorf("%q: got:\n%s\nwant:\n%s", args, got, want)
	}
}

// TestProblemsAreExplained: each kind of problem has its line in the documentation, with its
// status, under the address that its type is.
func TestProblemsAreExplained(t *testing.T) {
	text, err := os.ReadFile(documentation)
	check(t, err)
	lines := strings.Count(string(text), `<a id="`)
	kinds := problemKinds(t)
	for name, status := range kinds {
		if line := `| <a id="` + name + `"></a>` + name + " | " + strconv.Itoa(status) + " |"; !strings.Contains(string(text), line) {
			t.Errorf("there is no line %s", line)
		}
	}
	if lines != len(kinds) || lines < 20 {
		t.Errorf("got %d lines, want %d", lines, len(kinds))
	}
}

// statuses are those of package http by their names.
var statuses = map[string]int{
	"StatusBadRequest": 400, "StatusUnauthorized": 401, "StatusNotFound": 404, "StatusMethodNotAllowed": 405, "StatusRequestTimeout": 408,
	"StatusConflict": 409, "StatusRequestEntityTooLarge": 413, "StatusUnsupportedMediaType": 415, "StatusMisdirectedRequest": 421,
	"StatusUnprocessableEntity": 422, "StatusInternalServerError": 500, "StatusServiceUnavailable": 503, "StatusGatewayTimeout": 504,
}

var kindLine = regexp.MustCompile(`&problemKind\{"([a-z-]+)", ".*", http\.(\w+)\}`)

// problemKinds are all that the source has, with their statuses.
func problemKinds(t *testing.T) map[string]int {
	t.Helper()
	source, err := os.ReadFile("problem.go")
	check(t, err)
	kinds := make(map[string]int)
	for _, m := range kindLine.FindAllStringSubmatch(string(source), -1) {
		kinds[m[1]] = statuses[m[2]]
	}
	return kinds
}
