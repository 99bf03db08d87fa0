package logdb

import (
	"bytes"
	"fmt"

	"go.etcd.io/bbolt"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage/bolt/internal/format"
)

// Fill appends events to log.db alone, whose last LSN is given, and the epochs of partitions, synced. It is for whoever
// makes a store by himself, without log.wal.
func (l *Log) Fill(last messages.LSN, values [][]byte, epochs []Epoch) error {
	return l.File.Update(func(tx *bbolt.Tx) error {
		for _, e := range epochs {
			if err := putEpoch(tx.Bucket(format.BucketEpochs), e); err != nil {
				return err
			}
		}
		return Put(tx, last+1, values)
	})
}

// Has returns nil if the log has just these events behind an LSN.
func (l *Log) Has(last messages.LSN, values [][]byte) error {
	return l.Read(func(r *Reader) error {
		for i, value := range values {
			lsn := last + 1 + messages.LSN(i)
			if have := r.Value(lsn); !bytes.Equal(have, value) {
				return fmt.Errorf("%s has another event", format.LogPlace(lsn))
			}
		}
		return nil
	})
}
