package copies_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"go.etcd.io/bbolt"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage/bolt/internal/boltfile"
	"github.com/partita-go/partita/storage/bolt/internal/copies"
	"github.com/partita-go/partita/storage/bolt/internal/expect"
	"github.com/partita-go/partita/storage/bolt/internal/files"
	"github.com/partita-go/partita/storage/bolt/internal/format"
	"github.com/partita-go/partita/storage/bolt/internal/logdb"
)

var descriptor = messages.Descriptor{Application: "test", Partitions: 5, Kinds: []messages.Kind{{ID: 1, Name: "tenant"}}}

// small lets a file grow while it is read.
var small = files.Options{MmapSize: 1 << 20}

// newFile makes a file of a store in a directory of its own, open until the end of the test.
func newFile(t *testing.T, r format.Role) *boltfile.File {
	t.Helper()
	d := expect.Opened(t, boltfile.OpenDirectory, t.TempDir())
	return expect.Opened(t, func(string) (*boltfile.File, error) {
		return files.NewFile(d, r, format.StoreID{1}, descriptor, small)
	}, r.FileName())
}

// put puts entries into a bucket.
func put(t *testing.T, f *boltfile.File, bucket []byte, keys ...string) {
	t.Helper()
	expect.NoError(t, f.Update(func(tx *bbolt.Tx) error {
		for _, k := range keys {
			if err := tx.Bucket(bucket).Put([]byte(k), []byte("value of "+k)); err != nil {
				return err
			}
		}
		return nil
	}))
}

// contents returns all that a file has.
func contents(t *testing.T, f *boltfile.File) map[string]string {
	t.Helper()
	all := make(map[string]string)
	expect.NoError(t, f.View(func(tx *bbolt.Tx) error {
		return tx.ForEach(func(name []byte, b *bbolt.Bucket) error {
			return b.ForEach(func(k, v []byte) error {
				all[fmt.Sprintf("%s %x", name, k)] = string(v)
				return nil
			})
		})
	}))
	return all
}

// target is a copy in a directory, and what it has told.
func target(t *testing.T) (to *copies.Target, told *[]string) {
	t.Helper()
	told = new([]string)
	return &copies.Target{
		Directory: expect.Opened(t, boltfile.OpenDirectory, t.TempDir()), ID: format.StoreID{2},
		Descriptor: descriptor, Options: small,
		Tell: func(name string, done, total uint64) {
			*told = append(*told, fmt.Sprintf("%s %d/%d", name, done, total))
		},
	}, told
}

// made opens a file of the copy.
func made(t *testing.T, to *copies.Target, r format.Role) *boltfile.File {
	t.Helper()
	return expect.Opened(t, func(name string) (*boltfile.File, error) {
		return boltfile.OpenFile(to.Directory, name, name, &bbolt.Options{ReadOnly: true})
	}, r.FileName())
}

// Whoever reads in pieces goes on behind each of them.
func TestPiecesAscend(t *testing.T) {
	from, to := newFile(t, format.RoleLog), newFile(t, format.RoleLog)
	var all boltfile.Entries
	for lsn := range messages.LSN(boltfile.CopyChunkEntries + 2) {
		all.Add(format.AppendLSNKey(nil, lsn+1), []byte("value"))
	}
	expect.NoError(t, from.Put(format.BucketLog, boltfile.LogFill, &all))
	expect.NoError(t, copies.Bucket(t.Context(), from, to, format.BucketLog, boltfile.LogFill, copies.Every, func(int, int) {}))
	read := 0
	expect.NoError(t, to.Scan(t.Context(), format.BucketLog, nil, func(k, _ []byte) error {
		expect.Equal(t, string(all.Keys[read]), string(k))
		read++
		return nil
	}))
	expect.Equal(t, len(all.Keys), read)
}

// A bucket that is not there is empty, one is copied up to what is not wanted, and a context ends it.
func TestBucketInPart(t *testing.T) {
	from, to := newFile(t, format.RoleState), newFile(t, format.RoleState)
	put(t, from, format.BucketPLog, "a", "b", "c")
	nobody := func(int, int) { t.Error("something was copied") }
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	expect.ErrorIs(t, copies.Bucket(ended, from, to, format.BucketPLog, boltfile.StateFill, copies.Every, nobody), context.Canceled)
	before := contents(t, to)
	expect.NoError(t, from.Update(func(tx *bbolt.Tx) error { return tx.DeleteBucket(format.BucketPacks) }))
	expect.NoError(t, copies.Bucket(t.Context(), from, to, format.BucketPacks, boltfile.StateFill, copies.Every, func(entries, bytes int) {
		expect.Equal(t, 0, entries+bytes)
	}))
	expect.Equal(t, before, contents(t, to))
	wanted := func(k []byte) bool { return string(k) < "c" }
	expect.NoError(t, copies.Bucket(t.Context(), from, to, format.BucketPLog, boltfile.StateFill, wanted, func(entries, bytes int) {
		expect.Equal(t, 2, entries)
		expect.Equal(t, 2*len("avalue of a"), bytes)
	}))
	before["plog 61"], before["plog 62"] = "value of a", "value of b"
	expect.Equal(t, before, contents(t, to))
}

