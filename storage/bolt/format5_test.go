package bolt

import (
	"reflect"
	"testing"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage"
	"github.com/partita-go/partita/storage/bolt/internal/expect"
	"github.com/partita-go/partita/storage/bolt/internal/format"
	"github.com/partita-go/partita/storage/verify"
)

// A state.db of format 5, in which the index leads to all packs, is made anew from the log, but not by those who must not
// write. The program that wrote it was killed.
func TestFormat5IsRebuilt(t *testing.T) {
	dir := unzipped(t, "format5")
	before := filesOf(t, dir)
	expect.Equal(t, uint16(5), headerOf(t, dir, format.RoleState).Format)
	_, err := OpenExisting(t.Context(), dir, Options{ReadOnly: true})
	expect.ErrorIs(t, err, storage.ErrFormat)
	_, err = Verify(t.Context(), dir, verify.Options{})
	expect.ErrorIs(t, err, storage.ErrFormat)
	expect.Equal(t, true, reflect.DeepEqual(before, filesOf(t, dir)), "nothing is changed")

	s := open(t, dir, testDescriptor(2, messages.TrustNone), Options{})
	expect.Equal(t, uint64(format5Events), s.Stats().Rebuilt)
	expect.Equal(t, uint16(format.StateFormat), headerOf(t, crashCopy(t, dir), format.RoleState).Format)
	w := takeOver(t, s, 0)
	rows := make(map[messages.Number]string)
	for _, e := range collectEvents(t, s.WLog(t.Context(), 2, 1)) {
		for _, rec := range e.Records {
			if rec.ID.Seq == testSeq {
				rows[rec.ID.Number] = string(rec.Data)
			}
		}
	}
	expect.Equal(t, format5Rows, len(rows))
	checkRows(t, s, 2, rows)
	checkPacks(t, s)
	w.appendMany(16, 2)
	w.flush()
	closeStore(t, s)
	checkSound(t, dir)
}

const (
	format5Events = 153
	format5Rows   = 118
)
