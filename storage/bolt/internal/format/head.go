package format

import (
	"cmp"
	"encoding/binary"
	"math"
	"slices"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage"
)

// The head of a workspace, in bucket workspaces under its WSID, sealed:
//
//	head     = version WSKind last lsns count { sequence }
//	lsns     = count { LSN }           of the last events of its log; the first LSN, then differences
//	sequence = SeqID flags [ number ] [ top first count { pointer } ]
//	pointer  = number LSN              from the highest number down: how far below the one before, difference
//
// Version is a byte, a difference of LSNs of pointers is a varint, everything else an uvarint. flags: 1 there is a last
// number, 2 there are records. Other flags and versions are refused: what may come has room there, as a period beside a
// number.
const (
	headVersion = 1

	flagNumber  = 1
	flagRecords = 2
)

// Head is what state.db has of a workspace in one row: what an append must know of it, and where what was appended last
// is in the log.
type Head struct {
	Kind messages.WSKind
	// Last is the last offset of the workspace's log, LSNs where its last events are; the others are in lists.
	Last messages.WLogOffset
	LSNs []messages.LSN
	// Sequences are ordered by id.
	Sequences []HeadSequence
}

// HeadSequence is what a head says of a sequence.
type HeadSequence struct {
	Seq messages.SeqID
	// Number is the last one, 0 if there is none.
	Number messages.Number
	// Top is the highest number of its records, 0 if it has none.
	Top messages.Number
	// First is the number of the first row that is in a pack, 0 if none is.
	First messages.Number
	// Pointers are the records that are in no pack yet, or were written since, ordered by number.
	Pointers []Pointer
}

// Pointer says which event has written a record last.
type Pointer struct {
	Number messages.Number
	LSN    messages.LSN
}

// Listed is the last offset that is in a list.
func (h *Head) Listed() messages.WLogOffset { return h.Last - messages.WLogOffset(len(h.LSNs)) }

// LastLSN is where the last event is, 0 if a list says it.
func (h *Head) LastLSN() messages.LSN {
	if len(h.LSNs) == 0 {
		return 0
	}
	return h.LSNs[len(h.LSNs)-1]
}

// Find returns what the head says of a sequence, nil if nothing.
func (h *Head) Find(seq messages.SeqID) *HeadSequence {
	for i := range h.Sequences {
		if h.Sequences[i].Seq == seq {
			return &h.Sequences[i]
		}
	}
	return nil
}

// Sequence returns what the head says of a sequence; if nothing, it begins to.
func (h *Head) Sequence(seq messages.SeqID) *HeadSequence {
	if s := h.Find(seq); s != nil {
		return s
	}
	i, _ := slices.BinarySearchFunc(h.Sequences, seq, func(s HeadSequence, seq messages.SeqID) int { return cmp.Compare(s.Seq, seq) })
	// The memory of an entry that was dropped serves again.
	h.Sequences = slices.Grow(h.Sequences, 1)[:len(h.Sequences)+1]
	spare := h.Sequences[len(h.Sequences)-1].Pointers[:0]
	copy(h.Sequences[i+1:], h.Sequences[i:])
	h.Sequences[i] = HeadSequence{Seq: seq, Pointers: spare}
	return &h.Sequences[i]
}

// NumberOf returns the last number of a sequence, 0 if there is none; under [KindSeq] the kind.
func (h *Head) NumberOf(seq messages.SeqID) messages.Number {
	switch seq {
	case KindSeq:
		return messages.Number(h.Kind)
	case messages.SeqWLogOffset:
		return messages.Number(h.Last)
	default:
		if s := h.Find(seq); s != nil {
			return s.Number
		}
		return 0
	}
}

// Pointed returns where a record's pointer is, or would be.
func (s *HeadSequence) Pointed(n messages.Number) (i int, found bool) {
	if last := len(s.Pointers) - 1; last < 0 || s.Pointers[last].Number < n {
		return last + 1, false
	}
	return slices.BinarySearchFunc(s.Pointers, n, func(p Pointer, n messages.Number) int { return cmp.Compare(p.Number, n) })
}

