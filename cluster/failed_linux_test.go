package cluster

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage"
	"github.com/partita-go/partita/storage/replog"
)

// spoil lets each write to a file fail that this process has open.
func spoil(t *testing.T, path string) {
	t.Helper()
	open, err := filepath.Glob("/proc/self/fd/*")
	if err != nil {
		t.Fatal(err)
	}
	reads, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer reads.Close()
	own, err := reads.Stat()
	if err != nil {
		t.Fatal(err)
	}
	spoiled := 0
	for _, name := range open {
		if info, err := os.Stat(name); err != nil || !os.SameFile(info, own) {
			continue // some are closed meanwhile
		}
		fd, err := strconv.Atoi(filepath.Base(name))
		if err != nil {
			t.Fatal(err)
		}
		if fd == int(reads.Fd()) {
			continue
		}
		if err := syscall.Dup3(int(reads.Fd()), fd, syscall.O_CLOEXEC); err != nil {
			t.Fatal(err)
		}
		spoiled++
	}
	if spoiled != 1 {
		t.Fatalf("%s is open %d times, want once", path, spoiled)
	}
}

// TestOwnerWhoseStoreHasFailed: a store whose disk fails closes itself, and its side of the log, which does not know why. The
// node says why, hands over, and takes part again when it is started again.
func TestOwnerWhoseStoreHasFailed(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	w := r.serve()
	was := r.owner()
	r.append(was, 1, 1)
	spoil(t, filepath.Join(StoreDir(was.o.Dir), "log.db"))
	next := r.others(was)[0]
	r.append(next, 1, 2)
	for end := time.Now().Add(patience); was.Status().Stopped == nil || was.Status().Serves; <-time.After(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("it takes part: %+v", was.Status())
		}
	}
	for _, err := range []error{was.Status().Stopped, was.Ready(r.ctx), was.Store().Failed()} {
		if !errors.Is(err, messages.ErrOutcomeUnknown) || !errors.Is(err, syscall.EBADF) {
			t.Errorf("got %v, want an unknown outcome of a bad file", err)
		}
	}
	if s := was.Status(); s.Serves || s.Leader != "" {
		t.Errorf("got %+v", s)
	}
	if _, err := was.Append(r.ctx, to(1, 3), one(3)); !errors.Is(err, replog.ErrNotOwner) || !errors.Is(err, syscall.EBADF) {
		t.Errorf("got %v, want that it takes no part, and why", err)
	}
	r.append(next, 1, 4)
	r.soon(func() error {
		owner := r.owner(was.o.Node)
		_, content := w.ask(owner.o.Node, http.MethodGet, clusterPath, "")
		var status StatusJSON
		if err := json.Unmarshal([]byte(content), &status); err != nil {
			return err
		}
		if len(status.Members) != len(names) {
			return fmt.Errorf("got %s", content)
		}
		for _, m := range status.Members {
			if (m.Stopped != "") != (m.Node == was.o.Node) || m.Serves != (m.Node == owner.o.Node) {
				return fmt.Errorf("got %+v", m)
			}
		}
		return nil
	})
	r.stop(was.o.Node)
	r.awaitEvents(r.start(was.o.Node), 3)
}

// TestNodeWhoseIDsAreHeld: a node that cannot have its ids.db for a while stops, and takes part again by itself.
func TestNodeWhoseIDsAreHeld(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	g := numbers(r)
	owner := r.owner()
	g.must(owner)
	r.append(owner, 1, 1)
	n := r.others(owner)[0]
	r.awaitEvents(n, 1)
	held, err := os.Open(filepath.Join(StoreDir(n.o.Dir), "ids.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer held.Close()
	if err := syscall.Flock(int(held.Fd()), syscall.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	g.must(owner)
	for end := time.Now().Add(patience); n.Status().Stopped == nil; <-time.After(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("it goes on")
		}
	}
	if err := n.Status().Stopped; !errors.Is(err, storage.ErrLocked) {
		t.Errorf("got %v, want that a file is locked", err)
	}
	if err := held.Close(); err != nil {
		t.Fatal(err)
	}
	r.append(r.owner(), 1, 2)
	r.awaitEvents(n, 2)
	g.must(n)
	if s := n.Status(); s.Stopped != nil || s.Failed != nil {
		t.Errorf("got %+v", s)
	}
}
