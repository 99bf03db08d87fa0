package bolt

import (
	"cmp"
	"context"
	"iter"
	"slices"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage"
	"github.com/partita-go/partita/storage/bolt/internal/dedup"
	"github.com/partita-go/partita/storage/bolt/internal/fetch"
	"github.com/partita-go/partita/storage/bolt/internal/format"
	"github.com/partita-go/partita/storage/bolt/internal/statedb"
)

// Records implements [storage.Reader].
func (s *Store) Records(ctx context.Context, ws messages.WSID, r storage.RecordRange) iter.Seq2[storage.Row, error] {
	return func(yield func(storage.Row, error) bool) {
		tail := func(r storage.RecordRange) ([]fetch.TailRow, error) { return s.partitionOf(ws).tailRows(ws, r) }
		s.reader().Rows(ctx, s.state, ws, r, tail, yield)
	}
}

// tailRows finds the records of a range that the tail has written, in order of
// their numbers: each one's last writer.
func (p *partition) tailRows(ws messages.WSID, r storage.RecordRange) ([]fetch.TailRow, error) {
	p.mu.RLock()
	defer p.mu.RUnlock()
	if r.From == r.To {
		return p.tailRow(ws, messages.RecordID{Seq: r.Seq, Number: r.From}), p.failed
	}
	var rows []fetch.TailRow
	for o, e := p.tail.LastOf(ws); e != nil; o, e = p.tail.Previous(o, e) {
		for i, end := e.Records, p.tail.RecordsEnd(o); i < end; i++ {
			rec := p.tail.Records.At(i)
			if rec.Seq == r.Seq && rec.Number >= r.From && rec.Number <= r.To {
				rows = append(rows, fetch.TailRow{Number: rec.Number, Place: e.Place(p.id, o)})
			}
		}
	}
	slices.SortFunc(rows, func(a, b fetch.TailRow) int {
		return cmp.Or(cmp.Compare(a.Number, b.Number), cmp.Compare(b.LSN, a.LSN))
	})
	rows = slices.CompactFunc(rows, func(a, b fetch.TailRow) bool { return a.Number == b.Number })
	return rows, p.failed
}

// tailRow finds one record. The caller holds the lock.
func (p *partition) tailRow(ws messages.WSID, id messages.RecordID) []fetch.TailRow {
	o, ok := p.tail.WriterOf(format.RecordKey{Workspace: ws, ID: id})
	if !ok {
		return nil
	}
	return []fetch.TailRow{{Number: id.Number, Place: p.tail.At(o).Place(p.id, o)}}
}

// Numbers implements [storage.Projections].
func (s *Store) Numbers(ctx context.Context, ws messages.WSID, periods ...messages.SequencePeriod) (storage.WorkspaceNumbers, error) {
	if err := s.enterRead(ctx); err != nil {
		return storage.WorkspaceNumbers{}, err
	}
	p := s.partitionOf(ws)
	p.mu.RLock()
	checkpoint := p.checkpoint
	p.mu.RUnlock()
	var ends *workspaceEnds
	read := func(h *format.Head) { ends = endsOf(h, s.schema.Trust, messages.LSN(s.lastLSN.Load())) }
	n, err := statedb.Numbers(s.state, ws, s.schema.KeepsSome, read, periods...)
	if err == nil && ends != nil && !s.options.ReadOnly {
		p.rememberRead(ws, ends, checkpoint, s.endsOfPartition())
	}
	return n, err
}

// Find implements [storage.Reader].
func (s *Store) Find(ctx context.Context, ws messages.WSID, id messages.DedupID) (messages.WLogOffset, error) {
	if err := s.enterRead(ctx); err != nil {
		return 0, err
	}
	if id.IsZero() {
		return 0, nil
	}
	key := format.DedupKey{Workspace: ws, ID: id}
	// First the tail's view, then state.db's.
	found, failed := s.partitionOf(ws).findID(key)
	if found != 0 {
		return found, nil
	}
	lookup := dedup.Lookups{dedup.NewLookup(key, s.files.ID)}
	if err := lookup.FindStored(s.known, s.state, s.log); err != nil {
		return 0, err
	}
	if lookup[0].Found == 0 {
		return 0, failed
	}
	return lookup[0].Found, nil
}

// findID looks an id up in the tail. It returns 0 if it is not there, and why the
// partition has failed: what is behind the tail is not known then.
func (p *partition) findID(k format.DedupKey) (messages.WLogOffset, error) {
	p.mu.RLock()
	defer p.mu.RUnlock()
	return p.tail.FindID(k), p.failed
}
