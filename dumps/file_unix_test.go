//go:build unix && !solaris && !aix

package dumps

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestOpenOnlyFiles: what is no regular file is refused at once, and said to be that: a pipe without a reader, one with a
// reader, a directory, a socket.
func TestOpenOnlyFiles(t *testing.T) {
	dir := t.TempDir()
	alone, read, socket := filepath.Join(dir, "alone"), filepath.Join(dir, "read"), filepath.Join(dir, "socket")
	check(t, syscall.Mkfifo(alone, 0o600))
	check(t, syscall.Mkfifo(read, 0o600))
	reader, err := os.OpenFile(read, os.O_RDWR, 0)
	check(t, err)
	defer reader.Close()
	listener, err := net.Listen("unix", socket)
	check(t, err)
	defer listener.Close()
	for path, want := range map[string]string{alone: "a named pipe", read: "a named pipe", dir: "a directory", socket: "a socket"} {
		if _, err := Open(path, Options{}); !errors.Is(err, ErrFile) || !strings.Contains(err.Error(), path+": got "+want) {
			t.Errorf("got %v, want that it is %s", err, want)
		}
	}
}

// TestOneWriter: a file has one writer at a time. One that is opened anew is still the writer's own.
func TestOneWriter(t *testing.T) {
	path := filepath.Join(t.TempDir(), "dump")
	first, err := Open(path, Options{Groups: everything()})
	check(t, err)
	check(t, first.Reopen(limited(t)))
	tell(first, cancelOf("g", 1))
	if _, err := Open(path, Options{}); !errors.Is(err, ErrFile) || !strings.Contains(err.Error(), path+": another process") {
		t.Errorf("got %v", err)
	}
	check(t, os.Rename(path, path+".1"))
	second, err := Open(path, Options{Groups: everything()})
	check(t, err)
	if err := first.Reopen(limited(t)); !errors.Is(err, ErrFile) {
		t.Errorf("got %v", err)
	}
	check(t, second.Close(limited(t)))
	check(t, first.Reopen(limited(t)))
	tell(first, cancelOf("g", 2))
	check(t, first.Close(limited(t)))
	expectNumbers(t, readAll(t, path, path+".1"), map[string]int{"g": 2})
}
