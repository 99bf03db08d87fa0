package wal_test

import (
	"os"
	"syscall"
	"testing"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage"
	"github.com/partita-go/partita/storage/bolt/internal/expect"
	"github.com/partita-go/partita/storage/bolt/internal/faulty"
	"github.com/partita-go/partita/storage/bolt/internal/format"
	"github.com/partita-go/partita/storage/bolt/internal/wal"
)

// Before anything of a commit was written, a lack of space refuses it; after that nobody knows, whatever failed.
func TestWALWriteFails(t *testing.T) {
	growth := func(d *faulty.Disk) *faulty.Point { return &d.Growth }
	header := func(d *faulty.Disk) *faulty.Point { return &d.Header }
	before := func(d *faulty.Disk) *faulty.Point { return &d.Before }
	after := func(d *faulty.Disk) *faulty.Point { return &d.After }
	for _, c := range []struct {
		where        func(*faulty.Disk) *faulty.Point
		failed, want error
	}{
		{growth, syscall.ENOSPC, storage.ErrFull},
		{growth, syscall.EIO, messages.ErrOutcomeUnknown},
		{header, syscall.ENOSPC, storage.ErrFull},
		{header, syscall.EIO, messages.ErrOutcomeUnknown},
		{before, syscall.ENOSPC, messages.ErrOutcomeUnknown},
		{before, syscall.EIO, messages.ErrOutcomeUnknown},
		{after, syscall.ENOSPC, messages.ErrOutcomeUnknown},
		{after, syscall.EIO, messages.ErrOutcomeUnknown},
	} {
		w := newWALWriter(t, smallHalf)
		c.where(w.disk).Fail(c.failed)
		values := [][]byte{[]byte("event")}
		err := w.Write(wal.Size(values), 1, values)
		expect.ErrorIs(t, err, c.want, c.failed)
		expect.ErrorIs(t, err, c.failed)
		expect.Equal(t, 0, w.Used, "nothing is acknowledged")
		expect.NoError(t, w.Remove())
		expect.NoError(t, w.Remove(), "there is none any more")
	}
}

// A log.wal that could not be made is there, or is not: whoever has a file removes it. One whose name may not be
// durable is none.
func TestWALCreateFails(t *testing.T) {
	w := newWALWriter(t, smallHalf)
	for _, where := range []*faulty.Point{&w.disk.Growth, &w.disk.Names} {
		other := w.anew()
		expect.NoError(t, w.Remove())
		where.Fail(syscall.ENOSPC)
		expect.ErrorIs(t, other.Create(), syscall.ENOSPC)
		where.Clear()
		_, err := os.Stat(w.Path())
		expect.NoError(t, err)
		expect.NoError(t, other.Remove())
	}
	expect.NoError(t, w.Directory.Close())
	expect.ErrorIs(t, w.Create(), storage.ErrClosed)
	expect.Equal(t, true, w.File == nil)
}

// One that a crash has left is removed for good before another one is made.
func TestWALCreateRemovesWhatIsLeft(t *testing.T) {
	w := newWALWriter(t, smallHalf)
	w.commit(10)
	expect.NoError(t, w.Close())
	next := w.anew()
	_, err := next.Read()
	expect.NoError(t, err)
	w.disk.Names.Fail(syscall.EIO)
	expect.ErrorIs(t, next.Create(), syscall.EIO)
	expect.Equal(t, true, next.File == nil, "it may come back")
	w.disk.Names.Clear()
	expect.NoError(t, next.Create())
	b, err := os.ReadFile(next.Path())
	expect.NoError(t, err)
	expect.Equal(t, wal.EncodeHeader(next.Store, next.ID, wal.BlockLen), b)
	expect.NoError(t, next.Close())
	_, err = w.Directory.Stat(format.WALFileName)
	expect.NoError(t, err, "closing lets it stay")
}
