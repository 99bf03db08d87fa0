package bolt

import (
	"go.etcd.io/bbolt"

	"github.com/partita-go/partita/storage"
	"github.com/partita-go/partita/storage/bolt/internal/format"
)

// loadWitness reads state.db's witness. There is none if nothing is projected, or only by
// programs that wrote none.
func (op *opening) loadWitness(tx *bbolt.Tx) (err error) {
	v := tx.Bucket(format.BucketHeader).Get(format.KeyWitness)
	if v == nil {
		return nil
	}
	if op.witness, err = format.DecodeWitness(v); err != nil {
		return &storage.DamagedError{Where: op.state.PlaceOf(format.BucketHeader, "%s", format.KeyWitness), Cause: err}
	}
	return nil
}

// putWitness stores the newest event that was read, unless an earlier flush has read a
// newer one. What is stored is not looked at: that a bit of it has flipped keeps nobody from
// flushing.
func (p *projection) putWitness(tx *bbolt.Tx) error {
	if p.witness.LSN <= p.s.witness.LSN {
		p.witness = p.s.witness
	}
	return tx.Bucket(format.BucketHeader).Put(format.KeyWitness, p.witness.Encode())
}
