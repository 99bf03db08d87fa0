package wal

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"unsafe"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage"
	"github.com/partita-go/partita/storage/bolt/internal/boltfile"
	"github.com/partita-go/partita/storage/bolt/internal/format"
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
	// Half is the length of a half.
	Half = 32 << 20
	// Chunk is by how much the file grows. What it grows by is written at once, so that
	// later writes need no new blocks of the file system.
	Chunk = 1 << 20
)

// Disk makes durable what is done in a directory. It is the directory itself, unless a test has another one.
type Disk interface {
	// CreateSynced is [boltfile.Directory.CreateSynced].
	CreateSynced(name string, block []byte) (boltfile.Synced, error)
	// Sync makes names durable.
	Sync() error
}

// Writer writes log.wal. The committer's goroutine has it, and Close after that.
type Writer struct {
	Directory *boltfile.Directory
	Disk      Disk
	Store     format.StoreID
	Half      int64
	// File is nil as long as there is none, id is its.
	File boltfile.Synced
	ID   ID
	// Stale is one that a crash has left, or that could not be removed; nil if there is none. It is
	// held open: only that very file is removed, and no other one can get its identity.
	Stale fs.File
	// Size is how far the file was written once, told the length in its header. The next commit
	// goes into the current half, behind what is used of it.
	Size, Told, Used int64
	Current          int
	// Last are the last LSNs in the halves.
	Last [2]messages.LSN
	// buffer is aligned as direct writes want it.
	buffer []byte
}

// Path names the file.
func (w *Writer) Path() string { return w.Directory.Join(format.WALFileName) }

// Create makes the file, durable but for its contents. Nobody needs a stale one; another one that is there is
// somebody else's.
func (w *Writer) Create() (err error) {
	if w.ID, err = NewID(); err != nil {
		return err
	}
	if err := w.Unlink(); err != nil {
		return err
	}
	w.Size, w.Told, w.Used, w.Current, w.Last = BlockLen, BlockLen, 0, 0, [2]messages.LSN{}
	w.File, err = w.Disk.CreateSynced(format.WALFileName, w.header())
	switch {
	case errors.Is(err, fs.ErrExist):
		return w.Directory.NotOurs(format.WALFileName)
	case err != nil:
		return err
	}
	return w.Disk.Sync()
}

func (w *Writer) header() []byte {
	header := w.Aligned(BlockLen)
	copy(header, EncodeHeader(w.Store, w.ID, w.Size))
	return header
}

// Remove closes and removes the file, if there is one, or a stale one.
func (w *Writer) Remove() error {
	if w.File != nil {
		w.Stale, w.File = w.File, nil
	}
	return w.Unlink()
}

// Unlink removes a stale file durably: a commit whose outcome is unknown must not come back when
// readers have seen that it is not there.
func (w *Writer) Unlink() error {
	if w.Stale == nil {
		return nil
	}
	if err := w.Directory.RemoveOnly(format.WALFileName, w.Stale); err != nil {
		return err
	}
	if err := w.Disk.Sync(); err != nil {
		return err
	}
	err := w.Stale.Close()
	w.Stale = nil
	return err
}

// Close lets go of the files, and lets them stay.
func (w *Writer) Close() error {
	var errs []error
	for _, f := range []fs.File{w.File, w.Stale} {
		if f != nil {
			errs = append(errs, f.Close())
		}
	}
	w.File, w.Stale = nil, nil
	return errors.Join(errs...)
}

// Place chooses the place of a commit of so many bytes. applied is the last LSN that
// log.db has, last the last one of all. It returns what log.db must have first, 0 if the
// place is free.
func (w *Writer) Place(size int64, applied, last messages.LSN) messages.LSN {
	other := 1 - w.Current
	switch {
	case applied >= last:
		w.Current, w.Used = 0, 0
	case w.Used+size <= w.Half:
	case w.Last[other] > applied:
		return w.Last[other]
	default:
		w.Current, w.Used = other, 0
	}
	return 0
}

// IsFree reports whether a commit of so many bytes has to wait for nothing: for no place or,
// if it is too large for any, not until log.db has everything. See place.
func (w *Writer) IsFree(size int64, applied, last messages.LSN) bool {
	if size > w.Half {
		return applied >= last
	}
	// Not of all of it: a stale one may be removed meanwhile.
	as := Writer{Half: w.Half, Used: w.Used, Current: w.Current, Last: w.Last}
	return as.Place(size, applied, last) == 0
}

// Write makes a commit durable at the place that was chosen. An error means that nothing
// was written, but for [messages.ErrOutcomeUnknown].
func (w *Writer) Write(size int64, first messages.LSN, values [][]byte) error {
	at := BlockLen + int64(w.Current)*w.Half + w.Used
	if err := w.Grow(at + size); err != nil {
		return w.Failed(err)
	}
	b := w.Aligned(size)
	EncodeCommit(b, w.ID, at, first, values)
	if err := w.File.WriteSynced(b, at); err != nil {
		// The blocks are there: want of space would be no excuse.
		return fmt.Errorf("%w: %s: %w", messages.ErrOutcomeUnknown, w.Path(), err)
	}
	w.Used += size
	w.Last[w.Current] = first + messages.LSN(len(values)) - 1
	return nil
}

// Failed says what a failure means before anything of a commit was written.
func (w *Writer) Failed(err error) error {
	if boltfile.LacksSpace(err) {
		return fmt.Errorf("%w: %s: %w", storage.ErrFull, w.Path(), err)
	}
	return fmt.Errorf("%w: %s: %w", messages.ErrOutcomeUnknown, w.Path(), err)
}

// Grow writes zeroes up to where a commit ends, and then the new length.
func (w *Writer) Grow(end int64) error {
	if w.Told >= end {
		return nil
	}
	for w.Size < end {
		zeroes := w.Aligned(Chunk)
		clear(zeroes)
		if err := w.File.WriteSynced(zeroes, w.Size); err != nil {
			return err
		}
		w.Size += Chunk
	}
	if err := w.File.WriteSynced(w.header(), 0); err != nil {
		return err
	}
	w.Told = w.Size
	return nil
}

// Most is how long a file with such halves can be: it grows by whole chunks.
func Most(half int64) int64 {
	return BlockLen + (2*half+Chunk-1)/Chunk*Chunk
}

// Aligned returns a buffer that begins at a block's boundary.
func (w *Writer) Aligned(size int64) []byte {
	if int64(len(w.buffer)) < size {
		b := make([]byte, max(size, Chunk)+BlockLen)
		skip := -uintptr(unsafe.Pointer(unsafe.SliceData(b))) % BlockLen //nolint:gosec // only the address counts
		w.buffer = b[skip:]
	}
	return w.buffer[:size]
}

// WriteBlocks writes all blocks but those of zeroes: nobody has written those, and a file system that keeps none may
// have no room for them.
func WriteBlocks(handle *os.File, b []byte) error {
	for at := 0; at < len(b); {
		end := at
		for end < len(b) && !isZero(b[end:min(end+BlockLen, len(b))]) {
			end = min(end+BlockLen, len(b))
		}
		if end > at {
			if _, err := handle.WriteAt(b[at:end], int64(at)); err != nil {
				return err
			}
		}
		at = end + BlockLen
	}
	return nil
}

func isZero(b []byte) bool { return bytes.Count(b, []byte{0}) == len(b) }

// SyncWritten syncs what was written, or could not be for want of space.
func SyncWritten(written error, sync func() error) error {
	if written != nil && !boltfile.LacksSpace(written) {
		return written
	}
	return sync()
}
