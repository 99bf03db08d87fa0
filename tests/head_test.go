package tests

import (
	"cmp"
	"encoding/binary"
	"hash/crc32"
	"slices"
	"testing"

	"go.etcd.io/bbolt"

	"github.com/partita-go/partita/messages"
)

// foreignLSN is where somebody else's keys of state.db lead to, far behind the log's end.
const foreignLSN messages.LSN = 1 << 40

// head is what state.db has of a workspace, see docs/format.md.
type head struct {
	kind, last uint64
	lsns       []messages.LSN
	sequences  []headSequence
}

// headSequence is what a head says of a sequence; top is 0 if it has no records, first if it has no packs.
type headSequence struct {
	seq                messages.SeqID
	number, top, first uint64
	numbered           bool
	pointers           []pointer
	links              []link
}

// link leads to a pack; it is kept as it is written.
type link struct {
	id          int64
	first, last uint64
}

// pointer leads from a record to the event that wrote it.
type pointer struct {
	number messages.Number
	lsn    messages.LSN
}

func headKey(ws messages.WSID) key {
	return key{"state.db", "workspaces", binary.BigEndian.AppendUint64(nil, uint64(ws))}
}

// headReader reads the numbers of a head, all of which are there.
type headReader struct{ rest []byte }

func (r *headReader) uvarint() uint64 {
	n, size := binary.Uvarint(r.rest)
	r.rest = r.rest[size:]
	return n
}

func (r *headReader) varint() int64 {
	n, size := binary.Varint(r.rest)
	r.rest = r.rest[size:]
	return n
}

func decodeHead(value []byte) (h head) {
	r := headReader{rest: value[1 : len(value)-4]}
	h.kind, h.last = r.uvarint(), r.uvarint()
	lsn := messages.LSN(0)
	for n := r.uvarint(); n > 0; n-- {
		lsn += messages.LSN(r.uvarint())
		h.lsns = append(h.lsns, lsn)
	}
	for n := r.uvarint(); n > 0; n-- {
		s := headSequence{seq: messages.SeqID(r.uvarint())}
		flags := r.uvarint()
		if s.numbered = flags&1 != 0; s.numbered {
			s.number = r.uvarint()
		}
		if flags&2 != 0 {
			s.readRecords(&r)
		}
		h.sequences = append(h.sequences, s)
	}
	return h
}

func (s *headSequence) readRecords(r *headReader) {
	s.top, s.first = r.uvarint(), r.uvarint()
	at := pointer{number: messages.Number(s.top)}
	for n := r.uvarint(); n > 0; n-- {
		at.number -= messages.Number(r.uvarint())
		at.lsn += messages.LSN(r.varint())
		s.pointers = append(s.pointers, at)
	}
	if s.first == 0 {
		return
	}
	for n := r.uvarint(); n > 0; n-- {
		s.links = append(s.links, link{id: r.varint(), first: r.uvarint(), last: r.uvarint()})
	}
}

// encode returns the head as it is kept under a key.
func (h *head) encode(k key) []byte {
	b := binary.AppendUvarint([]byte{4}, h.kind)
	b = binary.AppendUvarint(b, h.last)
	b = binary.AppendUvarint(b, uint64(len(h.lsns)))
	before := messages.LSN(0)
	for _, lsn := range h.lsns {
		b = binary.AppendUvarint(b, uint64(lsn-before))
		before = lsn
	}
	b = binary.AppendUvarint(b, uint64(len(h.sequences)))
	for i := range h.sequences {
		b = h.sequences[i].append(b)
	}
	crc := crc32.New(crc32.MakeTable(crc32.Castagnoli))
	for _, part := range [][]byte{[]byte(k.bucket), k.key, b} {
		_, _ = crc.Write(part)
	}
	return crc.Sum(b)
}

func (s *headSequence) append(b []byte) []byte {
	flags := byte(0)
	if s.numbered {
		flags |= 1
	}
	if s.top != 0 {
		flags |= 2
	}
	b = append(binary.AppendUvarint(b, uint64(s.seq)), flags)
	if s.numbered {
		b = binary.AppendUvarint(b, s.number)
	}
	if s.top == 0 {
		return b
	}
	b = binary.AppendUvarint(b, s.top)
	b = binary.AppendUvarint(b, s.first)
	b = binary.AppendUvarint(b, uint64(len(s.pointers)))
	above := pointer{number: messages.Number(s.top)}
	for _, at := range s.pointers {
		b = binary.AppendUvarint(b, uint64(above.number-at.number))
		b = binary.AppendVarint(b, int64(at.lsn-above.lsn))
		above = at
	}
	if s.first == 0 {
		return b
	}
	b = binary.AppendUvarint(b, uint64(len(s.links)))
	for _, to := range s.links {
		b = binary.AppendVarint(b, to.id)
		b = binary.AppendUvarint(b, to.first)
		b = binary.AppendUvarint(b, to.last)
	}
	return b
}

// changeHead changes the head of a workspace that has one, in a closed store.
func (s *site) changeHead(t testing.TB, ws messages.WSID, change func(*head)) {
	t.Helper()
	k := headKey(ws)
	s.edit(t, k.file, func(tx *bbolt.Tx) error {
		b := tx.Bucket([]byte(k.bucket))
		h := decodeHead(b.Get(k.key))
		change(&h)
		return b.Put(k.key, h.encode(k))
	})
}

// wlogSpot is the place of an event in the log of a workspace.
type wlogSpot struct {
	ws     messages.WSID
	offset messages.WLogOffset
}

func (p wlogSpot) plant(t testing.TB, s *site) {
	t.Helper()
	s.changeHead(t, p.ws, func(h *head) {
		for h.last < uint64(p.offset) {
			h.last++
			h.lsns = append(h.lsns, foreignLSN+messages.LSN(h.last))
		}
	})
}

func (p wlogSpot) kept(t testing.TB, s *site) bool {
	t.Helper()
	h := decodeHead(s.stored(t, headKey(p.ws)))
	return slices.Contains(h.lsns, foreignLSN+messages.LSN(p.offset))
}

// recordSpot is the place of a record.
type recordSpot struct {
	ws messages.WSID
	id messages.RecordID
}

func (p recordSpot) plant(t testing.TB, s *site) {
	t.Helper()
	s.changeHead(t, p.ws, func(h *head) {
		i, found := slices.BinarySearchFunc(h.sequences, p.id.Seq, func(s headSequence, seq messages.SeqID) int {
			return cmp.Compare(s.seq, seq)
		})
		if !found {
			h.sequences = slices.Insert(h.sequences, i, headSequence{seq: p.id.Seq})
		}
		of := &h.sequences[i]
		of.top = uint64(p.id.Number) // above all others
		of.pointers = slices.Insert(of.pointers, 0, pointer{number: p.id.Number, lsn: foreignLSN})
	})
}

func (p recordSpot) kept(t testing.TB, s *site) bool {
	t.Helper()
	for _, of := range decodeHead(s.stored(t, headKey(p.ws))).sequences {
		if of.seq == p.id.Seq {
			return slices.Contains(of.pointers, pointer{number: p.id.Number, lsn: foreignLSN})
		}
	}
	return false
}
