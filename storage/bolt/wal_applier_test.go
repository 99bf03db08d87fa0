package bolt

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"go.etcd.io/bbolt"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage"
	"github.com/partita-go/partita/storage/bolt/internal/boltfile"
	"github.com/partita-go/partita/storage/bolt/internal/expect"
	"github.com/partita-go/partita/storage/bolt/internal/faulty"
	"github.com/partita-go/partita/storage/bolt/internal/files"
	"github.com/partita-go/partita/storage/bolt/internal/format"
)

var errNoSpace = fmt.Errorf("write: %w", syscall.ENOSPC)

// While log.db is full, what was acknowledged is read and stays in log.wal, over crashes and
// orderly closes, and the next append is refused. With space all goes on.
func TestWALWhenLogIsFull(t *testing.T) {
	dir, d := t.TempDir(), testDescriptor(1, messages.TrustNone)
	s := open(t, dir, d, smallMap)
	before := &faulty.CommitsOf(s.log.File).Before
	w := takeOver(t, s, 0)
	w.append(1)
	for range 2 {
		settled(t, s)
		before.Fail(errNoSpace)
		w.append(2)
		expect.ErrorIs(t, s.log.AwaitApplied(t.Context(), w.lastLSN()), storage.ErrFull)
		expect.ErrorIs(t, w.try(w.event(1)), storage.ErrFull)
		_, err := s.TakeEpoch(t.Context(), 0)
		expect.ErrorIs(t, err, storage.ErrFull)
		opensWith(t, crashCopy(t, dir), d, collectEvents(t, s.Log(t.Context(), 1)))
		before.Clear()
		w.append(1)
	}
	settled(t, s)
	before.Fail(errNoSpace)
	w.append(2)
	want := collectEvents(t, s.Log(t.Context(), 1))
	expect.Equal(t, 6, len(want))
	closeStore(t, s)
	opensWith(t, crashCopy(t, dir), d, want)
	opensWith(t, dir, d, want)
}

func (w *writer) lastLSN() messages.LSN { return messages.LSN(w.s.lastLSN.Load()) }

// A store of which log.db is full is opened: what log.db cannot take is read from log.wal, and that
// stays until it can.
func TestWALOpenedWithoutSpace(t *testing.T) {
	for name, applied := range map[string]bool{"log.db has nothing of it": false, "log.db has all but the last": true} {
		t.Run(name, func(t *testing.T) {
			dir, d := t.TempDir(), testDescriptor(1, messages.TrustNone)
			s, w, commits := openHooked(t, dir, 1)
			if !applied {
				commits.Before.HoldAll(t)
			}
			for range 8 {
				e := w.event(1)
				e.Body = make([]byte, 100_000)
				expect.NoError(t, w.try(e))
			}
			if applied {
				settled(t, s)
				commits.Before.HoldAll(t)
			}
			w.append(1)
			want := collectEvents(t, s.Log(t.Context(), 1))
			crash := crashCopy(t, dir)
			info, err := os.Stat(filepath.Join(crash, format.LogFileName))
			expect.NoError(t, err)
			full := smallMap
			full.MaxSize = info.Size()
			s = open(t, crash, d, full)
			for range 2 {
				expect.Equal(t, want, collectEvents(t, s.Log(t.Context(), 1)))
				w.s = s
				expect.ErrorIs(t, w.try(w.event(1)), storage.ErrFull)
				opensWith(t, crashCopy(t, crash), d, want)
				closeStore(t, s)
				s = open(t, crash, d, full)
			}
			closeStore(t, s)
			opensWith(t, crash, d, want)
		})
	}
}

// opened opens the files of a store as [Open] does.
func opened(t *testing.T, dir string) *opening {
	t.Helper()
	return openedWith(t, dir, smallMap.WithDefaults())
}

func openedWith(t *testing.T, dir string, o Options) *opening {
	t.Helper()
	f, err := files.Open(t.Context(), dir, nil, o.ofFiles())
	expect.NoError(t, err)
	return newOpening(f, o)
}

