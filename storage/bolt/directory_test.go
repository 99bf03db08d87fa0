package bolt

import (
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage"
	"github.com/partita-go/partita/storage/bolt/internal/expect"
	"github.com/partita-go/partita/storage/bolt/internal/faulty"
	"github.com/partita-go/partita/storage/bolt/internal/format"
	"github.com/partita-go/partita/storage/verify"
)

// exchanges let the name that a store was opened by mean another directory. Each returns the name to
// open ours by, and what lets it mean that of another store; then where ours is.
var exchanges = map[string]func(t *testing.T, ours, theirs string) (name string, exchange func() string){
	"a link is switched": func(t *testing.T, ours, theirs string) (string, func() string) {
		link := filepath.Join(t.TempDir(), "current")
		expect.NoError(t, os.Symlink(ours, link))
		return link, func() string {
			expect.NoError(t, os.Symlink(theirs, link+".new"))
			expect.NoError(t, os.Rename(link+".new", link))
			return ours
		}
	},
	"the working directory is changed": func(t *testing.T, ours, theirs string) (string, func() string) {
		t.Chdir(filepath.Dir(ours))
		expect.NoError(t, os.Rename(theirs, filepath.Join(filepath.Dir(theirs), filepath.Base(ours))))
		return filepath.Base(ours), func() string {
			t.Chdir(filepath.Dir(theirs))
			return ours
		}
	},
	"it is moved away, and another one is in its place": func(t *testing.T, ours, theirs string) (string, func() string) {
		return ours, func() string {
			expect.NoError(t, os.Rename(ours, ours+".away"))
			expect.NoError(t, os.Rename(theirs, ours))
			return ours + ".away"
		}
	},
}

// neighbour returns a store that was killed: the directory, and what is in it.
func neighbour(t *testing.T) (dir string, files map[string]string, untouched func(dir string)) {
	t.Helper()
	left, d, want := leftBehind(t)
	dir = filepath.Join(t.TempDir(), "theirs")
	expect.NoError(t, os.Rename(left, dir))
	files = filesOf(t, dir)
	return dir, files, func(dir string) {
		t.Helper()
		if !maps.Equal(files, filesOf(t, dir)) {
			t.Fatal("a file of the other store was touched")
		}
		opensWith(t, crashCopy(t, dir), d, want)
	}
}

// deeds are what a store does with its directory.
var deeds = []struct {
	name string
	do   func(t *testing.T, w *writer)
}{
	{"an append", func(_ *testing.T, w *writer) { w.append(1, 2) }},
	{"a flush", func(_ *testing.T, w *writer) { w.flush() }},
	{"a subscription", func(t *testing.T, w *writer) {
		expect.NoError(t, w.s.PutSubscription(t.Context(), storage.Subscription{Name: "all"}))
	}},
	{"an inspection", func(t *testing.T, w *writer) {
		in, err := w.s.Inspect(t.Context())
		expect.NoError(t, err)
		expect.Equal(t, true, in.WAL != nil)
	}},
	{"a backup", func(t *testing.T, w *writer) {
		_, err := w.s.Backup(t.Context(), filepath.Join(t.TempDir(), "copy"), CopyOptions{})
		expect.NoError(t, err)
	}},
	{"an orderly close", func(t *testing.T, w *writer) { expect.NoError(t, w.s.Close(t.Context())) }},
}

