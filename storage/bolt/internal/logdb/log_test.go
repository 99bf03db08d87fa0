package logdb

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"

	"go.etcd.io/bbolt"
	"go.uber.org/goleak"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage"
	"github.com/partita-go/partita/storage/bolt/internal/boltfile"
	"github.com/partita-go/partita/storage/bolt/internal/expect"
	"github.com/partita-go/partita/storage/bolt/internal/faulty"
	"github.com/partita-go/partita/storage/bolt/internal/format"
	"github.com/partita-go/partita/storage/bolt/internal/wal"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// read opens the log of a directory, and makes an empty one if there is none. It is closed at the end of the test.
func read(t *testing.T, dir string) *Log {
	t.Helper()
	d, err := boltfile.OpenDirectory(dir)
	expect.NoError(t, err)
	isNew, path := len(namesIn(t, dir)) == 0, filepath.Join(dir, format.LogFileName)
	f, err := boltfile.OpenFile(d, format.LogFileName, path, &bbolt.Options{InitialMmapSize: 1 << 20}) // it is not mapped anew
	expect.NoError(t, err)
	if isNew {
		expect.NoError(t, f.Update(func(tx *bbolt.Tx) (err error) {
			for _, name := range format.RoleLog.Buckets() {
				_, failed := tx.CreateBucket(name)
				err = errors.Join(err, failed)
			}
			return err
		}))
	}
	l := New(f, d)
	t.Cleanup(func() { expect.NoError(t, errors.Join(l.Close(), d.Close())) })
	_, err = l.Load(format.StoreID{7})
	expect.NoError(t, err)
	return l
}

// begun returns a new log that is appended to, and its directory.
func begun(t *testing.T) (l *Log, dir string) {
	t.Helper()
	dir = t.TempDir()
	l = read(t, dir)
	l.Start(func(error) {})
	return l, dir
}

// valuesOf returns events of these lengths.
func valuesOf(lengths ...int) (values [][]byte) {
	for i, n := range lengths {
		values = append(values, bytes.Repeat([]byte{byte(i + 1)}, n))
	}
	return values
}

// append appends events, and returns the last LSN.
func (l *Log) append(t *testing.T, values ...[]byte) messages.LSN {
	t.Helper()
	first, pending := l.Pending()
	last := first + messages.LSN(len(pending)) - 1
	expect.NoError(t, l.Append(last, values, nil))
	return last + messages.LSN(len(values))
}

// settled appends events, and waits until log.db has them.
func (l *Log) settled(t *testing.T, values ...[]byte) {
	t.Helper()
	expect.NoError(t, l.AwaitApplied(t.Context(), l.append(t, values...)))
}

// hold lets the applier wait until the end of the test, or until release.
func (l *Log) hold(t *testing.T) (release func()) {
	t.Helper()
	return faulty.CommitsOf(l.File).Before.HoldAll(t)
}

// killed returns a directory with an event in log.db and four more in log.wal alone, each a commit.
func killed(t *testing.T) string {
	t.Helper()
	l, dir := begun(t)
	l.settled(t, valuesOf(100)...)
	l.hold(t)
	for range 4 {
		l.append(t, valuesOf(100)...)
	}
	return crashed(t, dir)
}

// crashed copies a directory as a crash would leave it now.
func crashed(t *testing.T, dir string) string {
	t.Helper()
	crash := t.TempDir()
	for _, name := range namesIn(t, dir) {
		expect.NoError(t, os.WriteFile(filepath.Join(crash, name), contentOf(t, dir, name), 0o600))
	}
	return crash
}

func namesIn(t *testing.T, dir string) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	expect.NoError(t, err)
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

func contentOf(t *testing.T, dir, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(dir, name))
	expect.NoError(t, err)
	return b
}

