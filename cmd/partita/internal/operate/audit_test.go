package operate

import (
	"bufio"
	"context"
	"encoding/json"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/partita-go/partita/httpclient"
	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/partition"
)

// pythonRows prints what stands in the database of the poller.
const pythonRows = `
import json, sqlite3, sys
rows = sqlite3.connect(sys.argv[1]).execute("SELECT partition, plog_offset FROM audit ORDER BY partition, plog_offset").fetchall()
print(json.dumps(rows))
`

// TestAuditPoller: the audit log of the example has each event once, though its poller and the server are killed.
func TestAuditPoller(t *testing.T) {
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("python3 is missing: the audit log of the examples is not tested")
	}
	const n = 300
	server := startServer(t)
	client, err := httpclient.New(server.url(), httpclient.Options{})
	check(t, err)
	t.Cleanup(client.Close)
	ctx, database := limit(t), filepath.Join(t.TempDir(), "audit.db")
	want := make(map[messages.PartitionID]int)
	for i := range n {
		done, err := client.Append(ctx, partition.AppendTo{Workspace: messages.WSID(1 + i%5), Kind: shop}, partition.Draft{Body: []byte("1")})
		check(t, err)
		want[done.Partition]++
	}
	// It is killed behind its first page, and goes on while the server is killed.
	poll(ctx, t, python, server, database, func(c *exec.Cmd) { check(t, c.Process.Kill()) })
	poll(ctx, t, python, server, database, func(*exec.Cmd) {
		server.kill()
		server.start()
	}, "--once")
	out, err := exec.CommandContext(ctx, python, "-c", pythonRows, database).Output()
	check(t, err)
	var rows [][2]int
	check(t, json.Unmarshal(out, &rows))
	got := make(map[messages.PartitionID]int)
	for _, row := range rows {
		p := messages.PartitionID(row[0])
		if got[p]++; got[p] != row[1] {
			t.Fatalf("partition %d: got offset %d, want %d", p, row[1], got[p])
		}
	}
	for p, events := range want {
		if got[p] != events {
			t.Errorf("partition %d: got %d events, want %d", p, got[p], events)
		}
	}
}

// poll runs the poller, and does something when it has stored its first page.
func poll(ctx context.Context, t *testing.T, python string, server *serverProcess, database string, meanwhile func(*exec.Cmd), args ...string) {
	t.Helper()
	poller := exec.CommandContext(ctx, python, append([]string{root + "examples/audit/poller.py", server.url(), database}, args...)...)
	poller.Stderr = t.Output()
	out, err := poller.StdoutPipe()
	check(t, err)
	check(t, poller.Start())
	lines := bufio.NewScanner(out)
	if !lines.Scan() {
		t.Fatal("the poller has stored nothing")
	}
	meanwhile(poller)
	for lines.Scan() {
	}
	if err := poller.Wait(); err != nil && len(args) > 0 {
		t.Errorf("the poller has failed: %v", err)
	}
}
