package bolt

import (
	"context"

	"go.etcd.io/bbolt"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage/bolt/internal/boltfile"
	"github.com/partita-go/partita/storage/bolt/internal/dedup"
	"github.com/partita-go/partita/storage/bolt/internal/format"
)

// HashID implements [verify.Image].
func (m *image) HashID(ws messages.WSID, id messages.DedupID) uint64 {
	key := format.DedupKey{Workspace: ws, ID: id}
	return key.Hash(m.s.id)
}

// FindID implements [verify.Image].
func (m *image) FindID(ctx context.Context, hash uint64) (lsns []messages.LSN, err error) {
	if err := m.s.enter(ctx); err != nil {
		return nil, err
	}
	err = m.s.state.View(func(tx *bbolt.Tx) error {
		r, err := dedup.NewReader(tx)
		if err != nil {
			return err
		}
		lsns, err = r.Candidates(nil, hash)
		return err
	})
	return lsns, err
}

// IDs implements [verify.Image]: it merges the runs.
func (m *image) IDs(ctx context.Context, each func(uint64, messages.LSN, error) error) error {
	return m.s.state.View(func(tx *bbolt.Tx) error {
		r, err := dedup.NewReader(tx)
		if err != nil {
			return each(0, 0, err)
		}
		runs := make([]dedup.RunReader, 0, len(r.Runs.All))
		for i := range r.Runs.All {
			runs = append(runs, dedup.NewRunReader(tx, &r.Runs, &r.Runs.All[i]))
		}
		for n := 0; ; n++ {
			if n%boltfile.ImageChunk == 0 && ctx.Err() != nil {
				return ctx.Err()
			}
			least := -1
			for i := range runs {
				if err := runs[i].Fill(); err != nil {
					if err := each(0, 0, err); err != nil {
						return err
					}
				}
				if len(runs[i].Entries) > 0 && (least < 0 || dedup.CompareEntries(runs[i].Entries[0], runs[least].Entries[0]) < 0) {
					least = i
				}
			}
			if least < 0 {
				return nil
			}
			e := runs[least].Entries[0]
			runs[least].Entries = runs[least].Entries[1:]
			if err := each(e.Hash, e.LSN, nil); err != nil {
				return err
			}
		}
	})
}
