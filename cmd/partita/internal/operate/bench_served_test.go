package operate

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// BenchmarkServed measures what looking after a store that is served costs appends at full load: 64 callers that append
// over HTTP to a store of 300,000 events, by turns alone and with somebody beside them, each for 3 s, in processes on
// one machine. It tells the share of the throughput that is left. A backup yields to others (nice), as it does by
// itself when it goes to another machine.
//
//	make bench BENCH=Served BENCHPKG=./cmd/partita/internal/operate BENCHTIME=4x COUNT=1
func BenchmarkServed(b *testing.B) {
	for name, beside := range map[string]func(ctx context.Context, b *testing.B, url string, from uint64){
		"backup": func(ctx context.Context, b *testing.B, url string, from uint64) {
			for n := 0; ctx.Err() == nil; n++ {
				p := processOf(ctx, "backup", "--url", url, "--to", filepath.Join(b.TempDir(), strconv.Itoa(n)))
				p.Path, p.Args = "/usr/bin/nice", append([]string{"nice", "-n", "19"}, p.Args...)
				_ = p.Run()
			}
		},
		"20 followers": func(ctx context.Context, b *testing.B, url string, from uint64) {
			var all sync.WaitGroup
			for range 20 {
				all.Go(func() {
					_ = processOf(ctx, "log", "--follow", "--url", url, "--from", strconv.FormatUint(from, 10)).Run()
				})
			}
			all.Wait()
		},
	} {
		b.Run(name, func(b *testing.B) { benchmarkServed(b, beside) })
	}
}

// BenchmarkServeWithoutState measures how long it takes until a server of a store of 1,000,000 events whose state.db is gone
// answers that it lives, and until it is ready.
//
//	make bench BENCH=ServeWithoutState BENCHPKG=./cmd/partita/internal/operate BENCHTIME=1x COUNT=3
func BenchmarkServeWithoutState(b *testing.B) {
	dir := newStore(b)
	fill(b, dir, 1_000_000)
	var lives, ready time.Duration
	for b.Loop() {
		check(b, os.Remove(filepath.Join(dir, "state.db")))
		ctx, cancel := context.WithCancel(context.Background())
		address := freeAddress(b)
		server := processOf(ctx, "serve", "--db", dir, "--listen", address, "--log-level", "error")
		begun := time.Now()
		check(b, server.Start())
		asked(b, http.MethodGet, "http://"+address+"/healthz")
		lives += time.Since(begun)
		for asked(b, http.MethodGet, "http://"+address+"/readyz").status != http.StatusOK {
		}
		ready += time.Since(begun)
		cancel()
		_ = server.Wait() // it was killed
	}
	b.ReportMetric(float64(lives.Milliseconds())/float64(b.N), "lives-ms")
	b.ReportMetric(float64(ready.Milliseconds())/float64(b.N), "ready-ms")
	b.ReportMetric(0, "ns/op")
}

const (
	servedCallers = 64
	servedTurn    = 3 * time.Second
)

func processOf(ctx context.Context, args ...string) *exec.Cmd {
	return exec.CommandContext(ctx, os.Args[0], append([]string{programCommand}, args...)...)
}

func benchmarkServed(b *testing.B, beside func(ctx context.Context, b *testing.B, url string, from uint64)) {
	dir := newStore(b)
	fill(b, dir, 300_000)
	address := freeAddress(b)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	server := processOf(ctx, "serve", "--db", dir, "--listen", address, "--log-level", "error")
	check(b, server.Start())
	url := "http://" + address
	for asked(b, http.MethodGet, url+"/readyz").status != http.StatusOK {
	}
	var appended atomic.Int64
	var callers sync.WaitGroup
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: servedCallers}}
	for caller := range servedCallers {
		callers.Go(func() {
			to := fmt.Sprintf("%s/v1/workspaces/%d/events", url, 1000+caller)
			body := fmt.Sprintf(`{"kind": 1, "wanted": [{"sequence": 16}], "body": {"order": %q}}`, strings.Repeat("x", 150))
			for ctx.Err() == nil {
				if appendOne(ctx, client, to, body) {
					appended.Add(1)
				}
			}
		})
	}
	rate := func() float64 {
		before, begun := appended.Load(), time.Now()
		time.Sleep(servedTurn) //nolint:forbidigo // it measures a time
		return float64(appended.Load()-before) / time.Since(begun).Seconds()
	}
	rate() // it gets warm
	alone, with := 0.0, 0.0
	for b.Loop() {
		alone += rate() / 2
		besides, end := context.WithCancel(ctx)
		var running sync.WaitGroup
		running.Go(func() { beside(besides, b, url, uint64(300_006+appended.Load())) })
		time.Sleep(servedTurn / 3) //nolint:forbidigo // until they are there
		with += rate()
		end()
		running.Wait()
		alone += rate() / 2
	}
	cancel()
	callers.Wait()
	_ = server.Wait()
	b.ReportMetric(alone/float64(b.N), "alone/s")
	b.ReportMetric(with/float64(b.N), "beside/s")
	b.ReportMetric(with/alone, "share")
	b.ReportMetric(0, "ns/op")
}

func appendOne(ctx context.Context, client *http.Client, url, body string) bool {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		return false
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := client.Do(request)
	if err != nil {
		return false
	}
	defer response.Body.Close()
	_, _ = io.Copy(io.Discard, response.Body)
	return response.StatusCode == http.StatusCreated
}
