package format

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

// Seal appends a sealed value to b; data are the bytes of b from start on.
func Seal(b []byte, start int, bucket, key []byte) []byte {
	return binary.BigEndian.AppendUint32(b, SealCRC(bucket, key, b[start:]))
}

// Unseal returns a sealed value's data, which must be n bytes.
func Unseal(bucket, key, value []byte, n int) ([]byte, error) {
	if len(value) != n+SealedOverhead {
		return nil, ErrLayout
	}
	if SealCRC(bucket, key, value[:n]) != binary.BigEndian.Uint32(value[n:]) {
		return nil, ErrChecksum
	}
	return value[:n], nil
}

// unsealAny returns a sealed value's data, of any length.
func unsealAny(bucket, key, value []byte) ([]byte, error) {
	if len(value) < SealedOverhead {
		return nil, ErrTruncated
	}
	return Unseal(bucket, key, value, len(value)-SealedOverhead)
}

// unsealVersion returns a reader of a sealed value's data behind its version, which must be one of those from first to
// last, and the version.
func unsealVersion(bucket, key, value []byte, first, last byte) (r ByteReader, version byte, err error) {
	if r.Rest, err = unsealAny(bucket, key, value); err != nil {
		return r, 0, err
	}
	if version = r.byte(); (version < first || version > last) && !r.Bad {
		return r, version, unknownVersion(version, first, last)
	}
	return r, version, nil
}

// SealCRC returns the checksum of a sealed value.
func SealCRC(bucket, key, data []byte) uint32 {
	crc := crc32.Update(0, Castagnoli, bucket)
	crc = crc32.Update(crc, Castagnoli, key)
	return crc32.Update(crc, Castagnoli, data)
}

// SealedUint encodes an epoch, a last number, a kind or an LSN.
func SealedUint(b []byte, bucket, key []byte, n uint64) []byte {
	start := len(b)
	return Seal(binary.BigEndian.AppendUint64(b, n), start, bucket, key)
}

// UnsealUint reads a sealed integer. It is safe on any bytes.
func UnsealUint(bucket, key, value []byte) (uint64, error) {
	data, err := Unseal(bucket, key, value, 8)
	if err != nil {
		return 0, err
	}
	return binary.BigEndian.Uint64(data), nil
}

// Checkpoint says up to where a partition is projected, and what its register
// was there, so that a partition without a tail opens without reading the log.
//
//	 0      8          16        24           32       40        48    52
//	+------+----------+---------+------------+--------+---------+-----+
//	| next | last LSN | last at | last epoch | target | through | CRC |
//	+------+----------+---------+------------+--------+---------+-----+
type Checkpoint struct {
	// Next is the next PLog offset to replay.
	Next messages.PLogOffset
	// The rest is of the event before it, zero if there is none.
	LSN          messages.LSN
	RegisteredAt messages.Timestamp
	Epoch        messages.Epoch
	// A flush that takes more than one transaction is under way if Target is not 0: the workspaces
	// up to Through, in order of their ids, are projected up to before Target, the others up to before Next.
	Target  messages.PLogOffset
	Through messages.WSID
}

// Encode returns a checkpoint as it is kept under a key.
func (c Checkpoint) Encode(key []byte) []byte {
	b := make([]byte, 0, CheckpointLen)
	b = binary.BigEndian.AppendUint64(b, uint64(c.Next))
	b = binary.BigEndian.AppendUint64(b, uint64(c.LSN))
	b = binary.BigEndian.AppendUint64(b, uint64(c.RegisteredAt))
	b = binary.BigEndian.AppendUint64(b, uint64(c.Epoch))
	b = binary.BigEndian.AppendUint64(b, uint64(c.Target))
	b = binary.BigEndian.AppendUint64(b, uint64(c.Through))
	return Seal(b, 0, BucketCheckpoints, key)
}

// DecodeCheckpoint is safe on any bytes. It also takes one of format 3, which ended before the target: a state.db of that
// format is asked whether the log is whole before it is made anew.
func DecodeCheckpoint(key, value []byte) (Checkpoint, error) {
	length := CheckpointLen - SealedOverhead
	if len(value) == checkpointLen3 {
		length = checkpointLen3 - SealedOverhead
	}
	d, err := Unseal(BucketCheckpoints, key, value, length)
	if err != nil {
		return Checkpoint{}, err
	}
	d = append(make([]byte, 0, CheckpointLen), d...)[:CheckpointLen]
	c := Checkpoint{
		Next:         messages.PLogOffset(binary.BigEndian.Uint64(d)),
		LSN:          messages.LSN(binary.BigEndian.Uint64(d[8:])),
		RegisteredAt: messages.Timestamp(binary.BigEndian.Uint64(d[16:])),
		Epoch:        messages.Epoch(binary.BigEndian.Uint64(d[24:])),
		Target:       messages.PLogOffset(binary.BigEndian.Uint64(d[32:])),
		Through:      messages.WSID(binary.BigEndian.Uint64(d[40:])),
	}
	if c.Next == 0 || c.Target != 0 && c.Target <= c.Next {
		return Checkpoint{}, ErrLayout
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

// ConflictKey names what a lasting conflict blocks.
type ConflictKey struct {
	Place     storage.Place
	Workspace messages.WSID
	// Seq is 0 for a whole workspace.
	Seq messages.SeqID
}

// ConflictKeyOf returns what a conflict blocks.
func ConflictKeyOf(e *storage.ConflictError) ConflictKey {
	k := ConflictKey{Place: e.Place, Workspace: e.Workspace}
	if e.Place == storage.PlaceRecord {
		k.Seq = e.Record.Seq
	}
	return k
}

// Append appends the key of bucket conflicts.
func (k ConflictKey) Append(b []byte) []byte {
	return AppendSequenceKey(append(b, byte(k.Place)), k.Workspace, k.Seq)
}

// EncodeConflict returns a conflict as it is kept under a key.
func EncodeConflict(key []byte, e *storage.ConflictError) []byte {
	b := AppendPartitionKey(nil, e.Partition)
	b = binary.BigEndian.AppendUint64(b, uint64(e.PLogOffset))
	b = binary.BigEndian.AppendUint64(b, uint64(e.LSN))
	b = binary.BigEndian.AppendUint64(b, uint64(e.WLogOffset))
	b = binary.BigEndian.AppendUint64(b, uint64(e.Record.Number))
	return Seal(b, 0, BucketConflicts, key)
}

// DecodeConflict is safe on any bytes.
func DecodeConflict(key, value []byte) (*storage.ConflictError, error) {
	if len(key) != ConflictKeyLen {
		return nil, ErrLayout
	}
	d, err := Unseal(BucketConflicts, key, value, ConflictValueLen-SealedOverhead)
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
		crc = Castagnoli[byte(crc)^b] ^ crc>>8
	}
	return ^crc
}
