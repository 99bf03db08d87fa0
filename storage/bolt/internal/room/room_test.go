package room_test

import (
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/partita-go/partita/storage"
	"github.com/partita-go/partita/storage/bolt/internal/boltfile"
	"github.com/partita-go/partita/storage/bolt/internal/expect"
	"github.com/partita-go/partita/storage/bolt/internal/room"
)

// As long as log.db takes nothing there is no room, whatever the disk says.
func TestRoomIsNotThere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		closing := make(chan struct{})
		asked := 0
		r := room.New(func() bool {
			asked++
			return asked > 3
		}, closing)
		r.Note(storage.ErrFull)
		time.Sleep(3*room.Every + room.Every/2) //nolint:forbidigo // the time is synctest's
		synctest.Wait()
		expect.ErrorIs(t, r.Full(), storage.ErrFull)
		r.Await()
		expect.NoError(t, r.Full())
		expect.Equal(t, 4, asked)
		r.Note(storage.ErrFull)
		close(closing)
		r.Await()
		expect.ErrorIs(t, r.Full(), storage.ErrFull)
	})
}

// What a crash has left of a look for room is in nobody's way.
func TestRoomAfterACrash(t *testing.T) {
	dir := t.TempDir()
	expect.NoError(t, os.WriteFile(filepath.Join(dir, room.ProbeName), []byte("left"), 0o600))
	d := expect.Opened(t, boltfile.OpenDirectory, dir)
	expect.NoError(t, room.Try(d))
	_, err := os.Stat(filepath.Join(dir, room.ProbeName))
	expect.ErrorIs(t, err, os.ErrNotExist)
}
