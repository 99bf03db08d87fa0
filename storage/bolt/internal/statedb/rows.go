package statedb

import (
	"bytes"
	"math"
	"slices"
	"sync"
	"time"

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
	rd, _ := rowReaders.Get().(*rowReader)
	defer rowReaders.Put(rd)
	rd.begin(ws, r, limit, bytesLimit)
	if err = state.Read(rd.read); len(rd.cold) > 0 {
		boltfile.Warm(len(rd.cold), func(i int) { touchPack(state, rd.cold[i]) })
		rd.begin(ws, r, limit, bytesLimit)
		rd.warmed = true
		err = state.Read(rd.read)
	}
	rows, rd.rows = rd.rows, nil
	clear(rd.pack.Rows[:cap(rd.pack.Rows)]) // their data was the transaction's
	return rows, rd.next, err
}

// touchPack reads a pack, so that it is in memory. An error is told to whoever needs it.
func touchPack(state *boltfile.File, id format.PackID) {
	_ = state.Read(func(s *boltfile.Snapshot) error {
		_, v := seekPack(s.Cursor(format.BucketPacks), id)
		_ = format.SealCRC(nil, nil, v)
		return nil
	})
}

var rowReaders = sync.Pool{New: func() any { return new(rowReader) }}

// rowReader collects the rows of a range.
type rowReader struct {
	ws                messages.WSID
	r                 storage.RecordRange
	limit, bytesLimit int
	size              int
	rows              []Row
	// next is the first row that was too much, 0 if there is none.
	next messages.Number
	// cold are packs that are probably not in memory; warmed says that they were looked for.
	cold   []format.PackID
	warmed bool

	head     format.Head
	pack     format.Pack
	pointers []format.Pointer
}

func (rd *rowReader) begin(ws messages.WSID, r storage.RecordRange, limit, bytesLimit int) {
	rd.ws, rd.r, rd.limit, rd.bytesLimit = ws, r, limit, bytesLimit
	rd.size, rd.rows, rd.next, rd.cold, rd.warmed = 0, nil, 0, rd.cold[:0], false
}

// read takes the rows of packs, and the pointers, which were written later, between them.
func (rd *rowReader) read(in *boltfile.Snapshot) error {
	if err := readHead(in, rd.ws, &rd.head); err != nil {
		return err
	}
	s := rd.head.Find(rd.r.Seq)
	if s == nil || s.Top < rd.r.From {
		return nil
	}
	rd.r.To = min(rd.r.To, s.Top)
	i, found := s.Pointed(rd.r.From)
	rd.pointers = s.Pointers[i:]
	if !found || rd.r.From != rd.r.To { // else the pointer is all there is to know
		if err := rd.readPacks(in, s); err != nil || len(rd.cold) > 0 {
			// The rows before a damaged pack are right.
			return err
		}
	}
	rd.until(rd.r.To)
	return nil
}

// until takes the pointers up to a number; the one of the number itself covers a row.
func (rd *rowReader) until(n messages.Number) (covered bool) {
	for len(rd.pointers) > 0 && rd.pointers[0].Number <= n && rd.next == 0 {
		p := rd.pointers[0]
		covered = p.Number == n
		rd.take(Row{Row: storage.Row{ID: messages.RecordID{Seq: rd.r.Seq, Number: p.Number}}, LSN: p.LSN, Pointed: true})
		rd.pointers = rd.pointers[1:]
	}
	return covered
}

