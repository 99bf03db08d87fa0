package bolt

import (
	"encoding/binary"

	"go.etcd.io/bbolt"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage"
)

// witness names an event of the log that state.db has read: its LSN and the CRC of its
// value. A copy of a store has its id; if both go on, the state.db of one says of the
// other's log what is not so, and numbers would be given twice. The witness tells them
// apart.
//
//	 0     8               12    16
//	+-----+---------------+-----+
//	| LSN | CRC of the    | CRC |
//	|     | event's value |     |
//	+-----+---------------+-----+
type witness struct {
	lsn messages.LSN
	crc uint32
}

func (w witness) encode() []byte {
	b := binary.BigEndian.AppendUint64(make([]byte, 0, witnessLen), uint64(w.lsn))
	return seal(binary.BigEndian.AppendUint32(b, w.crc), 0, bucketHeader, keyWitness)
}

func decodeWitness(v []byte) (w witness, err error) {
	d, err := unseal(bucketHeader, keyWitness, v, witnessLen-sealedOverhead)
	if err != nil {
		return w, err
	}
	return witness{lsn: messages.LSN(binary.BigEndian.Uint64(d)), crc: binary.BigEndian.Uint32(d[8:])}, nil
}

// loadWitness reads state.db's witness. There is none if nothing is projected, or only by
// programs that wrote none.
func (op *opening) loadWitness(tx *bbolt.Tx) (err error) {
	v := tx.Bucket(bucketHeader).Get(keyWitness)
	if v == nil {
		return nil
	}
	if op.witness, err = decodeWitness(v); err != nil {
		return &storage.DamagedError{Where: op.state.placeOf(bucketHeader, "%s", keyWitness), Cause: err}
	}
	return nil
}

// putWitness stores the newest event that was read, unless an earlier flush has read a
// newer one. What is stored is not looked at: that a bit of it has flipped keeps nobody from
// flushing.
func (p *projection) putWitness(tx *bbolt.Tx) error {
	if p.witness.lsn <= p.s.witness.lsn {
		p.witness = p.s.witness
	}
	return tx.Bucket(bucketHeader).Put(keyWitness, p.witness.encode())
}
