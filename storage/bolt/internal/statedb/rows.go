package statedb

import (
	"bytes"
	"math"
	"slices"

	"go.etcd.io/bbolt"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage"
	"github.com/partita-go/partita/storage/bolt/internal/boltfile"
	"github.com/partita-go/partita/storage/bolt/internal/format"
)

// Row is a row, copied, and the LSN of the event that wrote it.
type Row struct {
	storage.Row
	LSN messages.LSN
	// Pointed says that there is a pointer only: all but the id is in the event.
	Pointed bool
}

// Rows copies rows of a range, so many at most, and of about so many bytes. next is
// where the following chunk begins, 0 if there is none.
func Rows(
	state *boltfile.File, ws messages.WSID, r storage.RecordRange, limit, bytesLimit int,
) (rows []Row, next messages.Number, err error) {
	err = state.View(func(tx *bbolt.Tx) error {
		var h format.Head
		if err := ReadHead(tx, ws, &h); err != nil {
			return err
		}
		s := h.Find(r.Seq)
		if s == nil || s.Top < r.From {
			return nil
		}
		rd := rowReader{tx: tx, ws: ws, limit: limit, bytesLimit: bytesLimit}
		r.To = min(r.To, s.Top)
		err := rd.read(s, r)
		rows, next = rd.rows, rd.next
		return err
	})
	return rows, next, err
}

// rowReader collects the rows of a range.
type rowReader struct {
	tx                *bbolt.Tx
	ws                messages.WSID
	limit, bytesLimit int
	size              int
	rows              []Row
	// next is the first row that was too much, 0 if there is none.
	next messages.Number
}

// read takes the rows of packs, and the pointers, which were written later, between them.
func (rd *rowReader) read(s *format.HeadSequence, r storage.RecordRange) error {
	i, _ := s.Pointed(r.From)
	pointers := s.Pointers[i:]
	// until takes the pointers below a number; the one of the number itself covers a row.
	until := func(n messages.Number) (covered bool) {
		for len(pointers) > 0 && pointers[0].Number <= n && rd.next == 0 {
			covered = pointers[0].Number == n
			rd.take(Row{Row: storage.Row{ID: messages.RecordID{Seq: s.Seq, Number: pointers[0].Number}}, LSN: pointers[0].LSN, Pointed: true})
			pointers = pointers[1:]
		}
		return covered
	}
	err := eachPack(rd.tx, rd.ws, s, r, func(p *format.Pack) bool {
		for i := range p.Rows {
			row := &p.Rows[i]
			if row.Number < r.From || row.Number > r.To || until(row.Number) || rd.next != 0 {
				continue
			}
			rd.take(Row{LSN: row.LSN, Row: storage.Row{
				ID: messages.RecordID{Seq: s.Seq, Number: row.Number}, Data: row.Data, Partition: p.Partition, PLogOffset: row.Offset,
			}})
		}
		return rd.next == 0
	})
	if err != nil {
		// The rows before the damaged pack are right.
		return err
	}
	until(r.To)
	return nil
}

// take takes a row, or notes that it is too much.
func (rd *rowReader) take(row Row) {
	switch {
	case rd.next != 0:
	case len(rd.rows) >= rd.limit || rd.size >= rd.bytesLimit:
		rd.next = row.ID.Number
	default:
		row.Data = CloneData(row.Data)
		rd.size += len(row.Data)
		rd.rows = append(rd.rows, row)
	}
}