// Point says that an event has written a record last.
func (s *HeadSequence) Point(n messages.Number, lsn messages.LSN) {
	i, found := s.Pointed(n)
	if !found {
		s.Pointers = slices.Insert(s.Pointers, i, Pointer{Number: n})
	}
	s.Pointers[i].LSN = lsn
	s.Top = max(s.Top, n)
}

// Encode appends the head as it is kept under a key.
func (h *Head) Encode(b, key []byte) []byte {
	start := len(b)
	b = append(b, headVersion)
	b = binary.AppendUvarint(b, uint64(h.Kind))
	b = binary.AppendUvarint(b, uint64(h.Last))
	b = appendLSNs(b, h.LSNs)
	b = binary.AppendUvarint(b, uint64(len(h.Sequences)))
	for i := range h.Sequences {
		b = h.Sequences[i].append(b)
	}
	return Seal(b, start, BucketWorkspaces, key)
}

func (s *HeadSequence) append(b []byte) []byte {
	b = binary.AppendUvarint(b, uint64(s.Seq))
	flags := 0
	if s.Number != 0 {
		flags |= flagNumber
	}
	if s.Top != 0 {
		flags |= flagRecords
	}
	b = append(b, byte(flags))
	if s.Number != 0 {
		b = binary.AppendUvarint(b, uint64(s.Number))
	}
	if s.Top == 0 {
		return b
	}
	b = binary.AppendUvarint(b, uint64(s.Top))
	b = binary.AppendUvarint(b, uint64(s.First))
	b = binary.AppendUvarint(b, uint64(len(s.Pointers)))
	above := Pointer{Number: s.Top}
	for _, p := range slices.Backward(s.Pointers) {
		b = binary.AppendUvarint(b, uint64(above.Number-p.Number))
		b = binary.AppendVarint(b, int64(p.LSN-above.LSN))
		above = p
	}
	return b
}

// Decode reads a head into h, whose memory it uses. It is safe on any bytes.
func (h *Head) Decode(key, value []byte) error {
	r, err := unsealVersion(BucketWorkspaces, key, value, headVersion)
	if err != nil {
		return err
	}
	h.Kind = messages.WSKind(r.Uvarint(math.MaxUint16))
	h.Last = messages.WLogOffset(r.Uvarint(math.MaxUint64))
	h.LSNs = readLSNs(&r, h.LSNs[:0])
	n := r.Count(2)
	h.Sequences = slices.Grow(h.Sequences[:0], n)[:n]
	before := messages.SeqID(0)
	for i := range h.Sequences {
		s := &h.Sequences[i]
		s.read(&r)
		if s.Seq <= before {
			r.fail()
		}
		before = s.Seq
	}
	if r.Bad || len(r.Rest) != 0 || messages.WLogOffset(len(h.LSNs)) > h.Last {
		return ErrLayout
	}
	return nil
}

func (s *HeadSequence) read(r *ByteReader) {
	*s = HeadSequence{Seq: messages.SeqID(r.Uvarint(math.MaxUint16)), Pointers: s.Pointers[:0]}
	flags := r.byte()
	if flags&flagNumber != 0 {
		s.Number = messages.Number(r.Uvarint(math.MaxUint64))
	}
	if flags > flagNumber|flagRecords || flags&flagNumber != 0 && s.Number == 0 {
		r.fail()
	}
	if flags&flagRecords == 0 {
		return
	}
	s.Top, s.First = messages.Number(r.Uvarint(math.MaxUint64)), messages.Number(r.Uvarint(math.MaxUint64))
	if s.Top == 0 || s.First > s.Top {
		r.fail()
	}
	above := Pointer{Number: s.Top}
	for n := r.Count(2); n > 0; n-- {
		below := messages.Number(r.Uvarint(math.MaxUint64))
		if below >= above.Number || below == 0 && len(s.Pointers) > 0 {
			r.fail()
			return
		}
		above = Pointer{Number: above.Number - below, LSN: above.LSN + messages.LSN(r.varint())}
		if above.LSN == 0 {
			r.fail()
		}
		s.Pointers = append(s.Pointers, above)
	}
	slices.Reverse(s.Pointers)
}

// DamagedHead says that a workspace's row in state.db cannot be read.
func DamagedHead(ws messages.WSID, cause error) *storage.DamagedError {
	return &storage.DamagedError{Where: PlaceOf(BucketWorkspaces, "workspace %d", ws), Cause: cause}
}
