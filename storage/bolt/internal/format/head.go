package format

import (
	"cmp"
	"encoding/binary"
	"math"
	"slices"

	"github.com/partita-go/partita/calendar"
	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage"
)

// The head of a workspace, in bucket workspaces under its WSID, sealed:
//
//	head     = version WSKind last lsns count { sequence } [ count { zone } ]
//	lsns     = count { LSN }           of the last events of its log; the first LSN, then differences
//	sequence = SeqID flags [ number ] [ top first count { pointer } [ count { pack } ] ] [ closed-below count { period } ]
//	pointer  = number LSN              from the highest number down: how far below the one before, difference
//	pack     = id first last        the id as a difference; how far first is above the last row of the one before, or
//	                                above the first row of all; how far last is above first
//	period   = first-day number     how far the first day is above the one before, from 0 up; the last number
//	zone     = length name time     when it was set: how far that is above the one before, the first as a varint
//
// Version is a byte: 5 if there are zones, else 4. A difference of LSNs of pointers, and of ids of packs, is a varint,
// everything else an uvarint. flags: 1 there is a last number, 2 there are records, 4 it restarts, 8 it has older periods
// in bucket index. A sequence that restarts has neither a number nor records, and at least one period. Where first is not
// 0 there are packs, one at least. Other flags and versions are refused.
const (
	headVersion = 4
	headZones   = 5

	flagNumber  = 1
	flagRecords = 2
	flagPeriods = 4
	flagOlder   = 8
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
	// Zones are the changes of the workspace's time zone that may still count.
	Zones calendar.Zones
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
	// Packs lead to the last packs, one at least if there is any. Bucket index leads to those before them.
	Packs []PackEntry
	// Pointers are the records that are in no pack yet, or were written since, ordered by number.
	Pointers []Pointer
	// Periods are the newest periods of a sequence that restarts, ordered; none else.
	Periods []PeriodNumber
	// ClosedBelow is the first period that is not closed, zero if none is.
	ClosedBelow calendar.Date
	// Older says that bucket index has periods, which are older than Periods.
	Older bool
}

// PeriodNumber is the last number of a period.
type PeriodNumber struct {
	Period calendar.Date
	Number messages.Number
}

// Pointer says which event has written a record last.
type Pointer struct {
	Number messages.Number
	LSN    messages.LSN
}

// Reset makes it that of a workspace without events, in its memory.
func (h *Head) Reset() { *h = Head{LSNs: h.LSNs[:0], Sequences: h.Sequences[:0]} }

// IsZero reports whether it says nothing.
func (h *Head) IsZero() bool {
	return h.Kind == 0 && h.Last == 0 && len(h.LSNs)+len(h.Sequences)+len(h.Zones) == 0
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
	spare := h.Sequences[len(h.Sequences)-1].empty(seq)
	copy(h.Sequences[i+1:], h.Sequences[i:])
	h.Sequences[i] = spare
	return &h.Sequences[i]
}

// empty returns a sequence of which nothing is said, in the memory of this one.
func (s *HeadSequence) empty(seq messages.SeqID) HeadSequence {
	return HeadSequence{Seq: seq, Packs: s.Packs[:0], Pointers: s.Pointers[:0], Periods: s.Periods[:0]}
}

// Closed says of the sequences, in order, which period is the first that is not closed.
func (h *Head) Closed() (closed []messages.SequencePeriod) {
	for i := range h.Sequences {
		if s := &h.Sequences[i]; s.ClosedBelow != 0 {
			closed = append(closed, messages.SequencePeriod{Seq: s.Seq, Period: s.ClosedBelow})
		}
	}
	return closed
}

// ClosedBelow returns the first period of a sequence that is not closed, zero if none is.
func (h *Head) ClosedBelow(seq messages.SeqID) calendar.Date {
	if s := h.Find(seq); s != nil {
		return s.ClosedBelow
	}
	return 0
}

// InPeriod returns where a period is among the newest ones, or would be.
func (s *HeadSequence) InPeriod(period calendar.Date) (i int, found bool) {
	if last := len(s.Periods) - 1; last < 0 || s.Periods[last].Period < period {
		return last + 1, false
	}
	return slices.BinarySearchFunc(s.Periods, period, func(p PeriodNumber, at calendar.Date) int { return cmp.Compare(p.Period, at) })
}