// readPacks takes the rows of packs. Where the first one comes from the disk, it ends with those that are to be warmed.
func (rd *rowReader) readPacks(in *boltfile.Snapshot, s *format.HeadSequence) error {
	begun := time.Now()
	return eachPack(in, rd.ws, s, rd.r, &rd.pack, func(c chain) bool {
		if !rd.warmed && boltfile.Cold(begun) {
			var sound bool
			if rd.cold, sound = c.ahead(rd.cold, rd.r.To); len(rd.cold) > 1 || !sound {
				return false // whoever reads again meets the damage, too
			}
			rd.cold = rd.cold[:0]
		}
		rd.warmed = true
		for i := range rd.pack.Rows {
			row := &rd.pack.Rows[i]
			if rd.until(row.Number) || rd.next != 0 {
				continue
			}
			rd.take(Row{LSN: row.LSN, Row: storage.Row{
				ID: messages.RecordID{Seq: rd.r.Seq, Number: row.Number}, Data: row.Data,
				Partition: rd.pack.Partition, PLogOffset: row.Offset,
			}})
		}
		return rd.next == 0
	})
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

// chain is a place in the chain of a sequence's packs: first come those of bucket index, then those of the head.
type chain struct {
	// cursor stands at the entry, as long as it is one of the index.
	cursor *bbolt.Cursor
	entry  format.PackEntry
	key    format.RecordKey
	// rest are the packs behind it that the head leads to.
	rest []format.PackEntry
}

// seek goes to the pack that a record belongs to, or to the first one. There is one.
func (c *chain) seek(in *boltfile.Snapshot, s *format.HeadSequence) (err error) {
	c.key.ID.Number = max(c.key.ID.Number, s.First)
	c.rest = s.Packs
	if i := s.PackAt(c.key.ID.Number); i >= 0 {
		c.entry, c.rest = s.Packs[i], s.Packs[i+1:]
		return nil
	}
	c.cursor = in.Cursor(format.BucketIndex)
	c.entry, err = packAt(c.cursor, c.key, s.First)
	return err
}

// next goes to the entry behind, which must be there. There are packs behind this one.
func (c *chain) next() (err error) {
	c.key.ID.Number = c.entry.Next
	if c.entry.Next >= c.rest[0].First {
		return c.toHead()
	}
	k, v := c.cursor.Next()
	if want := format.AppendIndexKey(make([]byte, 0, format.IndexKeyLen), c.key); !bytes.Equal(k, want) {
		return format.DamagedIndex(want, format.ErrMissing)
	}
	if c.entry, err = format.DecodePackEntry(k, v); err != nil {
		return format.DamagedIndex(k, err)
	}
	return nil
}

// toHead goes to the next pack that the head leads to. The entry before it must lead there, and if it is one of the index,
// nothing of the sequence stands behind it.
func (c *chain) toHead() error {
	if c.entry.Next != c.rest[0].First {
		return format.DamagedIndex(format.AppendIndexKey(nil, c.key), format.ErrMissing)
	}
	if c.cursor != nil {
		prefix := format.AppendSequenceKey(make([]byte, 0, format.IndexPrefixLen), c.key.Workspace, c.key.ID.Seq)
		if k, _ := c.cursor.Next(); bytes.HasPrefix(k, prefix) {
			return format.DamagedIndex(k, format.ErrMisplaced)
		}
	}
	c.cursor, c.entry, c.rest = nil, c.rest[0], c.rest[1:]
	return nil
}

// warmAhead is how many packs are looked for at a time.
const warmAhead = 32

// ahead lists the packs from the place on, and reports whether it has met no damage. If there is more than the one of the
// place, or damage, then the cursor has moved: nobody can go on from the place.
func (c chain) ahead(ids []format.PackID, to messages.Number) (_ []format.PackID, sound bool) {
	ids = append(ids, c.entry.ID)
	for len(ids) < warmAhead && len(c.rest) > 0 && c.entry.Next <= to {
		if c.next() != nil {
			return ids, false
		}
		ids = append(ids, c.entry.ID)
	}
	return ids, true
}

// eachPack calls fn with each pack that has rows of a range, in order, as long as it returns true.
func eachPack(
	in *boltfile.Snapshot, ws messages.WSID, s *format.HeadSequence, r storage.RecordRange, pack *format.Pack, fn func(chain) bool,
) error {
	if s.First == 0 || s.First > r.To {
		return nil
	}
	packs := in.Cursor(format.BucketPacks)
	c := chain{key: format.RecordKey{Workspace: ws, ID: messages.RecordID{Seq: r.Seq, Number: r.From}}}
	if err := c.seek(in, s); err != nil {
		return err
	}
	for {
		if c.entry.Last >= r.From {
			c.key.ID.Number = c.entry.First
			key, v := seekPack(packs, c.entry.ID)
			if err := readPack(key, v, c.key, &c.entry, pack, r); err != nil {
				return err
			}
			if !fn(c) {
				return nil
			}
		}
		if len(c.rest) == 0 || c.entry.Next > r.To {
			return nil
		}
		if err := c.next(); err != nil {
			return err
		}
	}
}

// packAt returns the entry of the pack that a record belongs to: the last one that begins at or before it, which must be
// there, and a link of the chain that begins with the number given. The cursor stands there.
func packAt(c *bbolt.Cursor, k format.RecordKey, first messages.Number) (e format.PackEntry, err error) {
	sought := format.AppendIndexKey(make([]byte, 0, format.IndexKeyLen), k)
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
	if e.Next <= k.ID.Number {
		k.ID.Number = e.Next
		return e, format.DamagedIndex(format.AppendIndexKey(nil, k), format.ErrMissing)
	}
	return e, checkLink(c, found, e.First == first)
}

// checkLink makes sure that the entry before one leads to it, or that there is none before the first one.
func checkLink(c *bbolt.Cursor, at []byte, first bool) error {
	k, v := c.Prev()
	leads := !bytes.HasPrefix(k, at[:format.IndexPrefixLen])
	if !first {
		before, err := format.DecodePackEntry(k, v)
		leads = !leads && err == nil && before.Next == messages.Number(format.Uint64(at[format.IndexPrefixLen:]))
	}
	if k == nil {
		k, _ = c.First()
	} else {
		k, _ = c.Next()
	}
	if !leads || !bytes.Equal(k, at) {
		return format.DamagedIndex(at, format.ErrMisplaced)
	}
	return nil
}

// seekPack returns the key of a pack and what is kept there, nil if nothing is.
func seekPack(packs *bbolt.Cursor, id format.PackID) (key, v []byte) {
	key = format.AppendPackKey(make([]byte, 0, format.PackKeyLen), id)
	if k, v := packs.Seek(key); bytes.Equal(k, key) {
		return key, v
	}
	return key, nil
}

// readPack reads the rows of a range of the pack that an entry leads to: what is kept under its key, nil if nothing is.
func readPack(key, v []byte, k format.RecordKey, e *format.PackEntry, pack *format.Pack, r storage.RecordRange) error {
	if v == nil {
		return format.DamagedPack(k, e.ID, format.ErrMissing)
	}
	if err := pack.DecodeRange(key, v, r.From, r.To); err != nil {
		return format.DamagedPack(k, e.ID, err)
	}
	if pack.Workspace != k.Workspace || pack.Seq != k.ID.Seq ||
		pack.First != e.First || pack.Last != e.Last {
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
	var p format.Pack
	err = eachPack(boltfile.SnapshotOf(tx), k.Workspace, s, r, &p, func(chain) bool {
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
