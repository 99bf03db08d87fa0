package wal_test

import (
	"bytes"
	"fmt"
	"hash/crc32"
	"os"
	"testing"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage/bolt/internal/boltfile"
	"github.com/partita-go/partita/storage/bolt/internal/expect"
	"github.com/partita-go/partita/storage/bolt/internal/faulty"
	"github.com/partita-go/partita/storage/bolt/internal/format"
	"github.com/partita-go/partita/storage/bolt/internal/wal"
)

func crcOf(data []byte) uint32 { return crc32.Checksum(data, format.Castagnoli) }

// walWriter writes commits to a log.wal with small halves.
type walWriter struct {
	t testing.TB
	wal.Writer
	disk          *faulty.Disk
	next, applied messages.LSN
	// events are all that were written, from LSN 1 on.
	events [][]byte
}

const smallHalf = 4 * wal.BlockLen

func newWALWriter(t testing.TB, half int64) *walWriter {
	t.Helper()
	d := expect.Opened(t, boltfile.OpenDirectory, t.TempDir())
	disk := &faulty.Disk{Directory: d}
	w := &walWriter{t: t, disk: disk, Writer: wal.Writer{Directory: d, Disk: disk, Store: format.StoreID{7}, Half: half}, next: 1}
	expect.NoError(t, w.Create())
	t.Cleanup(func() { _ = w.Close() }) // it is read by its name
	return w
}

// anew returns a writer of the same file that knows nothing of it.
func (w *walWriter) anew() *wal.Writer {
	return &wal.Writer{Directory: w.Directory, Disk: w.disk, Store: w.Store, Half: w.Half}
}

// commit writes a commit whose events are that long.
func (w *walWriter) commit(lengths ...int) {
	w.t.Helper()
	values := make([][]byte, len(lengths))
	for i, n := range lengths {
		values[i] = bytes.Repeat(fmt.Appendf(nil, "event %d; ", int(w.next)+i), n/9+1)[:n]
	}
	size := wal.Size(values)
	if need := w.Place(size, w.applied, w.next-1); need != 0 {
		w.applied = need
		expect.Equal(w.t, 0, w.Place(size, w.applied, w.next-1))
	}
	expect.NoError(w.t, w.Write(size, w.next, values))
	w.next += messages.LSN(len(values))
	w.events = append(w.events, values...)
}

// content returns the file up to the end of its halves.
func (w *walWriter) content() []byte {
	w.t.Helper()
	b, err := os.ReadFile(w.Path())
	expect.NoError(w.t, err)
	// Without the zeroes that it has grown by.
	all := make([]byte, wal.BlockLen+2*w.Half)
	copy(all, b)
	copy(all, wal.EncodeHeader(w.Store, w.ID, int64(len(all))))
	return all
}

// lapped returns a log.wal of which the halves were filled more than once: log.db has the events
// before next, and the last commit, of two blocks, stands behind another one.
func lapped(t testing.TB) (w *walWriter, next messages.LSN) {
	t.Helper()
	w = newWALWriter(t, smallHalf)
	for range 7 {
		w.commit(100, 0, 600)
		w.commit(4500)
	}
	w.commit(9)
	w.commit(5000, 30)
	return w, w.applied + 1
}

// pendingIn returns the events from an LSN on that bytes of a log.wal hold.
func (w *walWriter) pendingIn(b []byte, next messages.LSN) ([][]byte, error) {
	r, err := wal.Parse(w.Path(), b, w.Store, w.Half)
	if err == nil {
		err = r.Check(next)
	}
	if err != nil {
		return nil, err
	}
	var events [][]byte
	for i := range r.Commits {
		if c := &r.Commits[i]; c.End() > next {
			values, _ := r.Values(c, nil, nil)
			events = append(events, values[next-c.First:]...)
			next = c.End()
		}
	}
	return events, nil
}
