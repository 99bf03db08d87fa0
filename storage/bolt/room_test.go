package bolt

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage"
	"github.com/partita-go/partita/storage/bolt/internal/expect"
	"github.com/partita-go/partita/storage/bolt/internal/faulty"
	"github.com/partita-go/partita/storage/bolt/internal/room"
)

// A store that has refused an append for want of room finds out by itself when there is room again; so does whoever
// appends. What it tries the disk with is gone.
func TestRoomIsFound(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir, testDescriptor(1, messages.TrustNone), smallMap)
	before := &faulty.CommitsOf(s.log.File).Before
	w := takeOver(t, s, 0)
	w.append(1)
	settled(t, s)
	expect.NoError(t, s.Full())
	for _, appends := range []bool{false, true} {
		before.Fail(errNoSpace)
		w.append(1)
		expect.ErrorIs(t, s.log.AwaitApplied(t.Context(), w.lastLSN()), storage.ErrFull)
		expect.ErrorIs(t, w.try(w.event(1)), storage.ErrFull)
		expect.ErrorIs(t, s.Full(), storage.ErrFull)
		before.Clear()
		if appends {
			w.append(1)
			expect.NoError(t, s.Full())
		}
		awaitRoom(t, s)
	}
	closeStore(t, s)
	_, err := os.Stat(filepath.Join(dir, room.ProbeName))
	expect.ErrorIs(t, err, os.ErrNotExist)
}

// awaitRoom waits until nobody looks for room any more.
func awaitRoom(t *testing.T, s *Store) {
	t.Helper()
	s.room.Await()
	expect.NoError(t, s.Full())
}
