package bolt

import "go.etcd.io/bbolt"

// idPut is an event with a deduplication id on its way into the projection.
type idPut struct {
	r     *flushRequest
	entry dedupEntry
}

// checkIDs refuses the flushes with ids if the list of runs is damaged. The others do
// not need it.
func (p *projection) checkIDs(tx *bbolt.Tx) {
	if len(p.ids) == 0 {
		return
	}
	_, err := loadDedupRuns(tx)
	for _, put := range p.ids {
		put.r.refusal = firstError(put.r.refusal, err)
	}
}

func (p *projection) putIDs(tx *bbolt.Tx) error {
	entries := make([]dedupEntry, 0, len(p.ids))
	for _, put := range p.ids {
		if put.r.refusal == nil {
			entries = append(entries, put.entry)
		}
	}
	return p.s.putDedup(tx, &p.arena, entries)
}
