package operate

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestServeOnAFullDisk: a server without room refuses appends, says so to whoever asks whether it is ready and what its
// partitions do, and takes them again when there is room, though nobody has appended since.
func TestServeOnAFullDisk(t *testing.T) {
	at := t.TempDir()
	if out, err := exec.Command("mount", "-t", "tmpfs", "-o", "size=64m", "partita", at).CombinedOutput(); err != nil {
		t.Skipf("no file system can be mounted here: %v: %s", err, out)
	}
	t.Cleanup(func() { check(t, exec.Command("umount", at).Run()) })
	dir, ballast := filepath.Join(at, "store"), filepath.Join(at, "ballast")
	check(t, os.CopyFS(dir, os.DirFS(newStore(t))))
	check(t, os.WriteFile(ballast, make([]byte, 20<<20), 0o600))
	address := freeAddress(t)
	told := newManager(t)
	server := process(t, "serve", "--db", dir, "--listen", address)
	server.Env = append(os.Environ(), "NOTIFY_SOCKET="+told.name)
	check(t, server.Start())
	url := "http://" + address
	asked(t, http.MethodGet, url+"/healthz")
	awaitReady(t, url)
	body := fmt.Sprintf(`{"kind": 1, "body": %q}`, strings.Repeat("x", 500_000))
	refused := ""
	for refused == "" {
		if status, answer := post(t, url+"/v1/workspaces/6/events", body); status != http.StatusCreated {
			refused = answer
		}
	}
	if !strings.Contains(refused, "there is no space left; nothing was written") {
		t.Fatalf("got %s", refused)
	}
	got := asked(t, http.MethodGet, url+"/readyz")
	if got.status != http.StatusServiceUnavailable || !strings.Contains(got.body, "refusing appends: no space left") {
		t.Errorf("got %+v", got)
	}
	if state, details := partitionStatus(t, url); state != "alarming" || !strings.Contains(details, "refusing appends: no space left") {
		t.Errorf("got %s, %s", state, details)
	}
	if got := asked(t, http.MethodGet, url+"/v1/partitions/0"); !strings.Contains(got.body, `"full":"no space left`) {
		t.Errorf("got %+v", got)
	}
	for told.next() != "STATUS=refusing appends: no space left" {
	}
	remove(t, at, "ballast")
	awaitReady(t, url)
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for ctx := limit(t); ; {
		state, details := partitionStatus(t, url)
		if state == "normal" {
			break
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatalf("it is still %s: %s", state, details)
		}
	}
	for told.next() != "STATUS=all partitions take events" {
	}
	if status, answer := post(t, url+"/v1/workspaces/6/events", `{"kind": 1}`); status != http.StatusCreated {
		t.Errorf("got %s", answer)
	}
	ends(t, server)
	run(t, "verify", "--db", dir).has(t, exitFine)
}

// partitionStatus returns what partition 0 does.
func partitionStatus(t *testing.T, url string) (state, details string) {
	t.Helper()
	var all struct {
		Actors []struct{ Group, Key, State, Details string }
	}
	check(t, json.Unmarshal([]byte(asked(t, http.MethodGet, url+"/v1/status").body), &all))
	for _, a := range all.Actors {
		if a.Group == "partition" && a.Key == "0" {
			return a.State, a.Details
		}
	}
	t.Fatalf("got %+v", all)
	return "", ""
}
