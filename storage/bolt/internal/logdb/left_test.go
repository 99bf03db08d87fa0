package logdb

import (
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage"
	"github.com/partita-go/partita/storage/bolt/internal/expect"
	"github.com/partita-go/partita/storage/bolt/internal/faulty"
	"github.com/partita-go/partita/storage/bolt/internal/format"
	"github.com/partita-go/partita/storage/replog"
)

// goes returns what is closed when the log.wal that a crash has left is removed.
func (l *Log) goes() <-chan struct{} {
	gone := make(chan struct{})
	disk, tell := &faulty.Disk{Directory: l.WAL.Directory}, sync.OnceFunc(func() { close(gone) })
	disk.Names.Set(func() error {
		tell()
		return nil
	})
	l.WAL.Disk = disk
	return gone
}

// awaitGone waits until that is so, and makes sure that log.db does not know of it any more.
func awaitGone(t *testing.T, dir string, gone <-chan struct{}, events int) {
	t.Helper()
	select {
	case <-gone:
	case <-time.After(20 * applyRest):
		t.Fatal("log.wal stays")
	}
	expect.Equal(t, []string{format.LogFileName}, namesIn(t, dir))
	hasEvents(t, dir, events)
}

// hasEvents makes sure that a directory opens as a crash would leave it now, with so many events.
func hasEvents(t *testing.T, dir string, events int) {
	t.Helper()
	first, pending := read(t, crashed(t, dir)).Pending()
	expect.Equal(t, events, int(first)+len(pending)-1)
}

// The log.wal that a crash has left is removed soon, also by who never makes another one.
func TestLeftWALGoesByItself(t *testing.T) {
	left := killed(t)
	nothing := func(*testing.T, *Log) {}
	for name, c := range map[string]struct {
		before, after func(t *testing.T, l *Log)
		events        int
	}{
		"nobody writes": {nothing, nothing, 5},
		"it is a replica": {
			func(_ *testing.T, l *Log) {
				l.Replicate(func(uint64) {}, func(to replog.Position) replog.Position { return to })
			},
			func(t *testing.T, l *Log) {
				e := Entry{At: replog.Position{Index: 1, Head: 1, Sum: 1}, Entry: format.Entry{Values: valuesOf(100)}}
				expect.NoError(t, l.Take(&e, l.Memory))
				expect.NoError(t, l.AwaitEntry(t.Context(), 1))
			}, 6,
		},
		"log.db is given all": {nothing, func(t *testing.T, l *Log) {
			expect.NoError(t, l.Append(5, valuesOf(100), []Epoch{{Partition: 0, Epoch: 1}}))
		}, 6},
		"there is no room at first": {func(t *testing.T, l *Log) {
			before, n := &faulty.CommitsOf(l.File).Before, 0
			before.Set(func() error {
				if n++; n <= 2 {
					return syscall.ENOSPC
				}
				return nil
			})
		}, nothing, 5},
		"there is room for what is in it, and not at first to forget it": {func(t *testing.T, l *Log) {
			before, n := &faulty.CommitsOf(l.File).Before, 0
			before.Set(func() error {
				if n++; n == 3 {
					return syscall.ENOSPC
				}
				return nil
			})
		}, nothing, 5},
	} {
		t.Run(name, func(t *testing.T) {
			dir := crashed(t, left)
			l := read(t, dir)
			c.before(t, l)
			expect.NoError(t, l.Vouch())
			expect.NoError(t, l.Settle())
			gone := l.goes()
			l.Start(func(error) {})
			c.after(t, l)
			awaitGone(t, dir, gone, c.events)
		})
	}
}

// Nobody who opens waits until it is removed: that is begun later.
func TestLeftWALHasNoHaste(t *testing.T) {
	a := newApplier(&Log{left: true})
	defer a.rest.Stop()
	expect.Equal(t, true, a.leaves)
	expect.Equal(t, 0, len(a.wake))
	expect.Equal(t, true, a.rest.Stop(), "it would be begun")
}

// An append comes while the log.wal of a crash is being removed: it makes another one when that is done.
func TestAppendWhileLeftWALGoes(t *testing.T) {
	dir := killed(t)
	l := read(t, dir)
	expect.NoError(t, l.Vouch())
	expect.NoError(t, l.Settle())
	entered, proceed := faulty.CommitsOf(l.File).Before.Hold()
	l.Start(func(error) {})
	l.applier.hurry()
	<-entered
	appended := make(chan error, 1)
	go func() { appended <- l.Append(5, valuesOf(100), nil) }()
	close(proceed)
	expect.NoError(t, <-appended)
	expect.Equal(t, []string{format.LogFileName, format.WALFileName}, namesIn(t, dir))
	hasEvents(t, dir, 6)
}

// Whoever asks for room meanwhile looks at nothing that the applier changes.
func TestRoomWhileLeftWALGoes(t *testing.T) {
	dir := killed(t)
	l := read(t, dir)
	expect.NoError(t, l.Vouch())
	expect.NoError(t, l.Settle())
	gone := l.goes()
	entered, proceed := faulty.CommitsOf(l.File).Before.Hold()
	l.Start(func(error) {})
	l.applier.hurry()
	<-entered
	close(proceed)
	expect.Equal(t, nil, l.Busy(5, valuesOf(100)))
	awaitGone(t, dir, gone, 5)
}

// The outcome of a commit that forgets it is unknown: nothing is written any more, and whoever waits is told.
func TestLeftWALIsForgottenOrNot(t *testing.T) {
	dir := killed(t)
	l := read(t, dir)
	expect.NoError(t, l.Vouch())
	expect.NoError(t, l.Settle())
	faulty.CommitsOf(l.File).After.Fail(syscall.EIO)
	told := make(chan error, 1)
	l.Start(func(err error) { told <- err })
	more := l.pending.state().more
	l.applier.hurry()
	expect.ErrorIs(t, <-told, messages.ErrOutcomeUnknown)
	<-more
	expect.ErrorIs(t, l.pending.state().failed, storage.ErrClosed)
	expect.ErrorIs(t, l.Append(5, valuesOf(100), nil), storage.ErrClosed)
	hasEvents(t, dir, 5)
}

// Another log.db is put in the place of ours, as it was at the crash: the log.wal beside it stays, which it needs.
func TestLeftWALStaysBesideAnotherLog(t *testing.T) {
	dir := killed(t)
	other, path := contentOf(t, dir, format.LogFileName), filepath.Join(dir, format.LogFileName)
	l := opened(t, dir)
	ours := filepath.Join(t.TempDir(), "ours")
	expect.NoError(t, os.Rename(path, ours))
	expect.NoError(t, os.WriteFile(path, other, 0o600))
	expect.ErrorIs(t, l.removeLeft(), storage.ErrDisplaced)
	expect.ErrorIs(t, l.Append(5, valuesOf(100), nil), storage.ErrDisplaced)
	hasEvents(t, dir, 5)
	expect.NoError(t, os.Rename(ours, path))
	l.append(t, valuesOf(100)...)
	hasEvents(t, dir, 6)
}
