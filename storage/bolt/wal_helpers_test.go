package bolt

import (
	"path/filepath"
	"sync"
	"testing"

	"go.etcd.io/bbolt"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage/bolt/internal/boltfile"
	"github.com/partita-go/partita/storage/bolt/internal/expect"
	"github.com/partita-go/partita/storage/bolt/internal/format"
)

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
	expect.NoError(t, err)
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
	expect.Equal(t, 5, len(want))
	closeStore(t, s)
	return crash, d, want
}

// opensWith makes sure that a directory opens and has exactly these events, and goes on.
func opensWith(t testing.TB, dir string, d messages.Descriptor, want []messages.Event) {
	t.Helper()
	s, err := Open(t.Context(), dir, d, smallMap)
	expect.NoError(t, err)
	defer closeStore(t, s)
	expect.Equal(t, want, collectEvents(t, s.Log(t.Context(), 1)))
	w := takeOver(t, s, 0)
	w.append(1)
	expect.Equal(t, len(want)+1, len(collectEvents(t, s.Log(t.Context(), 1))))
}

// held opens a directory until the end of the test.
func held(t testing.TB, dir string) *boltfile.Directory {
	t.Helper()
	d, err := boltfile.OpenDirectory(dir)
	expect.NoError(t, err)
	t.Cleanup(func() { expect.NoError(t, d.Close()) })
	return d
}

// openPath opens a bbolt file; errors name it as title.
func openPath(t testing.TB, path, title string, o *bbolt.Options) (*boltfile.File, error) {
	t.Helper()
	return boltfile.OpenFile(held(t, filepath.Dir(path)), filepath.Base(path), title, o)
}

func walPath(dir string) string { return filepath.Join(dir, format.WALFileName) }
