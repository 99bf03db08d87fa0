package format

import (
	"encoding/binary"
	"math"

	"github.com/partita-go/partita/calendar"
	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage"
)

// A pack holds rows of one sequence of one workspace, in bucket packs under its id, sealed:
//
//	pack = version WSID SeqID partition count { number PLogOffset LSN length } data
//
// Version is a byte. Numbers go up: each is how far above the one before it is. Offsets and LSNs, which name the event
// that wrote a row last, are differences, as varints. Everything else is an uvarint. The rows' data is behind all of
// these, in their order.
//
// The head leads to the last packs of a sequence. To the others an entry of bucket index leads, under WSID, SeqID and the
// number of the pack's first row, sealed:
//
//	entry = pack last next     uvarints: the pack's id, the number of its last row, and how far above it the next pack
//	                           begins
//
// So the entries of a sequence are a chain, which its head begins and ends: one that is hidden is missed.
const packVersion = 1

// Row is a row as a pack has it.
type Row struct {
	Number messages.Number
	Offset messages.PLogOffset
	LSN    messages.LSN
	Data   []byte
}

// Pack is a decoded pack; the data of its rows points into the encoded value.
type Pack struct {
	Workspace messages.WSID
	Seq       messages.SeqID
	Partition messages.PartitionID
	// First and Last are the numbers of its first and of its last row.
	First, Last messages.Number
	Rows        []Row
}

// PackID names a pack of state.db. Ids go up from 1.
type PackID uint64

// Append appends the pack as it is kept under a key.
func (p *Pack) Append(b, key []byte) []byte {
	start := len(b)
	b = append(b, packVersion)
	b = binary.AppendUvarint(b, uint64(p.Workspace))
	b = binary.AppendUvarint(b, uint64(p.Seq))
	b = binary.AppendUvarint(b, uint64(p.Partition))
	b = binary.AppendUvarint(b, uint64(len(p.Rows)))
	var before Row
	for i := range p.Rows {
		r := &p.Rows[i]
		b = binary.AppendUvarint(b, uint64(r.Number-before.Number))
		b = binary.AppendVarint(b, int64(r.Offset-before.Offset))
		b = binary.AppendVarint(b, int64(r.LSN-before.LSN))
		b = binary.AppendUvarint(b, uint64(len(r.Data)))
		before = *r
	}
	for i := range p.Rows {
		b = append(b, p.Rows[i].Data...)
	}
	return Seal(b, start, BucketPacks, key)
}

// Decode reads a pack into p, whose memory it uses. It is safe on any bytes.
func (p *Pack) Decode(key, value []byte) error { return p.DecodeRange(key, value, 0, math.MaxUint64) }

// DecodeRange is Decode that takes only the rows of a range; First and Last are those of the whole pack.
func (p *Pack) DecodeRange(key, value []byte, from, to messages.Number) error {
	r, _, err := unsealVersion(BucketPacks, key, value, packVersion, packVersion)
	if err != nil {
		return err
	}
	p.Workspace = messages.WSID(r.Uvarint(math.MaxUint64))
	p.Seq = messages.SeqID(r.Uvarint(math.MaxUint16))
	p.Partition = messages.PartitionID(r.Uvarint(math.MaxUint32))
	skipped, all := p.readRows(&r, from, to)
	if r.Bad || p.First == 0 || all != len(r.Rest) {
		return ErrLayout
	}
	r.Rest = r.Rest[skipped:]
	for i := range p.Rows {
		n := len(p.Rows[i].Data)
		p.Rows[i].Data, r.Rest = r.Rest[:n:n], r.Rest[n:]
	}
	return nil
}

// readRows reads what stands before the rows' data, of which it knows only how long each one is. It returns the length of
// what is before the range, and of all.
func (p *Pack) readRows(r *ByteReader, from, to messages.Number) (skipped, all int) {
	p.Rows, p.First, p.Last = p.Rows[:0], 0, 0
	var row Row
	n := r.Count(4)
	rest := r.Rest
	for ; n > 0; n-- {
		next, length, width := nextRow(row, rest)
		if width == 0 {
			r.fail()
			return 0, 0
		}
		row, rest = next, rest[width:]
		if p.First == 0 {
			p.First = row.Number
		}
		switch all += length; {
		case row.Number < from:
			skipped = all
		case row.Number <= to:
			p.Rows = append(p.Rows, row)
			p.Rows[len(p.Rows)-1].Data = rest[:length]
		}
	}
	p.Last, r.Rest = row.Number, rest
	return skipped, all
}

