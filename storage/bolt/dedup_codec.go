package bolt

import (
	"cmp"
	"encoding/binary"
	"math"
	"slices"

	"github.com/partita-go/partita/messages"
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
	dedupKeyLen   = 16
	dedupEntryLen = 16
	dedupHeadLen  = 10
	dedupSlotLen  = 8
)

// What a writer does; a reader takes any block.
const (
	// dedupBlockEntries is how many entries a block gets: it fills 16 KiB. More make
	// the lookup cheaper, and a small flush dearer, since bbolt writes a leaf of two
	// blocks at a time.
	dedupBlockEntries = 1000
	// dedupSlotEntries is how many entries a slot has on average.
	dedupSlotEntries = 24
	// dedupMinSlots keeps the width of a slot within 64 bits.
	dedupMinSlots = 2
)

// lastHash is the largest.
const lastHash = math.MaxUint64

// dedupEntry says that an event may have an id with this hash.
type dedupEntry struct {
	hash uint64
	lsn  messages.LSN
}

func compareEntries(a, b dedupEntry) int {
	return cmp.Or(cmp.Compare(a.hash, b.hash), cmp.Compare(a.lsn, b.lsn))
}

func appendDedupKey(b []byte, serial, last uint64) []byte {
	return binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(b, serial), last)
}

// dedupBlock is a decoded block; the slices point into the encoded one.
type dedupBlock struct {
	first, last uint64
	slots       int
	// head is the key, the first hash and the number of slots.
	head                [dedupKeyLen + dedupHeadLen]byte
	ends, sums, entries []byte
}

func newDedupBlock(key []byte, first uint64, slots int) dedupBlock {
	b := dedupBlock{first: first, last: be64(key[8:]), slots: slots}
	copy(b.head[:], key)
	binary.BigEndian.PutUint64(b.head[dedupKeyLen:], first)
	binary.BigEndian.PutUint16(b.head[dedupKeyLen+8:], uint16(slots))
	return b
}

func dedupSlots(entries int) int {
	return min(max(dedupMinSlots, entries/dedupSlotEntries), math.MaxUint16)
}

func dedupBlockLen(entries int) int {
	return dedupHeadLen + dedupSlots(entries)*dedupSlotLen + entries*dedupEntryLen
}

// appendDedupBlock encodes entries that are in order.
func appendDedupBlock(dst, key []byte, first uint64, entries []dedupEntry) []byte {
	b := newDedupBlock(key, first, dedupSlots(len(entries)))
	dst = append(dst, b.head[dedupKeyLen:]...)
	table, next := len(dst), 0
	dst = append(dst, make([]byte, dedupSlotLen*b.slots)...)
	dst = slices.Grow(dst, dedupEntryLen*len(entries))
	start := len(dst)
	b.ends, b.sums = dst[table:table+4*b.slots], dst[table+4*b.slots:start]
	for slot := range b.slots {
		for next < len(entries) && b.slotOf(entries[next].hash) == slot {
			dst = binary.BigEndian.AppendUint64(dst, entries[next].hash)
			dst = binary.BigEndian.AppendUint64(dst, uint64(entries[next].lsn))
			next++
		}
		binary.BigEndian.PutUint32(b.ends[4*slot:], uint32(next))
	}
	b.entries = dst[start:]
	for slot := range b.slots {
		begin, end := b.bounds(slot)
		binary.BigEndian.PutUint32(b.sums[4*slot:], b.sum(slot, b.entries[begin:end]))
	}
	return dst
}

// decodeDedupBlock reads a block but for its slots. It is safe on any bytes.
func decodeDedupBlock(key, value []byte) (dedupBlock, error) {
	if len(key) != dedupKeyLen || len(value) < dedupHeadLen {
		return dedupBlock{}, errLayout
	}
	b := newDedupBlock(key, be64(value), int(binary.BigEndian.Uint16(value[8:])))
	value = value[dedupHeadLen:]
	if b.slots < dedupMinSlots || b.first > b.last || len(value) < b.slots*dedupSlotLen {
		return dedupBlock{}, errLayout
	}
	b.ends, b.sums, b.entries = value[:4*b.slots], value[4*b.slots:dedupSlotLen*b.slots], value[dedupSlotLen*b.slots:]
	if _, end := b.bounds(b.slots - 1); end != len(b.entries) {
		return dedupBlock{}, errLayout
	}
	return b, nil
}

// slotOf returns the slot of a hash that the block answers for.
func (b *dedupBlock) slotOf(hash uint64) int {
	width := (b.last-b.first)/uint64(b.slots) + 1
	return int((hash - b.first) / width)
}

