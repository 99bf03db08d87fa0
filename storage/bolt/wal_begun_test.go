package bolt

import (
	"os"
	"syscall"
	"testing"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage"
	"github.com/partita-go/partita/storage/bolt/internal/expect"
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
		expect.NoError(t, os.WriteFile(walPath(dir), block[:size], 0o600))
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
		expect.NoError(t, os.Truncate(walPath(copied), size))
		_, err := Open(t.Context(), copied, d, smallMap)
		expect.ErrorIs(t, err, storage.ErrDamaged, size)
	}
}

// A log.wal that is longer than any can be is refused before it is read into memory, and what
// is no file at all is not opened.
func TestWALThatIsNone(t *testing.T) {
	dir, d, _ := leftBehind(t)
	long := crashCopy(t, dir)
	expect.NoError(t, os.Truncate(walPath(long), wal.Most(wal.Half)+1))
	_, err := Open(t.Context(), long, d, smallMap)
	expect.ErrorIs(t, err, storage.ErrDamaged)
	directory := crashCopy(t, dir)
	expect.NoError(t, os.Remove(walPath(directory)))
	expect.NoError(t, os.Mkdir(walPath(directory), 0o700))
	_, err = Open(t.Context(), directory, d, smallMap)
	expect.ErrorIs(t, err, storage.ErrForeign)
}

// A log.wal whose name may not be durable cannot be used.
func TestWALDirectoryIsSynced(t *testing.T) {
	s := open(t, t.TempDir(), testDescriptor(1, messages.TrustNone), smallMap)
	w := takeOver(t, s, 0)
	diskOf(s).Names.Fail(syscall.EIO)
	err := w.try(w.event(1))
	expect.ErrorIs(t, err, messages.ErrOutcomeUnknown)
	expect.ErrorIs(t, err, syscall.EIO)
}
