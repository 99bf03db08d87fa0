package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// isEmpty reports whether a directory has nothing.
func isEmpty(t *testing.T, dir string) bool {
	t.Helper()
	all, err := os.ReadDir(dir)
	check(t, err)
	return len(all) == 0
}

// TestBench: it measures synced writes and appends, says what that means, and leaves nothing.
func TestBench(t *testing.T) {
	dir := t.TempDir()
	p := program(t, dir, nil, "bench", "--dir", ".", "--time", "1s", "--json").does(0)
	type times struct {
		Count int
		P50   float64 `json:"p50_seconds"`
		P99   float64 `json:"p99_seconds"`
		Most  float64 `json:"max_seconds"`
	}
	var r struct {
		Sync    times `json:"synced_writes"`
		Appends []struct {
			Callers   int
			PerSecond float64 `json:"per_second"`
			times
		}
		Verdict string
		Words   []string
	}
	check(t, json.Unmarshal(p.stdout.Bytes(), &r))
	if len(r.Appends) != 4 || r.Verdict == "" || len(r.Words) < 2 {
		t.Fatalf("got %s", &p.stdout)
	}
	isRight := func(x times) bool { return x.Count > 0 && 0 < x.P50 && x.P50 <= x.P99 && x.P99 <= x.Most*1.02 }
	for i, a := range r.Appends {
		if a.Callers != []int{1, 8, 64, 256}[i] || a.PerSecond <= 0 || !isRight(a.times) || !isRight(r.Sync) {
			t.Errorf("got %+v", r)
		}
	}
	if !isEmpty(t, dir) {
		t.Error("it has left something")
	}
	text := program(t, dir, nil, "bench", "--dir", ".", "--time", "1s").does(0)
	for _, want := range []string{"appends of 256", "99 % within", "The disk is ", "What limits is"} {
		if !strings.Contains(text.stdout.String(), want) {
			t.Errorf("got %s, want %s", &text.stdout, want)
		}
	}
}

// TestBenchInterrupted: what it has made is removed when it is interrupted, also within its store. A terminal that is closed
// may send SIGHUP twice: that is no second signal.
func TestBenchInterrupted(t *testing.T) {
	for name, signals := range map[string][]os.Signal{"SIGINT": {syscall.SIGINT}, "SIGHUP twice": {syscall.SIGHUP, syscall.SIGHUP}} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			p := program(t, dir, nil, "bench", "--dir", ".", "--time", "5s")
			check(t, p.Start())
			awaitFile(t, filepath.Join(dir, "partita-bench-*", "store", "log.wal"))
			for _, s := range signals {
				check(t, p.Process.Signal(s))
			}
			if p.ends(2); !strings.Contains(p.stderr.String(), "partita: interrupted") {
				t.Errorf("got %s", &p.stderr)
			}
			if !isEmpty(t, dir) {
				t.Error("it has left something")
			}
		})
	}
}

// awaitFile waits until there is a file of a pattern.
func awaitFile(t *testing.T, pattern string) {
	t.Helper()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for ctx := limit(t); ; {
		found, err := filepath.Glob(pattern)
		check(t, err)
		if len(found) > 0 {
			return
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatal("there is no " + pattern)
		}
	}
}

// TestBenchTouchesNoStore: a store is refused as a place, and so is what is not there.
func TestBenchTouchesNoStore(t *testing.T) {
	dir := t.TempDir()
	program(t, dir, nil, "init").does(0)
	s := serving(t, dir, "--create")
	check(t, s.Process.Signal(syscall.SIGTERM))
	s.ends(0)
	for args, want := range map[string]string{"store": "is within the store", "store/x": "is within the store", "none": "no such file"} {
		if p := program(t, dir, nil, "bench", "--dir", args).does(2); !strings.Contains(p.stderr.String(), want) {
			t.Errorf("%s: got %s, want %s", args, &p.stderr, want)
		}
	}
	if all, err := os.ReadDir(filepath.Join(dir, "store")); err != nil || len(all) != 2 {
		t.Errorf("got %v, %v", all, err)
	}
	program(t, dir, nil, "bench", "--dir", ".", "--time", "0s").does(2)
	program(t, dir, nil, "verify", "--db", "store").does(0)
}
