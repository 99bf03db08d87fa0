package bolt

import (
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage"
	"github.com/partita-go/partita/storage/bolt/internal/boltfile"
	"github.com/partita-go/partita/storage/bolt/internal/copies"
	"github.com/partita-go/partita/storage/bolt/internal/expect"
	"github.com/partita-go/partita/storage/bolt/internal/files"
	"github.com/partita-go/partita/storage/bolt/internal/format"
)

// errRound ends what goes round.
var errRound = errors.New("it goes round")

// A page that refers to itself where opening has not looked ends what reads a bucket from one end
// to the other: a copy, and a check.
func TestCirclesEnd(t *testing.T) {
	const events = 6000
	dir, d, branches := withBranches(t, events)
	whole := filesOf(t, dir)
	for _, b := range branches {
		writeFiles(t, dir, whole)
		entry := int64(b.page*os.Getpagesize() + boltfile.PageHeaderLen + boltfile.PageElementLen)
		overwrite(t, filepath.Join(dir, b.file), entry+8, binary.NativeEndian.AppendUint64(nil, uint64(b.page)))
		r := map[string]format.Role{format.LogFileName: format.RoleLog, format.StateFileName: format.RoleState}[b.file]
		from := openPlain(t, dir, r)
		to, err := files.NewFile(expect.Opened(t, boltfile.OpenDirectory, t.TempDir()), r, format.StoreID{}, d, reading())
		expect.NoError(t, err)
		read := 0
		err = copies.Bucket(t.Context(), from, to, []byte(b.bucket), boltfile.StateFill, func([]byte) bool {
			read++
			return read < 10*events
		}, func(int, int) {})
		circleTold(t, err, b)
		expect.NoError(t, to.Close())
		read = 0
		err = from.Scan(t.Context(), []byte(b.bucket), nil, func(_, _ []byte) error {
			if read++; read == 10*events {
				return errRound
			}
			return nil
		})
		circleTold(t, err, b)
		expect.NoError(t, from.Close())
	}
}

// circleTold makes sure that damage was told, with the bucket and the key.
func circleTold(t *testing.T, err error, b branch) {
	t.Helper()
	expect.ErrorIs(t, err, storage.ErrDamaged, b)
	for _, want := range []string{b.file, "bucket " + b.bucket + ", key ", "want one above it"} {
		if err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: got %v, want it to say %q", b, err, want)
		}
	}
}

// Who reads in pieces goes on behind each of them.
func TestPiecesAscend(t *testing.T) {
	d := testDescriptor(1, messages.TrustNone)
	from, err := files.NewFile(expect.Opened(t, boltfile.OpenDirectory, t.TempDir()), format.RoleLog, format.StoreID{}, d, reading())
	expect.NoError(t, err)
	var all boltfile.Entries
	for lsn := range messages.LSN(boltfile.CopyChunkEntries + 2) {
		all.Add(format.AppendLSNKey(nil, lsn+1), []byte("value"))
	}
	expect.NoError(t, from.Put(format.BucketLog, boltfile.LogFill, &all))
	to, err := files.NewFile(expect.Opened(t, boltfile.OpenDirectory, t.TempDir()), format.RoleLog, format.StoreID{}, d, reading())
	expect.NoError(t, err)
	expect.NoError(t, copies.Bucket(t.Context(), from, to, format.BucketLog, boltfile.LogFill, copies.Every, func(int, int) {}))
	read := 0
	expect.NoError(t, to.Scan(t.Context(), format.BucketLog, nil, func(k, _ []byte) error {
		expect.Equal(t, string(all.Keys[read]), string(k))
		read++
		return nil
	}))
	expect.Equal(t, len(all.Keys), read)
	expect.NoError(t, to.Close())
	expect.NoError(t, from.Close())
}
