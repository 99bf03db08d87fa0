package bolt

import (
	"context"
	"errors"
	"testing"
	"time"

	"go.etcd.io/bbolt"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage"
	"github.com/partita-go/partita/storage/bolt/internal/expect"
	"github.com/partita-go/partita/storage/bolt/internal/format"
)

// wholeWLog reads a workspace's log to its end.
func wholeWLog(t *testing.T, s *Store, ws messages.WSID) (n int, err error) {
	t.Helper()
	for _, err := range s.WLog(t.Context(), ws, 1) {
		if err != nil {
			return n, err
		}
		n++
	}
	return n, nil
}

// rename moves an entry of state.db to another key, as a flipped bit would.
func rename(t *testing.T, s *Store, bucket, from, to []byte) {
	t.Helper()
	expect.NoError(t, s.state.Update(func(tx *bbolt.Tx) error {
		b := tx.Bucket(bucket)
		v := append([]byte(nil), b.Get(from)...)
		return errors.Join(b.Delete(from), b.Put(to, v))
	}))
}

// A workspace's log of which the last entry of the index has become another's does not end before it: who
// reads it, waits for it, or looks for an event there is told which offset is missing. Another workspace's
// log is as it was.
func TestWLogThatEndsEarly(t *testing.T) {
	s := open(t, t.TempDir(), testDescriptor(2, messages.TrustNone), Options{})
	w := takeOver(t, s, 0)
	w.append(2, 4, 2, 4, 2)
	w.flush()
	rename(t, s, format.BucketWLog, format.AppendWLogKey(nil, 2, 3), format.AppendWLogKey(nil, 2|1<<40, 3))
	n, err := wholeWLog(t, s, 2)
	damage, ok := errors.AsType[*storage.DamagedError](err)
	if n != 2 || !ok || damage.Where != "bucket wlog, workspace 2, offset 3" {
		t.Errorf("got %d events, %v, want that offset 3 of workspace 2 is missing", n, err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	expect.NoError(t, s.AwaitWLog(ctx, 2, 3), "it is there, and reading it says what is wrong")
	n, err = wholeWLog(t, s, 4)
	expect.NoError(t, err)
	expect.Equal(t, 2, n)
	w.append(2)
	if n, err = wholeWLog(t, s, 2); n != 2 || !errors.Is(err, storage.ErrDamaged) {
		t.Errorf("got %d events, %v, want damage before what is in the tail", n, err)
	}
}

// A last number whose key has become another's is missed by who asks where the log ends: its neighbours say so.
func TestWLogEndBesideADamagedNumber(t *testing.T) {
	s := open(t, t.TempDir(), testDescriptor(2, messages.TrustNone), Options{})
	w := takeOver(t, s, 0)
	w.append(2, 2)
	w.flush()
	key := format.AppendNumberKey(nil, 2, messages.SeqWLogOffset)
	rename(t, s, format.BucketNumbers, key, format.AppendNumberKey(nil, 0, messages.SeqWLogOffset))
	rename(t, s, format.BucketNumbers, format.AppendNumberKey(nil, 2, format.KindSeq), format.AppendNumberKey(nil, 3, format.KindSeq))
	_, err := wholeWLog(t, s, 2)
	expect.ErrorIs(t, err, storage.ErrDamaged)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	expect.ErrorIs(t, s.AwaitWLog(ctx, 2, 1), storage.ErrDamaged)
}
