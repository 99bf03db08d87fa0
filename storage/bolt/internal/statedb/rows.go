package statedb

import (
	"bytes"

	"go.etcd.io/bbolt"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage"
	"github.com/partita-go/partita/storage/bolt/internal/boltfile"
	"github.com/partita-go/partita/storage/bolt/internal/format"
)

// Row is a row, copied, and the LSN of the event that wrote it.
type Row struct {
	storage.Row
	LSN messages.LSN
}

// Rows copies rows of a range, so many at most, and of about so many bytes. next is
// where the following chunk begins, 0 if there is none.
func Rows(
	state *boltfile.File, ws messages.WSID, r storage.RecordRange, limit, bytesLimit int,
) (rows []Row, next messages.Number, err error) {
	err = state.View(func(tx *bbolt.Tx) error {
		c := tx.Bucket(format.BucketRecords).Cursor()
		key := format.RecordKey{Workspace: ws, ID: messages.RecordID{Seq: r.Seq, Number: r.From}}
		from := format.AppendRecordKey(make([]byte, 0, format.RecordKeyLen), key)
		size := 0
		k, v := c.Seek(from)
		if !bytes.Equal(k, from) {
			if err := checkRowBefore(c, k, from); err != nil {
				return err
			}
			k, v = c.Seek(from)
		}
		for ; k != nil; k, v = c.Next() {
			if len(k) != format.RecordKeyLen {
				return &storage.DamagedError{Where: format.PlaceOf(format.BucketRecords, "key %x", k), Cause: format.ErrLayout}
			}
			key = format.ParseRecordKey(k)
			stored, err := format.DecodeRow(key, v)
			if err != nil {
				return format.DamagedRow(key, err)
			}
			if !bytes.HasPrefix(k, from[:format.RecordPrefixLen]) || key.ID.Number > r.To {
				return nil
			}
			if len(rows) >= limit || size >= bytesLimit {
				next = key.ID.Number
				return nil
			}
			size += len(v)
			rows = append(rows, Row{LSN: stored.LSN, Row: storage.Row{
				ID: key.ID, Data: CloneData(stored.Data), Partition: stored.Partition, PLogOffset: stored.Offset,
			}})
			if key.ID.Number == r.To {
				return nil
			}
		}
		return nil
	})
	return rows, next, err
}

// checkRowBefore makes sure that the row before a place where a search has ended is sound, and that both
// stand where they belong. As with numbers, a row whose key is damaged still lies between its neighbours:
// who does not find it meets it beside its place.
func checkRowBefore(c *bbolt.Cursor, found, sought []byte) error {
	var k, v []byte
	if found == nil {
		k, v = c.Last()
	} else {
		if bytes.Compare(found, sought) < 0 {
			return astray(format.BucketRecords, sought)
		}
		k, v = c.Prev()
	}
	switch {
	case k == nil:
		return nil
	case bytes.Compare(k, sought) >= 0:
		return astray(format.BucketRecords, sought)
	case len(k) != format.RecordKeyLen:
		return &storage.DamagedError{Where: format.PlaceOf(format.BucketRecords, "key %x", k), Cause: format.ErrLayout}
	}
	key := format.ParseRecordKey(k)
	if _, err := format.DecodeRow(key, v); err != nil {
		return format.DamagedRow(key, err)
	}
	return nil
}

// CloneData copies data; empty data becomes nil.
func CloneData(data []byte) []byte {
	if len(data) == 0 {
		return nil
	}
	return bytes.Clone(data)
}
