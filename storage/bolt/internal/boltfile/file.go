package boltfile

import (
	"errors"
	"fmt"
	"os"
	"runtime/debug"
	"strings"
	"sync/atomic"
	"syscall"

	"go.etcd.io/bbolt"
	berrors "go.etcd.io/bbolt/errors"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage"
	"github.com/partita-go/partita/storage/bolt/internal/format"
)

// File is one bbolt file. Everything that touches bbolt goes through its methods:
// on a damaged file bbolt panics, or faults where the map is longer than the file,
// and both become errors here.
//
// A panic can leave bbolt's own locks taken: while a transaction begins, or while
// one that failed is rolled back. The file is poisoned then: bbolt is never
// entered again, and closing means closing the operating system's file.
type File struct {
	// Name is the path that errors name.
	Name     string
	DB       *bbolt.DB
	Handle   *os.File
	poisoned atomic.Pointer[storage.DamagedError]
	// uncertain is set when the outcome of a commit is unknown. Nothing is written any more:
	// the next commit could succeed on top of pages that the disk has not.
	uncertain atomic.Bool
	// Vouched says that the disk has the commit that the next one follows. Whoever has the lock of
	// bbolt's writer has it.
	Vouched bool
	// Commit commits a transaction, or fails and rolls it back. It is bbolt's, unless a test has another one.
	Commit func(*bbolt.Tx) error
	idle   idle
}

// panicError is a panic or a fault that was caught.
type panicError struct{ value any }

func (e *panicError) Error() string { return fmt.Sprintf("damaged file: %v", e.value) }

// guarded runs fn and turns a panic or a memory fault into a panicError.
func guarded(fn func() error) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if value := recover(); value != nil {
			err = &panicError{value: value}
		}
	}()
	return fn()
}

// OpenFile opens a bbolt file of a directory. A file that is empty or absent is initialised,
// unless o says read-only. Errors name it as title.
func OpenFile(d *Directory, name, title string, o *bbolt.Options) (*File, error) {
	f, path := &File{Name: title, Commit: (*bbolt.Tx).Commit}, d.Join(name)
	o.OpenFile = func(_ string, flag int, mode os.FileMode) (*os.File, error) {
		handle, err := d.OpenFile(name, flag, mode)
		f.Handle = handle
		return handle, err
	}
	err := guarded(func() (err error) {
		f.DB, err = bbolt.Open(path, 0o600, o)
		return err
	})
	switch {
	case err == nil:
		hold(f)
		return f, nil
	case caught(err):
		// It was only read, and nobody else has it. bbolt's map of it stays, and would keep
		// the lock.
		_ = errors.Join(unlock(f.Handle), f.Handle.Close())
		return nil, f.damaged(err)
	case errors.Is(err, berrors.ErrTimeout):
		return nil, fmt.Errorf("%w %s: %s", storage.ErrLocked, holder(d, name), path)
	case errors.Is(err, berrors.ErrInvalid), tooShort(err):
		return nil, f.unrecognised(d, name, err)
	case errors.Is(err, berrors.ErrVersionMismatch):
		return nil, fmt.Errorf("%w: %s: %w", storage.ErrForeign, path, err)
	case errors.Is(err, berrors.ErrChecksum):
		return nil, f.damaged(fmt.Errorf("both meta pages: %w", err))
	}
	if failed, ok := errors.AsType[*os.PathError](err); ok && failed.Path == path {
		return nil, err // it names the file
	}
	return nil, fmt.Errorf("open %s: %w", path, err)
}

// tooShort reports whether bbolt found no room for its meta pages. Its error is text
// only.
func tooShort(err error) bool { return strings.HasPrefix(err.Error(), "file size too small") }

func (f *File) damaged(cause error) *storage.DamagedError {
	return &storage.DamagedError{Where: "file " + f.Name, Cause: cause}
}

// PlaceOf names a value in the file for error messages.
func (f *File) PlaceOf(bucket []byte, key string, args ...any) string {
	return "file " + f.Name + ", " + format.PlaceOf(bucket, key, args...)
}

// Guard runs fn, which works in a transaction of the file inside of one of another file. What bbolt panics at there is
// this file's damage.
func (f *File) Guard(fn func() error) error { return f.explain(guarded(fn)) }

// Poison marks the file as not to be entered again.
func (f *File) Poison(cause error) {
	f.poisoned.CompareAndSwap(nil, f.damaged(cause))
}

// caught reports whether an error is a panic that was caught.
func caught(err error) bool {
	_, ok := errors.AsType[*panicError](err)
	return ok
}