// Whatever the name of a store means by now, the store works on in the directory that it was opened in, and
// touches no other one.
func TestAnotherStoreIsNotTouched(t *testing.T) {
	for name, prepare := range exchanges {
		for _, appended := range []bool{false, true} {
			t.Run(name+map[bool]string{false: " before the first append", true: " later"}[appended], func(t *testing.T) {
				ours := mkdir(t, filepath.Join(t.TempDir(), "ours"))
				theirs, files, untouched := neighbour(t)
				opened, exchange := prepare(t, ours, theirs)
				d := testDescriptor(1, messages.TrustNone)
				s := open(t, opened, d, smallMap)
				w := takeOver(t, s, 0)
				if appended {
					w.append(1)
				}
				path := s.files.Directory.Path
				expect.NoError(t, s.Displaced())
				ours = exchange()
				isThere := func() {
					t.Helper()
					if !maps.Equal(files, filesOf(t, opened)) {
						t.Fatal("a file of the other store was touched")
					}
				}
				for _, deed := range deeds {
					deed.do(t, w)
					isThere()
					if deed.name == "an append" { // and then it is killed
						killed := quietCopy(t, s, ours)
						opensWith(t, killed, d, collectEvents(t, s.Log(t.Context(), 1)))
					}
				}
				now, err := os.Stat(path)
				expect.NoError(t, err)
				expect.Equal(t, os.SameFile(now, s.files.Directory.Identity), s.Displaced() == nil)
				untouched(opened)
				expect.Equal(t, uint64(0), verified(t, ours, verify.Options{}).FaultCount)
				for _, file := range []string{format.LogFileName, format.StateFileName, format.SubscriptionsFileName} {
					expect.Equal(t, true, filesOf(t, ours)[file] != "", file)
				}
				again := open(t, ours, d, smallMap)
				expect.Equal(t, map[bool]int{false: 2, true: 3}[appended], len(collectEvents(t, again.Log(t.Context(), 1))))
				closeStore(t, again)
			})
		}
	}
}

// While an old process lives in a directory that was moved away, a backup is restored under its name, and opened:
// what the old one does until it is closed, and that, leaves alone what the new one has acknowledged before it is killed.
func TestRestoredUnderTheNameOfALivingStore(t *testing.T) {
	base, d := t.TempDir(), testDescriptor(1, messages.TrustNone)
	name, backup := filepath.Join(base, "store"), filepath.Join(base, "backup")
	old := open(t, name, d, smallMap)
	w := takeOver(t, old, 0)
	w.append(1, 2)
	_, err := old.Backup(t.Context(), backup, CopyOptions{})
	expect.NoError(t, err)
	expect.NoError(t, os.Rename(name, name+".away"))
	_, err = Restore(t.Context(), backup, name, CopyOptions{})
	expect.NoError(t, err)
	living, theirs, commits := openHooked(t, name, 1)
	release := commits.Before.HoldAll(t)
	theirs.append(1, 2, 1, 2, 1, 2, 1, 2, 1, 2)
	want := collectEvents(t, living.Log(t.Context(), 1))
	files := filesOf(t, name)
	w.append(1, 2)
	expect.ErrorIs(t, old.Displaced(), storage.ErrDisplaced)
	expect.NoError(t, living.Displaced())
	expect.NoError(t, old.Close(t.Context()))
	if !maps.Equal(files, filesOf(t, name)) {
		t.Fatal("a file of the other store was touched")
	}
	killed := crashCopy(t, name)
	release()
	closeStore(t, living)
	expect.Equal(t, 13, len(want))
	opensWith(t, killed, d, want)
	s := openToRead(t, name+".away")
	expect.Equal(t, 4, len(collectEvents(t, s.Log(t.Context(), 1))))
}

// A log.wal that a store has not made is not removed, at the first append or later: the append is refused, and says which
// file is in its way.
func TestForeignWALStays(t *testing.T) {
	theirs, d, _ := leftBehind(t)
	foreign := filesOf(t, theirs)[format.WALFileName]
	dir := t.TempDir()
	s := open(t, dir, d, smallMap)
	w := takeOver(t, s, 0)
	writeFiles(t, dir, map[string]string{format.WALFileName: foreign})
	for range 2 {
		err := w.try(w.event(1))
		expect.ErrorIs(t, err, storage.ErrForeign)
		expect.Equal(t, false, strings.Contains(err.Error(), messages.ErrOutcomeUnknown.Error()), err)
		expect.Equal(t, true, strings.Contains(err.Error(), walPath(dir)), err)
		expect.Equal(t, foreign, filesOf(t, dir)[format.WALFileName])
	}
	expect.NoError(t, os.Remove(walPath(dir)))
	w.append(1, 2)
	settled(t, s)
	expect.Equal(t, 2, len(collectEvents(t, s.Log(t.Context(), 1))))
}

