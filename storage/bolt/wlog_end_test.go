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

// A workspace's log of which a list has become another's does not end before it: whoever reads it, waits for it, or looks
// for an event there is told which offset is missing. Another workspace's log is as it was.
func TestWLogThatLacksAList(t *testing.T) {
	s := open(t, t.TempDir(), testDescriptor(2, messages.TrustNone), Options{})
	w := takeOver(t, s, 0)
	w.append(4, 4)
	w.appendMany(100, 2)
	w.flush()
	list := func(ws messages.WSID) []byte {
		return format.AppendIndexKey(nil, format.RecordKey{Workspace: ws, ID: messages.RecordID{Seq: messages.SeqWLogOffset, Number: 1}})
	}
	rename(t, s, format.BucketIndex, list(2), list(2|1<<40))
	n, err := wholeWLog(t, s, 2)
	damage, ok := errors.AsType[*storage.DamagedError](err)
	if n != 0 || !ok || damage.Where != "bucket index, workspace 2, sequence 1, log from offset 1 on" {
		t.Errorf("got %d events, %v, want that a list of workspace 2 is missing", n, err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	expect.NoError(t, s.AwaitWLog(ctx, 2, 3), "it is there, and reading it says what is wrong")
	n, err = wholeWLog(t, s, 4)
	expect.NoError(t, err)
	expect.Equal(t, 2, n)
	w.append(2)
	if n, err = wholeWLog(t, s, 2); n != 0 || !errors.Is(err, storage.ErrDamaged) {
		t.Errorf("got %d events, %v, want damage before what is in the tail", n, err)
	}
}

// A head whose key has become another's is missed by whoever asks where the log ends: its neighbours say so.
func TestWLogEndBesideADamagedHead(t *testing.T) {
	s := open(t, t.TempDir(), testDescriptor(2, messages.TrustNone), Options{})
	w := takeOver(t, s, 0)
	w.append(2, 2)
	w.flush()
	rename(t, s, format.BucketWorkspaces, format.AppendWorkspaceKey(nil, 2), format.AppendWorkspaceKey(nil, 0))
	_, err := wholeWLog(t, s, 2)
	expect.ErrorIs(t, err, storage.ErrDamaged)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	expect.ErrorIs(t, s.AwaitWLog(ctx, 2, 1), storage.ErrDamaged)
}
