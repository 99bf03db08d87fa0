package operate

import (
	"bufio"
	"encoding/json"
	"os/exec"
	"slices"
	"strconv"
	"testing"
)

// pythonProgram appends events and follows their log at the same time, both with the client in one file. It says so after
// each append, and what it was given at the end.
const pythonProgram = `
import json, sys, threading
sys.path.insert(0, sys.argv[1])
import partita

url, n = sys.argv[2], int(sys.argv[3])
followed, failed = [], []

def follow():
    try:
        for position, event in partita.Client(url).follow("/v1/workspaces/4/log"):
            followed.append(int(event["wlog_offset"]))
            if len(followed) == n:
                return
    except BaseException as e:
        failed.append(repr(e))

thread = threading.Thread(target=follow)
thread.start()
client = partita.Client(url)
numbers = []
for i in range(n):
    done = client.append(4, {"kind": "shop", "wanted": [{"sequence": 16}], "body": {"n": i}}, key="order %d" % i)
    numbers.append(int(done["numbers"][0]["number"]))
    print(json.dumps({"done": len(numbers)}), flush=True)
again = client.append(4, {"kind": "shop", "wanted": [{"sequence": 16}], "body": {"n": 0}}, key="order 0")
try:
    client.append(4, {"kind": "nowhere"})
    refused = ""
except partita.Problem as e:
    refused = e.kind
paged = [int(e["wlog_offset"]) for results, position in client.pages("/v1/workspaces/4/log?limit=7") for e in results]
try:
    partita.Client("http://127.0.0.1:1").append(4, {"kind": 1}, deadline=0.2)
    lost = ""
except TimeoutError as e:
    lost = str(e)
thread.join()
print(json.dumps({"numbers": numbers, "followed": followed, "failed": failed, "repeated": again["repeated"], "refused": refused,
    "paged": paged, "lost": lost}))
`

// TestPythonClient: the client for Python appends each event once and is given each once, while the server is killed and
// started again.
func TestPythonClient(t *testing.T) {
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("python3 is missing: the client for Python is not tested")
	}
	const n = 120
	server := startServer(t)
	program := exec.CommandContext(limit(t), python, "-c", pythonProgram, "../../../../examples/python", server.url(), strconv.Itoa(n))
	program.Stderr = t.Output()
	out, err := program.StdoutPipe()
	check(t, err)
	check(t, program.Start())
	var told struct {
		Done                     int
		Numbers, Followed, Paged []int
		Failed                   []string
		Repeated                 bool
		Refused, Lost            string
	}
	for lines := bufio.NewScanner(out); lines.Scan(); {
		check(t, json.Unmarshal(lines.Bytes(), &told))
		if told.Numbers == nil && told.Done%40 == 20 {
			server.kill()
			server.start()
		}
	}
	check(t, program.Wait())
	want := make([]int, n)
	for i := range want {
		want[i] = i + 1
	}
	if !slices.Equal(told.Numbers, want) || !slices.Equal(told.Followed, want) || !slices.Equal(told.Paged, want) || len(told.Failed) > 0 {
		t.Errorf("got %+v", told)
	}
	if !told.Repeated || told.Refused != "invalid-event" || told.Lost == "" {
		t.Errorf("got repeated %v, refused %q, lost %q", told.Repeated, told.Refused, told.Lost)
	}
}
