package bolt

import (
	"bytes"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.etcd.io/bbolt"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage"
	"github.com/partita-go/partita/storage/bolt/internal/boltfile"
	"github.com/partita-go/partita/storage/bolt/internal/expect"
	"github.com/partita-go/partita/storage/bolt/internal/files"
	"github.com/partita-go/partita/storage/bolt/internal/format"
	"github.com/partita-go/partita/storage/verify"
)

// restore restores b.
func (c *twoCopies) restore() (Copied, error) {
	c.t.Helper()
	return Restore(c.t.Context(), c.dir("b"), filepath.Join(c.t.TempDir(), "to"), CopyOptions{})
}

// notRestored makes sure that b is not restored, for a cause, and that it says what to do about it.
func (c *twoCopies) notRestored(cause error) {
	c.t.Helper()
	before := filesOf(c.t, c.dir("b"))
	to := filepath.Join(c.t.TempDir(), "to")
	_, err := Restore(c.t.Context(), c.dir("b"), to, CopyOptions{})
	expect.ErrorIs(c.t, err, storage.ErrDamaged)
	expect.ErrorIs(c.t, err, cause)
	if !strings.Contains(err.Error(), "whoever knows that "+filepath.Join(c.dir("b"), format.StateFileName)+" is the wrong file moves it away") {
		c.t.Errorf("got %v", err)
	}
	if !maps.Equal(before, filesOf(c.t, c.dir("b"))) {
		c.t.Error("the files were changed")
	}
	_, err = os.Stat(to)
	expect.ErrorIs(c.t, err, os.ErrNotExist)
}

// A log that has lost its end is not restored as if it were whole, as long as its state.db knows
// better: its last numbers would be given again.
func TestRestoreOfALogThatIsTooShort(t *testing.T) {
	c := partedCopies(t, []messages.WSID{4, 4}, []messages.WSID{4, 4, 4})
	state := c.state("b")
	expect.NoError(t, os.Rename(filepath.Join(c.dir("a"), format.LogFileName), filepath.Join(c.dir("b"), format.LogFileName)))
	c.put(state, nil)
	c.notRestored(files.ErrLostEnd)
	expect.NoError(t, os.Remove(filepath.Join(c.dir("b"), format.StateFileName)))
	copied, err := c.restore()
	expect.NoError(t, err)
	expect.Equal(t, 5, copied.Events)
	expect.Equal(t, nil, copied.StateUnread)
}

// Whatever else of state.db is damaged, each value that can be read says that the log is too short.
func TestRestoreOfALogThatIsTooShortBesideDamage(t *testing.T) {
	c := partedCopies(t, []messages.WSID{4, 4}, []messages.WSID{4, 4, 4})
	state := c.state("b")
	expect.NoError(t, os.Rename(filepath.Join(c.dir("a"), format.LogFileName), filepath.Join(c.dir("b"), format.LogFileName)))
	bad := []byte("x")
	for _, edit := range []func(tx *bbolt.Tx) error{
		func(tx *bbolt.Tx) error { return tx.Bucket(format.BucketHeader).Put(format.KeyWitness, bad) },
		func(tx *bbolt.Tx) error { return tx.Bucket(format.BucketHeader).Put(format.KeyProjected, bad) },
		func(tx *bbolt.Tx) error { return tx.Bucket(format.BucketConflicts).Put(bad, bad) },
		func(tx *bbolt.Tx) error { return tx.Bucket(format.BucketCheckpoints).Put(bad, bad) },
		func(tx *bbolt.Tx) error {
			return tx.Bucket(format.BucketCheckpoints).Put(format.AppendPartitionKey(nil, 0), bad)
		},
	} {
		c.put(state, edit)
		c.notRestored(files.ErrLostEnd)
	}
	header := func(tx *bbolt.Tx) *bbolt.Bucket { return tx.Bucket(format.BucketHeader) }
	for _, edit := range []func(tx *bbolt.Tx) error{
		func(tx *bbolt.Tx) error {
			return errors.Join(header(tx).Put(format.KeyWitness, bad), header(tx).Put(format.KeyProjected, bad))
		},
		func(tx *bbolt.Tx) error {
			return errors.Join(header(tx).Put(format.KeyWitness, bad), tx.Bucket(format.BucketCheckpoints).Put(format.AppendPartitionKey(nil, 0), bad))
		},
		func(tx *bbolt.Tx) error {
			return errors.Join(header(tx).Put(format.KeyProjected, bad), tx.Bucket(format.BucketCheckpoints).Put(format.AppendPartitionKey(nil, 0), bad))
		},
	} {
		c.put(state, edit)
		c.notRestored(files.ErrLostEnd)
	}
}

