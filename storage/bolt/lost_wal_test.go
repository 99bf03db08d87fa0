package bolt

import (
	"encoding/hex"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.etcd.io/bbolt"

	"github.com/partita-go/partita/storage"
	"github.com/partita-go/partita/storage/bolt/internal/expect"
	"github.com/partita-go/partita/storage/bolt/internal/format"
	"github.com/partita-go/partita/storage/bolt/internal/wal"
	"github.com/partita-go/partita/storage/verify"
)

// What docs/operating.md says about a lost log.wal without a backup is true: nothing opens the
// store; a copy of log.db without the note is restored to what log.db had.
func TestLostWAL(t *testing.T) {
	dir, _, want := leftBehind(t)
	id := hex.EncodeToString([]byte(filesOf(t, dir)[format.WALFileName])[format.HeaderFixed:][:wal.IDLen])
	lack := "log.db names the log.wal with id " + id + ", and ends at LSN 1 (partition 0, offset 1): what was acknowledged from LSN 2 on, if anything was, is in that file alone; " +
		"put it back beside log.db, or restore from a backup"
	other, _, _ := leftBehind(t)
	expect.NoError(t, os.Rename(walPath(other), walPath(dir)))
	_, err := OpenExisting(t.Context(), dir, Options{ReadOnly: true})
	expect.ErrorIs(t, err, storage.ErrForeign)
	expect.Equal(t, true, strings.Contains(err.Error(), lack), err)
	expect.NoError(t, os.Remove(walPath(dir)))
	base := t.TempDir()
	to := filepath.Join(base, "to")
	_, err = OpenExisting(t.Context(), dir, Options{ReadOnly: true})
	expect.ErrorIs(t, err, storage.ErrDamaged)
	expect.Equal(t, true, strings.Contains(err.Error(), lack), err)
	expect.Equal(t, true, strings.Contains(verified(t, dir, verify.Options{}).Err().Error(), lack))
	_, err = OpenLog(t.Context(), dir)
	expect.ErrorIs(t, err, storage.ErrDamaged)
	_, err = Restore(t.Context(), dir, to, CopyOptions{})
	expect.ErrorIs(t, err, storage.ErrDamaged)
	expect.Equal(t, uint64(1), verified(t, dir, verify.Options{}).FaultCount)

	from := mkdir(t, filepath.Join(base, "from"))
	path := filepath.Join(from, format.LogFileName)
	writeFiles(t, from, map[string]string{format.LogFileName: filesOf(t, dir)[format.LogFileName]})
	db, err := bbolt.Open(path, 0o600, nil)
	expect.NoError(t, err)
	expect.NoError(t, db.Update(func(tx *bbolt.Tx) error { return tx.Bucket([]byte("header")).Delete([]byte("wal")) }))
	expect.NoError(t, db.Close())
	_, err = Restore(t.Context(), from, to, CopyOptions{})
	expect.NoError(t, err)
	expect.Equal(t, want[:1], collectEvents(t, openToRead(t, to).Log(t.Context(), 1)))
}
