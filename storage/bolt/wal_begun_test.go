package bolt

import (
	"os"
	"syscall"
	"testing"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage"
	"github.com/partita-go/partita/storage/bolt/internal/wal"
)

// The power may fail while log.wal is being made: what there is of its first block is nothing,
// since log.db does not know of it yet.
func TestWALHalfMade(t *testing.T) {
	d := testDescriptor(1, messages.TrustNone)
	for size := 0; size < wal.BlockLen; size += wal.SectorLen {
		dir := t.TempDir()
		s := open(t, dir, d, smallMap)
		takeOver(t, s, 0).append(1, 2)
		id := s.files.ID
		closeStore(t, s)
		block := make([]byte, wal.BlockLen)
		copy(block, wal.EncodeHeader(id, wal.ID{1}, wal.BlockLen))
		noError(t, os.WriteFile(walPath(dir), block[:size], 0o600))
		s = open(t, dir, d, smallMap)
		takeOver(t, s, 0).append(1)
		if got := len(collectEvents(t, s.PLog(t.Context(), 0, 1))); got != 3 {
			t.Errorf("%d bytes: got %d events, want 3", size, got)
		}
		closeStore(t, s)
	}
}

// Once log.db knows of it, less than its first block is damage.
func TestWALCutToNothing(t *testing.T) {
	dir, d, _ := leftBehind(t)
	for size := int64(0); size < wal.BlockLen; size += wal.SectorLen {
		copied := crashCopy(t, dir)
		noError(t, os.Truncate(walPath(copied), size))
		_, err := Open(t.Context(), copied, d, smallMap)
		errorIs(t, err, storage.ErrDamaged, size)
	}
}

// A log.wal that is longer than any can be is refused before it is read into memory, and what
// is no file at all is not opened.
func TestWALThatIsNone(t *testing.T) {
	dir, d, _ := leftBehind(t)
	long := crashCopy(t, dir)
	noError(t, os.Truncate(walPath(long), wal.Most(wal.Half)+1))
	_, err := Open(t.Context(), long, d, smallMap)
	errorIs(t, err, storage.ErrDamaged)
	directory := crashCopy(t, dir)
	noError(t, os.Remove(walPath(directory)))
	noError(t, os.Mkdir(walPath(directory), 0o700))
	_, err = Open(t.Context(), directory, d, smallMap)
	errorIs(t, err, storage.ErrForeign)
}

// A file can be as long as its halves and the chunks that it grows by make it, and no longer.
func TestWALMost(t *testing.T) {
	for _, half := range []int64{smallHalf, wal.Half} {
		w := newWALWriter(t, half)
		noError(t, w.Grow(wal.BlockLen+2*half))
		equal(t, wal.Most(half), w.Size, half)
	}
}

// The header says how long the file is, also when it could not be said the first time.
func TestWALLengthIsTold(t *testing.T) {
	w := newWALWriter(t, wal.Half)
	noError(t, w.Grow(wal.BlockLen+1))
	w.Size += wal.Chunk // what was written before the disk was full
	noError(t, os.Truncate(w.Path(), w.Size))
	file := w.File
	unwritable, err := os.Open(w.Path())
	noError(t, err)
	w.File = unwritable
	errorIs(t, w.Grow(w.Size), syscall.EBADF)
	noError(t, unwritable.Close())
	w.File = file
	noError(t, w.Grow(w.Size))
	equal(t, w.Size, w.Told, "each commit would say it again")
	b, err := os.ReadFile(w.Path())
	noError(t, err)
	_, length, err := wal.DecodeHeader(b, w.Store)
	noError(t, err)
	if length != uint64(w.Size) {
		t.Errorf("got length %d, want %d", length, w.Size)
	}
}

// A log.wal whose name may not be durable cannot be used, nor is one gone whose removal may not
// be durable.
func TestWALDirectoryIsSynced(t *testing.T) {
	s := open(t, t.TempDir(), testDescriptor(1, messages.TrustNone), smallMap)
	w := takeOver(t, s, 0)
	s.files.Directory.BeforeSync = func() error { return syscall.EIO }
	err := w.try(w.event(1))
	errorIs(t, err, messages.ErrOutcomeUnknown)
	errorIs(t, err, syscall.EIO)
	left := newWALWriter(t, smallHalf)
	left.Directory.BeforeSync = s.files.Directory.BeforeSync
	errorIs(t, left.Remove(), syscall.EIO)
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
		errorIs(t, err, storage.ErrDamaged, next)
	}
}

// The file grows by zeroes, whatever was written before.
func TestWALGrowsByZeroes(t *testing.T) {
	w := newWALWriter(t, wal.Half)
	for w.Size < 2*wal.Chunk {
		w.commit(wal.Chunk / 3)
		b, err := os.ReadFile(w.Path())
		noError(t, err)
		got, err := w.pendingIn(b, 1)
		noError(t, err)
		equal(t, w.events, got)
	}
}
