package format

import (
	"encoding/binary"

	"github.com/partita-go/partita/messages"
)

// Witness names an event of the log that state.db has read: its LSN and the CRC of its
// value. A copy of a store has its id; if both go on, the state.db of one says of the
// other's log what is not so, and numbers would be given twice. The witness tells them
// apart.
//
//	 0     8               12    16
//	+-----+---------------+-----+
//	| LSN | CRC of the    | CRC |
//	|     | event's value |     |
//	+-----+---------------+-----+
type Witness struct {
	LSN messages.LSN
	CRC uint32
}

// Encode returns the value under [KeyWitness].
func (w Witness) Encode() []byte {
	b := binary.BigEndian.AppendUint64(make([]byte, 0, witnessLen), uint64(w.LSN))
	return Seal(binary.BigEndian.AppendUint32(b, w.CRC), 0, BucketHeader, KeyWitness)
}

// DecodeWitness is safe on any bytes.
func DecodeWitness(v []byte) (w Witness, err error) {
	d, err := Unseal(BucketHeader, KeyWitness, v, witnessLen-SealedOverhead)
	if err != nil {
		return w, err
	}
	return Witness{LSN: messages.LSN(binary.BigEndian.Uint64(d)), CRC: binary.BigEndian.Uint32(d[8:])}, nil
}
