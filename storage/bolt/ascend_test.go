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
		entry := int64(b.page*os.Getpagesize() + pageHeaderLen + pageElementLen)
		overwrite(t, filepath.Join(dir, b.file), entry+8, binary.NativeEndian.AppendUint64(nil, uint64(b.page)))
		r := map[string]role{logFileName: roleLog, stateFileName: roleState}[b.file]
		from := openPlain(t, dir, r)
		to, err := newCopyFile(held(t, t.TempDir()), r, storeID{}, d)
		noError(t, err)
		read := 0
		err = copyBucket(t.Context(), from, to, []byte(b.bucket), stateFill, func([]byte) bool {
			read++
			return read < 10*events
		}, func(int, int) {})
		circleTold(t, err, b)
		noError(t, to.close())
		read = 0
		err = from.scan(t.Context(), []byte(b.bucket), nil, func(_, _ []byte) error {
			if read++; read == 10*events {
				return errRound
			}
			return nil
		})
		circleTold(t, err, b)
		noError(t, from.close())
	}
}

// circleTold makes sure that damage was told, with the bucket and the key.
func circleTold(t *testing.T, err error, b branch) {
	t.Helper()
	errorIs(t, err, storage.ErrDamaged, b)
	for _, want := range []string{b.file, "bucket " + b.bucket + ", key ", "want one above it"} {
		if err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: got %v, want it to say %q", b, err, want)
		}
	}
}

// Who reads in pieces goes on behind each of them.
func TestPiecesAscend(t *testing.T) {
	d := testDescriptor(1, messages.TrustNone)
	from, err := newCopyFile(held(t, t.TempDir()), roleLog, storeID{}, d)
	noError(t, err)
	var all entries
	for lsn := range messages.LSN(copyChunkEntries + 2) {
		all.add(appendLSNKey(nil, lsn+1), []byte("value"))
	}
	noError(t, from.put(bucketLog, logFill, &all))
	to, err := newCopyFile(held(t, t.TempDir()), roleLog, storeID{}, d)
	noError(t, err)
	noError(t, copyBucket(t.Context(), from, to, bucketLog, logFill, every, func(int, int) {}))
	read := 0
	noError(t, to.scan(t.Context(), bucketLog, nil, func(k, _ []byte) error {
		equal(t, string(all.keys[read]), string(k))
		read++
		return nil
	}))
	equal(t, len(all.keys), read)
	noError(t, to.close())
	noError(t, from.close())
}
