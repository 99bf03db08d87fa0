package dedup

import (
	"bytes"
	"fmt"

	"go.etcd.io/bbolt"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage"
	"github.com/partita-go/partita/storage/bolt/internal/format"
)

// Reader looks hashes up in one transaction.
type Reader struct {
	Runs   Runs
	cursor *bbolt.Cursor
	// block is the one at hand, so that each does not take memory of its own.
	block Block
}

// NewReader returns a reader of the projection.
func NewReader(tx *bbolt.Tx) (*Reader, error) {
	runs, err := LoadRuns(tx)
	if err != nil {
		return nil, err
	}
	return &Reader{Runs: runs, cursor: tx.Bucket(format.BucketDedup).Cursor()}, nil
}

// LoadRuns reads the list of runs. There is none before the first run.
func LoadRuns(tx *bbolt.Tx) (Runs, error) {
	v := tx.Bucket(format.BucketHeader).Get(format.KeyDedup)
	if v == nil {
		if k, _ := tx.Bucket(format.BucketDedup).Cursor().First(); k != nil {
			return Runs{}, damagedRuns(format.ErrMissing)
		}
		return Runs{next: 1}, nil
	}
	runs, err := decodeDedupRuns(v)
	if err != nil {
		return Runs{}, damagedRuns(err)
	}
	return runs, nil
}

func damagedRuns(cause error) error {
	return &storage.DamagedError{Where: format.PlaceOf(format.BucketHeader, "%s of %s", format.KeyDedup, format.StateFileName), Cause: cause}
}

// Candidates appends the events that may have an id of this hash, in order of the
// log within each run.
func (d *Reader) Candidates(dst []messages.LSN, hash uint64) ([]messages.LSN, error) {
	for i := range d.Runs.All {
		r := &d.Runs.All[i]
		if !d.Runs.counts(r, hash) {
			continue
		}
		var err error
		if d.block, err = SeekBlock(d.cursor, r.Serial, hash); err != nil {
			return dst, err
		}
		entries, err := d.block.slot(d.block.SlotOf(hash))
		if err != nil {
			return dst, damagedBlock(r.Serial, hash, err)
		}
		for i := range entries.len() {
			if e := entries.at(i); e.Hash == hash {
				dst = append(dst, e.LSN)
			}
		}
	}
	return dst, nil
}

// SeekBlock returns the block of a run that answers for a hash.
func SeekBlock(c *bbolt.Cursor, serial, hash uint64) (Block, error) {
	var key [keyLen]byte
	k, v := c.Seek(AppendKey(key[:0], serial, hash))
	if !bytes.HasPrefix(k, key[:8]) {
		return Block{}, damagedBlock(serial, hash, format.ErrMissing)
	}
	b, err := DecodeBlock(k, v)
	if err == nil && b.First > hash {
		err = format.ErrMissing
	}
	if err != nil {
		return Block{}, damagedBlock(serial, hash, err)
	}
	return b, nil
}

func damagedBlock(serial, hash uint64, cause error) error {
	return &storage.DamagedError{
		Where: fmt.Sprintf("file %s, %s", format.StateFileName, format.PlaceOf(format.BucketDedup, "run %d, hash %016x", serial, hash)),
		Cause: cause,
	}
}
