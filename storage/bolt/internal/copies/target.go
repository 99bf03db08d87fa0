package copies

import (
	"bytes"
	"context"
	"io"
	"os"
	"slices"

	"go.etcd.io/bbolt"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage/bolt/internal/boltfile"
	"github.com/partita-go/partita/storage/bolt/internal/files"
	"github.com/partita-go/partita/storage/bolt/internal/format"
	"github.com/partita-go/partita/storage/bolt/internal/logdb"
)

// Target is the store that a copy is.
type Target struct {
	// Directory is where its files are made.
	Directory  *boltfile.Directory
	ID         format.StoreID
	Descriptor messages.Descriptor
	Options    files.Options
	// Tell is told how far a file is: in events of log.db, or bytes of the others. A total of 0 is not known.
	Tell func(name string, done, total uint64)
}

func (t *Target) newFile(r format.Role) (*boltfile.File, error) {
	return files.NewFile(t.Directory, r, t.ID, t.Descriptor, t.Options)
}

// Log copies log.db up to the LSN given. Entries are never changed, so that short
// transactions see what one long one would see, and do not keep the store's own from
// using pages again. The epochs come last: they may be newer than the log, never older.
func (t *Target) Log(ctx context.Context, log *logdb.Log, last messages.LSN) error {
	to, err := t.newFile(format.RoleLog)
	if err != nil {
		return err
	}
	done := uint64(0)
	tell := func(entries int) {
		done += uint64(entries)
		t.Tell(format.LogFileName, done, uint64(last))
	}
	tell(0)
	err = eachOfLog(ctx, log, last, func(bucket []byte, e *boltfile.Entries) error {
		if bytes.Equal(bucket, format.BucketLog) {
			tell(len(e.Keys))
		}
		return to.Put(bucket, boltfile.LogFill, e)
	})
	return t.endLog(to, last, err)
}

// endLog notes in log.db where it ends, and closes it.
func (t *Target) endLog(to *boltfile.File, last messages.LSN, err error) error {
	if err == nil {
		err = to.Update(func(tx *bbolt.Tx) error { return tx.Bucket(format.BucketLog).SetSequence(uint64(last)) })
	}
	return to.CloseCopy(err)
}

// eachOfLog hands out the entries of log.db in pieces: events up to an LSN, and then the epochs.
func eachOfLog(ctx context.Context, log *logdb.Log, last messages.LSN, take func(bucket []byte, e *boltfile.Entries) error) error {
	// First: what is not pending any more is in log.db.
	first, values := log.Pending()
	wanted := func(k []byte) bool {
		return len(k) != format.LSNKeyLen || messages.LSN(format.Uint64(k)) <= min(last, first-1)
	}
	events := func(e *boltfile.Entries) error { return take(format.BucketLog, e) }
	if err := pieces(ctx, log.File, format.BucketLog, wanted, events); err != nil {
		return err
	}
	if first <= last {
		var pending boltfile.Entries
		var key [format.LSNKeyLen]byte
		for i, v := range values[:last+1-first] {
			pending.Add(format.AppendLSNKey(key[:0], first+messages.LSN(i)), v)
		}
		if err := events(&pending); err != nil {
			return err
		}
	}
	return pieces(ctx, log.File, format.BucketEpochs, Every, func(e *boltfile.Entries) error { return take(format.BucketEpochs, e) })
}

// Entries copies a file bucket by bucket into one of the copy, and what
// the header's bucket has under keys in their order. Pages keep some room, as a flush leaves it:
// keys come in between.
func (t *Target) Entries(ctx context.Context, from *boltfile.File, r format.Role, keys ...[]byte) error {
	to, err := t.newFile(r)
	if err != nil {
		return err
	}
	done := uint64(0)
	tell := func(_, bytes int) {
		done += uint64(bytes)
		t.Tell(r.FileName(), done, 0)
	}
	for _, bucket := range r.Buckets()[1:] {
		if err == nil {
			err = Bucket(ctx, from, to, bucket, boltfile.StateFill, Every, tell)
		}
	}
	if err == nil {
		err = copyHeaderValues(from, to, keys...)
	}
	return to.CloseCopy(err)
}

// copyHeaderValues copies what the header's bucket has beside the header, under keys in
// their order.
func copyHeaderValues(from, to *boltfile.File, keys ...[]byte) error {
	var chunk boltfile.Entries
	err := from.View(func(tx *bbolt.Tx) error {
		b := tx.Bucket(format.BucketHeader)
		for _, k := range keys {
			if v := b.Get(k); v != nil {
				chunk.Add(k, v)
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	return to.Put(format.BucketHeader, boltfile.StateFill, &chunk)
}

// Pages copies the pages of a file.
func (t *Target) Pages(ctx context.Context, from Pages, r format.Role) error {
	to, err := t.Directory.MakeFile(r.FileName(), 0)
	if err != nil {
		return err
	}
	return closePages(to, from.writeTo(&copyWriter{ctx: ctx, w: to, tell: t.Tell, name: r.FileName()}))
}

// closePages makes a file durable unless it has failed already, and closes it.
func closePages(to *os.File, err error) error {
	if err == nil {
		err = to.Sync()
	}
	if closeErr := to.Close(); err == nil {
		err = closeErr
	}
	return err
}

// Pages are those of a file.
type Pages interface {
	// Size is about how many bytes they are.
	Size() int64
	writeTo(w *copyWriter) error
}

// Opened are the pages of an open file as of one moment.
type Opened struct{ *boltfile.File }

func (f Opened) writeTo(w *copyWriter) error {
	err := f.View(func(tx *bbolt.Tx) error {
		w.total = uint64(tx.Size())
		_, err := tx.WriteTo(w)
		return err
	})
	if err != nil && w.ctx.Err() != nil {
		return w.ctx.Err() // bbolt keeps the text only
	}
	return err
}

// inMemory are the pages of a file that was read.
type inMemory []byte

func (pages inMemory) Size() int64 { return int64(len(pages)) }

func (pages inMemory) writeTo(w *copyWriter) error {
	w.total = uint64(len(pages))
	for part := range slices.Chunk(pages, 1<<20) {
		if _, err := w.Write(part); err != nil {
			return err
		}
	}
	return nil
}

// copyWriter writes until the context ends, and tells how far it is.
type copyWriter struct {
	ctx         context.Context
	w           io.Writer
	tell        func(name string, done, total uint64)
	name        string
	done, total uint64
}

func (w *copyWriter) Write(b []byte) (int, error) {
	if err := w.ctx.Err(); err != nil {
		return 0, err
	}
	n, err := w.w.Write(b)
	w.done += uint64(n)
	w.tell(w.name, w.done, w.total)
	return n, err
}

// Bucket copies the entries of a bucket that wanted accepts, up to the first that it
// does not, in transactions of either file that are short and never nested.
func Bucket(
	ctx context.Context, from, to *boltfile.File, bucket []byte, fill float64,
	wanted func(k []byte) bool, progress func(entries, bytes int),
) error {
	return pieces(ctx, from, bucket, wanted, func(e *boltfile.Entries) error {
		err := to.Put(bucket, fill, e)
		if err == nil {
			progress(len(e.Keys), e.Bytes)
		}
		return err
	})
}

// pieces reads what [Bucket] copies.
func pieces(
	ctx context.Context, from *boltfile.File, bucket []byte, wanted func(k []byte) bool, take func(*boltfile.Entries) error,
) error {
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
		if err := take(&chunk); err != nil {
			return err
		}
	}
	return nil
}

// Every wants all entries.
func Every([]byte) bool { return true }
