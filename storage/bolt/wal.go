package bolt

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"unsafe"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage"
)

// A commit of bbolt writes pages, waits for the disk, writes a meta page, and waits again;
// and the fewer events it has the more of what it writes is pages that hold other events.
// So an append is made durable by one write into a second file, log.wal, and the applier
// brings it to log.db later, many commits in one transaction.
//
// Behind its header the file has two halves. Commits go into one, one behind the other; when it is full they
// go into the other one, as soon as all that stands there is in log.db. Whenever log.db has
// everything, they begin anew with the first half.
const (
	// walHalf is the length of a half.
	walHalf = 32 << 20
	// walChunk is by how much the file grows. What it grows by is written at once, so that
	// later writes need no new blocks of the file system.
	walChunk = 1 << 20
)

// wal writes log.wal. The committer's goroutine has it, and Close after that.
type wal struct {
	directory *directory
	store     storeID
	half      int64
	// file is nil as long as there is none, id is its.
	file *os.File
	id   walID
	// stale is one that a crash has left, or that could not be removed; nil if there is none. It is
	// held open: only that very file is removed, and no other one can get its identity.
	stale *os.File
	// size is how far the file was written once, told the length in its header. The next commit
	// goes into the current half, behind what is used of it.
	size, told, used int64
	current          int
	// last are the last LSNs in the halves.
	last [2]messages.LSN
	// unsettled says that a crash has left a log.wal, which stays until log.db has what is in
	// it; left are the commits in it that are to be written to log.db anew.
	unsettled bool
	left      []walCommit
	// buffer is aligned as direct writes want it.
	buffer []byte

	// Faults to inject in tests, as a [file] has them.
	beforeCommit func() error
	afterCommit  func() error
}

// path names the file.
func (w *wal) path() string { return w.directory.join(walFileName) }

// create makes the file, durable but for its contents. Nobody needs a stale one; another one that is there is
// somebody else's.
func (w *wal) create() (err error) {
	if w.id, err = newWALID(); err != nil {
		return err
	}
	if err := w.unlink(); err != nil {
		return err
	}
	w.size, w.told, w.used, w.current, w.last = walBlockLen, walBlockLen, 0, 0, [2]messages.LSN{}
	w.file, err = createSynced(w.directory, walFileName, w.header())
	switch {
	case errors.Is(err, fs.ErrExist):
		return w.directory.notOurs(walFileName)
	case err != nil:
		return err
	}
	return w.directory.sync()
}

func (w *wal) header() []byte {
	header := w.aligned(walBlockLen)
	copy(header, encodeWALHeader(w.store, w.id, w.size))
	return header
}

// remove closes and removes the file, if there is one.
func (w *wal) remove() error {
	if w.file == nil {
		return nil
	}
	w.stale, w.file = w.file, nil
	return w.unlink()
}

// unlink removes a stale file durably: a commit whose outcome is unknown must not come back when
// readers have seen that it is not there.
func (w *wal) unlink() error {
	if w.stale == nil {
		return nil
	}
	if err := w.directory.removeOnly(walFileName, w.stale); err != nil {
		return err
	}
	err := w.stale.Close()
	w.stale = nil
	return err
}

// close lets go of the files, and lets them stay.
func (w *wal) close() error {
	var errs []error
	for _, f := range []*os.File{w.file, w.stale} {
		if f != nil {
			errs = append(errs, f.Close())
		}
	}
	w.file, w.stale = nil, nil
	return errors.Join(errs...)
}

// place chooses the place of a commit of so many bytes. applied is the last LSN that
// log.db has, last the last one of all. It returns what log.db must have first, 0 if the
// place is free.
func (w *wal) place(size int64, applied, last messages.LSN) messages.LSN {
	other := 1 - w.current
	switch {
	case applied >= last:
		w.current, w.used = 0, 0
	case w.used+size <= w.half:
	case w.last[other] > applied:
		return w.last[other]
	default:
		w.current, w.used = other, 0
	}
	return 0
}

// isFree reports whether a commit of so many bytes has to wait for nothing: for no place or,
// if it is too large for any, not until log.db has everything. See place.
func (w *wal) isFree(size int64, applied, last messages.LSN) bool {
	if size > w.half {
		return applied >= last
	}
	as := *w
	return as.place(size, applied, last) == 0
}

// write makes a commit durable at the place that was chosen. An error means that nothing
// was written, but for [messages.ErrOutcomeUnknown].
func (w *wal) write(size int64, first messages.LSN, values [][]byte) error {
	if w.beforeCommit != nil {
		if err := w.beforeCommit(); err != nil {
			return w.failed(err)
		}
	}
	at := walBlockLen + int64(w.current)*w.half + w.used
	if err := w.grow(at + size); err != nil {
		return w.failed(err)
	}
	b := w.aligned(size)
	encodeCommit(b, w.id, at, first, values)
	err := writeSynced(w.file, b, at)
	if err == nil && w.afterCommit != nil {
		err = w.afterCommit()
	}
	if err != nil {
		// The blocks are there: want of space would be no excuse.
		return fmt.Errorf("%w: %s: %w", messages.ErrOutcomeUnknown, w.path(), err)
	}
	w.used += size
	w.last[w.current] = first + messages.LSN(len(values)) - 1
	return nil
}

// failed says what a failure means before anything of a commit was written.
func (w *wal) failed(err error) error {
	if lacksSpace(err) {
		return fmt.Errorf("%w: %s: %w", storage.ErrFull, w.path(), err)
	}
	return fmt.Errorf("%w: %s: %w", messages.ErrOutcomeUnknown, w.path(), err)
}

// grow writes zeroes up to where a commit ends, and then the new length.
func (w *wal) grow(end int64) error {
	if w.told >= end {
		return nil
	}
	for w.size < end {
		zeroes := w.aligned(walChunk)
		clear(zeroes)
		if err := writeSynced(w.file, zeroes, w.size); err != nil {
			return err
		}
		w.size += walChunk
	}
	if err := writeSynced(w.file, w.header(), 0); err != nil {
		return err
	}
	w.told = w.size
	return nil
}

// walMost is how long a file with such halves can be: it grows by whole chunks.
func walMost(half int64) int64 {
	return walBlockLen + (2*half+walChunk-1)/walChunk*walChunk
}

// aligned returns a buffer that begins at a block's boundary.
func (w *wal) aligned(size int64) []byte {
	if int64(len(w.buffer)) < size {
		b := make([]byte, max(size, walChunk)+walBlockLen)
		skip := -uintptr(unsafe.Pointer(unsafe.SliceData(b))) % walBlockLen //nolint:gosec // only the address counts
		w.buffer = b[skip:]
	}
	return w.buffer[:size]
}
