package subsdb

import (
	"encoding/binary"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage/bolt/internal/format"
)

// Position is where a subscription stands in a log: the next offset, and the event before that, on which
// it rests. Two copies of a store have one id; if both go on, the position of one says of the other's log
// that events are handled which it has never seen, and a log that was put back from an older copy grows
// past it sooner or later. The event tells, for ever.
type Position struct {
	Next uint64
	// Rests is zero for the beginning of a log, if the event cannot be read, and in a file of the first
	// format.
	Rests format.Witness
}

// Lengths of a position in bytes, without the CRC.
const (
	barePositionLen = 8
	positionLen     = 20
)

// Encode returns a position as it is kept under a key.
func (p Position) Encode(key []byte) []byte {
	b := binary.BigEndian.AppendUint64(make([]byte, 0, positionLen+format.SealedOverhead), p.Next)
	if p.Rests.LSN != 0 {
		b = binary.BigEndian.AppendUint64(b, uint64(p.Rests.LSN))
		b = binary.BigEndian.AppendUint32(b, p.Rests.CRC)
	}
	return format.Seal(b, 0, format.BucketPositions, key)
}

// DecodePosition is safe on any bytes.
func DecodePosition(key, value []byte) (p Position, err error) {
	b, err := format.UnsealAll(format.BucketPositions, key, value)
	if err != nil {
		return p, err
	}
	switch len(b) {
	case positionLen:
		p.Rests = format.Witness{LSN: messages.LSN(format.Uint64(b[8:])), CRC: format.Uint32(b[16:])}
		if p.Rests.LSN == 0 {
			return p, format.ErrLayout
		}
	case barePositionLen:
	default:
		return p, format.ErrLayout
	}
	p.Next = format.Uint64(b)
	return p, nil
}

// Placed is a position and the partition under which its log stands.
type Placed struct {
	Partition messages.PartitionID
	Position
}
