package wal_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/partita-go/partita/storage"
	"github.com/partita-go/partita/storage/bolt/internal/expect"
	"github.com/partita-go/partita/storage/bolt/internal/format"
	"github.com/partita-go/partita/storage/bolt/internal/wal"
)

// A file is read up to the length that it may have, and refused beyond.
func TestReadAtMost(t *testing.T) {
	path := filepath.Join(t.TempDir(), format.WALFileName)
	want := []byte("twelve bytes")
	expect.NoError(t, os.WriteFile(path, want, 0o600))
	read := func(most int) ([]byte, error) {
		f, err := os.Open(path)
		expect.NoError(t, err)
		defer func() { expect.NoError(t, f.Close()) }()
		return wal.ReadAtMost(f, path, int64(most))
	}
	got, err := read(len(want))
	expect.NoError(t, err)
	expect.Equal(t, want, got)
	_, err = read(len(want) - 1)
	expect.ErrorIs(t, err, storage.ErrDamaged)
}

// Less than a sector of ours is nothing, any part of something else is another file, which
// must not be removed.
func TestWALOfOneSector(t *testing.T) {
	ours, zeros := wal.EncodeHeader(format.StoreID{}, wal.ID{}, wal.BlockLen), make([]byte, wal.SectorLen)
	for _, length := range []int{0, 1, 2, len(format.Magic), wal.HeaderLen, wal.SectorLen - 1} {
		for _, b := range [][]byte{ours, zeros} {
			_, err := wal.Parse("x", b[:length], format.StoreID{}, smallHalf)
			expect.ErrorIs(t, err, wal.ErrNone, length)
		}
	}
	_, err := wal.Parse("x", slices.Concat(zeros, []byte("p")), format.StoreID{}, smallHalf)
	expect.ErrorIs(t, err, storage.ErrDamaged)
	other := bytes.Repeat([]byte("p"), wal.SectorLen)
	for _, length := range []int{2, len(format.Magic), wal.SectorLen - 1, wal.SectorLen} {
		_, err := wal.Parse("x", other[:length], format.StoreID{}, smallHalf)
		expect.ErrorIs(t, err, storage.ErrForeign, length)
		if damaged := new(storage.DamagedError); errors.As(err, &damaged) {
			t.Errorf("got %v, which is no damage", err)
		}
	}
}

// Nobody writes a commit without events, so one that is there is damage.
func TestWALCommitWithoutEvents(t *testing.T) {
	w := newWALWriter(t, smallHalf)
	w.commit(10)
	expect.NoError(t, w.Write(wal.Size(nil), w.next, nil))
	_, err := w.pendingIn(w.content(), 1)
	expect.ErrorIs(t, err, storage.ErrDamaged)
}

// A commit that a crash has cut short was never acknowledged, whatever became of the sectors behind
// those that are not there.
func TestWALTornAndDamaged(t *testing.T) {
	w := newWALWriter(t, smallHalf)
	w.commit(10)
	w.commit(wal.BlockLen - 200)
	b := w.content()
	clear(b[2*wal.BlockLen+wal.SectorLen:][:wal.SectorLen])
	b[2*wal.BlockLen+2*wal.SectorLen+wal.WALHeadLen] ^= 1
	got, err := w.pendingIn(b, 1)
	expect.NoError(t, err)
	expect.Equal(t, w.events[:1], got)
}
