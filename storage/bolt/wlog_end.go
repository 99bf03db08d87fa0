package bolt

import (
	"bytes"
	"encoding/binary"

	"go.etcd.io/bbolt"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage"
	"github.com/partita-go/partita/storage/bolt/internal/format"
)

// A key of an index in state.db has no checksum: one that is damaged is another workspace's, or
// nobody's, and the log of its own workspace would end there. So a reader asks first where the log ends,
// of what has a checksum, and whatever is missing before that is damage.

// wlogEnd returns the last offset of a workspace's log, 0 if it has none, whether that is in the tail, and why
// its partition has failed. If it is not in the tail, all of the log up to there is in state.db.
func (s *Store) wlogEnd(ws messages.WSID) (last messages.WLogOffset, inTail bool, failed, err error) {
	// First the tail's view: what has left it by then is in state.db.
	p := s.partitionOf(ws)
	p.mu.RLock()
	failed = p.failed
	if _, e := p.tail.lastOf(ws); e != nil {
		last, inTail = e.wlog, true
	}
	p.mu.RUnlock()
	if !inTail {
		last, err = s.storedWLogEnd(ws)
	}
	return last, inTail, failed, err
}

// storedWLogEnd returns the last offset of a workspace's log that state.db has, by the workspace's last
// number, and by the index if that has more: then what is missing before it is told.
func (s *Store) storedWLogEnd(ws messages.WSID) (last messages.WLogOffset, err error) {
	err = s.state.View(func(tx *bbolt.Tx) error {
		n, err := soughtNumber(tx.Bucket(format.BucketNumbers).Cursor(), ws, messages.SeqWLogOffset)
		if err != nil {
			return err
		}
		indexed := endOf(tx.Bucket(format.BucketWLog).Cursor(), binary.BigEndian.AppendUint64(nil, uint64(ws)))
		last = messages.WLogOffset(max(n, indexed))
		return nil
	})
	return last, err
}

// soughtNumber is storedNumber that takes an entry for missing only if its neighbours are sound, and
// stand where they belong: see checkBefore.
func soughtNumber(c *bbolt.Cursor, ws messages.WSID, seq messages.SeqID) (messages.Number, error) {
	key := format.AppendNumberKey(make([]byte, 0, format.NumberKeyLen), ws, seq)
	k, v := c.Seek(key)
	if bytes.Equal(k, key) {
		_, n, err := decodeNumber(k, v)
		return n, err
	}
	if k != nil {
		if _, _, err := decodeNumber(k, v); err != nil {
			return 0, err
		}
	}
	return 0, checkBefore(c, key)
}

// astray says that a search went wrong: the keys of a page that it has passed are not in order.
func astray(bucket, sought []byte) error {
	return &storage.DamagedError{Where: format.PlaceOf(bucket, "key %x", sought), Cause: format.ErrMisplaced}
}
