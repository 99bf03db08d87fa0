package bolt

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"go.etcd.io/bbolt"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage/bolt/internal/boltfile"
	"github.com/partita-go/partita/storage/bolt/internal/format"
	"github.com/partita-go/partita/storage/verify"
)

// CopyOptions say how a copy of a store is made.
type CopyOptions struct {
	// SkipVerify leaves the check of the copy out.
	SkipVerify bool
	// Verify are the options of the check.
	Verify verify.Options
	// TailEvents is how many events [Restore] projects at a time while it rebuilds state.db; with
	// fewer it takes less memory and, where workspaces come in no order, longer. Default
	// 131,072, as in [Options].
	TailEvents int
	// Progress is called now and then. Default: nobody is told.
	Progress func(CopyProgress)
}

// CopyProgress is how far a copy has come.
type CopyProgress struct {
	// Phase is what is being done: "copy subscriptions.db", "copy state.db", "copy log.db",
	// "rebuild state.db".
	Phase string
	// Done and Total are events of log.db or bytes of the others; a Total of 0 is not known.
	Done, Total uint64
}

// Copied is what was copied.
type Copied struct {
	// ID is the copy's store id, Events is how many it has.
	ID     string
	Events messages.LSN
	// The sizes of the files are in bytes.
	LogFrom, LogTo, StateFrom, StateTo int64
	// These are 0 without subscriptions.
	SubscriptionsFrom, SubscriptionsTo int64
	// StateUnread is why [Restore] could not ask the state.db beside the log whether the log is whole; nil if it
	// could, or if there is none.
	StateUnread error
	// Report is what the check of the copy found; zero if it was left out.
	Report verify.Report
}

// copying is a copy that is being made.
type copying struct {
	o      CopyOptions
	result Copied
}

func newCopying(o CopyOptions) *copying {
	if o.Progress == nil {
		o.Progress = func(CopyProgress) {}
	}
	return &copying{o: o}
}

// into lets build make the copy in a new directory beside the final one, checks it, and
// gives it the final name, which must be free or that of an empty directory. So there is a
// whole copy under that name, or nothing.
func (c *copying) into(ctx context.Context, dir string, build func(temporary *boltfile.Directory) error) (err error) {
	dir = filepath.Clean(dir)
	switch name := filepath.Base(dir); name {
	case format.LogFileName, format.WALFileName, format.StateFileName, format.SubscriptionsFileName:
		return fmt.Errorf("%w: %s: a store beside it would take it for its own %s", ErrExists, dir, name)
	}
	if err := mustBeFree(dir); err != nil {
		return err
	}
	if dir, err = filepath.Abs(dir); err != nil { // the working directory may change meanwhile
		return err
	}
	if err := boltfile.MakeDirs(filepath.Dir(dir), boltfile.SyncAbove); err != nil {
		return err
	}
	temporary, err := os.MkdirTemp(filepath.Dir(dir), filepath.Base(dir)+boltfile.NewFilePattern)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.RemoveAll(temporary))
		}
	}()
	if err := c.fill(ctx, temporary, build); err != nil {
		return err
	}
	return publishDir(temporary, dir)
}

// fill makes the copy in its directory, checks it, and makes it durable.
func (c *copying) fill(ctx context.Context, temporary string, build func(temporary *boltfile.Directory) error) (err error) {
	d, err := boltfile.OpenDirectory(temporary)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.Close()) }()
	if err := build(d); err != nil {
		return err
	}
	if err := c.check(ctx, d); err != nil {
		return err
	}
	return d.Sync()
}

// wantRoom is what a target must be.
const wantRoom = "want nothing there, or an empty directory that can be replaced"

// mustBeFree returns ErrExists unless nothing is there, or an empty directory that can make
// room for another one. Renaming it away and back shows that at once: that a mount point
// cannot is not to be found out only when the copy is finished.
func mustBeFree(dir string) error {
	there, err := isEmptyDir(dir)
	if err != nil || !there {
		return err
	}
	away, err := os.MkdirTemp(filepath.Dir(dir), filepath.Base(dir)+boltfile.NewFilePattern)
	if err != nil {
		return err
	}
	if err := os.Remove(away); err != nil {
		return err
	}
	if err := os.Rename(dir, away); err != nil {
		return fmt.Errorf("%w: %w; %s", ErrExists, err, wantRoom)
	}
	return os.Rename(away, dir)
}

// isEmptyDir reports whether there is anything under a name, which must be an empty directory.
// All else that is there is ErrExists, a link to one too.
func isEmptyDir(name string) (there bool, err error) {
	was, err := os.Lstat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return false, nil
	case err != nil:
		return false, err
	case !was.IsDir():
		return true, fmt.Errorf("%w: %s: got a file or a link (%v), %s", ErrExists, name, was.Mode(), wantRoom)
	}
	entries, err := os.ReadDir(name)
	if err == nil && len(entries) > 0 {
		err = fmt.Errorf("%s is not empty", name)
	}
	if err != nil {
		return true, fmt.Errorf("%w: %w; %s", ErrExists, err, wantRoom)
	}
	return true, nil
}

