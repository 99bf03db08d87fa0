package bolt

import (
	"go.etcd.io/bbolt"

	"github.com/partita-go/partita/storage/bolt/internal/format"
)

// putWitness stores the newest event that was read, unless an earlier flush has read a
// newer one. What is stored is not looked at: that a bit of it has flipped keeps nobody from
// flushing.
func (p *projection) putWitness(tx *bbolt.Tx) error {
	if p.witness.LSN <= p.s.witness.LSN {
		p.witness = p.s.witness
	}
	return tx.Bucket(format.BucketHeader).Put(format.KeyWitness, p.witness.Encode())
}