// nextRow reads what stands of a row before the data, without which it comes, behind that of the row before. width is how
// many bytes that takes, 0 if it cannot be read.
func nextRow(before Row, b []byte) (row Row, length, width int) {
	above, w1 := binary.Uvarint(b)
	b = b[max(w1, 0):]
	offset, w2 := binary.Varint(b)
	b = b[max(w2, 0):]
	lsn, w3 := binary.Varint(b)
	b = b[max(w3, 0):]
	size, w4 := binary.Uvarint(b)
	b = b[max(w4, 0):]
	row.Number = before.Number + messages.Number(above)
	row.Offset = before.Offset + messages.PLogOffset(offset)
	row.LSN = before.LSN + messages.LSN(lsn)
	if min(w1, w2, w3, w4) <= 0 || row.Number <= before.Number || row.LSN == 0 || size > uint64(len(b)) {
		return row, 0, 0
	}
	return row, int(size), w1 + w2 + w3 + w4
}

// PackEntry leads to a pack: from bucket index, or from the head.
type PackEntry struct {
	ID PackID
	// First and Last are the numbers of its first and of its last row.
	First, Last messages.Number
	// Next is where the pack behind it begins, 0 if there is none: then the head leads to it.
	Next messages.Number
}

// Append appends the entry as it is kept under a key.
func (e *PackEntry) Append(b, key []byte) []byte {
	start := len(b)
	b = binary.AppendUvarint(b, uint64(e.ID))
	b = binary.AppendUvarint(b, uint64(e.Last))
	b = binary.AppendUvarint(b, uint64(e.Next-e.Last))
	return Seal(b, start, BucketIndex, key)
}

// DecodePackEntry is safe on any bytes.
func DecodePackEntry(key, value []byte) (e PackEntry, err error) {
	if len(key) != IndexKeyLen || len(value) < SealedOverhead {
		return e, ErrLayout
	}
	data, err := unsealAny(BucketIndex, key, value)
	if err != nil {
		return e, err
	}
	r := ByteReader{Rest: data}
	e.ID, e.Last = PackID(r.Uvarint(math.MaxUint64)), messages.Number(r.Uvarint(math.MaxUint64))
	e.First = messages.Number(Uint64(key[IndexPrefixLen:]))
	e.Next = e.Last + messages.Number(r.Uvarint(math.MaxUint64))
	if r.Bad || len(r.Rest) != 0 || e.ID == 0 || e.First == 0 || e.Last < e.First || e.Next <= e.Last {
		return e, ErrLayout
	}
	return e, nil
}

// DamagedPack says that a pack of state.db cannot be read.
func DamagedPack(k RecordKey, id PackID, cause error) *storage.DamagedError {
	return &storage.DamagedError{
		Where: PlaceOf(BucketPacks, "pack %d, workspace %d, records from %v on", id, k.Workspace, k.ID), Cause: cause,
	}
}

// DamagedIndex says that an entry of bucket index cannot be read.
func DamagedIndex(key []byte, cause error) *storage.DamagedError {
	if len(key) != IndexKeyLen {
		return &storage.DamagedError{Where: PlaceOf(BucketIndex, "key %x", key), Cause: cause}
	}
	k := ParseRecordKey(key)
	what := "records from number %d on"
	if k.ID.Seq == messages.SeqWLogOffset {
		what = "log from offset %d on"
	}
	return &storage.DamagedError{
		Where: PlaceOf(BucketIndex, "workspace %d, sequence %d, "+what, k.Workspace, k.ID.Seq, k.ID.Number), Cause: cause,
	}
}

// CheckIndex makes sure that an entry of bucket index, whatever it leads to, belongs to its key.
func CheckIndex(k, v []byte) error {
	if _, err := unsealAny(BucketIndex, k, v); err != nil {
		return DamagedIndex(k, err)
	}
	return nil
}

// DamagedPeriod says that an entry of bucket index that is the last number of a period cannot be right.
func DamagedPeriod(key []byte, cause error) *storage.DamagedError {
	k := ParseRecordKey(key)
	p := messages.SequencePeriod{Seq: k.ID.Seq, Period: calendar.Date(k.ID.Number)}
	return &storage.DamagedError{Where: PlaceOf(BucketIndex, "workspace %d, %v", k.Workspace, p), Cause: cause}
}
