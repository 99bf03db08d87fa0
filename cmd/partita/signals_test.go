package main

import (
	"net"
	"net/http"
	"os/signal"
	"strings"
	"syscall"
	"testing"
)

// TestSecondSignal: the first signal lets a request end, the second one ends the program at once, with a line and a
// status that say so. What was acknowledged is there.
func TestSecondSignal(t *testing.T) {
	for name, signals := range map[string][2]syscall.Signal{
		"SIGTERM twice": {syscall.SIGTERM, syscall.SIGTERM}, "SIGINT twice": {syscall.SIGINT, syscall.SIGINT}, "SIGINT behind SIGTERM": {syscall.SIGTERM, syscall.SIGINT},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			program(t, dir, nil, "init").does(0)
			s := serving(t, dir, "--create")
			s.post(`{"kind": "shop", "wanted": [{"sequence": 16}]}`)
			// A request whose body does not come keeps the gentle stop waiting.
			conn, err := net.Dial("tcp", strings.TrimPrefix(s.URL, "http://"))
			check(t, err)
			defer conn.Close()
			_, err = conn.Write([]byte("POST /v1/workspaces/42/events HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 99\r\nExpect: 100-continue\r\n\r\n"))
			check(t, err)
			_, err = conn.Read(make([]byte, 25)) // it waits for the body
			check(t, err)
			check(t, s.Process.Signal(signals[0]))
			awaitNoListener(t, s.URL)
			check(t, s.Process.Signal(signals[1]))
			s.ends(3)
			want := "ended at once by " + map[syscall.Signal]string{syscall.SIGTERM: "SIGTERM", syscall.SIGINT: "SIGINT"}[signals[1]]
			if lines := strings.Split(strings.TrimSpace(s.stderr.String()), "\n"); !strings.Contains(lines[len(lines)-1], want) {
				t.Errorf("got %s, want %s", &s.stderr, want)
			}
			program(t, dir, nil, "verify", "--db", "store").does(0)
			if log := program(t, dir, nil, "log", "--db", "store", "--json").does(0); strings.Count(log.stdout.String(), "\n") != 1 {
				t.Errorf("got %s", &log.stdout)
			}
		})
	}
}

// TestHangupAtOnce: from the first moment on a server is not ended by SIGHUP; all else is.
func TestHangupAtOnce(t *testing.T) {
	defer signal.Reset(syscall.SIGHUP)
	for _, tt := range []struct {
		args    []string
		ignores bool
	}{{[]string{"serve", "--db", "x"}, true}, {[]string{"log", "--db", "serve"}, false}, {nil, false}} {
		signal.Reset(syscall.SIGHUP)
		ctx, stop := interruptible(isServe(tt.args))
		if got := signal.Ignored(syscall.SIGHUP); got != tt.ignores {
			t.Errorf("%q: ignored %v, want %v", tt.args, got, tt.ignores)
		}
		check(t, syscall.Kill(syscall.Getpid(), syscall.SIGHUP))
		if !tt.ignores {
			<-ctx.Done()
		}
		if tt.ignores && ctx.Err() != nil {
			t.Errorf("%q: it ends", tt.args)
		}
		stop()
	}
}

// awaitNoListener waits until a server takes no connection any more: then its first signal has come.
func awaitNoListener(t *testing.T, url string) {
	t.Helper()
	for ctx := limit(t); ctx.Err() == nil; {
		client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
		response, err := client.Get(url + "/healthz")
		if err != nil {
			return
		}
		check(t, response.Body.Close())
	}
	t.Fatal("it still listens")
}