// makeRoom removes the empty directory that has a name, if there is one.
func makeRoom(name string) error {
	there, err := isEmptyDir(name)
	if err != nil || !there {
		return err
	}
	if err := syscall.Rmdir(name); err != nil {
		return fmt.Errorf("%w: remove %s: %w; %s", ErrExists, name, err, wantRoom)
	}
	return nil
}

// publishDir gives a directory its final name. An empty directory of that name makes room.
func publishDir(temporary, final string) error {
	if err := makeRoom(final); err != nil {
		return err
	}
	if err := os.Rename(temporary, final); err != nil {
		return err
	}
	return boltfile.SyncAbove(filepath.Dir(final))
}

// check checks the copy, unless that is to be left out.
func (c *copying) check(ctx context.Context, d *boltfile.Directory) error {
	c.result.LogTo, c.result.StateTo = d.SizeOf(format.RoleLog), d.SizeOf(format.RoleState)
	c.result.SubscriptionsTo = d.SizeOf(format.RoleSubscriptions)
	if c.o.SkipVerify {
		return nil
	}
	report, err := Verify(ctx, d.Path, c.o.Verify)
	c.result.Report = report
	if err == nil {
		err = report.Err()
	}
	if err != nil {
		return fmt.Errorf("the copy is not kept: %w", err)
	}
	return nil
}

// newStoreID draws a store's id.
func newStoreID() (id format.StoreID, err error) {
	_, err = rand.Read(id[:])
	return id, err
}

// newCopyFile makes a file of the copy, with a header. What is written to it is durable
// when it was closed by closeCopy, and not before.
func newCopyFile(dir *boltfile.Directory, r format.Role, id format.StoreID, d messages.Descriptor) (*boltfile.File, error) {
	op := &opening{Store: &Store{options: Options{}.WithDefaults(), id: id, descriptor: d, directory: dir}}
	f, err := op.initialise(r.FileName(), r)
	if err == nil {
		f.DB.NoSync = true
	}
	return f, err
}

// copyBucket copies the entries of a bucket that wanted accepts, up to the first that it
// does not, in transactions of either file that are short and never nested.
func copyBucket(ctx context.Context, from, to *boltfile.File, bucket []byte, fill float64, wanted func(k []byte) bool, progress func(entries, bytes int)) error {
	var next, last []byte // last is bbolt's, as long as the transaction
	for more := true; more; {
		if err := ctx.Err(); err != nil {
			return err
		}
		var chunk boltfile.Entries
		err := from.View(func(tx *bbolt.Tx) error {
			more = false
			b := tx.Bucket(bucket)
			if b == nil {
				return nil
			}
			c := b.Cursor()
			for k, v := c.Seek(next); k != nil && wanted(k); k, v = c.Next() {
				if err := from.MustAscend(bucket, last, k); err != nil {
					return err
				}
				if chunk.Full() {
					next, last, more = append(next[:0], k...), bytes.Clone(last), true
					return nil
				}
				chunk.Add(k, v)
				last = k
			}
			return nil
		})
		if err != nil {
			return err
		}
		if err := to.Put(bucket, fill, &chunk); err != nil {
			return err
		}
		progress(len(chunk.Keys), chunk.Bytes)
	}
	return nil
}

// every wants all entries.
func every([]byte) bool { return true }

// copyLog copies log.db up to the LSN given. Entries are never changed, so that short
// transactions see what one long one would see, and do not keep the store's own from
// using pages again. The epochs come last: they may be newer than the log, never older.
func (c *copying) copyLog(ctx context.Context, s *Store, dir *boltfile.Directory, id format.StoreID, d messages.Descriptor, last messages.LSN) error {
	to, err := newCopyFile(dir, format.RoleLog, id, d)
	if err != nil {
		return err
	}
	c.result.LogFrom, c.result.Events = s.log.Size(), last
	// First: what is not pending any more is in log.db.
	first, values := s.pending.all()
	tell := func(done uint64) {
		c.o.Progress(CopyProgress{Phase: "copy " + format.LogFileName, Done: done, Total: uint64(last)})
	}
	done := uint64(0)
	tell(0)
	wanted := func(k []byte) bool {
		return len(k) != format.LSNKeyLen || messages.LSN(format.Uint64(k)) <= min(last, first-1)
	}
	err = copyBucket(ctx, s.log, to, format.BucketLog, boltfile.LogFill, wanted, func(n, _ int) {
		done += uint64(n)
		tell(done)
	})
	if err == nil && first <= last {
		err = to.Update(func(tx *bbolt.Tx) error { return putLog(tx, first, values[:last+1-first]) })
		tell(uint64(last))
	}
	if err == nil {
		err = copyBucket(ctx, s.log, to, format.BucketEpochs, boltfile.LogFill, every, func(int, int) {})
	}
	if err == nil {
		err = to.Update(func(tx *bbolt.Tx) error { return tx.Bucket(format.BucketLog).SetSequence(uint64(last)) })
	}
	return to.CloseCopy(err)
}