// Recovery breaks off at any of its commits, or the close behind it, once or again, and nothing is lost.
func TestWALRecoveryBreaksOff(t *testing.T) {
	crash, d, want := leftBehind(t)
	for name, where := range map[string]func(*faulty.Commits) *faulty.Point{"before": nothingWritten, "after": notSynced} {
		ended := false
		for commit := 0; !ended; commit++ {
			dir := crashCopy(t, crash)
			for again := range 2 {
				op := opened(t, dir)
				n := 0
				where(faulty.CommitsOf(op.log.File)).Set(func() error {
					if n++; n > commit {
						return io.ErrUnexpectedEOF
					}
					return nil
				})
				if err := op.recover(t.Context()); err == nil {
					op.start()
					closeStore(t, op.Store)
				} else {
					expect.ErrorIs(t, err, messages.ErrOutcomeUnknown, name, commit)
					expect.NoError(t, op.files.Close())
				}
				ended = ended || n <= commit && again == 0
			}
			opensWith(t, dir, d, want)
			if ended && commit < 3 {
				t.Fatalf("%s: recovery and the close behind it had %d commits", name, commit)
			}
		}
	}
}

// Recovery runs out of space at its commit, or the first append at any of those before it. The store opens, appends are
// refused and leave log.wal where it is, until there is space.
func TestWALRecoveryWithoutSpace(t *testing.T) {
	crash, d, want := leftBehind(t)
	for commit := range 4 {
		dir := crashCopy(t, crash)
		op := opened(t, dir)
		before := &faulty.CommitsOf(op.log.File).Before
		n := 0
		before.Set(func() error {
			if n++; n > commit {
				return errNoSpace
			}
			return nil
		})
		expect.NoError(t, op.recover(t.Context()))
		op.start()
		s := op.Store
		expect.Equal(t, want, collectEvents(t, s.Log(t.Context(), 1)))
		reg, err := s.Register(t.Context(), 0)
		expect.NoError(t, err)
		w := goOn(t, s, 0, reg)
		expect.ErrorIs(t, w.try(w.event(1)), storage.ErrFull, commit)
		opensWith(t, crashCopy(t, dir), d, want)
		before.Clear()
		w.append(1)
		want := collectEvents(t, s.Log(t.Context(), 1))
		expect.Equal(t, 6, len(want))
		opensWith(t, quietCopy(t, s, dir), d, want)
		closeStore(t, s)
		opensWith(t, dir, d, want)
	}
}

// A sync of log.db fails while the applier brings events there: the store closes, and the
// next one has them, be log.db as it was after the commit, or before it.
func TestWALApplierDoesNotKnow(t *testing.T) {
	for name, where := range map[string]func(*faulty.Commits) *faulty.Point{
		"nothing was written": nothingWritten, "it was written, not synced": notSynced,
	} {
		t.Run(name, func(t *testing.T) {
			dir, d := t.TempDir(), testDescriptor(1, messages.TrustNone)
			s, w, commits := openHooked(t, dir, 1)
			old := filesOf(t, dir)[format.LogFileName]
			where(commits).Fail(io.ErrUnexpectedEOF)
			w.append(2, 1)
			want := collectEvents(t, s.Log(t.Context(), 1))
			expect.ErrorIs(t, s.log.AwaitApplied(t.Context(), w.lastLSN()), storage.ErrClosed)
			<-s.closing
			expect.ErrorIs(t, w.try(w.event(1)), storage.ErrClosed)
			closeStore(t, s)
			lost := crashCopy(t, dir)
			writeFiles(t, lost, map[string]string{format.LogFileName: old})
			opensWith(t, dir, d, want)
			opensWith(t, lost, d, want)
		})
	}
}

// After a commit of log.db whose outcome is unknown, nothing is written on top of it, and
// log.wal stays for the next open.
func TestWALStaysWhenLogIsUncertain(t *testing.T) {
	dir, d := t.TempDir(), testDescriptor(1, messages.TrustNone)
	s, _, commits := openHooked(t, dir, 1, 2)
	want := collectEvents(t, s.Log(t.Context(), 1))
	commits.After.Fail(io.ErrUnexpectedEOF)
	_, err := s.TakeEpoch(t.Context(), 0)
	expect.ErrorIs(t, err, messages.ErrOutcomeUnknown)
	written := 0
	count := func() error { written++; return nil }
	commits.Before.Set(count)
	closeStore(t, s)
	expect.Equal(t, 0, written, "commits after the one that failed")
	_, err = os.Stat(walPath(dir))
	expect.NoError(t, err)
	again := opened(t, crashCopy(t, dir))
	faulty.CommitsOf(again.log.File).Before.Set(count)
	expect.NoError(t, again.recover(t.Context()))
	expect.Equal(t, 0, written, "log.db has everything")
	again.start()
	closeStore(t, again.Store)
	noWAL(t, again.files.Directory.Path)
	expect.Equal(t, boltfile.MetaPages, written, "it is forgotten")
	opensWith(t, dir, d, want)
}

