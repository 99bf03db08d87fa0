package bolt

import (
	"cmp"
	"encoding/binary"
	"maps"
	"os"
	"path/filepath"
	"testing"

	"go.etcd.io/bbolt"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage"
	"github.com/partita-go/partita/storage/bolt/internal/boltfile"
	"github.com/partita-go/partita/storage/bolt/internal/expect"
	"github.com/partita-go/partita/storage/bolt/internal/format"
	"github.com/partita-go/partita/storage/bolt/internal/wal"
)

// A log.wal that is not the one that log.db needs keeps the store from opening, and nothing is
// changed.
func TestWALIsRefused(t *testing.T) {
	dir, d, _ := leftBehind(t)
	other, _, _ := leftBehind(t)
	edit := func(change func([]byte) []byte) func(*testing.T, string) {
		return func(t *testing.T, dir string) {
			b, err := os.ReadFile(walPath(dir))
			expect.NoError(t, err)
			expect.NoError(t, os.WriteFile(walPath(dir), change(b), 0o600))
		}
	}
	header := func(change func([]byte)) func(*testing.T, string) {
		return edit(func(b []byte) []byte {
			change(b)
			binary.BigEndian.PutUint32(b[wal.HeaderLen-4:], crcOf(b[:wal.HeaderLen-4]))
			return b
		})
	}
	inLog := func(change func(*bbolt.Tx) error) func(*testing.T, string) {
		return inFile(format.LogFileName, func(t *testing.T, f *boltfile.File) { expect.NoError(t, f.Update(change)) })
	}
	forget := func(tx *bbolt.Tx) error { return tx.Bucket(format.BucketHeader).Delete(format.KeyWAL) }
	withoutFirst := func(tx *bbolt.Tx) error {
		b := tx.Bucket(format.BucketLog)
		return cmp.Or(b.Delete(format.AppendLSNKey(nil, 1)), b.SetSequence(0))
	}
	for name, c := range map[string]struct {
		change func(*testing.T, string)
		want   error
	}{
		"missing": {func(t *testing.T, dir string) { expect.NoError(t, os.Remove(walPath(dir))) }, storage.ErrDamaged},
		"empty":   {edit(func([]byte) []byte { return nil }), storage.ErrDamaged},
		"zeroes":  {edit(func(b []byte) []byte { clear(b); return b }), storage.ErrDamaged},
		"another file": {edit(func([]byte) []byte {
			return []byte("something else altogether, of more than a sector" + string(make([]byte, wal.BlockLen)))
		}), storage.ErrForeign},
		"another store": {func(t *testing.T, dir string) {
			writeFiles(t, dir, map[string]string{format.WALFileName: filesOf(t, other)[format.WALFileName]})
		}, storage.ErrForeign},
		"another id":          {header(func(b []byte) { b[format.HeaderFixed]++ }), storage.ErrForeign},
		"newer format":        {header(func(b []byte) { b[9]++ }), storage.ErrFormat},
		"damaged header":      {edit(func(b []byte) []byte { b[format.HeaderFixed]++; return b }), storage.ErrDamaged},
		"a damaged sector":    {edit(func(b []byte) []byte { b[2*wal.BlockLen+wal.SectorLen+40] ^= 1; return b }), storage.ErrDamaged},
		"a commit is missing": {edit(func(b []byte) []byte { clear(b[2*wal.BlockLen : 3*wal.BlockLen]); return b }), storage.ErrDamaged},
		"log.db lacks an event that log.wal has no more": {inLog(withoutFirst), storage.ErrDamaged},
		"the same, and log.db knows of no log.wal":       {inLog(func(tx *bbolt.Tx) error { return cmp.Or(forget(tx), withoutFirst(tx)) }), storage.ErrDamaged},
		"the note is damaged": {inLog(func(tx *bbolt.Tx) error {
			return tx.Bucket(format.BucketHeader).Put(format.KeyWAL, make([]byte, wal.IDLen+4))
		}), storage.ErrDamaged},
		"another event in log.db": {inLog(func(tx *bbolt.Tx) error {
			return tx.Bucket(format.BucketLog).Put(format.AppendLSNKey(nil, 2), []byte("something else"))
		}), storage.ErrDamaged},
	} {
		t.Run(name, func(t *testing.T) {
			dir := crashCopy(t, dir)
			c.change(t, dir)
			files := filesOf(t, dir)
			for _, o := range []Options{smallMap, {MmapSize: smallMap.MmapSize, ReadOnly: true}} {
				_, err := Open(t.Context(), dir, d, o)
				expect.ErrorIs(t, err, c.want)
			}
			if got := filesOf(t, dir); !maps.Equal(got, files) {
				t.Fatal("a file was changed")
			}
		})
	}
}