// A log.wal that is put in the place of ours is not removed by Close, which says so; log.db has all by then.
func TestExchangedWALStays(t *testing.T) {
	theirs, d, _ := leftBehind(t)
	foreign := filesOf(t, theirs)[format.WALFileName]
	dir := t.TempDir()
	s, err := Open(t.Context(), dir, d, creating(smallMap))
	expect.NoError(t, err)
	w := takeOver(t, s, 0)
	w.append(1)
	ours := filepath.Join(t.TempDir(), "ours")
	expect.NoError(t, os.Rename(walPath(dir), ours))
	writeFiles(t, dir, map[string]string{format.WALFileName: foreign})
	w.append(2, 1)
	want := collectEvents(t, s.Log(t.Context(), 1))
	expect.ErrorIs(t, s.Close(t.Context()), storage.ErrForeign)
	expect.Equal(t, foreign, filesOf(t, dir)[format.WALFileName])
	_, err = Open(t.Context(), dir, d, smallMap)
	expect.ErrorIs(t, err, storage.ErrForeign)
	expect.NoError(t, os.Remove(walPath(dir)))
	opensWith(t, dir, d, want)
}

// The log.wal that a crash has left is removed when all that is in it is in log.db: that very file, and not one that was
// put in its place since it was read, be it the same to the byte.
func TestLeftWALIsRemovedOnlyItself(t *testing.T) {
	left, d, events := leftLarge(t)
	full := smallMap
	full.MaxSize = int64(len(filesOf(t, left)[format.LogFileName]))
	s, err := Open(t.Context(), left, d, full)
	expect.NoError(t, err)
	content := filesOf(t, left)[format.WALFileName]
	expect.NoError(t, os.Remove(walPath(left)))
	writeFiles(t, left, map[string]string{format.WALFileName: content})
	s.log.File.DB.MaxSize = 0
	w := takeOver(t, s, 0)
	expect.ErrorIs(t, w.try(w.event(1)), storage.ErrForeign)
	expect.ErrorIs(t, s.Close(t.Context()), storage.ErrForeign)
	expect.Equal(t, content, filesOf(t, left)[format.WALFileName])
	opensWith(t, left, d, events)
}

// A store that has lost its name says so, as often as it is asked, and no more when it has it again.
func TestDisplaced(t *testing.T) {
	name := filepath.Join(t.TempDir(), "store")
	s := open(t, name, testDescriptor(1, messages.TrustNone), smallMap)
	expect.NoError(t, s.Displaced())
	expect.NoError(t, os.Rename(name, name+".away"))
	expect.ErrorIs(t, s.Displaced(), storage.ErrDisplaced)
	expect.ErrorIs(t, s.Displaced(), os.ErrNotExist)
	expect.NoError(t, os.Mkdir(name, 0o700))
	expect.ErrorIs(t, s.Displaced(), storage.ErrDisplaced)
	expect.NoError(t, os.Remove(name))
	expect.NoError(t, os.Rename(name+".away", name))
	expect.NoError(t, s.Displaced())
}

// A name whose text says something else than the system makes of it, since ".." stands behind a link, is not another one's.
func TestDisplacedBehindALink(t *testing.T) {
	base, link := t.TempDir(), filepath.Join(t.TempDir(), "link")
	expect.NoError(t, os.Mkdir(filepath.Join(base, "beside"), 0o700))
	expect.NoError(t, os.Symlink(filepath.Join(base, "beside"), link))
	expect.NoError(t, os.Mkdir(filepath.Join(base, "store"), 0o700))
	s := open(t, link+"/../store", testDescriptor(1, messages.TrustNone), smallMap)
	expect.NoError(t, s.Displaced())
	expect.NoError(t, os.Rename(filepath.Join(base, "store"), filepath.Join(base, "away")))
	expect.ErrorIs(t, s.Displaced(), storage.ErrDisplaced)
}

