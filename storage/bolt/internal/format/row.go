package format

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

// Row is a decoded row; data points into the encoded value.
type Row struct {
	Partition messages.PartitionID
	Offset    messages.PLogOffset
	LSN       messages.LSN
	Data      []byte
}

// MaxRowOverhead is how much longer than its data a row's value can be.
const MaxRowOverhead = rowHeaderLen + 3*binary.MaxVarintLen64

// AppendRow appends a row as it is kept under a key.
func AppendRow(b []byte, k RecordKey, r *Row) []byte {
	start := len(b)
	b = append(b, rowVersion, 0, 0, 0, 0)
	b = binary.AppendUvarint(b, uint64(r.Partition))
	b = binary.AppendUvarint(b, uint64(r.Offset))
	b = binary.AppendUvarint(b, uint64(r.LSN))
	b = append(b, r.Data...)
	binary.BigEndian.PutUint32(b[start+1:], rowCRC(k, b[start:]))
	return b
}

func rowCRC(k RecordKey, value []byte) uint32 {
	var tail [1 + RecordKeyLen]byte
	tail[0] = value[0]
	AppendRecordKey(tail[:1], k)
	return updateCRC(crc32.Update(0, Castagnoli, value[rowHeaderLen:]), tail[:])
}

// DecodeRow is safe on any bytes.
func DecodeRow(k RecordKey, value []byte) (Row, error) {
	if len(value) < rowHeaderLen {
		return Row{}, ErrTruncated
	}
	if value[0] != rowVersion {
		return Row{}, fmt.Errorf("%w: got %d, want %d", errVersion, value[0], rowVersion)
	}
	if rowCRC(k, value) != binary.BigEndian.Uint32(value[1:]) {
		return Row{}, ErrChecksum
	}
	in := ByteReader{Rest: value[rowHeaderLen:]}
	r := Row{
		Partition: messages.PartitionID(in.Uvarint(math.MaxUint32)),
		Offset:    messages.PLogOffset(in.Uvarint(math.MaxUint64)),
		LSN:       messages.LSN(in.Uvarint(math.MaxUint64)),
	}
	if in.Bad {
		return Row{}, ErrLayout
	}
	r.Data = in.Rest
	return r, nil
}