// The note that there is a log.wal may be in log.db or not: then the file must stay.
func TestWALNoteIsUncertain(t *testing.T) {
	for name, where := range map[string]func(*faulty.Commits) *faulty.Point{
		"it is not there": nothingWritten, "it is there": notSynced,
	} {
		t.Run(name, func(t *testing.T) {
			dir, d := t.TempDir(), testDescriptor(1, messages.TrustNone)
			s := open(t, dir, d, smallMap)
			commits := faulty.CommitsOf(s.log.File)
			w := takeOver(t, s, 0)
			where(commits).Fail(io.ErrUnexpectedEOF)
			expect.ErrorIs(t, w.try(w.event(1)), messages.ErrOutcomeUnknown)
			closeStore(t, s)
			opensWith(t, dir, d, nil)
		})
	}
}

// Something else is put at log.db's end while events are pending. It is not overwritten, they
// are read, and log.wal keeps them: the store opens when the place is free again.
func TestWALConflict(t *testing.T) {
	dir, d := t.TempDir(), testDescriptor(1, messages.TrustNone)
	s, w, commits := openHooked(t, dir, 1)
	commits.Before.Fail(errNoSpace)
	w.append(2, 1)
	want := collectEvents(t, s.Log(t.Context(), 1))
	key, foreign := format.AppendLSNKey(nil, 2), []byte("foreign")
	edit := func(db *bbolt.DB, fn func(*bbolt.Bucket) error) {
		t.Helper()
		expect.NoError(t, db.Update(func(tx *bbolt.Tx) error { return fn(tx.Bucket(format.BucketLog)) }))
	}
	edit(s.log.File.DB, func(b *bbolt.Bucket) error { return b.Put(key, foreign) })
	follower := s.waitPLog(t, 0, 100)
	commits.Before.Clear()
	if err := s.log.AwaitApplied(t.Context(), 2); !conflictAt(err, storage.PlaceLog) {
		t.Fatalf("got %v, want a conflict", err)
	}
	expect.ErrorIs(t, follower.end(), storage.ErrConflict)
	expect.ErrorIs(t, w.try(w.event(1)), storage.ErrConflict)
	expect.Equal(t, want, collectEvents(t, s.Log(t.Context(), 1)))
	if got := get(t, s.log.File, format.BucketLog, key); !bytes.Equal(got, foreign) {
		t.Fatalf("got %q, want it as it was", got)
	}
	closeStore(t, s)
	files := filesOf(t, dir)
	_, err := Open(t.Context(), dir, d, smallMap)
	expect.ErrorIs(t, err, storage.ErrDamaged)
	if got := filesOf(t, dir); !maps.Equal(got, files) {
		t.Fatal("an open that was refused has changed something")
	}
	db, err := bbolt.Open(filepath.Join(dir, format.LogFileName), 0o600, nil)
	expect.NoError(t, err)
	edit(db, func(b *bbolt.Bucket) error { return b.Delete(key) })
	expect.NoError(t, db.Close())
	opensWith(t, dir, d, want)
}

// An epoch is taken although log.db has no room for what was appended, also by the next
// open: else nobody could go on from a full disk.
func TestWALEpochWhenLogIsFull(t *testing.T) {
	dir, d := t.TempDir(), testDescriptor(1, messages.TrustNone)
	o := Options{MmapSize: 32 << 10, MaxSize: 4 << 20}
	s := open(t, dir, d, o)
	w := takeOver(t, s, 0)
	var err error
	for err == nil {
		e := w.event(1)
		e.Body = make([]byte, 50_000)
		err = w.try(e)
	}
	expect.ErrorIs(t, err, storage.ErrFull)
	_, err = s.TakeEpoch(t.Context(), 0)
	expect.NoError(t, err)
	closeStore(t, s)
	s = open(t, dir, d, o)
	r, err := s.TakeEpoch(t.Context(), 0)
	expect.NoError(t, err)
	expect.Equal(t, w.next-1, r.Last)
}

// A store that closes itself because log.db could not be synced says so to whoever comes.
func TestWALCauseIsTold(t *testing.T) {
	s, w, commits := openHooked(t, t.TempDir(), 1)
	commits.After.Fail(syscall.EIO)
	w.append(1)
	// Before the closing was heard of, too.
	expect.ErrorIs(t, s.log.AwaitApplied(t.Context(), w.lastLSN()), storage.ErrClosed)
	<-s.closing
	err := w.try(w.event(1))
	expect.ErrorIs(t, err, storage.ErrClosed)
	if !strings.Contains(err.Error(), syscall.EIO.Error()) {
		t.Errorf("got %v, want the cause", err)
	}
}