// A log is read in any order, be an event pending or in log.db.
func TestLogReaderInAnyOrder(t *testing.T) {
	l, _ := begun(t)
	all := valuesOf(10, 20, 30, 40, 50)
	l.settled(t, all[:3]...)
	l.hold(t)
	l.append(t, all[3:]...)
	_, pending := l.Pending()
	expect.Equal(t, 2, len(pending))
	expect.NoError(t, l.Read(func(r *Reader) error {
		for _, lsn := range []messages.LSN{1, 2, 3, 4, 5, 6, 3, 2, 1, 3, 5, 0, 1, 4, 2} {
			var want []byte
			if lsn >= 1 && lsn <= 5 {
				want = all[lsn-1]
			}
			expect.Equal(t, string(want), string(r.Value(lsn)), lsn)
			expect.Equal(t, want == nil, r.Value(lsn) == nil, lsn)
		}
		return nil
	}))
}

// A reader that goes on behind an event that is missing finds the others.
func TestLogReaderBehindAMissingEvent(t *testing.T) {
	l, _ := begun(t)
	var all [][]byte
	for i := range 60 {
		all = append(all, valuesOf(10+i)...)
	}
	l.settled(t, all...)
	expect.NoError(t, l.File.Update(func(tx *bbolt.Tx) error {
		return tx.Bucket(format.BucketLog).Delete(format.AppendLSNKey(nil, 9))
	}))
	for step := messages.LSN(1); step < 20; step++ {
		expect.NoError(t, l.Read(func(r *Reader) error {
			for lsn := messages.LSN(1); lsn <= 60; lsn += step {
				want := string(all[lsn-1])
				if lsn == 9 {
					want = ""
				}
				expect.Equal(t, want, string(r.Value(lsn)), step, lsn)
			}
			return nil
		}))
	}
}

// What waits for log.db has no more bytes than it may, but that one commit may have more.
func TestPendingIsBounded(t *testing.T) {
	l, _ := begun(t)
	l.Memory = 4096
	for i, size := range append(slices.Repeat([]int{1000}, 50), 9000, 10) {
		l.append(t, make([]byte, size))
		if got, most := l.pending.state().bytes, max(l.Memory, int64(size)); got > most {
			t.Fatalf("append %d: %d bytes are pending, want at most %d", i, got, most)
		}
	}
}

// opened returns the log of a directory that a crash has left, ready to be appended to.
func opened(t *testing.T, dir string) *Log {
	t.Helper()
	l := read(t, dir)
	expect.NoError(t, l.Vouch())
	expect.NoError(t, l.Settle())
	expect.Equal(t, 0, cap(l.content), "what was read of log.wal is large")
	l.Start(func(error) {})
	return l
}

// An open leaves a log.wal of which log.db needs nothing any more. It is forgotten in each meta page before another one is
// named.
func TestWALThatIsForgotten(t *testing.T) {
	l, dir := begun(t)
	l.settled(t, valuesOf(100, 200)...)
	crash := crashed(t, dir)
	before := contentOf(t, crash, format.LogFileName)
	again := read(t, crash)
	commits := 0
	faulty.CommitsOf(again.File).Before.Set(func() error { commits++; return nil })
	expect.NoError(t, again.Vouch())
	expect.NoError(t, again.Settle())
	expect.Equal(t, before, contentOf(t, crash, format.LogFileName))
	again.Start(func(error) {})
	again.append(t, valuesOf(100)...)
	expect.Equal(t, boltfile.MetaPages+1, commits, "the last one names the new one")
	expect.Equal(t, l.WAL.ID == again.WAL.ID, false)
}

// The first append behind a crash breaks off at any of the commits before it, by a failure or for want of space: what
// was there is there.
func TestForgettingBreaksOff(t *testing.T) {
	dir := killed(t)
	for _, cause := range []error{errors.New("any"), syscall.ENOSPC} {
		for commit := range boltfile.MetaPages + 1 {
			crash := crashed(t, dir)
			l := opened(t, crash)
			n := 0
			faulty.CommitsOf(l.File).Before.Set(func() error {
				if n++; n > commit {
					return cause
				}
				return nil
			})
			if err := l.Append(5, valuesOf(100), nil); err == nil {
				t.Fatalf("%v, commit %d: got no error", cause, commit)
			}
			left := read(t, crashed(t, crash))
			first, pending := left.Pending()
			expect.Equal(t, 6, int(first)+len(pending), cause, commit)
		}
	}
}