// explain turns bbolt's errors into the store's.
func (f *File) explain(err error) error {
	switch {
	case errors.Is(err, storage.ErrDamaged): // it says of which file
	case caught(err):
		return f.damaged(err)
	case errors.Is(err, berrors.ErrDatabaseNotOpen):
		return storage.ErrClosed
	}
	return err
}

// Begin starts a transaction.
func (f *File) Begin(writable bool) (*bbolt.Tx, error) {
	if damage := f.poisoned.Load(); damage != nil {
		return nil, damage
	}
	var tx *bbolt.Tx
	err := guarded(func() (err error) {
		tx, err = f.DB.Begin(writable)
		return err
	})
	if caught(err) {
		f.Poison(err)
	}
	return tx, f.explain(err)
}

// Rollback ends a transaction without a trace.
func (f *File) Rollback(tx *bbolt.Tx) {
	if err := guarded(tx.Rollback); caught(err) {
		f.Poison(err)
	}
}

// View runs fn in a read transaction. Values are valid inside fn only. View must
// not be called inside fn, since bbolt's writer may wait in between.
func (f *File) View(fn func(*bbolt.Tx) error) error {
	tx, err := f.Begin(false)
	if err != nil {
		return err
	}
	defer f.Rollback(tx)
	return f.explain(guarded(func() error { return fn(tx) }))
}

// Update runs fn in a write transaction and commits it, synced. Its error means
// that nothing was written, but for [messages.ErrOutcomeUnknown], which leaves
// only one thing to do: to close the file.
func (f *File) Update(fn func(*bbolt.Tx) error) error {
	if f.uncertain.Load() {
		return storage.ErrClosed
	}
	var tx *bbolt.Tx
	err := f.withoutIdle(func() (err error) {
		tx, err = f.Begin(true)
		return err
	})
	if err != nil {
		return err
	}
	if err := guarded(func() error { return fn(tx) }); err != nil {
		f.Rollback(tx)
		return f.explain(err)
	}
	id := tx.ID()
	if err := f.vouch(tx); err != nil {
		f.Rollback(tx)
		return f.commitError(id, err)
	}
	err = f.withoutIdle(func() error { return guarded(func() error { return f.Commit(tx) }) })
	if caught(err) {
		f.Rollback(tx)
		f.Poison(err)
	}
	return f.commitError(id, err)
}

// commitError says what the failure of commit id means.
//
// bbolt's Commit allocates pages and grows the file, then writes and syncs data
// pages that nothing refers to yet, and then writes and syncs the one meta page
// that refers to them. A lack of space before that last step leaves the old meta
// page in force, and bbolt has rolled back what it held in memory: refused. To be
// sure that it was before that step, the meta page is looked at. Everything else
// that fails, a sync above all, is unknown: the kernel may have the pages or not. That goes
// for the sync that vouches for the commit before, too: nothing can follow it.
func (f *File) commitError(id int, err error) error {
	if err == nil {
		return nil
	}
	if LacksSpace(err) && f.stillBefore(id) {
		return fmt.Errorf("%w: %s: %w", storage.ErrFull, f.Name, err)
	}
	f.uncertain.Store(true)
	return fmt.Errorf("%w: %s: %w", messages.ErrOutcomeUnknown, f.Name, err)
}

// LacksSpace reports whether a commit failed for want of space. bbolt wraps the
// error of growing a file as text only; nothing was written then.
func LacksSpace(err error) bool {
	return errors.Is(err, berrors.ErrMaxSizeReached) || errors.Is(err, syscall.ENOSPC) ||
		errors.Is(err, syscall.EDQUOT) || errors.Is(err, syscall.EFBIG) ||
		strings.HasPrefix(err.Error(), "file resize error")
}

// stillBefore reports whether the file is as it was before commit id.
func (f *File) stillBefore(id int) bool {
	tx, err := f.Begin(false)
	if err != nil {
		return false
	}
	defer f.Rollback(tx)
	return tx.ID() < id
}

// Close releases the file. It waits for transactions under way.
func (f *File) Close() error {
	defer letGo(f)
	if f.poisoned.Load() != nil {
		return errors.Join(unlock(f.Handle), f.Handle.Close())
	}
	f.endIdle()
	return f.explain(guarded(f.DB.Close))
}

// truncated returns the damage of a file that is shorter than its contents.
func (f *File) truncated() error {
	return f.View(func(tx *bbolt.Tx) error {
		info, err := f.Handle.Stat()
		if err != nil {
			return err
		}
		if info.Size() < tx.Size() {
			return f.damaged(fmt.Errorf("%w: got %d bytes, want %d", format.ErrTruncated, info.Size(), tx.Size()))
		}
		return nil
	})
}
