package bolt

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"sync"
	"testing"

	"go.etcd.io/bbolt"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage/bolt/internal/boltfile"
	"github.com/partita-go/partita/storage/bolt/internal/format"
	"github.com/partita-go/partita/storage/bolt/internal/wal"
)

// failer is a test, or one of rapid's.
type failer interface {
	Helper()
	Fatalf(format string, args ...any)
}

func noError(t failer, err error, where ...any) {
	t.Helper()
	if err != nil {
		t.Fatalf("%v: got %v", where, err)
	}
}

func errorIs(t failer, err, want error, where ...any) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Fatalf("%v: got %v, want %v", where, err, want)
	}
}

func equal[T any](t failer, want, got T, where ...any) {
	t.Helper()
	if !reflect.DeepEqual(want, got) {
		t.Fatalf("%v: got %v, want %v", where, got, want)
	}
}

// smallMap keeps the files that are copied small.
var smallMap = Options{MmapSize: 32 << 10}

// logHook is what happens at each commit of log.db. It can be set while the store works.
type logHook struct {
	mu sync.Mutex
	do func() error
}

// hookLog returns what happens before and after a commit. It must be called before anything
// is appended.
func hookLog(s *Store) (before, after *logHook) {
	before, after = &logHook{}, &logHook{}
	s.log.File.BeforeCommit, s.log.File.AfterCommit = before.run, after.run
	return before, after
}

func (h *logHook) run() error {
	h.mu.Lock()
	do := h.do
	h.mu.Unlock()
	if do == nil {
		return nil
	}
	return do()
}

func (h *logHook) set(do func() error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.do = do
}

// fail makes every commit fail.
func (h *logHook) fail(err error) { h.set(func() error { return err }) }

// hold lets the applier wait, at the end of the test at the latest until then: what is
// appended stays pending.
func (h *logHook) hold(t testing.TB) (release func()) {
	goOn := make(chan struct{})
	h.set(func() error {
		<-goOn
		return nil
	})
	release = sync.OnceFunc(func() {
		h.set(nil)
		close(goOn)
	})
	t.Cleanup(release)
	return release
}

// crashCopy copies a store's directory as a crash would leave it now. The caller writes nothing.
func crashCopy(t testing.TB, dir string) string {
	t.Helper()
	to := t.TempDir()
	writeFiles(t, to, filesOf(t, dir))
	return to
}

// quietCopy is crashCopy of a store whose applier may be at work.
func quietCopy(t testing.TB, s *Store, dir string) string {
	t.Helper()
	tx, err := s.log.File.Begin(true)
	noError(t, err)
	defer s.log.File.Rollback(tx)
	return crashCopy(t, dir)
}

// openHooked opens a store with an event of each of these workspaces, which log.db has, and
// returns what happens before and after the next commit of log.db.
func openHooked(t testing.TB, dir string, workspaces ...messages.WSID) (s *Store, w *writer, before, after *logHook) {
	t.Helper()
	s = open(t, dir, testDescriptor(1, messages.TrustNone), smallMap)
	before, after = hookLog(s)
	w = takeOver(t, s, 0)
	w.append(workspaces...)
	settled(t, s)
	return s, w, before, after
}

// leftBehind returns a directory as a crash leaves it, with an event in log.db and four more
// in log.wal, each a commit, and all of them.
func leftBehind(t testing.TB) (dir string, d messages.Descriptor, want []messages.Event) {
	t.Helper()
	dir, d = t.TempDir(), testDescriptor(1, messages.TrustNone)
	s, w, h, _ := openHooked(t, dir, 1)
	release := h.hold(t)
	w.append(2, 1, 2, 1)
	crash := crashCopy(t, dir)
	release()
	want = collectEvents(t, s.Log(t.Context(), 1))
	equal(t, 5, len(want))
	closeStore(t, s)
	return crash, d, want
}

