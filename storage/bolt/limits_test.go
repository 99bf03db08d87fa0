package bolt

import (
	"math"
	"reflect"
	"strings"
	"testing"

	"go.etcd.io/bbolt"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage"
	"github.com/partita-go/partita/storage/bolt/internal/expect"
	"github.com/partita-go/partita/storage/bolt/internal/files"
	"github.com/partita-go/partita/storage/bolt/internal/format"
	"github.com/partita-go/partita/storage/verify"
)

// last5 is a sequence with the last five numbers that there are.
const last5 messages.SeqID = 17

// beforeLimits is a store of a version whose sequences had no limit, with log.db of format 3 and state.db of format 4.
// The process was killed: the last three of the seven events are in log.wal only, and there is a subscription. Workspace
// 2 has the invoices 1000 to 1004, workspace 3 the numbers 2^64-5 to 2^64-3 of last5.
func beforeLimits(t *testing.T) (dir string, d messages.Descriptor) {
	t.Helper()
	d = testDescriptor(2, messages.TrustNone)
	d.Kinds[0].Sequences = append(d.Kinds[0].Sequences, messages.Sequence{ID: last5, Name: "last5", Initial: math.MaxUint64 - 4})
	return unzipped(t, "before_limits"), d
}

// headerOf reads a file's header of a store that nobody has open.
func headerOf(t *testing.T, dir string, r format.Role) (h format.Header) {
	t.Helper()
	f := openPlain(t, dir, r)
	expect.NoError(t, f.View(func(tx *bbolt.Tx) (err error) {
		h, err = format.DecodeHeader(tx.Bucket(format.BucketHeader).Get(format.KeyHeader))
		return err
	}))
	expect.NoError(t, f.Close())
	return h
}

func largestOf(d messages.Descriptor) (all []messages.Number) {
	for _, s := range d.Kinds[0].Sequences {
		all = append(all, s.Largest)
	}
	return all
}

// Whoever must not write changes nothing, and whoever asks for a limit that the store has not.
func TestBeforeLimitsIsNotChangedByReaders(t *testing.T) {
	dir, d := beforeLimits(t)
	before := filesOf(t, dir)
	_, err := OpenExisting(t.Context(), dir, Options{ReadOnly: true})
	expect.ErrorIs(t, err, storage.ErrFormat)
	_, err = Verify(t.Context(), dir, verify.Options{})
	expect.ErrorIs(t, err, storage.ErrFormat)
	d.Kinds[0].Sequences[0].Largest = messages.LargestOfDigits(7)
	_, err = Open(t.Context(), dir, d, Options{})
	expect.ErrorIs(t, err, messages.ErrDescriptor)
	l, err := OpenLog(t.Context(), dir)
	expect.NoError(t, err)
	expect.Equal(t, true, reflect.DeepEqual([]messages.Number{math.MaxUint64, math.MaxUint64}, largestOf(l.Descriptor())))
	expect.NoError(t, l.Close())
	expect.Equal(t, true, reflect.DeepEqual(before, filesOf(t, dir)), "nothing is changed")
}

// The header says that earlier programs must not write before there is an event that they could not have written.
func TestBeforeLimitsIsUpgradedFirst(t *testing.T) {
	dir, d := beforeLimits(t)
	expect.Equal(t, uint16(3), headerOf(t, dir, format.RoleLog).Format)
	s := open(t, dir, d, Options{})
	killed := crashCopy(t, dir) // no event was written yet
	h := headerOf(t, killed, format.RoleLog)
	expect.Equal(t, uint16(format.Version), h.Format)
	expect.Equal(t, true, reflect.DeepEqual([]messages.Number{math.MaxUint64, math.MaxUint64}, largestOf(h.Descriptor)))
	expect.Equal(t, uint16(format.StateFormat), headerOf(t, killed, format.RoleState).Format)
	goesOnFromBefore(t, s)
	closeStore(t, s)
	checkSound(t, dir)
	s = open(t, killed, d, Options{})
	goesOnFromBefore(t, s)
	closeStore(t, s)
	checkSound(t, killed)
}

// A process that is killed before the header is written has changed nothing that an earlier program would misread: it
// refuses the new state.db.
func TestBeforeLimitsKilledWhileItIsOpened(t *testing.T) {
	dir, d := beforeLimits(t)
	wanted := d.Normalized()
	o := Options{}.WithDefaults()
	f, err := files.Open(t.Context(), dir, &wanted, o.ofFiles())
	expect.NoError(t, err)
	expect.NoError(t, f.Close())
	expect.Equal(t, uint16(3), headerOf(t, dir, format.RoleLog).Format)
	expect.Equal(t, uint16(format.StateFormat), headerOf(t, dir, format.RoleState).Format)
	s := open(t, dir, d, Options{})
	goesOnFromBefore(t, s)
	closeStore(t, s)
	expect.Equal(t, uint16(format.Version), headerOf(t, dir, format.RoleLog).Format)
	checkSound(t, dir)
}

