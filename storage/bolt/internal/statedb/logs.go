package statedb

import (
	"bytes"
	"context"
	"encoding/binary"
	"math"

	"go.etcd.io/bbolt"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage"
	"github.com/partita-go/partita/storage/bolt/internal/boltfile"
	"github.com/partita-go/partita/storage/bolt/internal/format"
)

// A key of an index in state.db has no checksum: one that is damaged is another workspace's, or
// nobody's, and the log of its own workspace would end there. So a reader asks first where the log ends,
// of what has a checksum, and whatever is missing before that is damage.

// PLog finds entries of a partition's log, all of which must be there: the LSNs of their events.
func PLog(state *boltfile.File, p messages.PartitionID, from, to messages.PLogOffset) ([]messages.LSN, error) {
	lsns := make([]messages.LSN, 0, to-from)
	err := state.View(func(tx *bbolt.Tx) error {
		c := tx.Bucket(format.BucketPLog).Cursor()
		k, v := c.Seek(format.AppendPLogKey(nil, p, from))
		for o := from; o < to; o++ {
			lsn, ok := format.ParseLSN(v)
			if string(k) != string(format.AppendPLogKey(nil, p, o)) || !ok {
				return &storage.DamagedError{
					Where:     format.PlaceOf(format.BucketPLog, "partition %d, offset %d", p, o),
					Partition: p, PLogOffset: o, Cause: format.ErrMissing,
				}
			}
			lsns = append(lsns, lsn)
			k, v = c.Next()
		}
		return nil
	})
	return lsns, err
}

// WLog finds entries of a workspace's log, all of which must be there.
func WLog(state *boltfile.File, ws messages.WSID, from, to messages.WLogOffset) ([]messages.LSN, error) {
	lsns := make([]messages.LSN, 0, to-from)
	err := state.View(func(tx *bbolt.Tx) error {
		c := tx.Bucket(format.BucketWLog).Cursor()
		k, v := c.Seek(format.AppendWLogKey(nil, ws, from))
		for o := from; o < to; o++ {
			lsn, ok := format.ParseLSN(v)
			if string(k) != string(format.AppendWLogKey(nil, ws, o)) || !ok {
				where := format.PlaceOf(format.BucketWLog, "workspace %d, offset %d", ws, o)
				return &storage.DamagedError{Where: where, Cause: format.ErrMissing}
			}
			lsns = append(lsns, lsn)
			k, v = c.Next()
		}
		return nil
	})
	return lsns, err
}

// WLogEnd returns the last offset of a workspace's log, by the workspace's last
// number, and by the index if that has more: then what is missing before it is told.
func WLogEnd(state *boltfile.File, ws messages.WSID) (last messages.WLogOffset, err error) {
	err = state.View(func(tx *bbolt.Tx) error {
		n, err := soughtNumber(tx.Bucket(format.BucketNumbers).Cursor(), ws, messages.SeqWLogOffset)
		if err != nil {
			return err
		}
		indexed := EndOf(tx.Bucket(format.BucketWLog).Cursor(), binary.BigEndian.AppendUint64(nil, uint64(ws)))
		last = messages.WLogOffset(max(n, indexed))
		return nil
	})
	return last, err
}

// EndOf returns what the last key ends with that begins with a prefix, 0 if
// there is none.
func EndOf(c *bbolt.Cursor, prefix []byte) messages.Number {
	var buf [format.RecordKeyLen]byte
	end := binary.BigEndian.AppendUint64(append(buf[:0], prefix...), math.MaxUint64)
	k, _ := c.Seek(end)
	switch {
	case k == nil:
		k, _ = c.Last()
	case !bytes.Equal(k, end):
		k, _ = c.Prev()
	}
	for ; bytes.HasPrefix(k, prefix); k, _ = c.Prev() {
		if len(k) == len(end) { // others are foreign
			return messages.Number(format.Uint64(k[len(prefix):]))
		}
	}
	return 0
}

// FirstPLogKey returns the first entry of a partition's log at or after an offset.
func FirstPLogKey(c *bbolt.Cursor, p messages.PartitionID, from messages.PLogOffset) (messages.PLogOffset, bool) {
	var key [format.PLogKeyLen]byte
	k, _ := c.Seek(format.AppendPLogKey(key[:0], p, from))
	if len(k) != format.PLogKeyLen || !bytes.Equal(k[:format.PartitionKeyLen], key[:format.PartitionKeyLen]) {
		return 0, false
	}
	return messages.PLogOffset(format.Uint64(k[format.PartitionKeyLen:])), true
}

// Projected returns how far the log is projected.
func Projected(state *boltfile.File) (messages.LSN, error) {
	n := uint64(1)
	err := state.View(func(tx *bbolt.Tx) (err error) {
		if v := tx.Bucket(format.BucketHeader).Get(format.KeyProjected); v != nil {
			n, err = format.UnsealUint(format.BucketHeader, format.KeyProjected, v)
		}
		return err
	})
	return messages.LSN(n), err
}

// maxCountedWorkspaces bounds the time that counting takes: about a microsecond each.
const maxCountedWorkspaces = 100_000

// CountWorkspaces counts the workspaces that have an index, by leaping from one to the
// next.
func CountWorkspaces(ctx context.Context, state *boltfile.File) (n uint64, more bool, err error) {
	err = state.View(func(tx *bbolt.Tx) error {
		c := tx.Bucket(format.BucketWLog).Cursor()
		for k, _ := c.First(); len(k) == format.WLogKeyLen; n++ {
			if n == maxCountedWorkspaces {
				more = true
				return nil
			}
			if n%boltfile.ImageChunk == 0 && ctx.Err() != nil {
				return ctx.Err()
			}
			k, _ = c.Seek(format.AppendWLogKey(nil, messages.WSID(format.Uint64(k)), ^messages.WLogOffset(0)))
		}
		return nil
	})
	return n, more, err
}
