package bolt

import (
	"errors"
	"runtime"
	"testing"

	"go.etcd.io/bbolt"

	"github.com/partita-go/partita/storage"
	"github.com/partita-go/partita/storage/bolt/internal/format"
)

// The root page of a file holds its small buckets too. Whatever bit of it is wrong, the
// process lives on: the garbage collector ends it if it meets a pointer to nowhere.
func TestDamagedRootPage(t *testing.T) {
	t.Parallel()
	whole, d := runningStore(t)
	dir := t.TempDir()
	writeFiles(t, dir, whole)
	for name, r := range map[string]format.Role{format.LogFileName: format.RoleLog, format.StateFileName: format.RoleState} {
		f := openPlain(t, dir, r)
		root := 0
		err := f.View(func(tx *bbolt.Tx) error {
			root = int(tx.Cursor().Bucket().RootPage()) * tx.DB().Info().PageSize
			return nil
		})
		if err := errors.Join(err, f.Close()); err != nil {
			t.Fatal(err)
		}
		for at := root; at < root+512; at++ {
			writeFiles(t, dir, withByte(whole, name, at, 1<<(at%8)))
			s, err := Open(t.Context(), dir, d, Options{})
			runtime.GC()
			if err == nil {
				closeStore(t, s)
			} else if !errors.Is(err, storage.ErrDamaged) && !errors.Is(err, storage.ErrForeign) && !errors.Is(err, storage.ErrFormat) {
				t.Fatalf("%s, byte %d: got %v, want damage", name, at-root, err)
			}
		}
	}
}
