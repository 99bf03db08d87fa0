package bolt

import (
	"bytes"
	"cmp"
	"context"
	"iter"
	"math"
	"slices"

	"go.etcd.io/bbolt"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage"
	"github.com/partita-go/partita/storage/bolt/internal/format"
	"github.com/partita-go/partita/storage/bolt/internal/logdb"
)

// tailRow is a record that the tail has written: the row lies in an event.
type tailRow struct {
	number messages.Number
	place
}

// storedRow is a row read from state.db, copied.
type storedRow struct {
	storage.Row
	lsn messages.LSN
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
		tail, failed := s.tailRows(ws, r)
		size := firstReadChunk
		for more := true; more; size = min(2*size, maxReadChunk) {
			if err := s.enter(ctx); err != nil {
				yield(storage.Row{}, err)
				return
			}
			stored, next, err := s.storedRows(ws, r, size)
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

func lastNumber(rows []storedRow) messages.Number {
	if len(rows) == 0 {
		return 0
	}
	return rows[len(rows)-1].ID.Number
}

// tailRows finds the records of a range that the tail has written, in order of
// their numbers: each one's last writer.
func (s *Store) tailRows(ws messages.WSID, r storage.RecordRange) ([]tailRow, error) {
	p := s.partitionOf(ws)
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

// storedRows copies rows of a range from state.db, as many as fit a chunk. next is
// where the following chunk begins, 0 if there is none.
func (s *Store) storedRows(ws messages.WSID, r storage.RecordRange, limit int) (rows []storedRow, next messages.Number, err error) {
	err = s.state.View(func(tx *bbolt.Tx) error {
		c := tx.Bucket(format.BucketRecords).Cursor()
		key := format.RecordKey{Workspace: ws, ID: messages.RecordID{Seq: r.Seq, Number: r.From}}
		from := format.AppendRecordKey(make([]byte, 0, format.RecordKeyLen), key)
		size := 0
		k, v := c.Seek(from)
		if !bytes.Equal(k, from) {
			if err := checkRowBefore(c, k, from); err != nil {
				return err
			}
			k, v = c.Seek(from)
		}
		for ; k != nil; k, v = c.Next() {
			if len(k) != format.RecordKeyLen {
				return &storage.DamagedError{Where: format.PlaceOf(format.BucketRecords, "key %x", k), Cause: format.ErrLayout}
			}
			key = format.ParseRecordKey(k)
			stored, err := format.DecodeRow(key, v)
			if err != nil {
				return format.DamagedRow(key, err)
			}
			if !bytes.HasPrefix(k, from[:format.RecordPrefixLen]) || key.ID.Number > r.To {
				return nil
			}
			if len(rows) >= limit || size >= maxReadBytes {
				next = key.ID.Number
				return nil
			}
			size += len(v)
			rows = append(rows, storedRow{lsn: stored.LSN, Row: storage.Row{
				ID: key.ID, Data: cloneData(stored.Data), Partition: stored.Partition, PLogOffset: stored.Offset,
			}})
			if key.ID.Number == r.To {
				return nil
			}
		}
		return nil
	})
	return rows, next, err
}

// checkRowBefore makes sure that the row before a place where a search has ended is sound, and that both
// stand where they belong. As with numbers, a row whose key is damaged still lies between its neighbours:
// who does not find it meets it beside its place.
func checkRowBefore(c *bbolt.Cursor, found, sought []byte) error {
	var k, v []byte
	if found == nil {
		k, v = c.Last()
	} else {
		if bytes.Compare(found, sought) < 0 {
			return astray(format.BucketRecords, sought)
		}
		k, v = c.Prev()
	}
	switch {
	case k == nil:
		return nil
	case bytes.Compare(k, sought) >= 0:
		return astray(format.BucketRecords, sought)
	case len(k) != format.RecordKeyLen:
		return &storage.DamagedError{Where: format.PlaceOf(format.BucketRecords, "key %x", k), Cause: format.ErrLayout}
	}
	key := format.ParseRecordKey(k)
	if _, err := format.DecodeRow(key, v); err != nil {
		return format.DamagedRow(key, err)
	}
	return nil
}

// cloneData copies data; empty data becomes nil.
func cloneData(data []byte) []byte {
	if len(data) == 0 {
		return nil
	}
	return bytes.Clone(data)
}

// yieldRows yields the rows of both views up to a number, in order. Where both
// have a row the later one counts. It returns what is left of the tail's rows, and
// false when the read is over.
func (s *Store) yieldRows(
	ctx context.Context, ws messages.WSID, seq messages.SeqID,
	tail []tailRow, stored []storedRow, through messages.Number, yield func(storage.Row, error) bool,
) ([]tailRow, bool) {
	for len(stored) > 0 || len(tail) > 0 && tail[0].number <= through {
		if err := s.enter(ctx); err != nil {
			yield(storage.Row{}, err)
			return tail, false
		}
		fromTail := len(tail) > 0 && (len(stored) == 0 || tail[0].number <= stored[0].ID.Number)
		if fromTail && len(stored) > 0 && tail[0].number == stored[0].ID.Number {
			fromTail = tail[0].lsn > stored[0].lsn
			if fromTail {
				stored = stored[1:]
			} else {
				tail = tail[1:]
			}
		}
		var row storage.Row
		var err error
		if fromTail {
			row, err = s.readRow(format.RecordKey{Workspace: ws, ID: messages.RecordID{Seq: seq, Number: tail[0].number}}, &tail[0].place)
			tail = tail[1:]
		} else {
			row = stored[0].Row
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

// readRow reads a row out of the event that wrote it.
func (s *Store) readRow(k format.RecordKey, at *place) (row storage.Row, err error) {
	err = s.log.Read(func(log *logdb.Reader) error {
		value := log.Value(at.lsn)
		if value == nil {
			return at.damaged(format.ErrMissing)
		}
		var view format.EventView
		err := view.Decode(at.lsn, value)
		if err == nil {
			err = at.check(&view)
		}
		if err != nil {
			return at.damaged(err)
		}
		// The last write of a record in an event counts.
		for _, rec := range slices.Backward(view.Records) {
			if rec.ID == k.ID {
				row = storage.Row{ID: k.ID, Data: cloneData(rec.Data), Partition: view.Partition, PLogOffset: view.PLogOffset}
				return nil
			}
		}
		return at.damaged(format.ErrMisplaced)
	})
	return row, err
}
