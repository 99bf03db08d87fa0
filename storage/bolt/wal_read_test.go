package bolt

import (
	"os"
	"testing"

	"github.com/partita-go/partita/storage/bolt/internal/expect"
	"github.com/partita-go/partita/storage/bolt/internal/format"
	"github.com/partita-go/partita/storage/bolt/internal/wal"
)

// A log.wal whose removal was lost is not needed, and is not looked at.
func TestWALThatIsNotNeeded(t *testing.T) {
	dir, d, want := leftBehind(t)
	left := []byte(filesOf(t, dir)[format.WALFileName])
	left[wal.BlockLen+wal.WALHeadLen] ^= 1
	s := open(t, dir, d, smallMap)
	closeStore(t, s)
	noWAL(t, dir)
	expect.NoError(t, os.WriteFile(walPath(dir), left, 0o600))
	opensWith(t, dir, d, want)
}
