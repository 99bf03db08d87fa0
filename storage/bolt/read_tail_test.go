package bolt

import (
	"sync"
	"testing"
	"time"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage/bolt/internal/expect"
	"github.com/partita-go/partita/storage/bolt/internal/fetch"
)

// A workspace's log is read from a long tail piece by piece: nothing is missing where the
// pieces meet, also if the events are flushed meanwhile, in the loop or beside it.
func TestLongTailOfWorkspace(t *testing.T) {
	t.Parallel()
	const each = 2*maxTailPlaces + 1000
	for name, during := range map[string]func(w *writer, at messages.WLogOffset){
		"at rest": func(*writer, messages.WLogOffset) {},
		"flushed": func(w *writer, at messages.WLogOffset) {
			if at == 10 || at == maxTailPlaces+500 {
				w.flush()
				w.append(2, 4)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := open(t, t.TempDir(), testDescriptor(1, messages.TrustNone), Options{})
			w := takeOver(t, s, 0)
			w.appendMany(2*each, 2, 4)
			for _, from := range []messages.WLogOffset{1, 2, maxTailPlaces, 2 * maxTailPlaces, each, each + 1} {
				readWLog(t, s, 2, from, each, during, w)
			}
		})
	}
}

// readWLog reads from an offset on, and fails the test unless it comes to last at least.
func readWLog(t *testing.T, s *Store, ws messages.WSID, from, last messages.WLogOffset, during func(*writer, messages.WLogOffset), w *writer) {
	t.Helper()
	next := from
	for e, err := range s.WLog(t.Context(), ws, from) {
		if err != nil || e.Workspace != ws || e.WLogOffset != next {
			t.Fatalf("from %d: got workspace %d, offset %d and %v, want offset %d", from, e.Workspace, e.WLogOffset, err, next)
		}
		during(w, next)
		next++
	}
	if next <= last {
		t.Fatalf("from %d: it ends before %d, want it to come to %d", from, next, last)
	}
}

// Readers beside a flush of a long tail.
func TestLongTailWhileFlushing(t *testing.T) {
	t.Parallel()
	s := open(t, t.TempDir(), testDescriptor(1, messages.TrustNone), Options{})
	w := takeOver(t, s, 0)
	const each = 12_000
	w.appendMany(each, 2)
	var readers sync.WaitGroup
	flushed := make(chan struct{})
	for i := range messages.WLogOffset(3) {
		readers.Go(func() {
			for over := false; !over; {
				select {
				case <-flushed:
					over = true
				default:
				}
				next := 1 + 3000*i
				for e, err := range s.WLog(t.Context(), 2, next) {
					if err != nil || e.WLogOffset != next {
						t.Errorf("got offset %d and %v, want %d", e.WLogOffset, err, next)
						return
					}
					next++
				}
				if next != each+1 {
					t.Errorf("it ends before %d, want %d", next, each+1)
					return
				}
			}
		})
	}
	w.flush()
	close(flushed)
	readers.Wait()
}

// Whoever reads a workspace's log that was all in state.db when the read began does not look at the partition's tail
// again and again, however long that has become: it needs no lock of it.
func TestStoredWLogIsReadWithoutTheTail(t *testing.T) {
	s := open(t, t.TempDir(), testDescriptor(1, messages.TrustNone), Options{})
	w := takeOver(t, s, 0)
	w.appendMany(3*fetch.FirstChunk, 1)
	w.flush()
	done := make(chan struct{})
	n := 0
	for _, err := range s.WLog(t.Context(), 1, 1) {
		expect.NoError(t, err)
		if n++; n == 1 {
			w.append(1)
			s.partitions[0].mu.Lock()
			late := time.AfterFunc(10*time.Second, func() {
				t.Error("it waits for the tail")
				s.partitions[0].mu.Unlock()
				close(done)
			})
			defer func() {
				if late.Stop() {
					s.partitions[0].mu.Unlock()
					return
				}
				<-done
			}()
		}
	}
	expect.Equal(t, 3*fetch.FirstChunk, n)
}
