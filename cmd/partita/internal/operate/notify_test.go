package operate

import (
	"os"
	"strings"
	"syscall"
	"testing"
)

// TestServeNotifies: a service manager is told when the application is ready, that it lives, and that it stops.
func TestServeNotifies(t *testing.T) {
	told := newManager(t)
	server := process(t, "serve", "--db", newStore(t), "--listen", "127.0.0.1:0")
	server.Env = append(os.Environ(), "NOTIFY_SOCKET="+told.name, "WATCHDOG_USEC=20000")
	check(t, server.Start())
	got := told.next()
	for strings.HasPrefix(got, "STATUS=") {
		got = told.next()
	}
	if !strings.HasPrefix(got, "READY=1\nSTATUS=all partitions") {
		t.Errorf("got %q first", got)
	}
	for range 3 {
		if got := told.next(); got != "WATCHDOG=1" {
			t.Errorf("got %q", got)
		}
	}
	check(t, server.Process.Signal(syscall.SIGTERM))
	for told.next() != "STOPPING=1" {
	}
	check(t, server.Wait())
}
