//go:build unix

package serve

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"go.uber.org/zap"
)

// TestEndWaitsUntilItIsTold: once following has ended, the service manager has been told that the program stops, however
// quick the end is: what comes later finds no socket here.
func TestEndWaitsUntilItIsTold(t *testing.T) {
	dir, err := os.MkdirTemp("", "n") //nolint:usetesting // the name of a socket must be short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	for range 20 {
		name := filepath.Join(dir, "s")
		conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: name, Net: "unixgram"})
		if err != nil {
			t.Fatal(err)
		}
		t.Setenv("NOTIFY_SOCKET", name)
		s := &server{logger: zap.NewNop()}
		end := s.startNotifying(t.Context(), &served{ready: func(context.Context) error { return nil }, status: func() string { return "" }})
		end()
		if err := os.Remove(name); err != nil {
			t.Fatal(err)
		}
		if err := conn.SetReadDeadline(time.Now().Add(time.Second)); err != nil {
			t.Fatal(err)
		}
		b := make([]byte, 1000)
		for got := ""; got != "STOPPING=1"; {
			n, err := conn.Read(b)
			if err != nil {
				t.Fatalf("it was not told before the end: %v", err)
			}
			got = string(b[:n])
		}
		if err := conn.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