// bounds returns where a slot begins and ends, in bytes.
func (b *dedupBlock) bounds(slot int) (begin, end int) {
	if slot > 0 {
		begin = int(be32(b.ends[4*slot-4:]))
	}
	return begin * dedupEntryLen, int(be32(b.ends[4*slot:])) * dedupEntryLen
}

func (b *dedupBlock) sum(slot int, entries []byte) uint32 {
	var head [len(b.head) + 2]byte
	copy(head[:], b.head[:])
	binary.BigEndian.PutUint16(head[len(b.head):], uint16(slot))
	return sealCRC(bucketDedup, head[:], entries)
}

// slot returns the entries of a slot.
func (b *dedupBlock) slot(slot int) (dedupEntries, error) {
	begin, end := b.bounds(slot)
	if begin > end || end > len(b.entries) {
		return nil, errLayout
	}
	entries := b.entries[begin:end]
	if b.sum(slot, entries) != be32(b.sums[4*slot:]) {
		return nil, errChecksum
	}
	return entries, nil
}

// dedupEntries are encoded entries.
type dedupEntries []byte

func (e dedupEntries) len() int { return len(e) / dedupEntryLen }

func (e dedupEntries) at(i int) dedupEntry {
	e = e[i*dedupEntryLen:]
	return dedupEntry{hash: be64(e), lsn: messages.LSN(be64(e[8:]))}
}

// dedupRun is one run, as the list of runs has it.
type dedupRun struct {
	// serial goes up with each run.
	serial uint64
	// entries is how many it has, or will have when it is complete.
	entries uint64
	// through is the last hash that it has been filled up to: 0 if it has nothing yet,
	// lastHash if it is complete.
	through uint64
	// into is the serial of the run that is being filled from this one, 0 if none: it
	// has the hashes up to its through, and this one counts for the others only.
	into uint64
}

// dedupRuns is the list of runs, in order of their serials: sealed, in bucket header
// under key "dedup".
//
//	next serial, count { serial entries through into }
//
// All are unsigned varints.
type dedupRuns struct {
	next uint64
	runs []dedupRun
}

func (d *dedupRuns) encode() []byte {
	b := binary.AppendUvarint(nil, d.next)
	b = binary.AppendUvarint(b, uint64(len(d.runs)))
	for _, r := range d.runs {
		for _, n := range []uint64{r.serial, r.entries, r.through, r.into} {
			b = binary.AppendUvarint(b, n)
		}
	}
	return seal(b, 0, bucketHeader, keyDedup)
}

// decodeDedupRuns is safe on any bytes.
func decodeDedupRuns(value []byte) (dedupRuns, error) {
	n := len(value) - sealedOverhead
	if n < 0 {
		return dedupRuns{}, errTruncated
	}
	data, err := unseal(bucketHeader, keyDedup, value, n)
	if err != nil {
		return dedupRuns{}, err
	}
	r := byteReader{b: data}
	d := dedupRuns{next: r.uvarint(math.MaxUint64)}
	for n := r.count(4); n > 0 && !r.bad; n-- {
		run := dedupRun{serial: r.uvarint(math.MaxUint64)}
		run.entries, run.through, run.into = r.uvarint(math.MaxUint64), r.uvarint(math.MaxUint64), r.uvarint(math.MaxUint64)
		d.runs = append(d.runs, run)
	}
	if r.bad || len(r.b) != 0 || !d.valid() {
		return dedupRuns{}, errLayout
	}
	return d, nil
}

// valid reports whether the serials go up and name runs.
func (d *dedupRuns) valid() bool {
	last := uint64(0)
	for _, r := range d.runs {
		if r.serial <= last || r.serial >= d.next || r.into != 0 && d.run(r.into) == nil {
			return false
		}
		last = r.serial
	}
	return true
}

// run returns a run, nil if there is none of this serial.
func (d *dedupRuns) run(serial uint64) *dedupRun {
	i, ok := slices.BinarySearchFunc(d.runs, serial, func(r dedupRun, serial uint64) int { return cmp.Compare(r.serial, serial) })
	if !ok {
		return nil
	}
	return &d.runs[i]
}

// counts reports whether a run is the one to ask for a hash.
func (d *dedupRuns) counts(r *dedupRun, hash uint64) bool {
	return r.has(hash) && (r.into == 0 || !d.run(r.into).has(hash))
}

// has reports whether a run has been filled up to a hash.
func (r *dedupRun) has(hash uint64) bool { return r.through != 0 && hash <= r.through }
