package dedup

import (
	"go.etcd.io/bbolt"

	"github.com/partita-go/partita/storage/bolt/internal/format"
)

// RunReader reads what counts of a run of deduplication ids, block by block.
type RunReader struct {
	cursor     *bbolt.Cursor
	serial     uint64
	next, last uint64
	done       bool
	block      []Entry
	Entries    []Entry
}

// NewRunReader returns a reader of the hashes for which the run is the one to ask.
func NewRunReader(tx *bbolt.Tx, runs *Runs, r *Run) RunReader {
	reader := RunReader{cursor: tx.Bucket(format.BucketDedup).Cursor(), serial: r.Serial, last: r.Through, done: r.Through == 0}
	if r.Into != 0 {
		if through := runs.Run(r.Into).Through; through == LastHash {
			reader.done = true
		} else if through != 0 {
			reader.next = through + 1
		}
	}
	return reader
}

// narrow leaves out the hashes before a first and behind a last one.
func (r *RunReader) narrow(first, last uint64) {
	r.next, r.last = max(r.next, first), min(r.last, last)
	r.done = r.done || r.next > r.last
}

// Fill makes sure that there are entries unless the run is at its end. After damage it
// is.
func (r *RunReader) Fill() error {
	for len(r.Entries) == 0 && !r.done {
		b, err := SeekBlock(r.cursor, r.serial, r.next)
		if err == nil {
			if r.block, err = appendRange(r.block[:0], &b, r.next, r.last); err != nil {
				err = damagedBlock(r.serial, r.next, err)
			}
		}
		if err != nil {
			r.done = true
			return err
		}
		r.Entries = r.block
		r.done = b.Last >= r.last
		r.next = b.Last + 1
	}
	return nil
}