// A log is copied up to an LSN, be its events in log.db or pending, with its epochs.
func TestTargetLog(t *testing.T) {
	d := expect.Opened(t, boltfile.OpenDirectory, t.TempDir())
	f, err := files.NewFile(d, format.RoleLog, format.StoreID{1}, descriptor, small)
	expect.NoError(t, err)
	l := logdb.New(f, d)
	t.Cleanup(func() { expect.NoError(t, l.Close()) })
	_, err = l.Load(format.StoreID{1})
	expect.NoError(t, err)
	l.Start(func(error) {})
	values := [][]byte{[]byte("one"), []byte("two"), []byte("three"), []byte("four")}
	expect.NoError(t, l.Append(0, values[:2], []logdb.Epoch{{Partition: 3, Epoch: 4}}))
	for i := 2; i < 4; i++ {
		expect.NoError(t, l.Append(messages.LSN(i), values[i:i+1], nil))
	}
	for last := range messages.LSN(5) {
		to, told := target(t)
		expect.NoError(t, to.Log(t.Context(), l, last))
		copied := made(t, to, format.RoleLog)
		var got []string
		expect.NoError(t, copied.View(func(tx *bbolt.Tx) error {
			b := tx.Bucket(format.BucketLog)
			expect.Equal(t, uint64(last), b.Sequence())
			expect.Equal(t, 1, tx.Bucket(format.BucketEpochs).Stats().KeyN)
			return b.ForEach(func(_, v []byte) error { got = append(got, string(v)); return nil })
		}))
		expect.Equal(t, strings.Join([]string{"one", "two", "three", "four"}[:last], " "), strings.Join(got, " "))
		expect.Equal(t, fmt.Sprintf("log.db 0/%d", last), (*told)[0])
		expect.Equal(t, fmt.Sprintf("log.db %d/%d", last, last), (*told)[len(*told)-1])
		h, err := copied.Header(format.RoleLog)
		expect.NoError(t, err)
		expect.Equal(t, format.StoreID{2}, h.ID)
	}
}

// All buckets of a file are copied, and of the header's what is asked for; the header is the copy's.
func TestTargetEntries(t *testing.T) {
	from := newFile(t, format.RoleState)
	for _, bucket := range format.RoleState.Buckets() {
		put(t, from, bucket, "a", "b")
	}
	to, told := target(t)
	expect.NoError(t, to.Entries(t.Context(), from, format.RoleState, []byte("b"), []byte("none")))
	copied := made(t, to, format.RoleState)
	want, got := contents(t, from), contents(t, copied)
	header := fmt.Sprintf("header %x", format.KeyHeader)
	expect.Equal(t, false, want[header] == got[header])
	for _, all := range []map[string]string{want, got} {
		delete(all, header)
	}
	delete(want, fmt.Sprintf("header %x", "a"))
	expect.Equal(t, want, got)
	expect.Equal(t, len(format.RoleState.Buckets())-1, len(*told))
}

// The pages of a file are copied as they are, as of one moment.
func TestTargetPages(t *testing.T) {
	from := newFile(t, format.RoleState)
	put(t, from, format.BucketPLog, "a", "b")
	want := contents(t, from)
	to, told := target(t)
	tell := to.Tell
	to.Tell = func(name string, done, total uint64) {
		if len(*told) == 0 {
			put(t, from, format.BucketPLog, "late")
		}
		tell(name, done, total)
	}
	expect.NoError(t, to.Pages(t.Context(), copies.Opened{File: from}, format.RoleState))
	expect.Equal(t, want, contents(t, made(t, to, format.RoleState)))
	size := to.Directory.SizeOf(format.RoleState)
	expect.Equal(t, fmt.Sprintf("state.db %d/%d", size, size), (*told)[len(*told)-1])
	expect.Equal(t, true, to.Pages(t.Context(), copies.Opened{File: from}, format.RoleState) != nil, "there is one")
}

// A copy of pages ends with its context, which is the error.
func TestTargetPagesEnd(t *testing.T) {
	from := newFile(t, format.RoleState)
	to, _ := target(t)
	ctx, cancel := context.WithCancel(t.Context())
	to.Tell = func(string, uint64, uint64) { cancel() }
	expect.ErrorIs(t, to.Pages(ctx, copies.Opened{File: from}, format.RoleState), context.Canceled)
}
