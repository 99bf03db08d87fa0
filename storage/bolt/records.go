package bolt

import (
	"cmp"
	"context"
	"iter"
	"math"
	"slices"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage"
	"github.com/partita-go/partita/storage/bolt/internal/format"
	"github.com/partita-go/partita/storage/bolt/internal/logdb"
	"github.com/partita-go/partita/storage/bolt/internal/statedb"
)

// tailRow is a record that the tail has written: the row lies in an event.
type tailRow struct {
	number messages.Number
	place
}

// Records implements [storage.Reader].
func (s *Store) Records(ctx context.Context, ws messages.WSID, r storage.RecordRange) iter.Seq2[storage.Row, error] {
	if r.To == 0 {
		r.To = math.MaxUint64
	}
	return func(yield func(storage.Row, error) bool) {
		if err := s.enter(ctx); err != nil {
			yield(storage.Row{}, err)
			return
		}
		// First the tail's view, then state.db's.
		tail, failed := s.partitionOf(ws).tailRows(ws, r)
		size := firstReadChunk
		for more := true; more; size = min(2*size, maxReadChunk) {
			if err := s.enter(ctx); err != nil {
				yield(storage.Row{}, err)
				return
			}
			stored, next, err := statedb.Rows(s.state, ws, r, size, maxReadBytes)
			s.warmPointed(stored)
			more = err == nil && next != 0
			through := r.To
			if more {
				through = next - 1
			} else if err != nil {
				through = lastNumber(stored)
			}
			var goOn bool
			if tail, goOn = s.yieldRows(ctx, ws, r.Seq, tail, stored, through, yield); !goOn {
				return
			}
			if err != nil {
				yield(storage.Row{}, err)
				return
			}
			r.From = next
		}
		if failed != nil {
			yield(storage.Row{}, failed)
		}
	}
}

// warmPointed brings the events that pointers lead to into memory.
func (s *Store) warmPointed(rows []statedb.Row) {
	var lsns []messages.LSN
	for i := range rows {
		if rows[i].Pointed {
			lsns = append(lsns, rows[i].LSN)
		}
	}
	s.log.Warm(lsns)
}

func lastNumber(rows []statedb.Row) messages.Number {
	if len(rows) == 0 {
		return 0
	}
	return rows[len(rows)-1].ID.Number
}

// tailRows finds the records of a range that the tail has written, in order of
// their numbers: each one's last writer.
func (p *partition) tailRows(ws messages.WSID, r storage.RecordRange) ([]tailRow, error) {
	p.mu.RLock()
	defer p.mu.RUnlock()
	if r.From == r.To {
		return p.tailRow(ws, messages.RecordID{Seq: r.Seq, Number: r.From}), p.failed
	}
	var rows []tailRow
	for o, e := p.tail.lastOf(ws); e != nil; o, e = p.tail.previous(o, e) {
		for i, end := e.records, p.tail.recordsEnd(o); i < end; i++ {
			rec := p.tail.records.at(i)
			if rec.seq == r.Seq && rec.number >= r.From && rec.number <= r.To {
				rows = append(rows, newTailRow(p.id, o, e, rec.number))
			}
		}
	}
	slices.SortFunc(rows, func(a, b tailRow) int {
		return cmp.Or(cmp.Compare(a.number, b.number), cmp.Compare(b.lsn, a.lsn))
	})
	rows = slices.CompactFunc(rows, func(a, b tailRow) bool { return a.number == b.number })
	return rows, p.failed
}

func newTailRow(p messages.PartitionID, o messages.PLogOffset, e *entry, n messages.Number) tailRow {
	return tailRow{number: n, place: place{lsn: e.lsn, partition: p, offset: o, ws: e.ws, wlog: e.wlog}}
}

// tailRow finds one record. The caller holds the lock.
func (p *partition) tailRow(ws messages.WSID, id messages.RecordID) []tailRow {
	o, ok := p.tail.written[format.RecordKey{Workspace: ws, ID: id}]
	if !ok {
		return nil
	}
	return []tailRow{newTailRow(p.id, o, p.tail.at(o), id.Number)}
}

// yieldRows yields the rows of both views up to a number, in order. Where both
// have a row the later one counts. It returns what is left of the tail's rows, and
// false when the read is over.
func (s *Store) yieldRows(
	ctx context.Context, ws messages.WSID, seq messages.SeqID,
	tail []tailRow, stored []statedb.Row, through messages.Number, yield func(storage.Row, error) bool,
) ([]tailRow, bool) {
	for len(stored) > 0 || len(tail) > 0 && tail[0].number <= through {
		if err := s.enter(ctx); err != nil {
			yield(storage.Row{}, err)
			return tail, false
		}
		fromTail := len(tail) > 0 && (len(stored) == 0 || tail[0].number <= stored[0].ID.Number)
		if fromTail && len(stored) > 0 && tail[0].number == stored[0].ID.Number {
			fromTail = tail[0].lsn > stored[0].LSN
			if fromTail {
				stored = stored[1:]
			} else {
				tail = tail[1:]
			}
		}
		var row storage.Row
		var err error
		if fromTail {
			row, err = copyRow(s.log, format.RecordKey{Workspace: ws, ID: messages.RecordID{Seq: seq, Number: tail[0].number}}, &tail[0].place)
			tail = tail[1:]
		} else {
			if row = stored[0].Row; stored[0].Pointed {
				row, err = copyRow(s.log, format.RecordKey{Workspace: ws, ID: row.ID}, &place{lsn: stored[0].LSN})
			}
			stored = stored[1:]
		}
		if err != nil {
			yield(storage.Row{}, err)
			return tail, false
		}
		if !yield(row, nil) {
			return tail, false
		}
	}
	return tail, true
}

// copyRow reads a row out of the event that wrote it.
func copyRow(log *logdb.Log, k format.RecordKey, at *place) (row storage.Row, err error) {
	err = log.Read(func(log *logdb.Reader) error {
		value := log.Value(at.lsn)
		if value == nil {
			return at.damaged(format.ErrMissing)
		}
		var view format.EventView
		err := view.Decode(at.lsn, value)
		if err == nil {
			err = at.check(&view)
		}
		if err == nil && view.Workspace != k.Workspace {
			err = format.ErrMisplaced
		}
		if err != nil {
			return at.damaged(err)
		}
		// The last write of a record in an event counts.
		for _, rec := range slices.Backward(view.Records) {
			if rec.ID == k.ID {
				row = storage.Row{ID: k.ID, Data: statedb.CloneData(rec.Data), Partition: view.Partition, PLogOffset: view.PLogOffset}
				return nil
			}
		}
		return at.damaged(format.ErrMisplaced)
	})
	return row, err
}
