package wal_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage"
	"github.com/partita-go/partita/storage/bolt/internal/expect"
	"github.com/partita-go/partita/storage/bolt/internal/wal"
)

// A file can be as long as its halves and the chunks that it grows by make it, and no longer.
func TestWALMost(t *testing.T) {
	for _, half := range []int64{smallHalf, wal.Half} {
		w := newWALWriter(t, half)
		expect.NoError(t, w.Grow(wal.BlockLen+2*half))
		expect.Equal(t, wal.Most(half), w.Size, half)
	}
}

// The header says how long the file is, also when it could not be said the first time.
func TestWALLengthIsTold(t *testing.T) {
	w := newWALWriter(t, wal.Half)
	expect.NoError(t, w.Grow(wal.BlockLen+1))
	w.disk.Header.Fail(syscall.ENOSPC)
	expect.ErrorIs(t, w.Grow(w.Size+1), syscall.ENOSPC)
	w.disk.Header.Clear()
	expect.Equal(t, wal.BlockLen+2*wal.Chunk, w.Size, "what was written before the disk was full")
	expect.NoError(t, w.Grow(w.Size))
	expect.Equal(t, w.Size, w.Told, "each commit would say it again")
	b, err := os.ReadFile(w.Path())
	expect.NoError(t, err)
	_, length, err := wal.DecodeHeader(b, w.Store)
	expect.NoError(t, err)
	if length != uint64(w.Size) {
		t.Errorf("got length %d, want %d", length, w.Size)
	}
}

// Where the next commit begins there is nothing, or what is no longer needed: a damaged sector
// may be one that was acknowledged.
func TestWALDamageBehindTheEnd(t *testing.T) {
	w := newWALWriter(t, wal.Half)
	w.commit(10)
	w.commit(20)
	b := w.content()
	b[wal.BlockLen+w.Used] = 1
	for next := messages.LSN(1); next <= w.next; next++ {
		_, err := w.pendingIn(b, next)
		expect.ErrorIs(t, err, storage.ErrDamaged, next)
	}
}

// The file grows by zeroes, whatever was written before.
func TestWALGrowsByZeroes(t *testing.T) {
	w := newWALWriter(t, wal.Half)
	for w.Size < 2*wal.Chunk {
		w.commit(wal.Chunk / 3)
		b, err := os.ReadFile(w.Path())
		expect.NoError(t, err)
		got, err := w.pendingIn(b, 1)
		expect.NoError(t, err)
		expect.Equal(t, w.events, got)
	}
}

// A place is given again when log.db has what stands there, and not before.
func TestWALPlace(t *testing.T) {
	type state struct {
		current, used int
		last          [2]messages.LSN
	}
	for name, c := range map[string]struct {
		before          state
		size            int64
		applied, end    messages.LSN
		need            messages.LSN
		current, behind int
	}{
		"the first one":                       {state{}, 1, 0, 0, 0, 0, 0},
		"behind the one before":               {state{0, 2, [2]messages.LSN{9, 0}}, 2, 5, 9, 0, 0, 2},
		"into the other half":                 {state{0, 3, [2]messages.LSN{9, 0}}, 2, 5, 9, 0, 1, 0},
		"the other half is not in log.db yet": {state{1, 3, [2]messages.LSN{9, 12}}, 2, 8, 12, 9, 1, 3},
		"the other half is":                   {state{1, 3, [2]messages.LSN{9, 12}}, 2, 9, 12, 0, 0, 0},
		"log.db has everything":               {state{1, 1, [2]messages.LSN{9, 12}}, 2, 12, 12, 0, 0, 0},
		"log.db has more than log.wal":        {state{1, 1, [2]messages.LSN{9, 12}}, 2, 15, 15, 0, 0, 0},
		"it fills the half":                   {state{0, 2, [2]messages.LSN{9, 0}}, 2, 5, 9, 0, 0, 2},
		"all but the last one is in log.db":   {state{0, 3, [2]messages.LSN{9, 0}}, 1, 8, 9, 0, 0, 3},
	} {
		t.Run(name, func(t *testing.T) {
			w := wal.Writer{Half: 4, Current: c.before.current, Used: int64(c.before.used), Last: c.before.last}
			expect.Equal(t, c.need, w.Place(c.size, c.applied, c.end))
			expect.Equal(t, c.current, w.Current)
			expect.Equal(t, int64(c.behind), w.Used)
		})
	}
}

// Of a log.wal with holes, as some copies of it have them, no hole is filled: there may be no room for it.
func TestHolesOfWALStay(t *testing.T) {
	content := make([]byte, 9*wal.BlockLen+100)
	want := bytes.Repeat([]byte{0xff}, len(content))
	for _, block := range []int{0, 3, 4, 9} {
		content[block*wal.BlockLen+50] = 1
		from, to := block*wal.BlockLen, min((block+1)*wal.BlockLen, len(content))
		copy(want[from:to], content[from:to])
	}
	path := filepath.Join(t.TempDir(), "wal")
	expect.NoError(t, os.WriteFile(path, bytes.Repeat([]byte{0xff}, len(content)), 0o600))
	handle, err := os.OpenFile(path, os.O_RDWR, 0)
	expect.NoError(t, err)
	expect.NoError(t, wal.WriteBlocks(handle, content))
	expect.NoError(t, handle.Close())
	got, err := os.ReadFile(path)
	expect.NoError(t, err)
	if !bytes.Equal(got, want) {
		t.Error("another block was written than those which hold something")
	}
	handle, err = os.Open(path)
	expect.NoError(t, err)
	if err := wal.WriteBlocks(handle, content); err == nil {
		t.Error("nothing can be written, and nobody was told")
	}
	expect.NoError(t, handle.Close())
}

// What could not be written for want of space is synced as it is; after another failure nothing is.
func TestWhatIsSynced(t *testing.T) {
	for _, c := range []struct {
		written, sync, want error
		synced              bool
	}{
		{nil, nil, nil, true},
		{nil, syscall.EIO, syscall.EIO, true},
		{syscall.ENOSPC, nil, nil, true},
		{syscall.ENOSPC, syscall.EIO, syscall.EIO, true},
		{syscall.EIO, nil, syscall.EIO, false},
	} {
		synced := false
		err := wal.SyncWritten(c.written, func() error {
			synced = true
			return c.sync
		})
		if !errors.Is(err, c.want) || synced != c.synced {
			t.Errorf("%v: got %v, synced %v, want %v, %v", c.written, err, synced, c.want, c.synced)
		}
	}
}

// A log.wal whose removal may not be durable is not gone.
func TestWALRemovalIsSynced(t *testing.T) {
	w := newWALWriter(t, smallHalf)
	w.disk.Names.Fail(syscall.EIO)
	expect.ErrorIs(t, w.Remove(), syscall.EIO)
	w.disk.Names.Clear()
	expect.NoError(t, w.Unlink(), "it is tried again")
}
