package bolt

import (
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.etcd.io/bbolt"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage"
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
	errorIs(c.t, err, storage.ErrDamaged)
	errorIs(c.t, err, cause)
	if !strings.Contains(err.Error(), "whoever knows that "+filepath.Join(c.dir("b"), stateFileName)+" is the wrong file moves it away") {
		c.t.Errorf("got %v", err)
	}
	if !maps.Equal(before, filesOf(c.t, c.dir("b"))) {
		c.t.Error("the files were changed")
	}
	_, err = os.Stat(to)
	errorIs(c.t, err, os.ErrNotExist)
}

// A log that has lost its end is not restored as if it were whole, as long as its state.db knows
// better: its last numbers would be given again.
func TestRestoreOfALogThatIsTooShort(t *testing.T) {
	c := partedCopies(t, []messages.WSID{4, 4}, []messages.WSID{4, 4, 4})
	state := c.state("b")
	noError(t, os.Rename(filepath.Join(c.dir("a"), logFileName), filepath.Join(c.dir("b"), logFileName)))
	c.put(state, nil)
	c.notRestored(errLostEnd)
	noError(t, os.Remove(filepath.Join(c.dir("b"), stateFileName)))
	copied, err := c.restore()
	noError(t, err)
	equal(t, 5, copied.Events)
	equal(t, nil, copied.StateUnread)
}

// Beside a state.db of another log it may be the log that is the wrong one.
func TestRestoreBesideAStateOfAnotherCopy(t *testing.T) {
	c := partedCopies(t, []messages.WSID{2, 2}, []messages.WSID{4, 4})
	c.put(c.state("a"), nil)
	c.notRestored(errOtherLog)
}

// The state.db of this log is no obstacle, be it older than the log.
func TestRestoreAsksState(t *testing.T) {
	c := partedCopies(t, []messages.WSID{2, 2}, []messages.WSID{4, 4})
	for _, state := range [][]byte{c.state("b"), c.older} {
		c.put(state, nil)
		copied, err := c.restore()
		noError(t, err)
		equal(t, 5, copied.Events)
		equal(t, nil, copied.StateUnread)
	}
}

// A state.db that cannot be asked keeps nobody from restoring: it is said.
func TestRestoreBesideAStateThatIsNotRead(t *testing.T) {
	c := partedCopies(t, nil, []messages.WSID{4, 4})
	whole := c.state("b")
	other := t.TempDir()
	closeStore(t, open(t, other, c.d, Options{}))
	foreign := filesOf(t, other)[stateFileName]
	torn := append([]byte(nil), whole...)
	clear(torn[:metaEnd])
	for cause, states := range map[error][][]byte{
		storage.ErrForeign: {[]byte(foreign), []byte("no bbolt file")},
		storage.ErrDamaged: {whole[:len(whole)/2], torn},
	} {
		for _, state := range states {
			c.put(state, nil)
			copied, err := c.restore()
			noError(t, err)
			equal(t, 5, copied.Events)
			errorIs(t, copied.StateUnread, cause)
		}
	}
	c.put(whole, func(tx *bbolt.Tx) error { return tx.Bucket(bucketHeader).Put(keyProjected, []byte("damaged")) })
	copied, err := c.restore()
	noError(t, err)
	errorIs(t, copied.StateUnread, storage.ErrDamaged)
}

// A state.db that somebody else has open is waited for, and then told.
func TestRestoreBesideALockedState(t *testing.T) {
	c := partedCopies(t, nil, []messages.WSID{4, 4})
	f := openPlain(t, c.dir("b"), roleState)
	_, err := c.restore()
	errorIs(t, err, storage.ErrLocked)
	noError(t, f.close())
	_, err = c.restore()
	noError(t, err)
}