// A state.db of which bbolt can read no more than a part says it, too, to whoever restores and to whoever verifies.
func TestLogThatIsTooShortBesideADamagedFile(t *testing.T) {
	c := partedCopies(t, []messages.WSID{4, 4}, []messages.WSID{4, 4, 4})
	expect.NoError(t, os.Rename(filepath.Join(c.dir("a"), format.LogFileName), filepath.Join(c.dir("b"), format.LogFileName)))
	c.put(c.state("b"), func(*bbolt.Tx) error { return nil }) // both meta pages know of the last flush
	state := c.state("b")
	withByte := func(at int) []byte {
		b := bytes.Clone(state)
		b[at] ^= 1
		return b
	}
	for what, b := range map[string][]byte{
		"meta page 0": withByte(boltfile.MetaChecksumAt), "meta page 1": withByte(os.Getpagesize() + boltfile.MetaChecksumAt),
	} {
		c.put(b, nil)
		c.notRestored(files.ErrLostEnd)
		r := verified(t, c.dir("b"), verify.Options{})
		if !slices.ContainsFunc(r.Faults, func(f verify.Fault) bool { return f.Check == verify.CheckLogEnd }) {
			t.Errorf("%s: got %v, want that the log is too short, too", what, r)
		}
	}
	c.put(state, func(tx *bbolt.Tx) error { return tx.DeleteBucket(format.BucketDedup) })
	c.notRestored(files.ErrLostEnd)
	c.put(state, func(tx *bbolt.Tx) error { // what is projected says it alone
		return errors.Join(tx.Bucket(format.BucketHeader).Delete(format.KeyWitness), tx.Bucket(format.BucketCheckpoints).Delete(format.AppendPartitionKey(nil, 0)))
	})
	c.put(c.state("b"), func(*bbolt.Tx) error { return nil })
	state = c.state("b")
	c.put(withByte(boltfile.MetaChecksumAt), nil)
	c.notRestored(files.ErrLostEnd)
}

// tooShortBesideADamagedIndex returns a store whose log has lost its end, and whose state.db has a page that
// cannot be read.
func tooShortBesideADamagedIndex(t *testing.T) (dir string) {
	t.Helper()
	dir = t.TempDir()
	d := testDescriptor(1, messages.TrustNone)
	s := open(t, dir, d, Options{})
	w := takeOver(t, s, 0)
	w.appendMany(3000, 0, 1, 2)
	w.flush()
	closeStore(t, s)
	older := filesOf(t, dir)[format.LogFileName]
	s = open(t, dir, d, Options{})
	w = takeOver(t, s, 0)
	w.append(0, 1)
	w.flush()
	closeStore(t, s)
	writeFiles(t, dir, map[string]string{format.LogFileName: older})
	f := openPlain(t, dir, format.RoleState)
	var root int
	expect.NoError(t, f.View(func(tx *bbolt.Tx) error {
		root = int(tx.Bucket(format.BucketPLog).Root())
		return nil
	}))
	at := root*f.DB.Info().PageSize + 8 // its flags
	expect.NoError(t, f.Close())
	state := []byte(filesOf(t, dir)[format.StateFileName])
	clear(state[at : at+4])
	writeFiles(t, dir, map[string]string{format.StateFileName: string(state)})
	return dir
}

// What the indexes say of a log that is too short is not needed to know that it is.
func TestTooShortBesideADamagedIndex(t *testing.T) {
	dir := tooShortBesideADamagedIndex(t)
	_, err := Restore(t.Context(), dir, filepath.Join(t.TempDir(), "to"), CopyOptions{})
	expect.ErrorIs(t, err, files.ErrLostEnd)
	_, err = OpenExisting(t.Context(), dir, Options{ReadOnly: true})
	expect.ErrorIs(t, err, files.ErrLostEnd)
	r := verified(t, dir, verify.Options{})
	if !slices.ContainsFunc(r.Faults, func(f verify.Fault) bool { return f.Check == verify.CheckLogEnd && !f.Projection }) {
		t.Errorf("got %v, want that the log is too short, too", r)
	}
}

// extended is a store of an event that was extended by a kind, and has got as many events more as it is
// told; its log.db is from before that.
func extended(t *testing.T, more int) (dir string) {
	t.Helper()
	dir = t.TempDir()
	d := testDescriptor(1, messages.TrustNone)
	s := open(t, dir, d, Options{})
	w := takeOver(t, s, 0)
	w.append(0)
	w.flush()
	closeStore(t, s)
	older := filesOf(t, dir)[format.LogFileName]
	d.Kinds = append(d.Kinds, messages.Kind{ID: 2, Name: "other", Sequences: []messages.Sequence{{ID: 17, Name: "x", Initial: 1}}})
	s = open(t, dir, d, Options{})
	w = takeOver(t, s, 0)
	for range more {
		w.append(0)
	}
	w.flush()
	closeStore(t, s)
	writeFiles(t, dir, map[string]string{format.LogFileName: older})
	return dir
}