// A store that is made of an old one has the new formats, and no limits either.
func TestBeforeLimitsIsRestored(t *testing.T) {
	from, d := beforeLimits(t)
	dir := t.TempDir() + "/new"
	c, err := Restore(t.Context(), from, dir, CopyOptions{})
	expect.NoError(t, err)
	expect.Equal(t, messages.LSN(7), c.Events)
	expect.Equal(t, uint16(format.Version), headerOf(t, dir, format.RoleLog).Format)
	goesOnFromBefore(t, open(t, dir, d, Options{}))
}

// goesOnFromBefore uses the store up to the last number.
func goesOnFromBefore(t *testing.T, s *Store) {
	t.Helper()
	expect.Equal(t, true, reflect.DeepEqual([]messages.Number{math.MaxUint64, math.MaxUint64}, largestOf(s.Descriptor())))
	names, err := s.SubscriptionNames(t.Context())
	expect.NoError(t, err)
	expect.Equal(t, true, reflect.DeepEqual([]string{"mail"}, names), names)
	w := takeOver(t, s, 0)
	expect.Equal(t, messages.Number(1004), w.last[numberKey{2, testSeq}])
	w.append(2)
	w.flush()
	expect.Equal(t, messages.Number(1005), w.last[numberKey{2, testSeq}])
	w = takeOver(t, s, 1)
	expect.Equal(t, messages.Number(math.MaxUint64-2), w.last[numberKey{3, last5}])
	e := w.event(3)
	e.Numbers, e.Records = []messages.SequenceNumber{{Seq: last5, Number: math.MaxUint64 - 1}, {Seq: last5, Number: math.MaxUint64}}, nil
	expect.NoError(t, w.try(e))
	w.flush()
	n, err := s.Numbers(t.Context(), 3)
	expect.NoError(t, err)
	expect.Equal(t, messages.SequenceNumber{Seq: last5, Number: math.MaxUint64}, n.Numbers[len(n.Numbers)-1])
}

// A limit can be raised by whoever opens the store, and not lowered; what the old one refused is written then.
func TestLimitIsRaised(t *testing.T) {
	dir := t.TempDir()
	d := testDescriptor(2, messages.TrustNone)
	d.Kinds[0].Sequences[0].Largest = 1001
	s := open(t, dir, d, Options{})
	w := takeOver(t, s, 0)
	w.append(2, 2)
	refused := w.event(2)
	refused.Records = nil
	expect.ErrorIs(t, w.try(refused), storage.ErrInvalidEvent)
	w.flush()
	closeStore(t, s)
	d.Kinds[0].Sequences[0].Largest = 1000
	_, err := Open(t.Context(), dir, d, Options{})
	expect.ErrorIs(t, err, messages.ErrDescriptor)
	d.Kinds[0].Sequences[0].Largest = 1002
	s = open(t, dir, d, Options{})
	w = takeOver(t, s, 0)
	w.append(2)
	w.flush()
	expect.ErrorIs(t, w.try(w.event(2)), storage.ErrInvalidEvent)
	closeStore(t, s)
	expect.Equal(t, messages.Number(1002), headerOf(t, dir, format.RoleState).Descriptor.Kinds[0].Sequences[0].Largest)
	checkSound(t, dir)
}

// Numbers above the limit are a fault, whoever wrote them.
func TestVerifyFindsNumbersAboveTheLimit(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir, testDescriptor(2, messages.TrustNone), Options{})
	w := takeOver(t, s, 0)
	w.append(2, 2, 2)
	w.flush()
	w.append(2)
	closeStore(t, s)
	checkSound(t, dir)
	for _, r := range []format.Role{format.RoleLog, format.RoleState} {
		h := headerOf(t, dir, r)
		h.Descriptor.Kinds[0].Sequences[0].Largest = 1001
		f := openPlain(t, dir, r)
		expect.NoError(t, f.Update(func(tx *bbolt.Tx) error {
			return tx.Bucket(format.BucketHeader).Put(format.KeyHeader, h.Encode())
		}))
		expect.NoError(t, f.Close())
	}
	r := verified(t, dir, verify.Options{})
	var above []string
	for _, f := range r.Faults {
		if f.Check == verify.CheckSequence && strings.Contains(f.Text, "want at most 1001") {
			above = append(above, f.Text)
		}
	}
	expect.Equal(t, 2, len(above), r)
}
