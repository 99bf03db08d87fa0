package bolt

import (
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

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
