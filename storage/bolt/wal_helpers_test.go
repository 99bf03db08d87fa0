package bolt

import (
	"path/filepath"
	"testing"

	"go.etcd.io/bbolt"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage/bolt/internal/boltfile"
	"github.com/partita-go/partita/storage/bolt/internal/expect"
	"github.com/partita-go/partita/storage/bolt/internal/faulty"
	"github.com/partita-go/partita/storage/bolt/internal/format"
	"github.com/partita-go/partita/storage/bolt/internal/wal"
)

// smallMap keeps the files that are copied small.
var smallMap = Options{MmapSize: 32 << 10}

// diskOf lets log.wal fail where a test wants. It must be called before anything is appended.
func diskOf(s *Store) *faulty.Disk {
	d := &faulty.Disk{Directory: s.files.Directory}
	s.log.WAL.Disk = d
	return d
}

// nothingWritten and notSynced are where a commit fails.
func nothingWritten(c *faulty.Commits) *faulty.Point { return &c.Before }
func notSynced(c *faulty.Commits) *faulty.Point      { return &c.After }

// outgrowing is an event for which log.wal has to grow.
func (w *writer) outgrowing(ws messages.WSID) messages.Event {
	e := w.event(ws)
	e.Body = make([]byte, wal.Chunk)
	return e
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
// lets the next commits of log.db fail where a test wants.
func openHooked(t testing.TB, dir string, workspaces ...messages.WSID) (s *Store, w *writer, commits *faulty.Commits) {
	t.Helper()
	s = open(t, dir, testDescriptor(1, messages.TrustNone), smallMap)
	commits = faulty.CommitsOf(s.log.File)
	w = takeOver(t, s, 0)
	w.append(workspaces...)
	settled(t, s)
	return s, w, commits
}

// leftBehind returns a directory as a crash leaves it, with an event in log.db and four more
// in log.wal, each a commit, and all of them.
func leftBehind(t testing.TB) (dir string, d messages.Descriptor, want []messages.Event) {
	t.Helper()
	dir, d = t.TempDir(), testDescriptor(1, messages.TrustNone)
	s, w, commits := openHooked(t, dir, 1)
	release := commits.Before.HoldAll(t)
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

// openPath opens a bbolt file; errors name it as title.
func openPath(t testing.TB, path, title string, o *bbolt.Options) (*boltfile.File, error) {
	t.Helper()
	return boltfile.OpenFile(expect.Opened(t, boltfile.OpenDirectory, filepath.Dir(path)), filepath.Base(path), title, o)
}

func walPath(dir string) string { return filepath.Join(dir, format.WALFileName) }
