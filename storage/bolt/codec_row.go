package bolt

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"math"

	"github.com/partita-go/partita/messages"
)

// A row's value in bucket records:
//
//	 0        1            5
//	+--------+------------+---------------------------------------------+
//	| version| CRC-32C    | partition PLogOffset LSN data               |
//	+--------+------------+---------------------------------------------+
//
// The three numbers, unsigned varints, name the event that wrote the row last: its
// provenance. The CRC covers everything after it, the version byte and the key.
const (
	rowVersion   = 1
	rowHeaderLen = 5
)

// row is a decoded row; data points into the encoded value.
type row struct {
	partition messages.PartitionID
	offset    messages.PLogOffset
	lsn       messages.LSN
	data      []byte
}

// maxRowOverhead is how much longer than its data a row's value can be.
const maxRowOverhead = rowHeaderLen + 3*binary.MaxVarintLen64

func appendRow(b []byte, k recordKey, r *row) []byte {
	start := len(b)
	b = append(b, rowVersion, 0, 0, 0, 0)
	b = binary.AppendUvarint(b, uint64(r.partition))
	b = binary.AppendUvarint(b, uint64(r.offset))
	b = binary.AppendUvarint(b, uint64(r.lsn))
	b = append(b, r.data...)
	binary.BigEndian.PutUint32(b[start+1:], rowCRC(k, b[start:]))
	return b
}

func rowCRC(k recordKey, value []byte) uint32 {
	var tail [1 + recordKeyLen]byte
	tail[0] = value[0]
	appendRecordKey(tail[:1], k)
	return updateCRC(crc32.Update(0, castagnoli, value[rowHeaderLen:]), tail[:])
}

// decodeRow is safe on any bytes.
func decodeRow(k recordKey, value []byte) (row, error) {
	if len(value) < rowHeaderLen {
		return row{}, errTruncated
	}
	if value[0] != rowVersion {
		return row{}, fmt.Errorf("%w: got %d, want %d", errVersion, value[0], rowVersion)
	}
	if rowCRC(k, value) != binary.BigEndian.Uint32(value[1:]) {
		return row{}, errChecksum
	}
	in := byteReader{b: value[rowHeaderLen:]}
	r := row{
		partition: messages.PartitionID(in.uvarint(math.MaxUint32)),
		offset:    messages.PLogOffset(in.uvarint(math.MaxUint64)),
		lsn:       messages.LSN(in.uvarint(math.MaxUint64)),
	}
	if in.bad {
		return row{}, errLayout
	}
	r.data = in.b
	return r, nil
}
