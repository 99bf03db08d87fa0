package bolt

import (
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"go.etcd.io/bbolt"

	"github.com/partita-go/partita/ids"
	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage"
	"github.com/partita-go/partita/storage/bolt/internal/boltfile"
	"github.com/partita-go/partita/storage/bolt/internal/expect"
	"github.com/partita-go/partita/storage/bolt/internal/faulty"
	"github.com/partita-go/partita/storage/bolt/internal/format"
	"github.com/partita-go/partita/storage/bolt/internal/idsdb"
)

// Those who wait together are numbered together: in one commit of ids.db and in one entry.
func TestGeneratorsTogether(t *testing.T) {
	_, w := openThree(t)
	s := w.s
	nextOf(t, s, 1, 1)
	const callers = 200
	head := s.replica.head.Load()
	var opened atomic.Int32
	entered, proceed := make(chan struct{}), make(chan struct{})
	s.launches.Opened = func(*boltfile.File) {
		if opened.Add(1) == 1 {
			close(entered)
			<-proceed
		}
	}
	var wait sync.WaitGroup
	var mu sync.Mutex
	seen := make(map[uint32]bool)
	next := func() {
		n, err := s.NextGenerator(t.Context(), 1)
		mu.Lock()
		defer mu.Unlock()
		if err != nil || seen[n] || n < 2 || n > callers+1 {
			t.Errorf("got %d, %v", n, err)
		}
		seen[n] = true
	}
	wait.Go(next)
	<-entered
	for range callers - 1 {
		wait.Go(next)
	}
	for len(s.writes) < callers-1 {
		runtime.Gosched()
		expect.NoError(t, t.Context().Err())
	}
	close(proceed)
	wait.Wait()
	if entries := s.replica.head.Load() - head; entries > 4 {
		t.Errorf("got %d entries", entries)
	}
	if opened.Load() > 8 { // Raise opens it, too
		t.Errorf("ids.db was opened %d times", opened.Load())
	}
}

// Of a launch that is used up, or closed, the log is told nothing.
func TestUsedUpLaunchIsNoEntry(t *testing.T) {
	r, w := openThree(t)
	nextOf(t, w.s, 1, 1)
	expect.NoError(t, w.s.launches.Raise([]format.Generator{{Launch: 1, Number: ids.MaxGenerator - 1}}))
	nextOf(t, w.s, 1, ids.MaxGenerator)
	head := w.s.replica.head.Load()
	nextOf(t, w.s, 1, ids.MaxGenerator+1)
	expect.Equal(t, head, w.s.replica.head.Load())
	untilHead(t, r.nodes[1].store, w.s)
	r.nodes[1].store.launches.Opened = func(*boltfile.File) { t.Error("the number is noted elsewhere") }
	w.append(1)
	untilHead(t, r.nodes[1].store, w.s)
	expect.Equal(t, []idsdb.Launch{{Launch: 1, Last: ids.MaxGenerator}}, lastOf(t, r.nodes[1].store))
}

// Without space for ids.db a number is refused, and the store says that it has no room, as soon as somebody hears of it; what
// waits with it is written.
func TestGeneratorsWithoutSpace(t *testing.T) {
	_, w := openThree(t)
	w.s.launches.Opened = func(f *boltfile.File) {
		f.Commit = func(tx *bbolt.Tx) error { return errors.Join(tx.Rollback(), fmt.Errorf("write: %w", syscall.ENOSPC)) }
	}
	before := w.s.replica.head.Load()
	said := make(chan error, 1)
	r := &writeRequest{generator: &format.Generator{Launch: 1}}
	r.Then = func(error) { said <- w.s.Full() }
	if !w.s.door.LetIn(w.s.writes, r) {
		t.Fatal("it is not let in")
	}
	expect.ErrorIs(t, <-said, storage.ErrFull)
	_, err := w.s.NextGenerator(t.Context(), 1)
	expect.ErrorIs(t, err, storage.ErrFull)
	expect.ErrorIs(t, w.s.Full(), storage.ErrFull)
	expect.Equal(t, before, w.s.replica.head.Load())
	w.append(1)
	expect.NoError(t, w.s.Full())
	w.s.launches.Opened = func(*boltfile.File) {}
	nextOf(t, w.s, 1, 1)
}

// An owner that does not know whether its disk has a number closes itself, so that another one leads. It gives another number.
func TestGeneratorOfAFailedDisk(t *testing.T) {
	r, w := openThree(t)
	nextOf(t, w.s, 1, 1)
	untilHead(t, r.nodes[1].store, w.s)
	w.s.launches.Opened = func(f *boltfile.File) { faulty.CommitsOf(f).After.Fail(syscall.EIO) }
	_, err := w.s.NextGenerator(t.Context(), 1)
	expect.ErrorIs(t, err, messages.ErrOutcomeUnknown)
	expect.ErrorIs(t, w.s.Failed(), messages.ErrOutcomeUnknown)
	_, err = w.s.NextGenerator(t.Context(), 1)
	expect.ErrorIs(t, err, storage.ErrClosed)
	<-w.s.released
	nextOf(t, r.lead(t, 1), 1, 2)
}
