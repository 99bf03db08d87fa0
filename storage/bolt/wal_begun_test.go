package bolt

import (
	"os"
	"syscall"
	"testing"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage"
)

// The power may fail while log.wal is being made: what there is of its first block is nothing,
// since log.db does not know of it yet.
func TestWALHalfMade(t *testing.T) {
	d := testDescriptor(1, messages.TrustNone)
	for size := 0; size < walBlockLen; size += walSectorLen {
		dir := t.TempDir()
		s := open(t, dir, d, smallMap)
		takeOver(t, s, 0).append(1, 2)
		id := s.id
		closeStore(t, s)
		block := make([]byte, walBlockLen)
		copy(block, encodeWALHeader(id, walID{1}, walBlockLen))
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
	for size := int64(0); size < walBlockLen; size += walSectorLen {
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
	noError(t, os.Truncate(walPath(long), walMost(walHalf)+1))
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
	for _, half := range []int64{smallHalf, walHalf} {
		w := newWALWriter(t, half)
		noError(t, w.grow(walBlockLen+2*half))
		equal(t, walMost(half), w.size, half)
	}
}

// The header says how long the file is, also when it could not be said the first time.
func TestWALLengthIsTold(t *testing.T) {
	w := newWALWriter(t, walHalf)
	noError(t, w.grow(walBlockLen+1))
	w.size += walChunk // what was written before the disk was full
	noError(t, os.Truncate(w.path(), w.size))
	file := w.file
	unwritable, err := os.Open(w.path())
	noError(t, err)
	w.file = unwritable
	errorIs(t, w.grow(w.size), syscall.EBADF)
	noError(t, unwritable.Close())
	w.file = file
	noError(t, w.grow(w.size))
	equal(t, w.size, w.told, "each commit would say it again")
	b, err := os.ReadFile(w.path())
	noError(t, err)
	_, length, err := decodeWALHeader(b, w.store)
	noError(t, err)
	if length != uint64(w.size) {
		t.Errorf("got length %d, want %d", length, w.size)
	}
}

// A log.wal whose name may not be durable cannot be used, nor is one gone whose removal may not
// be durable.
func TestWALDirectoryIsSynced(t *testing.T) {
	s := open(t, t.TempDir(), testDescriptor(1, messages.TrustNone), smallMap)
	w := takeOver(t, s, 0)
	s.directory.beforeSync = func() error { return syscall.EIO }
	err := w.try(w.event(1))
	errorIs(t, err, messages.ErrOutcomeUnknown)
	errorIs(t, err, syscall.EIO)
	left := newWALWriter(t, smallHalf)
	left.directory.beforeSync = s.directory.beforeSync
	errorIs(t, left.remove(), syscall.EIO)
}

// Where the next commit begins there is nothing, or what is no longer needed: a damaged sector
// may be one that was acknowledged.
func TestWALDamageBehindTheEnd(t *testing.T) {
	w := newWALWriter(t, walHalf)
	w.commit(10)
	w.commit(20)
	b := w.content()
	b[walBlockLen+w.used] = 1
	for next := messages.LSN(1); next <= w.next; next++ {
		_, err := w.pendingIn(b, next)
		errorIs(t, err, storage.ErrDamaged, next)
	}
}

// The file grows by zeroes, whatever was written before.
func TestWALGrowsByZeroes(t *testing.T) {
	w := newWALWriter(t, walHalf)
	for w.size < 2*walChunk {
		w.commit(walChunk / 3)
		b, err := os.ReadFile(w.path())
		noError(t, err)
		got, err := w.pendingIn(b, 1)
		noError(t, err)
		equal(t, w.events, got)
	}
}