// eachPack calls fn with each pack that has rows of a range, in order, as long as it returns true.
func eachPack(tx *bbolt.Tx, ws messages.WSID, s *format.HeadSequence, r storage.RecordRange, fn func(*format.Pack) bool) error {
	if s.First == 0 || s.First > r.To {
		return nil
	}
	packs, c := tx.Bucket(format.BucketPacks), tx.Bucket(format.BucketIndex).Cursor()
	key := format.RecordKey{Workspace: ws, ID: messages.RecordID{Seq: r.Seq, Number: max(r.From, s.First)}}
	e, err := packAt(c, key)
	if err != nil {
		return err
	}
	var pack format.Pack
	for {
		if e.Last >= r.From {
			key.ID.Number = e.First
			if err := readPack(packs, key, &e, &pack); err != nil {
				return err
			}
			if !fn(&pack) {
				return nil
			}
		}
		if e.Next == 0 || e.Next > r.To {
			return nil
		}
		key.ID.Number = e.Next
		k, v := c.Next()
		if want := format.AppendIndexKey(nil, key); !bytes.Equal(k, want) {
			return format.DamagedIndex(want, format.ErrMissing)
		}
		if e, err = format.DecodePackEntry(k, v); err != nil {
			return format.DamagedIndex(k, err)
		}
	}
}

// packAt returns the entry of the pack that a record belongs to: the last one that begins at or before it, which must be
// there.
func packAt(c *bbolt.Cursor, k format.RecordKey) (e format.PackEntry, err error) {
	sought := format.AppendIndexKey(nil, k)
	found, v, err := atOrBefore(c, format.BucketIndex, sought)
	switch {
	case err != nil:
		return e, err
	case !bytes.HasPrefix(found, sought[:format.IndexPrefixLen]):
		return e, format.DamagedIndex(sought, format.ErrMissing)
	}
	if e, err = format.DecodePackEntry(found, v); err != nil {
		return e, format.DamagedIndex(found, err)
	}
	if e.Next != 0 && e.Next <= k.ID.Number {
		k.ID.Number = e.Next
		return e, format.DamagedIndex(format.AppendIndexKey(nil, k), format.ErrMissing)
	}
	return e, nil
}

// readPack reads the pack that an entry of the index leads to.
func readPack(packs *bbolt.Bucket, k format.RecordKey, e *format.PackEntry, pack *format.Pack) error {
	key := format.AppendPackKey(make([]byte, 0, format.PackKeyLen), e.ID)
	v := packs.Get(key)
	if v == nil {
		return format.DamagedPack(k, e.ID, format.ErrMissing)
	}
	if err := pack.Decode(key, v); err != nil {
		return format.DamagedPack(k, e.ID, err)
	}
	if pack.Workspace != k.Workspace || pack.Seq != k.ID.Seq ||
		pack.Rows[0].Number != e.First || pack.Rows[len(pack.Rows)-1].Number != e.Last {
		return format.DamagedPack(k, e.ID, format.ErrMisplaced)
	}
	return nil
}

// Written returns the LSN of the event that wrote a record last, 0 if it is not there. The head is its workspace's.
func Written(tx *bbolt.Tx, h *format.Head, k format.RecordKey) (lsn messages.LSN, err error) {
	s := h.Find(k.ID.Seq)
	if s == nil || s.Top < k.ID.Number {
		return 0, nil
	}
	if i, ok := s.Pointed(k.ID.Number); ok {
		return s.Pointers[i].LSN, nil
	}
	r := storage.RecordRange{Seq: k.ID.Seq, From: k.ID.Number, To: k.ID.Number}
	err = eachPack(tx, k.Workspace, s, r, func(p *format.Pack) bool {
		if i, ok := findRow(p.Rows, k.ID.Number); ok {
			lsn = p.Rows[i].LSN
		}
		return true
	})
	return lsn, err
}

func findRow(rows []format.Row, n messages.Number) (int, bool) {
	return slices.BinarySearchFunc(rows, n, func(r format.Row, n messages.Number) int {
		switch {
		case r.Number < n:
			return -1
		case r.Number > n:
			return 1
		}
		return 0
	})
}

// AllRows is the range of all records of a sequence.
func AllRows(seq messages.SeqID) storage.RecordRange {
	return storage.RecordRange{Seq: seq, To: math.MaxUint64}
}

// CloneData copies data; empty data becomes nil.
func CloneData(data []byte) []byte {
	if len(data) == 0 {
		return nil
	}
	return bytes.Clone(data)
}
