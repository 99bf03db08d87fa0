package bolt

import (
	"cmp"

	"go.etcd.io/bbolt"

	"github.com/partita-go/partita/storage/bolt/internal/boltfile"
	"github.com/partita-go/partita/storage/bolt/internal/dedup"
)

// idPut is an event with a deduplication id on its way into the projection.
type idPut struct {
	r     *flushRequest
	entry dedup.Entry
}

// checkIDs refuses the flushes with ids if the list of runs is damaged. The others do
// not need it.
func (p *projection) checkIDs(tx *bbolt.Tx) {
	if len(p.ids) == 0 {
		return
	}
	_, err := dedup.LoadRuns(tx)
	for _, put := range p.ids {
		put.r.refusal = cmp.Or(put.r.refusal, err)
	}
}

func (p *projection) putIDs(tx *bbolt.Tx) error {
	entries := make([]dedup.Entry, 0, len(p.ids))
	for _, put := range p.ids {
		if put.r.refusal == nil {
			entries = append(entries, put.entry)
		}
	}
	return p.s.putDedup(tx, &p.arena, entries)
}

// putDedup adds the entries of a flush, and notes which merges are stuck.
func (s *Store) putDedup(tx *bbolt.Tx, arena *boltfile.ByteArena, entries []dedup.Entry) error {
	if len(entries) == 0 {
		return nil
	}
	stuck, err := dedup.Put(tx, arena, entries, s.stuck)
	if err != nil {
		return err
	}
	tx.OnCommit(func() {
		s.stuck = stuck
		s.counts.stuckMerges.Store(int64(len(stuck)))
	})
	return nil
}
