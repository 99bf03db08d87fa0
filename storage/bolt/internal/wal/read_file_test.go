package wal_test

import (
	"os"
	"testing"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage"
	"github.com/partita-go/partita/storage/bolt/internal/expect"
	"github.com/partita-go/partita/storage/bolt/internal/wal"
)

// What a writer has left is read by the next one, which alone can remove it.
func TestWALIsReadFromItsFile(t *testing.T) {
	w := newWALWriter(t, smallHalf)
	w.commit(10, 600)
	expect.NoError(t, w.Close())
	left := w.anew()
	r, err := left.Read()
	expect.NoError(t, err)
	expect.Equal(t, w.ID.String(), r.ID.String())
	expect.Equal(t, 1, len(r.Commits))
	values, _ := r.Values(&r.Commits[0], nil, nil)
	expect.Equal(t, w.events, values)
	expect.NoError(t, left.Unlink())
	_, err = left.Read()
	expect.ErrorIs(t, err, wal.ErrNone)
}

// A file that is longer than any can be is refused, by its own name.
func TestWALTooLong(t *testing.T) {
	w := newWALWriter(t, smallHalf)
	expect.NoError(t, w.Grow(wal.Most(smallHalf)+1))
	left := w.anew()
	_, err := left.Read()
	expect.ErrorIs(t, err, storage.ErrDamaged)
	expect.NoError(t, left.Close())
}

// A log.wal that somebody else has put there is left as it is.
func TestWALOfSomebodyElse(t *testing.T) {
	w := newWALWriter(t, smallHalf)
	other := w.anew()
	expect.ErrorIs(t, other.Create(), storage.ErrForeign)
	expect.NoError(t, w.Remove())
}

// A place is free if nothing there is waited for; what is larger than a half waits for everything.
func TestWALIsFree(t *testing.T) {
	w := wal.Writer{Half: 4, Used: 4, Last: [2]messages.LSN{5, 3}}
	for _, c := range []struct {
		size          int64
		applied, last messages.LSN
		want          bool
	}{{1, 2, 5, false}, {1, 3, 5, true}, {5, 4, 5, false}, {5, 5, 5, true}} {
		expect.Equal(t, c.want, w.IsFree(c.size, c.applied, c.last), c)
		expect.Equal(t, 0, w.Current, "it only asks")
	}
}

// What is no file under its name is not opened.
func TestWALThatIsNoFile(t *testing.T) {
	w := newWALWriter(t, smallHalf)
	expect.NoError(t, w.Remove())
	expect.NoError(t, os.Mkdir(w.Path(), 0o700))
	left := w.anew()
	_, err := left.Read()
	expect.ErrorIs(t, err, storage.ErrForeign)
	expect.Equal(t, true, left.Stale == nil)
	expect.ErrorIs(t, left.Create(), storage.ErrForeign)
	expect.Equal(t, true, left.File == nil)
}

// Another file that has the name by now is left as it is, and stays an error.
func TestWALThatWasExchanged(t *testing.T) {
	w := newWALWriter(t, smallHalf)
	expect.NoError(t, os.Remove(w.Path()))
	expect.NoError(t, os.WriteFile(w.Path(), []byte("theirs"), 0o600))
	expect.NoError(t, w.Unlink(), "nothing is stale yet")
	expect.ErrorIs(t, w.Remove(), storage.ErrForeign)
	expect.ErrorIs(t, w.Unlink(), storage.ErrForeign)
	b, err := os.ReadFile(w.Path())
	expect.NoError(t, err)
	expect.Equal(t, "theirs", string(b))
}
