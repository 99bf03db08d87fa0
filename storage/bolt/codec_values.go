package bolt

import (
	"encoding/binary"
	"hash/crc32"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage"
)

// Small values are sealed: a CRC-32C over the bucket's name, the key and the data
// follows the data.
//
//	 0              n          n+4
//	+--------------+-----------+
//	| data         | CRC-32C   |
//	+--------------+-----------+

// seal appends a sealed value to b; data are the bytes of b from start on.
func seal(b []byte, start int, bucket, key []byte) []byte {
	return binary.BigEndian.AppendUint32(b, sealCRC(bucket, key, b[start:]))
}

// unseal returns a sealed value's data, which must be n bytes.
func unseal(bucket, key, value []byte, n int) ([]byte, error) {
	if len(value) != n+sealedOverhead {
		return nil, errLayout
	}
	if sealCRC(bucket, key, value[:n]) != binary.BigEndian.Uint32(value[n:]) {
		return nil, errChecksum
	}
	return value[:n], nil
}

func sealCRC(bucket, key, data []byte) uint32 {
	crc := crc32.Update(0, castagnoli, bucket)
	crc = crc32.Update(crc, castagnoli, key)
	return crc32.Update(crc, castagnoli, data)
}

// sealedUint encodes an epoch, a last number, a kind or an LSN.
func sealedUint(b []byte, bucket, key []byte, n uint64) []byte {
	start := len(b)
	return seal(binary.BigEndian.AppendUint64(b, n), start, bucket, key)
}

func unsealUint(bucket, key, value []byte) (uint64, error) {
	data, err := unseal(bucket, key, value, 8)
	if err != nil {
		return 0, err
	}
	return binary.BigEndian.Uint64(data), nil
}

// checkpoint says up to where a partition is projected, and what its register
// was there, so that a partition without a tail opens without reading the log.
//
//	 0      8          16        24           32        36
//	+------+----------+---------+------------+---------+
//	| next | last LSN | last at | last epoch | CRC     |
//	+------+----------+---------+------------+---------+
type checkpoint struct {
	// next is the next PLog offset to replay.
	next messages.PLogOffset
	// The rest is of the event before it, zero if there is none.
	lsn   messages.LSN
	at    messages.Timestamp
	epoch messages.Epoch
}

func (c checkpoint) encode(key []byte) []byte {
	b := make([]byte, 0, checkpointLen)
	b = binary.BigEndian.AppendUint64(b, uint64(c.next))
	b = binary.BigEndian.AppendUint64(b, uint64(c.lsn))
	b = binary.BigEndian.AppendUint64(b, uint64(c.at))
	b = binary.BigEndian.AppendUint64(b, uint64(c.epoch))
	return seal(b, 0, bucketCheckpoints, key)
}

func decodeCheckpoint(key, value []byte) (checkpoint, error) {
	d, err := unseal(bucketCheckpoints, key, value, checkpointLen-sealedOverhead)
	if err != nil {
		return checkpoint{}, err
	}
	c := checkpoint{
		next:  messages.PLogOffset(binary.BigEndian.Uint64(d)),
		lsn:   messages.LSN(binary.BigEndian.Uint64(d[8:])),
		at:    messages.Timestamp(binary.BigEndian.Uint64(d[16:])),
		epoch: messages.Epoch(binary.BigEndian.Uint64(d[24:])),
	}
	if c.next == 0 {
		return checkpoint{}, errLayout
	}
	return c, nil
}

// A conflict that lasts, in bucket conflicts. The key names what errs: a
// workspace (place WLog, SeqID 0) or one sequence of it (place record).
//
//	 0           4            12    20           28              36    40
//	+-----------+------------+-----+------------+---------------+-----+
//	| partition | PLogOffset | LSN | WLogOffset | record number | CRC |
//	+-----------+------------+-----+------------+---------------+-----+

// conflictKey names what a lasting conflict blocks.
type conflictKey struct {
	place storage.Place
	ws    messages.WSID
	// seq is 0 for a whole workspace.
	seq messages.SeqID
}

func conflictKeyOf(e *storage.ConflictError) conflictKey {
	k := conflictKey{place: e.Place, ws: e.Workspace}
	if e.Place == storage.PlaceRecord {
		k.seq = e.Record.Seq
	}
	return k
}

func (k conflictKey) append(b []byte) []byte {
	return appendNumberKey(append(b, byte(k.place)), k.ws, k.seq)
}

func encodeConflict(key []byte, e *storage.ConflictError) []byte {
	b := appendPartitionKey(nil, e.Partition)
	b = binary.BigEndian.AppendUint64(b, uint64(e.PLogOffset))
	b = binary.BigEndian.AppendUint64(b, uint64(e.LSN))
	b = binary.BigEndian.AppendUint64(b, uint64(e.WLogOffset))
	b = binary.BigEndian.AppendUint64(b, uint64(e.Record.Number))
	return seal(b, 0, bucketConflicts, key)
}

func decodeConflict(key, value []byte) (*storage.ConflictError, error) {
	if len(key) != conflictKeyLen {
		return nil, errLayout
	}
	d, err := unseal(bucketConflicts, key, value, conflictValueLen-sealedOverhead)
	if err != nil {
		return nil, err
	}
	e := &storage.ConflictError{
		Place:      storage.Place(key[0]),
		Partition:  messages.PartitionID(binary.BigEndian.Uint32(d)),
		PLogOffset: messages.PLogOffset(binary.BigEndian.Uint64(d[4:])),
		LSN:        messages.LSN(binary.BigEndian.Uint64(d[12:])),
		Workspace:  messages.WSID(binary.BigEndian.Uint64(key[1:])),
		WLogOffset: messages.WLogOffset(binary.BigEndian.Uint64(d[20:])),
	}
	if e.Place == storage.PlaceRecord {
		e.Record = messages.RecordID{
			Seq:    messages.SeqID(binary.BigEndian.Uint16(key[9:])),
			Number: messages.Number(binary.BigEndian.Uint64(d[28:])),
		}
	}
	return e, nil
}

// updateCRC is crc32.Update for a few bytes that are not on the heap, and that it leaves where
// they are: an array that is given to crc32.Update is allocated for that.
func updateCRC(crc uint32, few []byte) uint32 {
	crc = ^crc
	for _, b := range few {
		crc = castagnoli[byte(crc)^b] ^ crc>>8
	}
	return ^crc
}
