package bolt

import (
	"context"
	"errors"
	"math"
	"os"
	"path/filepath"
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

// twoCopies are copies of a store of two partitions, named a and b, that have gone on by themselves.
// Partition 1 has an event before that.
type twoCopies struct {
	t    *testing.T
	base string
	d    messages.Descriptor
	// older is the state.db from before the last common event.
	older []byte
}

// partedCopies lets each copy append, with the same times and in the same places, to its
// workspaces.
func partedCopies(t *testing.T, a, b []messages.WSID) *twoCopies {
	t.Helper()
	c := &twoCopies{t: t, base: t.TempDir(), d: testDescriptor(2, messages.TrustNone)}
	s := open(t, c.dir("source"), c.d, Options{})
	w, other := takeOver(t, s, 0), takeOver(t, s, 1)
	other.append(1)
	other.flush()
	w.append(2)
	w.flush()
	c.older = c.state("source")
	w.append(2)
	w.flush()
	closeStore(t, s)
	for name, workspaces := range map[string][]messages.WSID{"a": a, "b": b} {
		_, err := Compact(t.Context(), c.dir("source"), c.dir(name), CopyOptions{})
		expect.NoError(t, err)
		s := open(t, c.dir(name), c.d, Options{})
		w := takeOver(t, s, 0)
		for _, ws := range workspaces {
			w.append(ws)
		}
		w.flush()
		closeStore(t, s)
	}
	return c
}

func (c *twoCopies) dir(name string) string { return filepath.Join(c.base, name) }

func (c *twoCopies) state(name string) []byte {
	c.t.Helper()
	data, err := os.ReadFile(filepath.Join(c.dir(name), format.StateFileName))
	expect.NoError(c.t, err)
	return data
}

// put gives b a state.db; edit, if it is not nil, changes what stands in it.
func (c *twoCopies) put(data []byte, edit func(tx *bbolt.Tx) error) {
	c.t.Helper()
	expect.NoError(c.t, os.WriteFile(filepath.Join(c.dir("b"), format.StateFileName), data, 0o600))
	if edit != nil {
		f := openPlain(c.t, c.dir("b"), format.RoleState)
		expect.NoError(c.t, errors.Join(f.Update(edit), f.Close()))
	}
}

// refused makes sure that b's state.db is refused for what stands in a bucket.
func (c *twoCopies) refused(what string, bucket []byte) {
	c.t.Helper()
	for _, o := range []Options{{}, {ReadOnly: true}} {
		_, err := OpenExisting(c.t.Context(), c.dir("b"), o)
		expect.ErrorIs(c.t, err, storage.ErrDamaged, what)
		expect.ErrorIs(c.t, err, files.ErrOtherLog, what)
	}
	r := verified(c.t, c.dir("b"), verify.Options{})
	where := format.PlaceOf(bucket, "")
	if len(r.Faults) != 1 || !r.Faults[0].Projection || !strings.Contains(r.Faults[0].Where, where) || r.Events != 5 {
		c.t.Errorf("%s: got %v, want that %s of state.db is wrong, and that the log is not", what, r, where)
	}
	expect.Equal(c.t, []string{"what stands in state.db"}, r.Unread)
}

// opens makes sure that b can be opened, and is sound.
func (c *twoCopies) opens(what string) {
	c.t.Helper()
	closeStore(c.t, open(c.t, c.dir("b"), c.d, Options{}))
	expect.Equal(c.t, nil, verified(c.t, c.dir("b"), verify.Options{}).Err(), what)
}

// Two copies of a store go on by themselves. The state.db of one is not taken for the
// other's: it says of numbers that are given that they are free, or the other way round.
func TestStateOfAnotherCopy(t *testing.T) {
	c := partedCopies(t, []messages.WSID{2, 2}, []messages.WSID{4, 4})
	c.put(c.state("a"), nil)
	c.refused("by the witness", format.BucketHeader)
	c.put(c.older, nil)
	c.opens("an older one is this log's")
	c.put(nil, nil)
	c.opens("it is made of the log")
}

// A program that wrote no witness has another clock at least. It may have flushed behind an
// event that both logs have, with or without a witness for that.
func TestStateOfAnotherCopyWithoutWitness(t *testing.T) {
	c := partedCopies(t, []messages.WSID{2, 2}, []messages.WSID{4, 4})
	key := format.AppendPartitionKey(nil, 0)
	otherTime := func(tx *bbolt.Tx) error {
		b := tx.Bucket(format.BucketCheckpoints)
		at, err := format.DecodeCheckpoint(key, b.Get(key))
		at.RegisteredAt++
		return errors.Join(err, b.Put(key, at.Encode(key)))
	}
	c.put(c.older, nil)
	older := openPlain(t, c.dir("b"), format.RoleState)
	stale := get(t, older, format.BucketHeader, format.KeyWitness)
	expect.NoError(t, older.Close())
	for what, edit := range map[string]func(tx *bbolt.Tx) error{
		"no witness": func(tx *bbolt.Tx) error { return tx.Bucket(format.BucketHeader).Delete(format.KeyWitness) },
		"an old one": func(tx *bbolt.Tx) error { return tx.Bucket(format.BucketHeader).Put(format.KeyWitness, stale) },
		"the first one": func(tx *bbolt.Tx) error {
			return tx.Bucket(format.BucketHeader).Put(format.KeyWitness, format.Witness{}.Encode())
		},
	} {
		c.put(c.state("a"), func(tx *bbolt.Tx) error { return errors.Join(edit(tx), otherTime(tx)) })
		c.refused(what, format.BucketCheckpoints)
	}
}

// What the log cannot be asked about does not speak for a state.db: the checkpoint of
// the other partition does.
func TestStateOfAnotherCopyBesideDamage(t *testing.T) {
	c := partedCopies(t, []messages.WSID{2, 2}, []messages.WSID{4, 4})
	c.put(c.state("a"), func(tx *bbolt.Tx) error {
		key := format.AppendPartitionKey(nil, 1)
		b := tx.Bucket(format.BucketCheckpoints)
		at, err := format.DecodeCheckpoint(key, b.Get(key))
		at.RegisteredAt++
		return errors.Join(err, b.Put(key, at.Encode(key)))
	})
	log := openPlain(t, c.dir("b"), format.RoleLog)
	put(t, log, format.BucketLog, format.AppendLSNKey(nil, 5), []byte("damaged"))
	expect.NoError(t, log.Close())
	_, err := OpenExisting(t.Context(), c.dir("b"), Options{})
	expect.ErrorIs(t, err, files.ErrOtherLog)
}

// tooShort makes sure that b's log is refused since it is shorter than its projections. Nobody
// is told to delete those: if the log has lost its end, numbers would be given again.
func (c *twoCopies) tooShort(want string) {
	c.t.Helper()
	for _, o := range []Options{{}, {ReadOnly: true}} {
		_, err := OpenExisting(c.t.Context(), c.dir("b"), o)
		damage, ok := errors.AsType[*storage.DamagedError](err)
		if !ok || errors.Is(err, files.ErrOtherLog) || !strings.Contains(damage.Where, format.LogFileName) || !strings.Contains(err.Error(), want) {
			c.t.Errorf("got %v, want that log.db is damaged, and %s", err, want)
		}
	}
	r := verified(c.t, c.dir("b"), verify.Options{})
	if len(r.Faults) != 1 || r.Faults[0].Projection || !strings.Contains(r.Faults[0].Text, want) {
		c.t.Errorf("got %v, want that log.db is damaged, and %s", r, want)
	}
}

// The state.db of a longer copy may as well be one of a log that has lost its end: both are
// said.
func TestStateOfALongerCopy(t *testing.T) {
	c := partedCopies(t, []messages.WSID{2, 2, 2, 2}, []messages.WSID{4, 4})
	c.put(c.state("a"), nil)
	c.tooShort("the log ends at LSN 5, state.db has projections up to 7: it has lost its end, or state.db is of a longer copy of the store")
	c.put(nil, nil)
	c.opens("it is made of the log")
}

// A log that has lost its end says so, be it that only the witness knows of that.
func TestLogHasLostItsEnd(t *testing.T) {
	c := partedCopies(t, []messages.WSID{4, 4}, []messages.WSID{4, 4})
	s := open(t, c.dir("a"), c.d, Options{})
	w := takeOver(t, s, 0)
	w.append(4)
	w.flush()
	closeStore(t, s)
	c.put(c.state("a"), nil)
	c.tooShort("LSN 5, state.db has projections up to 6: it has lost its end, or state.db is of a longer copy of the store")
	c.put(c.state("b"), func(tx *bbolt.Tx) error {
		return tx.Bucket(format.BucketHeader).Put(format.KeyWitness, format.Witness{LSN: 9}.Encode())
	})
	c.tooShort("LSN 5, state.db has projections up to 9")
}

// witnessOf returns what state.db has.
func witnessOf(t *testing.T, s *Store) format.Witness {
	t.Helper()
	stand, err := s.files.Stand()
	expect.NoError(t, err)
	return stand.Witness
}

// The witness is the newest event that any flush has read. A bit of it that flips while the
// store is in use keeps nobody from flushing, and is gone with the next flush.
func TestWitness(t *testing.T) {
	s := open(t, t.TempDir(), testDescriptor(2, messages.TrustNone), Options{})
	one, two := takeOver(t, s, 0), takeOver(t, s, 1)
	two.append(1)
	one.append(2)
	one.flush()
	expect.Equal(t, messages.LSN(2), witnessOf(t, s).LSN)
	two.flush()
	newest := witnessOf(t, s)
	expect.Equal(t, messages.LSN(2), newest.LSN, "an older event does not take its place")
	v := get(t, s.state, format.BucketHeader, format.KeyWitness)
	v[3] ^= 1
	put(t, s.state, format.BucketHeader, format.KeyWitness, v)
	two.append(1)
	two.flush()
	expect.Equal(t, messages.LSN(3), witnessOf(t, s).LSN)
	dir := filepath.Join(t.TempDir(), "copy")
	_, err := s.Backup(t.Context(), dir, CopyOptions{})
	expect.NoError(t, err)
	compact := filepath.Join(t.TempDir(), "compact")
	_, err = Compact(t.Context(), dir, compact, CopyOptions{})
	expect.NoError(t, err)
	for _, dir := range []string{dir, compact} {
		again, err := OpenExisting(t.Context(), dir, Options{})
		expect.NoError(t, err)
		expect.Equal(t, witnessOf(t, s), witnessOf(t, again), dir)
		closeStore(t, again)
	}
}

// A foreign entry under the last key that there is: nobody goes on behind it for ever.
func TestLogEndsAtTheLastKey(t *testing.T) {
	dir, s := verifiable(t)
	d := s.Descriptor()
	expect.NoError(t, s.log.File.Update(func(tx *bbolt.Tx) error {
		return tx.Bucket(format.BucketLog).Put(format.AppendLSNKey(nil, math.MaxUint64), []byte("foreign"))
	}))
	closeStore(t, s)
	for _, o := range []Options{{ReadOnly: true}, {}} {
		_, err := OpenExisting(t.Context(), dir, o)
		expect.ErrorIs(t, err, storage.ErrDamaged)
	}
	_, err := Open(t.Context(), dir, d, Options{})
	expect.ErrorIs(t, err, storage.ErrDamaged)
	if r := verified(t, dir, verify.Options{}); r.FaultCount != 1 {
		t.Errorf("got %v, want one fault", r)
	}
	for name, do := range map[string]func(context.Context, string, string, CopyOptions) (Copied, error){"restore": Restore, "compact": Compact} {
		_, err := do(t.Context(), dir, filepath.Join(t.TempDir(), "copy"), CopyOptions{})
		expect.ErrorIs(t, err, storage.ErrDamaged, name)
	}
}