// A log.wal without its log.db is no new store.
func TestWALWithoutLog(t *testing.T) {
	dir, d, _ := leftBehind(t)
	for _, name := range []string{format.StateFileName, format.LogFileName} {
		expect.NoError(t, os.Remove(filepath.Join(dir, name)))
	}
	files := filesOf(t, dir)
	_, err := Open(t.Context(), dir, d, smallMap)
	expect.ErrorIs(t, err, storage.ErrDamaged)
	if got := filesOf(t, dir); !maps.Equal(got, files) {
		t.Fatal("a file was changed")
	}
}

// log.db was repaired to what it was before the note of log.wal: what follows its end counts.
func TestWALWithoutNote(t *testing.T) {
	dir, d, want := leftBehind(t)
	expect.NoError(t, inFileOf(dir, func(tx *bbolt.Tx) error { return tx.Bucket(format.BucketHeader).Delete(format.KeyWAL) }))
	opensWith(t, dir, d, want)
}

// An older log.wal of the same store that comes back is not taken for the current one, nor for
// what is missing.
func TestWALOlderOneComesBack(t *testing.T) {
	dir, d, want := leftBehind(t)
	old := filesOf(t, dir)[format.WALFileName]
	opensWith(t, dir, d, want)
	noWAL(t, dir)
	writeFiles(t, dir, map[string]string{format.WALFileName: old})
	s, err := Open(t.Context(), dir, d, smallMap)
	expect.NoError(t, err)
	w := takeOver(t, s, 0)
	w.append(2)
	want = collectEvents(t, s.Log(t.Context(), 1))
	expect.Equal(t, 7, len(want))
	crash := quietCopy(t, s, dir)
	closeStore(t, s)
	writeFiles(t, crash, map[string]string{format.WALFileName: old})
	_, err = Open(t.Context(), crash, d, smallMap)
	expect.ErrorIs(t, err, storage.ErrForeign)
}

// A log.wal whose events another history of the same store has overtaken is found out.
func TestWALOfAnotherHistory(t *testing.T) {
	dir, d, want := leftBehind(t)
	fork := crashCopy(t, dir)
	expect.NoError(t, inFileOf(fork, func(tx *bbolt.Tx) error { return tx.Bucket(format.BucketHeader).Delete(format.KeyWAL) }))
	old := filesOf(t, fork)[format.WALFileName]
	expect.NoError(t, os.Remove(walPath(fork)))
	s := open(t, fork, d, smallMap)
	expect.Equal(t, want[:1], collectEvents(t, s.Log(t.Context(), 1)))
	takeOver(t, s, 0).append(messages.WSID(2), 2)
	closeStore(t, s)
	writeFiles(t, fork, map[string]string{format.WALFileName: old})
	_, err := Open(t.Context(), fork, d, smallMap)
	expect.ErrorIs(t, err, storage.ErrDamaged)
}

// inFileOf changes log.db of a store that nobody has open.
func inFileOf(dir string, change func(*bbolt.Tx) error) error {
	db, err := bbolt.Open(filepath.Join(dir, format.LogFileName), 0o600, nil)
	if err != nil {
		return err
	}
	return cmp.Or(db.Update(change), db.Close())
}