// HasOlder reports whether bucket index, and not the head, says what the last number of a period is.
func (s *HeadSequence) HasOlder(period calendar.Date) bool {
	return s.Older && period >= s.ClosedBelow && len(s.Periods) > 0 && period < s.Periods[0].Period
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

// PackAt returns where the last of Packs is that begins at or before a number, -1 if none does.
func (s *HeadSequence) PackAt(n messages.Number) int {
	i, found := slices.BinarySearchFunc(s.Packs, n, func(e PackEntry, n messages.Number) int { return cmp.Compare(e.First, n) })
	if !found {
		i--
	}
	return i
}

// Indexed reports whether bucket index leads to packs, too.
func (s *HeadSequence) Indexed() bool { return len(s.Packs) > 0 && s.First < s.Packs[0].First }

// PutPack adds a pack that belongs among Packs, or takes the place of the one that begins with the same row.
func (s *HeadSequence) PutPack(e PackEntry) {
	i := s.PackAt(e.First)
	if i >= 0 && s.Packs[i].First == e.First {
		s.Packs[i] = e
		return
	}
	s.Packs = slices.Insert(s.Packs, i+1, e)
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
	version := byte(headVersion)
	if len(h.Zones) > 0 {
		version = headZones
	}
	b = append(b, version)
	b = binary.AppendUvarint(b, uint64(h.Kind))
	b = binary.AppendUvarint(b, uint64(h.Last))
	b = appendLSNs(b, h.LSNs)
	b = binary.AppendUvarint(b, uint64(len(h.Sequences)))
	for i := range h.Sequences {
		b = h.Sequences[i].append(b)
	}
	if version == headZones {
		b = appendZones(b, h.Zones)
	}
	return Seal(b, start, BucketWorkspaces, key)
}

func (s *HeadSequence) append(b []byte) []byte {
	b = binary.AppendUvarint(b, uint64(s.Seq))
	flags := byte(0)
	if s.Number != 0 {
		flags |= flagNumber
	}
	if s.Top != 0 {
		flags |= flagRecords
	}
	if len(s.Periods) > 0 {
		return s.appendPeriods(b)
	}
	b = append(b, flags)
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
	if s.First != 0 {
		b = s.appendPacks(b)
	}
	return b
}

func (s *HeadSequence) appendPacks(b []byte) []byte {
	b = binary.AppendUvarint(b, uint64(len(s.Packs)))
	before := PackEntry{Last: s.First}
	for _, e := range s.Packs {
		b = binary.AppendVarint(b, int64(e.ID-before.ID))
		b = binary.AppendUvarint(b, uint64(e.First-before.Last))
		b = binary.AppendUvarint(b, uint64(e.Last-e.First))
		before = e
	}
	return b
}

func (s *HeadSequence) appendPeriods(b []byte) []byte {
	flags := byte(flagPeriods)
	if s.Older {
		flags |= flagOlder
	}
	b = binary.AppendUvarint(append(b, flags), uint64(s.ClosedBelow))
	b = binary.AppendUvarint(b, uint64(len(s.Periods)))
	before := calendar.Date(0)
	for _, p := range s.Periods {
		b = binary.AppendUvarint(b, uint64(p.Period-before))
		b = binary.AppendUvarint(b, uint64(p.Number))
		before = p.Period
	}
	return b
}

// Decode reads a head into h, whose memory it uses. It is safe on any bytes.
func (h *Head) Decode(key, value []byte) error {
	r, version, err := unsealVersion(BucketWorkspaces, key, value, headVersion, headZones)
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
	h.Zones = nil
	if version == headZones {
		h.Zones = readZones(&r)
	}
	if r.Bad || len(r.Rest) != 0 || messages.WLogOffset(len(h.LSNs)) > h.Last {
		return ErrLayout
	}
	return nil
}

func (s *HeadSequence) read(r *ByteReader) {
	*s = s.empty(messages.SeqID(r.Uvarint(math.MaxUint16)))
	flags := r.byte()
	if flags&flagPeriods != 0 {
		s.readPeriods(r, flags)
		return
	}
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
	if s.First != 0 {
		s.readPacks(r)
	}
}

func (s *HeadSequence) readPacks(r *ByteReader) {
	before := PackEntry{Last: s.First}
	n := r.Count(3)
	s.Packs = slices.Grow(s.Packs, n)
	for ; n > 0; n-- {
		id, above, width := r.varint(), messages.Number(r.Uvarint(math.MaxUint64)), messages.Number(r.Uvarint(math.MaxUint64))
		e := PackEntry{ID: before.ID + PackID(id), First: before.Last + above}
		e.Last = e.First + width
		if r.Bad || e.ID == 0 || e.First < before.Last || e.Last < e.First || e.Last > s.Top || above == 0 && len(s.Packs) > 0 {
			r.fail()
			return
		}
		if last := len(s.Packs) - 1; last >= 0 {
			s.Packs[last].Next = e.First
		}
		s.Packs = append(s.Packs, e)
		before = e
	}
	if len(s.Packs) == 0 {
		r.fail()
	}
}

func (s *HeadSequence) readPeriods(r *ByteReader, flags byte) {
	s.Older = flags&flagOlder != 0
	s.ClosedBelow = calendar.Date(r.Uvarint(math.MaxUint32))
	period := uint64(0)
	for n := r.Count(2); n > 0 && !r.Bad; n-- {
		more := r.Uvarint(math.MaxUint32)
		period += more
		p := PeriodNumber{Period: calendar.Date(period), Number: messages.Number(r.Uvarint(math.MaxUint64))}
		if more == 0 || period > math.MaxUint32 || p.Period < s.ClosedBelow || p.Number == 0 {
			r.fail()
		}
		s.Periods = append(s.Periods, p)
	}
	if flags&^flagOlder != flagPeriods || len(s.Periods) == 0 {
		r.fail()
	}
}

// DamagedHead says that a workspace's row in state.db cannot be read.
func DamagedHead(ws messages.WSID, cause error) *storage.DamagedError {
	return &storage.DamagedError{Where: PlaceOf(BucketWorkspaces, "workspace %d", ws), Cause: cause}
}
