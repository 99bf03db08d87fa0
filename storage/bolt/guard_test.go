package bolt

import (
	"errors"
	"os"
	"testing"

	"go.etcd.io/bbolt"

	"github.com/partita-go/partita/storage"
	"github.com/partita-go/partita/storage/verify"
)

// TestPanicWhileOpening lets bbolt panic while it opens a file, at a freelist that is none:
// the file is damaged, and no lock is left behind that would keep out who opens it repaired.
func TestPanicWhileOpening(t *testing.T) {
	whole, d := runningStore(t)
	dir := t.TempDir()
	writeFiles(t, dir, whole)
	for name, r := range map[string]role{logFileName: roleLog, stateFileName: roleState} {
		f := openPlain(t, dir, r)
		freelist := uint64(0)
		err := f.view(func(tx *bbolt.Tx) (err error) {
			c := f.newPageCheck(t.Context(), tx, nil, nil)
			_, freelist, err = c.meta(uint64(tx.ID()))
			return err
		})
		if err := errors.Join(err, f.close()); err != nil {
			t.Fatal(err)
		}
		writeFiles(t, dir, withByte(whole, name, int(freelist)*os.Getpagesize()+pageFlagsAt, 1<<5))
		if _, err := Open(t.Context(), dir, d, Options{}); !errors.Is(err, storage.ErrDamaged) {
			t.Errorf("%s: got %v, want damage", name, err)
		}
		if report, err := Verify(t.Context(), dir, verify.Options{}); err != nil || report.FaultCount == 0 {
			t.Errorf("%s: verify: got %v, %v", name, report, err)
		}
		writeFiles(t, dir, whole)
		closeStore(t, open(t, dir, d, Options{}))
		writeFiles(t, dir, whole)
	}
}
