package bolt

import (
	"reflect"
	"testing"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage"
	"github.com/partita-go/partita/storage/bolt/internal/expect"
	"github.com/partita-go/partita/storage/bolt/internal/files"
	"github.com/partita-go/partita/storage/bolt/internal/format"
	"github.com/partita-go/partita/storage/verify"
)

// Programs of format 4 wrote these stores, and were killed. Workspace 2 of both has the invoices 1000 and 1001. In the
// one that moved, an event gave it a zone, and one, which log.wal alone has, brought 1010 along and moved on to 1040.
var format4 = map[string]messages.Number{"format4": 1001, "format4_moved": 1040}

// A log of format 4 says format 5 before anything can be appended, so that programs that pass over moves refuse it.
func TestFormat4IsUpgradedFirst(t *testing.T) {
	for name, last := range format4 {
		dir := unzipped(t, name)
		expect.Equal(t, uint16(4), headerOf(t, dir, format.RoleLog).Format, name)
		s := open(t, dir, testDescriptor(2, messages.TrustNone), Options{})
		expect.Equal(t, true, s.Stats().Rebuilt > 0, name) // who had it before may have passed over moves
		killed := crashCopy(t, dir)                        // no event was written yet
		expect.Equal(t, uint16(5), headerOf(t, killed, format.RoleLog).Format, name)
		goesOnFromFormat4(t, s, last)
		closeStore(t, s)
		checkSound(t, dir)
		s = open(t, killed, testDescriptor(2, messages.TrustNone), Options{})
		goesOnFromFormat4(t, s, last)
		closeStore(t, s)
		checkSound(t, killed)
	}
}

// Who must not write changes nothing: the log can be read, its projections cannot.
func TestFormat4IsNotChangedByReaders(t *testing.T) {
	for name, last := range format4 {
		dir := unzipped(t, name)
		before := filesOf(t, dir)
		_, err := OpenExisting(t.Context(), dir, Options{ReadOnly: true})
		expect.ErrorIs(t, err, storage.ErrFormat, name)
		_, err = Verify(t.Context(), dir, verify.Options{})
		expect.ErrorIs(t, err, storage.ErrFormat, name)
		l, err := OpenLog(t.Context(), dir)
		expect.NoError(t, err)
		numbers := make(map[messages.SeqID]messages.Number)
		for _, e := range collectEvents(t, l.WLog(t.Context(), 2, 1)) {
			for _, n := range e.Numbering().Numbers {
				numbers[n.Seq] = n.Number
			}
		}
		expect.Equal(t, last, numbers[testSeq], name)
		expect.NoError(t, l.Close())
		expect.Equal(t, true, reflect.DeepEqual(before, filesOf(t, dir)), name)
	}
}

// A process that is killed before the header is written leaves a store of format 4.
func TestFormat4IsUpgradedLater(t *testing.T) {
	for name, last := range format4 {
		dir := unzipped(t, name)
		wanted := testDescriptor(2, messages.TrustNone)
		wanted = wanted.Normalized()
		o := Options{}.WithDefaults()
		f, err := files.Open(t.Context(), dir, &wanted, o.ofFiles())
		expect.NoError(t, err)
		expect.NoError(t, f.Close())
		expect.Equal(t, uint16(4), headerOf(t, dir, format.RoleLog).Format, name)
		s := open(t, dir, wanted, Options{})
		goesOnFromFormat4(t, s, last)
		closeStore(t, s)
		expect.Equal(t, uint16(5), headerOf(t, dir, format.RoleLog).Format, name)
		checkSound(t, dir)
	}
}

// A copy says format 5 too.
func TestFormat4IsRestored(t *testing.T) {
	for name, last := range format4 {
		dir := t.TempDir() + "/new"
		_, err := Restore(t.Context(), unzipped(t, name), dir, CopyOptions{})
		expect.NoError(t, err)
		expect.Equal(t, uint16(5), headerOf(t, dir, format.RoleLog).Format, name)
		goesOnFromFormat4(t, open(t, dir, testDescriptor(2, messages.TrustNone), Options{}), last)
	}
}

// goesOnFromFormat4 appends an invoice, which gets the next number.
func goesOnFromFormat4(t *testing.T, s *Store, last messages.Number) {
	t.Helper()
	w := takeOver(t, s, 0)
	key := numberKey{2, testSeq}
	expect.Equal(t, last, w.last[key])
	w.append(2)
	expect.Equal(t, last+1, w.last[key])
	w.flush()
	n, err := s.Numbers(t.Context(), 2)
	expect.NoError(t, err)
	expect.Equal(t, messages.SequenceNumber{Seq: testSeq, Number: last + 1}, n.Numbers[len(n.Numbers)-1])
}
