package dedup

import (
	"cmp"
	"encoding/binary"
	"math"
	"slices"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage/bolt/internal/format"
)

// Bucket dedup holds runs: lists of entries, each the hash of a deduplication id
// with its workspace, and the LSN of the event that has it, in order of both. A run
// is cut into blocks:
//
//	key    serial 8, last hash 8
//	value  first hash 8, slots 2, slots { end 4 }, slots { CRC-32C 4 }, entries { hash 8, LSN 8 }
//
// A block answers for the hashes from its first to its last, entries of equal hash
// included, and the blocks of a run follow each other without a hole. So whoever
// looks a hash up finds the block that answers for it, or damage.
//
// The slots cut a block's hashes into equal pieces, so that a lookup computes which
// one it needs and reads no more than that. An end is how many entries there are up to
// the end of the slot. The CRC covers the bucket's name, the key, the first hash, the
// number of slots, the slot's index (2) and its entries.
const (
	keyLen       = 16
	entryLen     = 16
	HeadLen      = 10
	dedupSlotLen = 8
)

// What a writer does; a reader takes any block.
const (
	// BlockEntries is how many entries a block gets: it fills 16 KiB. More make
	// the lookup cheaper, and a small flush dearer, since bbolt writes a leaf of two
	// blocks at a time.
	BlockEntries = 1000
	// dedupSlotEntries is how many entries a slot has on average.
	dedupSlotEntries = 24
	// dedupMinSlots keeps the width of a slot within 64 bits.
	dedupMinSlots = 2
)

// LastHash is the largest.
const LastHash = math.MaxUint64

// Entry says that an event may have an id with this hash.
type Entry struct {
	Hash uint64
	LSN  messages.LSN
}

// CompareEntries orders entries by hash, then by LSN.
func CompareEntries(a, b Entry) int {
	return cmp.Or(cmp.Compare(a.Hash, b.Hash), cmp.Compare(a.LSN, b.LSN))
}

// AppendKey appends the key of a block: the serial of its run, and its last hash.
func AppendKey(b []byte, serial, last uint64) []byte {
	return binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(b, serial), last)
}

// Block is a decoded block; the slices point into the encoded one.
type Block struct {
	First, Last uint64
	Slots       int
	// head is the key, the first hash, the number of slots, and room for the index of the slot at hand.
	head                [keyLen + HeadLen + 2]byte
	ends, sums, entries []byte
}

func newDedupBlock(key []byte, first uint64, slots int) Block {
	b := Block{First: first, Last: format.Uint64(key[8:]), Slots: slots}
	copy(b.head[:], key)
	binary.BigEndian.PutUint64(b.head[keyLen:], first)
	binary.BigEndian.PutUint16(b.head[keyLen+8:], uint16(slots))
	return b
}

func dedupSlots(entries int) int {
	return min(max(dedupMinSlots, entries/dedupSlotEntries), math.MaxUint16)
}

// BlockLen returns how long a block of so many entries is, in bytes.
func BlockLen(entries int) int {
	return HeadLen + dedupSlots(entries)*dedupSlotLen + entries*entryLen
}

// appendBlock encodes entries that are in order.
func appendBlock(dst, key []byte, first uint64, entries []Entry) []byte {
	b := newDedupBlock(key, first, dedupSlots(len(entries)))
	dst = append(dst, b.head[keyLen:keyLen+HeadLen]...)
	table, next := len(dst), 0
	dst = append(dst, make([]byte, dedupSlotLen*b.Slots)...)
	dst = slices.Grow(dst, entryLen*len(entries))
	start := len(dst)
	b.ends, b.sums = dst[table:table+4*b.Slots], dst[table+4*b.Slots:start]
	for slot := range b.Slots {
		for next < len(entries) && b.SlotOf(entries[next].Hash) == slot {
			dst = binary.BigEndian.AppendUint64(dst, entries[next].Hash)
			dst = binary.BigEndian.AppendUint64(dst, uint64(entries[next].LSN))
			next++
		}
		binary.BigEndian.PutUint32(b.ends[4*slot:], uint32(next))
	}
	b.entries = dst[start:]
	for slot := range b.Slots {
		begin, end := b.bounds(slot)
		binary.BigEndian.PutUint32(b.sums[4*slot:], b.sum(slot, b.entries[begin:end]))
	}
	return dst
}

// DecodeBlock reads a block but for its slots. It is safe on any bytes.
func DecodeBlock(key, value []byte) (Block, error) {
	if len(key) != keyLen || len(value) < HeadLen {
		return Block{}, format.ErrLayout
	}
	b := newDedupBlock(key, format.Uint64(value), int(binary.BigEndian.Uint16(value[8:])))
	value = value[HeadLen:]
	if b.Slots < dedupMinSlots || b.First > b.Last || len(value) < b.Slots*dedupSlotLen {
		return Block{}, format.ErrLayout
	}
	b.ends, b.sums, b.entries = value[:4*b.Slots], value[4*b.Slots:dedupSlotLen*b.Slots], value[dedupSlotLen*b.Slots:]
	if _, end := b.bounds(b.Slots - 1); end != len(b.entries) {
		return Block{}, format.ErrLayout
	}
	return b, nil
}

