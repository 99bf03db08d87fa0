package bolt

import (
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage"
	"github.com/partita-go/partita/storage/bolt/internal/expect"
	"github.com/partita-go/partita/storage/bolt/internal/faulty"
)

// answers are the names of requests in the order in which they were answered, with errors.
type answers struct {
	mu    sync.Mutex
	order []string
	errs  map[string]error
	all   sync.WaitGroup
}

// named lets a request be answered here.
func (a *answers) named(name string, r *writeRequest) *writeRequest {
	a.all.Add(1)
	r.Then = func(err error) {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.order = append(a.order, name)
		if a.errs == nil {
			a.errs = make(map[string]error)
		}
		a.errs[name] = err
		a.all.Done()
	}
	return r
}

func (a *answers) has(name string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Contains(a.order, name)
}

// await waits until all are answered.
func (a *answers) await(t *testing.T) {
	t.Helper()
	done := make(chan struct{})
	go func() {
		a.all.Wait()
		close(done)
	}()
	select {
	case <-done:
	case <-time.After(30 * time.Second):
		a.mu.Lock()
		defer a.mu.Unlock()
		t.Fatalf("got answers to %q only", a.order)
	}
}

// writers take over partitions.
func writers(t *testing.T, s *Store, n int) (all []*writer) {
	t.Helper()
	for p := range n {
		all = append(all, takeOver(t, s, messages.PartitionID(p)))
	}
	return all
}

// of makes a request of one event, with a body of so many bytes, and learns it.
func (w *writer) of(t *testing.T, size int) *writeRequest {
	t.Helper()
	ws := messages.WSID(1)
	for messages.PartitionOf(ws, w.s.schema.Partitions) != w.id {
		ws++
	}
	e := w.event(ws)
	e.Body = make([]byte, size)
	r := w.request(t, e)
	w.learn(&e)
	w.next++
	return r
}

// TestLargeRequestsTakeTurns: each large request has a commit of its own, and what has come
// meanwhile goes before the next one; but nothing overtakes a request of its own partition.
func TestLargeRequestsTakeTurns(t *testing.T) {
	s := open(t, t.TempDir(), testDescriptor(4, messages.TrustNone), Options{})
	w := writers(t, s, 4)
	var a answers
	busy := a.named("busy", w[3].of(t, 10))
	requests := []*writeRequest{
		a.named("large 0", w[0].of(t, largeRequest)),
		a.named("large 1", w[1].of(t, 3*largeRequest)),
		a.named("behind large 0", w[0].of(t, 10)),
		a.named("small 2", w[2].of(t, largeRequest/2)),
		a.named("small 3", w[3].of(t, 10)),
	}
	late := a.named("late 2", w[2].of(t, 10))
	entered, proceed := make(chan struct{}), make(chan struct{})
	before := s.Stats().Commits
	// The commit of the busy one, that of the small ones, and that of the first large one.
	n := 0
	diskOf(s).Before.Set(func() error {
		switch n++; n {
		case 1:
			close(entered)
			<-proceed
		case 3:
			s.writes <- late
		}
		return nil
	})
	s.writes <- busy
	<-entered
	for _, r := range requests {
		s.writes <- r
	}
	close(proceed)
	a.await(t)
	want := []string{"busy", "small 2", "small 3", "large 0", "late 2", "large 1", "behind large 0"}
	if !slices.Equal(a.order, want) {
		t.Errorf("got %q, want %q", a.order, want)
	}
	for name, err := range a.errs {
		expect.NoError(t, err, name)
	}
	expect.Equal(t, 6, int(s.Stats().Commits-before))
}

// TestSmallPassALargeThatWaits: while a large request waits until there is a place for it in
// log.wal, others do not wait with it; but not for ever.
func TestSmallPassALargeThatWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, t.TempDir(), testDescriptor(2, messages.TrustNone), Options{})
		defer closeStore(t, s)
		s.log.WAL.Half = 8 * largeRequest
		commits := faulty.CommitsOf(s.log.File)
		w := writers(t, s, 2)
		var a answers
		s.writes <- a.named("first", w[0].of(t, 10))
		a.await(t)
		settled(t, s)
		release := commits.Before.HoldAll(t)
		for range 2 { // one in each half
			s.writes <- a.named("fits", w[0].of(t, 6*largeRequest))
		}
		a.await(t)
		synctest.Wait() // so that the large one does not come behind those that were put aside
		s.writes <- a.named("large", w[0].of(t, 6*largeRequest))
		synctest.Wait()
		for range maxPassed {
			s.writes <- a.named("passes", w[1].of(t, 10))
			synctest.Wait()
		}
		s.writes <- a.named("waits", w[1].of(t, 10))
		synctest.Wait()
		a.mu.Lock()
		passed := len(a.order) - 3
		a.mu.Unlock()
		if passed != maxPassed || a.has("large") || a.has("waits") {
			t.Errorf("got %d answers, large %v, the last %v; want %d and neither", passed, a.has("large"), a.has("waits"), maxPassed)
		}
		release()
		a.await(t)
		if n := len(a.order); !slices.Equal(a.order[n-2:], []string{"large", "waits"}) {
			t.Errorf("got %q at the end", a.order[n-2:])
		}
		for name, err := range a.errs {
			expect.NoError(t, err, name)
		}
	})
}

// TestLargeIsToldOfTheEnd: whoever was put aside is answered when the store must not be written
// any more, and when it is closed.
func TestLargeIsToldOfTheEnd(t *testing.T) {
	for name, broken := range map[string]error{"unknown outcome": errors.New("injected"), "closed": nil} {
		t.Run(name, func(t *testing.T) {
			s := open(t, t.TempDir(), testDescriptor(3, messages.TrustNone), Options{})
			w := writers(t, s, 3)
			var a answers
			entered, proceed := make(chan struct{}), make(chan struct{})
			n := 0
			diskOf(s).Before.Set(func() error {
				switch n++; n {
				case 1:
					close(entered)
					<-proceed
				case 2:
					return broken
				}
				return nil
			})
			s.writes <- a.named("busy", w[2].of(t, 10))
			<-entered
			s.writes <- a.named("large 0", w[0].of(t, largeRequest))
			s.writes <- a.named("large 1", w[1].of(t, largeRequest))
			if broken == nil {
				s.triggerClose()
			}
			close(proceed)
			a.await(t)
			if broken == nil {
				expect.NoError(t, errors.Join(a.errs["large 0"], a.errs["large 1"]))
				return
			}
			expect.ErrorIs(t, a.errs["large 0"], messages.ErrOutcomeUnknown)
			expect.ErrorIs(t, a.errs["large 1"], storage.ErrClosed)
		})
	}
}