// A state.db that knows of more kinds is newer than the log. That alone is told: an open that was to extend the
// store and was killed while it rebuilt state.db leaves one, too.
func TestRestoreOfALogFromBeforeTheStoreWasExtended(t *testing.T) {
	_, err := Restore(t.Context(), extended(t, 2), filepath.Join(t.TempDir(), "to"), CopyOptions{})
	expect.ErrorIs(t, err, files.ErrLostEnd)
	copied, err := Restore(t.Context(), extended(t, 0), filepath.Join(t.TempDir(), "to"), CopyOptions{})
	expect.NoError(t, err)
	expect.ErrorIs(t, copied.StateUnread, storage.ErrForeign)
}

// Beside a state.db of another log it may be the log that is the wrong one.
func TestRestoreBesideAStateOfAnotherCopy(t *testing.T) {
	c := partedCopies(t, []messages.WSID{2, 2}, []messages.WSID{4, 4})
	c.put(c.state("a"), nil)
	c.notRestored(files.ErrOtherLog)
}

// The state.db of this log is no obstacle, be it older than the log.
func TestRestoreAsksState(t *testing.T) {
	c := partedCopies(t, []messages.WSID{2, 2}, []messages.WSID{4, 4})
	for _, state := range [][]byte{c.state("b"), c.older} {
		c.put(state, nil)
		copied, err := c.restore()
		expect.NoError(t, err)
		expect.Equal(t, 5, copied.Events)
		expect.Equal(t, nil, copied.StateUnread)
	}
}

// A state.db that cannot be asked keeps nobody from restoring: it is said.
func TestRestoreBesideAStateThatIsNotRead(t *testing.T) {
	c := partedCopies(t, nil, []messages.WSID{4, 4})
	whole := c.state("b")
	other := t.TempDir()
	closeStore(t, open(t, other, c.d, Options{}))
	foreign := filesOf(t, other)[format.StateFileName]
	s := open(t, other, c.d, Options{})
	w := takeOver(t, s, 0)
	w.appendMany(9, 0)
	w.flush()
	closeStore(t, s)
	longer := filesOf(t, other)[format.StateFileName]
	torn := append([]byte(nil), whole...)
	clear(torn[:boltfile.MetaEnd])
	for cause, states := range map[error][][]byte{
		storage.ErrForeign: {[]byte(foreign), []byte(longer), []byte("no bbolt file")},
		storage.ErrDamaged: {whole[:len(whole)/2], torn, nil},
	} {
		for _, state := range states {
			c.put(state, nil)
			copied, err := c.restore()
			expect.NoError(t, err)
			expect.Equal(t, 5, copied.Events)
			expect.ErrorIs(t, copied.StateUnread, cause)
		}
	}
	c.put(whole, func(tx *bbolt.Tx) error {
		return tx.Bucket(format.BucketHeader).Put(format.KeyProjected, []byte("damaged"))
	})
	copied, err := c.restore()
	expect.NoError(t, err)
	expect.ErrorIs(t, copied.StateUnread, storage.ErrDamaged)
	c.put(whole, func(tx *bbolt.Tx) error {
		return tx.Bucket(format.BucketHeader).Put(format.KeyProjected, format.SealedUint(nil, format.BucketHeader, format.KeyProjected, 0))
	})
	copied, err = c.restore()
	expect.NoError(t, err)
	expect.ErrorIs(t, copied.StateUnread, storage.ErrDamaged)
	path := filepath.Join(c.dir("b"), format.StateFileName)
	expect.NoError(t, os.Remove(path))
	expect.NoError(t, os.Symlink("nowhere", path))
	copied, err = c.restore()
	expect.NoError(t, err)
	expect.ErrorIs(t, copied.StateUnread, storage.ErrForeign)
}

// A state.db that somebody else has open is waited for, and then told.
func TestRestoreBesideALockedState(t *testing.T) {
	c := partedCopies(t, nil, []messages.WSID{4, 4})
	f := openPlain(t, c.dir("b"), format.RoleState)
	_, err := c.restore()
	expect.ErrorIs(t, err, storage.ErrLocked)
	expect.NoError(t, f.Close())
	_, err = c.restore()
	expect.NoError(t, err)
}