// SlotOf returns the slot of a hash that the block answers for.
func (b *Block) SlotOf(hash uint64) int {
	width := (b.Last-b.First)/uint64(b.Slots) + 1
	return int((hash - b.First) / width)
}

// bounds returns where a slot begins and ends, in bytes.
func (b *Block) bounds(slot int) (begin, end int) {
	if slot > 0 {
		begin = int(format.Uint32(b.ends[4*slot-4:]))
	}
	return begin * entryLen, int(format.Uint32(b.ends[4*slot:])) * entryLen
}

func (b *Block) sum(slot int, entries []byte) uint32 {
	binary.BigEndian.PutUint16(b.head[keyLen+HeadLen:], uint16(slot))
	return format.SealCRC(format.BucketDedup, b.head[:], entries)
}

// slot returns the entries of a slot.
func (b *Block) slot(slot int) (dedupEntries, error) {
	begin, end := b.bounds(slot)
	if begin > end || end > len(b.entries) {
		return nil, format.ErrLayout
	}
	entries := b.entries[begin:end]
	if b.sum(slot, entries) != format.Uint32(b.sums[4*slot:]) {
		return nil, format.ErrChecksum
	}
	return entries, nil
}

// dedupEntries are encoded entries.
type dedupEntries []byte

func (e dedupEntries) len() int { return len(e) / entryLen }

func (e dedupEntries) at(i int) Entry {
	e = e[i*entryLen:]
	return Entry{Hash: format.Uint64(e), LSN: messages.LSN(format.Uint64(e[8:]))}
}

// Run is one run, as the list of runs has it.
type Run struct {
	// serial goes up with each run.
	Serial uint64
	// entries is how many it has, or will have when it is complete.
	entries uint64
	// Through is the last hash that it has been filled up to: 0 if it has nothing yet,
	// LastHash if it is complete.
	Through uint64
	// Into is the serial of the run that is being filled from this one, 0 if none: it
	// has the hashes up to its through, and this one counts for the others only.
	Into uint64
}

// Runs is the list of runs, in order of their serials: sealed, in bucket header
// under key "dedup".
//
//	next serial, count { serial entries through into }
//
// All are unsigned varints.
type Runs struct {
	next uint64
	All  []Run
}

func (d *Runs) encode() []byte {
	b := binary.AppendUvarint(nil, d.next)
	b = binary.AppendUvarint(b, uint64(len(d.All)))
	for _, r := range d.All {
		for _, n := range []uint64{r.Serial, r.entries, r.Through, r.Into} {
			b = binary.AppendUvarint(b, n)
		}
	}
	return format.Seal(b, 0, format.BucketHeader, format.KeyDedup)
}

// decodeDedupRuns is safe on any bytes.
func decodeDedupRuns(value []byte) (Runs, error) {
	data, err := format.UnsealAll(format.BucketHeader, format.KeyDedup, value)
	if err != nil {
		return Runs{}, err
	}
	r := format.ByteReader{Rest: data}
	d := Runs{next: r.Uvarint(math.MaxUint64)}
	for n := r.Count(4); n > 0 && !r.Bad; n-- {
		run := Run{Serial: r.Uvarint(math.MaxUint64)}
		run.entries, run.Through, run.Into = r.Uvarint(math.MaxUint64), r.Uvarint(math.MaxUint64), r.Uvarint(math.MaxUint64)
		d.All = append(d.All, run)
	}
	if r.Bad || len(r.Rest) != 0 || !d.valid() {
		return Runs{}, format.ErrLayout
	}
	return d, nil
}

// valid reports whether the serials go up and name runs.
func (d *Runs) valid() bool {
	last := uint64(0)
	for _, r := range d.All {
		if r.Serial <= last || r.Serial >= d.next || r.Into != 0 && d.Run(r.Into) == nil {
			return false
		}
		last = r.Serial
	}
	return true
}

// Run returns a run, nil if there is none of this serial.
func (d *Runs) Run(serial uint64) *Run {
	i, ok := slices.BinarySearchFunc(d.All, serial, func(r Run, serial uint64) int { return cmp.Compare(r.Serial, serial) })
	if !ok {
		return nil
	}
	return &d.All[i]
}

// counts reports whether a run is the one to ask for a hash.
func (d *Runs) counts(r *Run, hash uint64) bool {
	return r.has(hash) && (r.Into == 0 || !d.Run(r.Into).has(hash))
}

// has reports whether a run has been filled up to a hash.
func (r *Run) has(hash uint64) bool { return r.Through != 0 && hash <= r.Through }

// entries is how many entries all runs have together.
func (d *Runs) entries() int {
	n := uint64(0)
	for i := range d.All {
		// What is merged counts where it goes.
		if r := &d.All[i]; r.Into == 0 {
			n += min(r.entries, math.MaxInt/8-n)
		}
	}
	return int(n)
}