// No name is no name, and not the working directory.
func TestOpenWithoutName(t *testing.T) {
	dir, d, _ := leftBehind(t)
	t.Chdir(dir)
	_, err := Open(t.Context(), "", d, Options{Create: true})
	expect.ErrorIs(t, err, os.ErrNotExist)
	_, err = OpenExisting(t.Context(), "", Options{})
	expect.ErrorIs(t, err, storage.ErrNotFound)
	s, err := OpenExisting(t.Context(), ".", Options{ReadOnly: true})
	expect.NoError(t, err)
	closeStore(t, s)
}

// Whoever empties the directory of a living store and puts another store's files there has them untouched: nothing is made
// beside a log.db that is not ours, and the store says what has happened.
func TestFilesExchangedInPlace(t *testing.T) {
	theirs, d, _ := leftBehind(t)
	for name, put := range map[string]map[string]string{"emptied": {}, "another store": filesOf(t, theirs)} {
		t.Run(name, func(t *testing.T) {
			delete(put, format.WALFileName)
			dir := t.TempDir()
			s := open(t, dir, d, smallMap)
			w := takeOver(t, s, 0)
			expect.NoError(t, s.Displaced())
			for file := range filesOf(t, dir) {
				expect.NoError(t, os.Remove(filepath.Join(dir, file)))
			}
			writeFiles(t, dir, put)
			expect.ErrorIs(t, s.Displaced(), storage.ErrDisplaced)
			err := w.try(w.event(1))
			expect.ErrorIs(t, err, storage.ErrDisplaced)
			expect.ErrorIs(t, err, storage.ErrForeign)
			expect.ErrorIs(t, s.PutSubscription(t.Context(), storage.Subscription{Name: "all"}), storage.ErrDisplaced)
			expect.Equal(t, put, filesOf(t, dir))
			expect.NoError(t, s.Close(t.Context()))
			expect.Equal(t, put, filesOf(t, dir))
		})
	}
}

// Another log.db of the store is put in the place of ours, as it was when log.wal had more: log.wal stays beside it, which
// it needs, and Close says why. That log.wal may be one that a crash has left, or ours.
func TestWALStaysBesideAnotherLog(t *testing.T) {
	left, d, events := leftBehind(t)
	for name, begin := range map[string]func(t *testing.T, dir string) (s *Store, other string, want []messages.Event){
		"a crash has left it": func(t *testing.T, dir string) (*Store, string, []messages.Event) {
			files := filesOf(t, left)
			writeFiles(t, dir, files)
			s, err := Open(t.Context(), dir, d, smallMap)
			expect.NoError(t, err)
			return s, files[format.LogFileName], events
		},
		"it is ours": func(t *testing.T, dir string) (*Store, string, []messages.Event) {
			s, err := Open(t.Context(), dir, d, creating(smallMap))
			expect.NoError(t, err)
			w := takeOver(t, s, 0)
			w.append(1)
			settled(t, s)
			release := faulty.CommitsOf(s.log.File).Before.HoldAll(t)
			w.append(2, 1)
			defer release()
			return s, filesOf(t, dir)[format.LogFileName], collectEvents(t, s.Log(t.Context(), 1))
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			s, other, want := begin(t, dir)
			expect.NoError(t, os.Remove(filepath.Join(dir, format.LogFileName)))
			writeFiles(t, dir, map[string]string{format.LogFileName: other})
			err := s.Close(t.Context())
			expect.ErrorIs(t, err, storage.ErrDisplaced)
			expect.ErrorIs(t, err, storage.ErrForeign)
			opensWith(t, dir, d, want)
		})
	}
}
