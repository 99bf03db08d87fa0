package bolt

import (
	"encoding/binary"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"testing"

	"go.etcd.io/bbolt"

	"github.com/partita-go/partita/storage"
	"github.com/partita-go/partita/storage/bolt/internal/boltfile"
	"github.com/partita-go/partita/storage/bolt/internal/format"
	"github.com/partita-go/partita/storage/verify"
)

// rootsOf returns the pages to which the newer meta page of a file refers.
func rootsOf(t *testing.T, path string) (root, freelist int) {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	u64 := func(meta []byte, at int) int { return int(binary.NativeEndian.Uint64(meta[at:])) }
	meta, second := content, content[os.Getpagesize():]
	if u64(second, boltfile.MetaTxAt) > u64(meta, boltfile.MetaTxAt) {
		meta = second
	}
	return u64(meta, boltfile.MetaRootAt), u64(meta, boltfile.MetaFreelistAt)
}

// freelistOf returns where the list of free pages of a file begins.
func freelistOf(t *testing.T, dir string, r format.Role) int {
	t.Helper()
	_, freelist := rootsOf(t, filepath.Join(dir, r.FileName()))
	return freelist * os.Getpagesize()
}

// TestPanicWhileOpening lets bbolt panic while it opens a file, at a freelist that is none:
// the file is damaged, and no lock is left behind that would keep out whoever opens it repaired.
func TestPanicWhileOpening(t *testing.T) {
	whole, d := runningStore(t)
	dir := t.TempDir()
	writeFiles(t, dir, whole)
	for name, r := range map[string]format.Role{format.LogFileName: format.RoleLog, format.StateFileName: format.RoleState} {
		writeFiles(t, dir, withByte(whole, name, freelistOf(t, dir, r)+boltfile.PageFlagsAt, 1<<5))
		path := filepath.Join(dir, name)
		if _, err := openPath(t, path, path, &bbolt.Options{}); !errors.Is(err, storage.ErrDamaged) {
			t.Errorf("%s: got %v, want damage", name, err)
		}
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

// TestFreelistLongerThanMemory: bbolt takes as much memory as a freelist says before anything
// can look at it, and the process ends where there is not so much.
func TestFreelistLongerThanMemory(t *testing.T) {
	whole, d := runningStore(t)
	dir := t.TempDir()
	writeFiles(t, dir, whole)
	for name, r := range map[string]format.Role{format.LogFileName: format.RoleLog, format.StateFileName: format.RoleState} {
		at := freelistOf(t, dir, r)
		damaged := maps.Clone(whole)
		content := []byte(damaged[name])
		binary.NativeEndian.PutUint16(content[at+boltfile.PageCountAt:], boltfile.ManyFree)
		binary.NativeEndian.PutUint64(content[at+boltfile.PageHeaderLen:], 1<<60-1)
		damaged[name] = string(content)
		writeFiles(t, dir, damaged)
		if _, err := Open(t.Context(), dir, d, Options{}); !errors.Is(err, storage.ErrDamaged) {
			t.Errorf("%s: got %v, want damage", name, err)
		}
		if report, err := Verify(t.Context(), dir, verify.Options{}); err != nil || report.FaultCount == 0 {
			t.Errorf("%s: verify: got %v, %v", name, report, err)
		}
		writeFiles(t, dir, whole)
	}
}
