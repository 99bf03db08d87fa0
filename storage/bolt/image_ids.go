package bolt

import (
	"context"

	"go.etcd.io/bbolt"

	"github.com/partita-go/partita/messages"
)

// HashID implements [verify.Image].
func (m *image) HashID(ws messages.WSID, id messages.DedupID) uint64 {
	key := dedupKey{ws: ws, id: id}
	return key.hash(m.s.id)
}

// FindID implements [verify.Image].
func (m *image) FindID(ctx context.Context, hash uint64) (lsns []messages.LSN, err error) {
	if err := m.s.enter(ctx); err != nil {
		return nil, err
	}
	err = m.s.state.view(func(tx *bbolt.Tx) error {
		r, err := newDedupReader(tx)
		if err != nil {
			return err
		}
		lsns, err = r.candidates(nil, hash)
		return err
	})
	return lsns, err
}

// IDs implements [verify.Image]: it merges the runs.
func (m *image) IDs(ctx context.Context, each func(uint64, messages.LSN, error) error) error {
	return m.s.state.view(func(tx *bbolt.Tx) error {
		r, err := newDedupReader(tx)
		if err != nil {
			return each(0, 0, err)
		}
		runs := make([]runReader, 0, len(r.runs.runs))
		for i := range r.runs.runs {
			runs = append(runs, newRunReader(tx, &r.runs, &r.runs.runs[i]))
		}
		for n := 0; ; n++ {
			if n%imageChunk == 0 && ctx.Err() != nil {
				return ctx.Err()
			}
			least := -1
			for i := range runs {
				if err := runs[i].fill(); err != nil {
					if err := each(0, 0, err); err != nil {
						return err
					}
				}
				if len(runs[i].entries) > 0 && (least < 0 || compareEntries(runs[i].entries[0], runs[least].entries[0]) < 0) {
					least = i
				}
			}
			if least < 0 {
				return nil
			}
			e := runs[least].entries[0]
			runs[least].entries = runs[least].entries[1:]
			if err := each(e.hash, e.lsn, nil); err != nil {
				return err
			}
		}
	})
}

// runReader reads what counts of a run of deduplication ids, block by block.
type runReader struct {
	cursor     *bbolt.Cursor
	serial     uint64
	next, last uint64
	done       bool
	block      []dedupEntry
	entries    []dedupEntry
}

// newRunReader returns a reader of the hashes for which the run is the one to ask.
func newRunReader(tx *bbolt.Tx, runs *dedupRuns, r *dedupRun) runReader {
	reader := runReader{cursor: tx.Bucket(bucketDedup).Cursor(), serial: r.serial, last: r.through, done: r.through == 0}
	if r.into != 0 {
		if through := runs.run(r.into).through; through == lastHash {
			reader.done = true
		} else if through != 0 {
			reader.next = through + 1
		}
	}
	return reader
}

// fill makes sure that there are entries unless the run is at its end. After damage it
// is.
func (r *runReader) fill() error {
	for len(r.entries) == 0 && !r.done {
		b, err := seekBlock(r.cursor, r.serial, r.next)
		if err == nil {
			if r.block, err = appendRange(r.block[:0], &b, r.next, r.last); err != nil {
				err = damagedBlock(r.serial, r.next, err)
			}
		}
		if err != nil {
			r.done = true
			return err
		}
		r.entries = r.block
		r.done = b.last >= r.last
		r.next = b.last + 1
	}
	return nil
}
