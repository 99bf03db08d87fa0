package bolt

import (
	"bytes"
	"fmt"

	"go.etcd.io/bbolt"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage"
)

// dedupReader looks hashes up in one transaction.
type dedupReader struct {
	runs   dedupRuns
	cursor *bbolt.Cursor
}

// newDedupReader returns a reader of the projection. A file of format 1, which only
// a read-only store leaves as it is, has no bucket and no ids.
func newDedupReader(tx *bbolt.Tx) (*dedupReader, error) {
	b := tx.Bucket(bucketDedup)
	if b == nil {
		return &dedupReader{}, nil
	}
	runs, err := loadDedupRuns(tx)
	if err != nil {
		return nil, err
	}
	return &dedupReader{runs: runs, cursor: b.Cursor()}, nil
}

// loadDedupRuns reads the list of runs. There is none before the first run.
func loadDedupRuns(tx *bbolt.Tx) (dedupRuns, error) {
	v := tx.Bucket(bucketHeader).Get(keyDedup)
	if v == nil {
		if k, _ := tx.Bucket(bucketDedup).Cursor().First(); k != nil {
			return dedupRuns{}, damagedRuns(errMissing)
		}
		return dedupRuns{next: 1}, nil
	}
	runs, err := decodeDedupRuns(v)
	if err != nil {
		return dedupRuns{}, damagedRuns(err)
	}
	return runs, nil
}

func damagedRuns(cause error) error {
	return &storage.DamagedError{Where: placeOf(bucketHeader, "%s of %s", keyDedup, stateFileName), Cause: cause}
}

// candidates appends the events that may have an id of this hash, in order of the
// log within each run.
func (d *dedupReader) candidates(dst []messages.LSN, hash uint64) ([]messages.LSN, error) {
	for i := range d.runs.runs {
		r := &d.runs.runs[i]
		if !d.runs.counts(r, hash) {
			continue
		}
		block, err := seekBlock(d.cursor, r.serial, hash)
		if err != nil {
			return dst, err
		}
		entries, err := block.slot(block.slotOf(hash))
		if err != nil {
			return dst, damagedBlock(r.serial, hash, err)
		}
		for i := range entries.len() {
			if e := entries.at(i); e.hash == hash {
				dst = append(dst, e.lsn)
			}
		}
	}
	return dst, nil
}

// seekBlock returns the block of a run that answers for a hash.
func seekBlock(c *bbolt.Cursor, serial, hash uint64) (dedupBlock, error) {
	var key [dedupKeyLen]byte
	k, v := c.Seek(appendDedupKey(key[:0], serial, hash))
	if !bytes.HasPrefix(k, key[:8]) {
		return dedupBlock{}, damagedBlock(serial, hash, errMissing)
	}
	b, err := decodeDedupBlock(k, v)
	if err == nil && b.first > hash {
		err = errMissing
	}
	if err != nil {
		return dedupBlock{}, damagedBlock(serial, hash, err)
	}
	return b, nil
}

func damagedBlock(serial, hash uint64, cause error) error {
	return &storage.DamagedError{
		Where: fmt.Sprintf("file %s, %s", stateFileName, placeOf(bucketDedup, "run %d, hash %016x", serial, hash)),
		Cause: cause,
	}
}
