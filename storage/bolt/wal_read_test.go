package bolt

import (
	"bytes"
	"errors"
	"os"
	"slices"
	"testing"

	"github.com/partita-go/partita/storage"
)

// A file is read up to the length that it may have, and refused beyond.
func TestReadAtMost(t *testing.T) {
	path := walPath(t.TempDir())
	want := []byte("twelve bytes")
	noError(t, os.WriteFile(path, want, 0o600))
	read := func(most int) ([]byte, error) {
		f, err := os.Open(path)
		noError(t, err)
		defer func() { noError(t, f.Close()) }()
		return readAtMost(f, path, int64(most))
	}
	got, err := read(len(want))
	noError(t, err)
	equal(t, want, got)
	_, err = read(len(want) - 1)
	errorIs(t, err, storage.ErrDamaged)
}

// Less than a sector of ours is nothing, any part of something else is another file, which
// must not be removed.
func TestWALOfOneSector(t *testing.T) {
	ours, zeros := encodeWALHeader(storeID{}, walID{}, walBlockLen), make([]byte, walSectorLen)
	for _, length := range []int{0, 1, 2, len(magic), walHeaderLen, walSectorLen - 1} {
		for _, b := range [][]byte{ours, zeros} {
			_, err := parseWAL("x", b[:length], storeID{}, smallHalf)
			errorIs(t, err, errNoWAL, length)
		}
	}
	_, err := parseWAL("x", slices.Concat(zeros, []byte("p")), storeID{}, smallHalf)
	errorIs(t, err, storage.ErrDamaged)
	other := bytes.Repeat([]byte("p"), walSectorLen)
	for _, length := range []int{2, len(magic), walSectorLen - 1, walSectorLen} {
		_, err := parseWAL("x", other[:length], storeID{}, smallHalf)
		errorIs(t, err, storage.ErrForeign, length)
		if damaged := new(storage.DamagedError); errors.As(err, &damaged) {
			t.Errorf("got %v, which is no damage", err)
		}
	}
}

// Nobody writes a commit without events, so one that is there is damage.
func TestWALCommitWithoutEvents(t *testing.T) {
	w := newWALWriter(t, smallHalf)
	w.commit(10)
	noError(t, w.write(walSize(nil), w.next, nil))
	_, err := w.pendingIn(w.content(), 1)
	errorIs(t, err, storage.ErrDamaged)
}

// A commit that a crash has cut short was never acknowledged, whatever became of the sectors behind
// those that are not there.
func TestWALTornAndDamaged(t *testing.T) {
	w := newWALWriter(t, smallHalf)
	w.commit(10)
	w.commit(walBlockLen - 200)
	b := w.content()
	clear(b[2*walBlockLen+walSectorLen:][:walSectorLen])
	b[2*walBlockLen+2*walSectorLen+walHeadLen] ^= 1
	got, err := w.pendingIn(b, 1)
	noError(t, err)
	equal(t, w.events[:1], got)
}

// A log.wal whose removal was lost is not needed, and is not looked at.
func TestWALThatIsNotNeeded(t *testing.T) {
	dir, d, want := leftBehind(t)
	left := []byte(filesOf(t, dir)[walFileName])
	left[walBlockLen+walHeadLen] ^= 1
	s := open(t, dir, d, smallMap)
	closeStore(t, s)
	noWAL(t, dir)
	noError(t, os.WriteFile(walPath(dir), left, 0o600))
	opensWith(t, dir, d, want)
}
