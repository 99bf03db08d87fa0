package statedb

import (
	"bytes"
	"encoding/binary"

	"go.etcd.io/bbolt"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage"
	"github.com/partita-go/partita/storage/bolt/internal/boltfile"
	"github.com/partita-go/partita/storage/bolt/internal/format"
)

// NumberEntry encodes an entry of bucket numbers.
func NumberEntry(ws messages.WSID, seq messages.SeqID, n messages.Number) (key, value []byte) {
	b := make([]byte, 0, format.NumberKeyLen+format.SealedNumberLen)
	b = format.AppendNumberKey(b, ws, seq)
	key = b[:format.NumberKeyLen:format.NumberKeyLen]
	return key, format.SealedUint(b, format.BucketNumbers, key, uint64(n))[format.NumberKeyLen:]
}

// Number returns the last number of a sequence, or the kind of a workspace, 0
// if there is none.
func Number(b *bbolt.Bucket, ws messages.WSID, seq messages.SeqID) (messages.Number, error) {
	key := format.AppendNumberKey(make([]byte, 0, format.NumberKeyLen), ws, seq)
	v := b.Get(key)
	if v == nil {
		return 0, nil
	}
	n, err := format.UnsealUint(format.BucketNumbers, key, v)
	if err != nil {
		return 0, format.DamagedNumber(ws, seq, err)
	}
	return messages.Number(n), nil
}

// Numbers returns the last numbers of a workspace, and its kind.
func Numbers(state *boltfile.File, ws messages.WSID) (storage.WorkspaceNumbers, error) {
	w := storage.WorkspaceNumbers{Workspace: ws}
	err := state.View(func(tx *bbolt.Tx) error {
		first := format.AppendNumberKey(make([]byte, 0, format.NumberKeyLen), ws, 0)
		c := tx.Bucket(format.BucketNumbers).Cursor()
		if err := checkBefore(c, first); err != nil {
			return err
		}
		for k, v := c.Seek(first); k != nil; k, v = c.Next() {
			seq, n, err := DecodeNumber(k, v)
			if err != nil {
				return err
			}
			if !bytes.HasPrefix(k, first[:format.WorkspaceKeyLen]) {
				break
			}
			if seq == format.KindSeq {
				w.Kind = messages.WSKind(n)
				continue
			}
			w.Numbers = append(w.Numbers, messages.SequenceNumber{Seq: seq, Number: n})
		}
		return nil
	})
	if err != nil {
		return storage.WorkspaceNumbers{}, err
	}
	return w, nil
}

// soughtNumber is Number that takes an entry for missing only if its neighbours are sound, and
// stand where they belong: see checkBefore.
func soughtNumber(c *bbolt.Cursor, ws messages.WSID, seq messages.SeqID) (messages.Number, error) {
	key := format.AppendNumberKey(make([]byte, 0, format.NumberKeyLen), ws, seq)
	k, v := c.Seek(key)
	if bytes.Equal(k, key) {
		_, n, err := DecodeNumber(k, v)
		return n, err
	}
	if k != nil {
		if _, _, err := DecodeNumber(k, v); err != nil {
			return 0, err
		}
	}
	return 0, checkBefore(c, key)
}

// DecodeNumber returns what an entry says of its sequence.
func DecodeNumber(k, v []byte) (messages.SeqID, messages.Number, error) {
	if len(k) != format.NumberKeyLen {
		return 0, 0, &storage.DamagedError{Where: format.PlaceOf(format.BucketNumbers, "key %x", k), Cause: format.ErrLayout}
	}
	seq := messages.SeqID(binary.BigEndian.Uint16(k[format.WorkspaceKeyLen:]))
	n, err := format.UnsealUint(format.BucketNumbers, k, v)
	if err != nil {
		return 0, 0, format.DamagedNumber(messages.WSID(format.Uint64(k)), seq, err)
	}
	return seq, messages.Number(n), nil
}

// checkBefore makes sure that the entry before a workspace's first one is sound. A
// page has no checksum: an entry whose key is damaged seems to be another
// workspace's, or nobody's, and its number would be given again. But it still lies
// where it lay, between its neighbours. So who reads a workspace's entries looks at
// the one before them and the one behind them too. Where a key of a branch is damaged,
// the search ends beside another place.
func checkBefore(c *bbolt.Cursor, first []byte) error {
	k, _ := c.Seek(first)
	var v []byte
	if k == nil {
		k, v = c.Last()
	} else {
		if bytes.Compare(k, first) < 0 {
			return astray(format.BucketNumbers, first)
		}
		k, v = c.Prev()
	}
	if k == nil {
		return nil
	}
	if bytes.Compare(k, first) >= 0 {
		return astray(format.BucketNumbers, first)
	}
	_, _, err := DecodeNumber(k, v)
	return err
}

// astray says that a search went wrong: the keys of a page that it has passed are not in order.
func astray(bucket, sought []byte) error {
	return &storage.DamagedError{Where: format.PlaceOf(bucket, "key %x", sought), Cause: format.ErrMisplaced}
}