// opensWith makes sure that a directory opens and has exactly these events, and goes on.
func opensWith(t testing.TB, dir string, d messages.Descriptor, want []messages.Event) {
	t.Helper()
	s, err := Open(t.Context(), dir, d, smallMap)
	noError(t, err)
	defer closeStore(t, s)
	equal(t, want, collectEvents(t, s.Log(t.Context(), 1)))
	w := takeOver(t, s, 0)
	w.append(1)
	equal(t, len(want)+1, len(collectEvents(t, s.Log(t.Context(), 1))))
}

// held opens a directory until the end of the test.
func held(t testing.TB, dir string) *boltfile.Directory {
	t.Helper()
	d, err := boltfile.OpenDirectory(dir)
	noError(t, err)
	t.Cleanup(func() { noError(t, d.Close()) })
	return d
}

// openPath opens a bbolt file; errors name it as title.
func openPath(t testing.TB, path, title string, o *bbolt.Options) (*boltfile.File, error) {
	t.Helper()
	return boltfile.OpenFile(held(t, filepath.Dir(path)), filepath.Base(path), title, o)
}

func walPath(dir string) string { return filepath.Join(dir, format.WALFileName) }

// walWriter writes commits to a log.wal with small halves.
type walWriter struct {
	t testing.TB
	wal.Writer
	next, applied messages.LSN
	// events are all that were written, from LSN 1 on.
	events [][]byte
}

const smallHalf = 4 * wal.BlockLen

func newWALWriter(t testing.TB, half int64) *walWriter {
	t.Helper()
	dir := t.TempDir()
	w := &walWriter{t: t, Writer: wal.Writer{Directory: held(t, dir), Store: format.StoreID{7}, Half: half}, next: 1}
	noError(t, w.Create())
	t.Cleanup(func() { _ = w.Close() }) // it is read by its name
	return w
}

// commit writes a commit whose events are that long.
func (w *walWriter) commit(lengths ...int) {
	w.t.Helper()
	values := make([][]byte, len(lengths))
	for i, n := range lengths {
		values[i] = bytes.Repeat(fmt.Appendf(nil, "event %d; ", int(w.next)+i), n/9+1)[:n]
	}
	size := wal.Size(values)
	if need := w.Place(size, w.applied, w.next-1); need != 0 {
		w.applied = need
		equal(w.t, 0, w.Place(size, w.applied, w.next-1))
	}
	noError(w.t, w.Write(size, w.next, values))
	w.next += messages.LSN(len(values))
	w.events = append(w.events, values...)
}

// content returns the file up to the end of its halves.
func (w *walWriter) content() []byte {
	w.t.Helper()
	b, err := os.ReadFile(w.Path())
	noError(w.t, err)
	// Without the zeroes that it has grown by.
	all := make([]byte, wal.BlockLen+2*w.Half)
	copy(all, b)
	copy(all, wal.EncodeHeader(w.Store, w.ID, int64(len(all))))
	return all
}

// lapped returns a log.wal of which the halves were filled more than once: log.db has the events
// before next, and the last commit, of two blocks, stands behind another one.
func lapped(t testing.TB) (w *walWriter, next messages.LSN) {
	t.Helper()
	w = newWALWriter(t, smallHalf)
	for range 7 {
		w.commit(100, 0, 600)
		w.commit(4500)
	}
	w.commit(9)
	w.commit(5000, 30)
	return w, w.applied + 1
}

// pendingIn returns the events from an LSN on that bytes of a log.wal hold.
func (w *walWriter) pendingIn(b []byte, next messages.LSN) ([][]byte, error) {
	r, err := wal.Parse(w.Path(), b, w.Store, w.Half)
	if err == nil {
		err = r.Check(next)
	}
	if err != nil {
		return nil, err
	}
	var events [][]byte
	for i := range r.Commits {
		if c := &r.Commits[i]; c.End() > next {
			events = append(events, c.Values[next-c.First:]...)
			next = c.End()
		}
	}
	return events, nil
}
