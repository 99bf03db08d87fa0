package operate

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.etcd.io/bbolt"
)

// ownStatus returns what a server does besides its actors, nothing if it does not tell.
func ownStatus(t *testing.T, url, key string) (state, details string) {
	t.Helper()
	var all struct {
		Actors []struct{ Group, Key, State, Details string }
	}
	check(t, json.Unmarshal([]byte(asked(t, http.MethodGet, url+"/v1/status").body), &all))
	for _, a := range all.Actors {
		if a.Group == "server" && a.Key == key {
			return a.State, a.Details
		}
	}
	return "", ""
}

// awaitOwn waits until the details of what a server does besides its actors have a text, and returns its state.
func awaitOwn(t *testing.T, url, key, text string) (state string) {
	t.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for ctx := limit(t); ; {
		state, details := ownStatus(t, url, key)
		if strings.Contains(details, text) {
			return state
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatalf("got %s, %s", state, details)
		}
	}
}

// TestServeScrubs: a store that is served is checked from time to time, and what was found is in the status, the
// metrics and the log. Nothing stays of the copy, nor of one of a server that was killed.
func TestServeScrubs(t *testing.T) {
	dir := newStore(t)
	left := filepath.Join(dir, "scrub.new-1", "copy")
	check(t, os.MkdirAll(left, 0o700))
	server := startServe(t, dir, "--scrub", "5s", "--scrub-share", "100", "--log-level", "info")
	awaitReady(t, server.URL)
	if state := awaitOwn(t, server.URL, "scrub", "has found no fault in 5 events"); state != "normal" {
		t.Errorf("got %s", state)
	}
	if page := server.get("/metrics"); strings.Contains(page, `partita_scrubs_total{outcome="sound"} 0`) ||
		!strings.Contains(page, "partita_scrub_faults 0") || !strings.Contains(page, "partita_scrub_timestamp_seconds 1") {
		t.Errorf("got %s", page)
	}
	server.cancel()
	if status := <-server.ended; status != exitFine || !strings.Contains(server.stderr.String(), "a scrub has found no fault") {
		t.Errorf("got status %d, %s", status, &server.stderr)
	}
	if _, err := os.Stat(left); !os.IsNotExist(err) {
		t.Errorf("got %v", err)
	}
	for name := range bytesOf(t, dir) {
		if strings.HasPrefix(name, "scrub") {
			t.Errorf("%s was left", name)
		}
	}
}

// TestServeScrubsDamage: a scrub finds damage that nobody has met yet. Whoever meets it is told, and so is everybody
// then.
func TestServeScrubsDamage(t *testing.T) {
	dir := newStore(t)
	change(t, dir, "log.db", "log", func(b *bbolt.Bucket) error {
		k := []byte{0, 0, 0, 0, 0, 0, 0, 2}
		v := append([]byte(nil), b.Get(k)...)
		v[len(v)-1] ^= 1
		return b.Put(k, v)
	})
	server := startServe(t, dir, "--scrub", "10ms", "--scrub-share", "100")
	awaitReady(t, server.URL)
	if state := awaitOwn(t, server.URL, "scrub", "has found faults: "); state != "alarming" {
		t.Errorf("got %s", state)
	}
	if state, details := ownStatus(t, server.URL, "damage"); state != "" || details != "" {
		t.Errorf("got %s, %s", state, details)
	}
	if got := asked(t, http.MethodGet, server.URL+"/v1/workspaces/"+bigWorkspace.String()+"/events/2"); got.status != http.StatusInternalServerError {
		t.Errorf("got %+v", got)
	}
	if state := awaitOwn(t, server.URL, "damage", "LSN 2"); state != "alarming" {
		t.Errorf("got %s", state)
	}
	page := server.get("/metrics")
	if strings.Contains(page, "partita_scrub_faults 0") || strings.Contains(page, `partita_scrubs_total{outcome="faulty"} 0`) ||
		!strings.Contains(page, "partita_damage_met_total 1") {
		t.Errorf("got %s", page)
	}
	server.cancel()
	<-server.ended
	for _, text := range []string{"a scrub has found a fault", "LSN 2", "`partita verify` tells what repairs them", "Stored data is damaged"} {
		if !strings.Contains(server.stderr.String(), text) {
			t.Errorf("want %q in %s", text, &server.stderr)
		}
	}
}

// TestServeScrubsWhenItIsTold: scrubs begin and end while the server runs, as its configuration says.
func TestServeScrubsWhenItIsTold(t *testing.T) {
	dir, file := newStore(t), filepath.Join(t.TempDir(), "partita.json")
	check(t, os.WriteFile(file, []byte("{}"), 0o600))
	server := startServe(t, dir, "--config", file)
	awaitReady(t, server.URL)
	if state, details := ownStatus(t, server.URL, "scrub"); state != "" || details != "" {
		t.Errorf("got %s, %s", state, details)
	}
	apply := func(text string, want int) {
		t.Helper()
		other := filepath.Join(t.TempDir(), "other.json")
		check(t, os.WriteFile(other, []byte(text), 0o600))
		run(t, "config", "apply", other, "--url", server.URL).has(t, want)
	}
	apply(`{"scrub": "10ms"}`, exitFine)
	awaitOwn(t, server.URL, "scrub", "no fault")
	apply(`{}`, exitFine)
	awaitOwn(t, server.URL, "scrub", "off; ")
	apply(`{"scrub_share": 0}`, exitBlind)
	apply(`{"scrub_share": 101}`, exitBlind)
	apply(`{"scrub": "-1s"}`, exitBlind)
	server.cancel()
	<-server.ended
	run(t, "serve", "--db", dir, "--scrub=-1s").fails(t, exitBlind, "scrub: got -1s, want 0 or more")
}
