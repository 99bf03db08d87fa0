package bolt

import (
	"os"
	"testing"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage/bolt/internal/boltfile"
	"github.com/partita-go/partita/storage/bolt/internal/expect"
	"github.com/partita-go/partita/storage/bolt/internal/format"
)

// An orderly close leaves no log.wal, and no meta page of log.db that knows of one.
func TestWALIsGoneAfterClose(t *testing.T) {
	dir, d := t.TempDir(), testDescriptor(1, messages.TrustNone)
	s := open(t, dir, d, smallMap)
	w := takeOver(t, s, 0)
	w.append(1, 2)
	_, err := os.Stat(walPath(dir))
	expect.NoError(t, err)
	want := collectEvents(t, s.Log(t.Context(), 1))
	closeStore(t, s)
	noWAL(t, dir)
	size := os.Getpagesize()
	for page := range boltfile.MetaPages {
		repaired := crashCopy(t, dir)
		content := []byte(filesOf(t, repaired)[format.LogFileName])
		copy(content[(1-page)*size:][:boltfile.MetaEnd], content[page*size:][:boltfile.MetaEnd])
		// The page header has the page's number.
		content[(1-page)*size] = byte(1 - page)
		writeFiles(t, repaired, map[string]string{format.LogFileName: string(content)})
		opensWith(t, repaired, d, want)
	}
	opensWith(t, dir, d, want)
}

// A crash comes between the steps of closing: the store opens with all events.
func TestWALCrashWhileClosing(t *testing.T) {
	dir, d := t.TempDir(), testDescriptor(1, messages.TrustNone)
	s, w, commits := openHooked(t, dir, 1, 2)
	release := commits.Before.HoldAll(t)
	w.append(1, 2)
	want := collectEvents(t, s.Log(t.Context(), 1))
	var crashes []string
	crash := func() error {
		to := t.TempDir()
		crashes = append(crashes, to)
		return os.CopyFS(to, os.DirFS(dir))
	}
	release()
	commits.Before.Set(crash)
	commits.After.Set(crash)
	closeStore(t, s)
	if len(crashes) < 6 {
		t.Fatalf("got %d moments, want those around at least 3 commits", len(crashes))
	}
	last := crashes[len(crashes)-1]
	for _, c := range crashes {
		_, err := os.Stat(walPath(c))
		expect.NoError(t, err)
	}
	// The removal of log.wal was lost.
	kept := filesOf(t, last)[format.WALFileName]
	noWAL(t, dir)
	lost := crashCopy(t, dir)
	writeFiles(t, lost, map[string]string{format.WALFileName: kept})
	for _, c := range append(crashes, lost, dir) {
		opensWith(t, c, d, want)
	}
}