// The log.wal that a crash has left stays until log.db has all that is in it, also if it had no room for that at first, and
// by now for a part.
func TestLeftWALStaysUntilLogHasIt(t *testing.T) {
	dir := killed(t)
	l := read(t, dir)
	expect.NoError(t, l.Vouch())
	before := &faulty.CommitsOf(l.File).Before
	before.Fail(syscall.ENOSPC)
	expect.NoError(t, l.Settle())
	expect.Equal(t, 0, cap(l.content), "what was read of log.wal is large")
	var crashes []string
	before.Set(func() error {
		crashes = append(crashes, crashed(t, dir))
		return nil
	})
	l.pending.failed = nil
	l.Start(func(error) {})
	l.append(t, valuesOf(100)...)
	if next := l.pending.state().next; next < 6 {
		t.Errorf("log.wal was replaced, and log.db has no LSN %d yet", next)
	}
	expect.Equal(t, 1+boltfile.MetaPages+1, len(crashes))
	for _, crash := range crashes {
		hasEvents(t, crash, 5)
	}
}

// If the system has dropped a commit of log.db that was read, nothing vouches for it.
func TestNobodyVouchesForWhatIsGone(t *testing.T) {
	dir := killed(t)
	l := read(t, dir)
	newer, size := int64(l.commit)%boltfile.MetaPages, int64(os.Getpagesize())
	older := contentOf(t, dir, format.LogFileName)[(1-newer)*size:][:size]
	f, err := os.OpenFile(filepath.Join(dir, format.LogFileName), os.O_WRONLY, 0)
	expect.NoError(t, err)
	_, err = f.WriteAt(older, newer*size)
	expect.NoError(t, errors.Join(err, f.Close()))
	for range 2 {
		expect.ErrorIs(t, l.Vouch(), format.ErrMissing)
	}
}

// What is written again is what was read: the system may have dropped it since, and show what
// the disk has.
func TestWALIsWrittenAsItWasRead(t *testing.T) {
	dir := killed(t)
	l := read(t, dir)
	content := contentOf(t, dir, format.WALFileName)
	stale := bytes.Clone(content)
	clear(stale[wal.BlockLen:])
	expect.NoError(t, os.WriteFile(l.WAL.Path(), stale, 0o600))
	expect.NoError(t, l.vouchWAL())
	if !bytes.Equal(contentOf(t, dir, format.WALFileName), content) {
		t.Error("log.wal is not what was read of it")
	}
}

// What is too little for a transaction of log.db does not wait for more for ever.
func TestAppliedAfterARest(t *testing.T) {
	l, _ := begun(t)
	last := l.append(t, valuesOf(100)...)
	for now := l.pending.state(); now.next <= last; now = l.pending.state() {
		select {
		case <-now.more:
		case <-time.After(20 * applyRest):
			t.Fatal("log.db has not got it")
		}
	}
}

// What log.db had no room for is brought there when it has, though nobody asks for it.
func TestAppliedWhenThereIsRoom(t *testing.T) {
	l, _ := begun(t)
	l.settled(t, valuesOf(100)...)
	before := &faulty.CommitsOf(l.File).Before
	before.Fail(fmt.Errorf("write: %w", syscall.ENOSPC))
	last := l.append(t, valuesOf(100)...)
	expect.ErrorIs(t, l.AwaitApplied(t.Context(), last), storage.ErrFull)
	<-l.pending.state().more // that is what the append has asked for
	before.Clear()
	for now := l.pending.state(); now.next <= last; now = l.pending.state() {
		select {
		case <-now.more:
		case <-time.After(20 * applyRest):
			t.Fatal("nobody has tried again")
		}
	}
}

// Whoever waits for log.db is answered when its context ends.
func TestAwaitAppliedEnds(t *testing.T) {
	l, _ := begun(t)
	l.settled(t, valuesOf(100)...)
	l.hold(t)
	last := l.append(t, valuesOf(100)...)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	expect.ErrorIs(t, l.AwaitApplied(ctx, last), context.Canceled)
	expect.NoError(t, l.AwaitApplied(t.Context(), last-1))
}
