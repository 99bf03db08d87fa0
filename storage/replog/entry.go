package replog

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
)

// Sizes of an entry in bytes.
const (
	// MaxEntry bounds the body of an entry. Since an event may have 16 MiB, and a group of events several, this is more
	// than an engine likes. With what stands around it, it is what one takes at all: raft-wal takes 64 MiB.
	MaxEntry = 64<<20 - 4096
	// GoodEntry is how much a writer puts into an entry at most if it has the choice: larger ones delay the engine's
	// heartbeats, and it has several of them in memory for each node that catches up.
	GoodEntry = 1 << 20
)

// An entry's bytes. Numbers are big-endian. What the body says is the store's own affair.
//
//	version     1
//	shard       4  which log it belongs to
//	prev        8  the head it was written behind
//	prev's sum  4  the checksum of the entry there, 0 if prev is 0
//	body        .
//	sum         4  CRC-32C of all before
//
// In all versions the first byte is the version, and the last four are the sum: so a program can tell an entry of a newer one
// from a damaged one. A program writes a new version only when all nodes know it, see docs/cluster.md.
const (
	entryVersion = 1
	headerLen    = 1 + 4 + 8 + 4
	sumLen       = 4
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Shard names a log among those of an application. Entries of one are not taken for those of another.
type Shard uint32

// Position is where a log stands. The zero position is before the first entry.
type Position struct {
	// Index is the engine's place of the last accepted entry.
	Index uint64
	// Head counts the accepted entries.
	Head uint64
	// Sum is the checksum of the last accepted entry, which has that of the one before, and so on: two replicas at one
	// head have the same entries if it is equal.
	Sum uint32
}

// Seal makes an entry that counts only behind this position.
func (p Position) Seal(shard Shard, body []byte) []byte {
	b := make([]byte, 0, headerLen+len(body)+sumLen)
	b = append(b, entryVersion)
	b = binary.BigEndian.AppendUint32(b, uint32(shard))
	b = binary.BigEndian.AppendUint64(b, p.Head)
	b = binary.BigEndian.AppendUint32(b, p.Sum)
	b = append(b, body...)
	return binary.BigEndian.AppendUint32(b, crc32.Checksum(b, castagnoli))
}

// Verdict is what becomes of an entry.
type Verdict uint8

// The verdicts.
const (
	// Accepted: it stands behind the head, and is the head now.
	Accepted Verdict = iota + 1
	// Void: others were accepted behind the head that it names. It never counts.
	Void
	// Seen: it is not behind the position: the replica has made of it what there is to make.
	Seen
)

// Take judges the entry at an index of the engine's, which goes up, and moves the position behind it if it is accepted. All
// nodes judge alike, since only what they have accepted before goes into it. The body is part of the entry.
//
// ErrDiverged: it is damaged, or of another shard, or this replica has not accepted what the others have. ErrNewer: this
// program does not know its version.
func (p *Position) Take(shard Shard, index uint64, entry []byte) (body []byte, v Verdict, err error) {
	if index <= p.Index {
		return nil, Seen, nil
	}
	if len(entry) < headerLen+sumLen {
		return nil, 0, diverged(index, "got %d bytes, want at least %d", len(entry), headerLen+sumLen)
	}
	content := entry[:len(entry)-sumLen]
	sum := binary.BigEndian.Uint32(entry[len(content):])
	if got := crc32.Checksum(content, castagnoli); got != sum {
		return nil, 0, diverged(index, "checksum: got %08x, want %08x", got, sum)
	}
	if entry[0] > entryVersion {
		return nil, 0, fmt.Errorf("%w: entry %d: got version %d, want at most %d", ErrNewer, index, entry[0], entryVersion)
	}
	if entry[0] != entryVersion {
		return nil, 0, diverged(index, "version: got %d, want %d", entry[0], entryVersion)
	}
	if got := Shard(binary.BigEndian.Uint32(entry[1:])); got != shard {
		return nil, 0, diverged(index, "shard: got %d, want %d", got, shard)
	}
	prev, prevSum := binary.BigEndian.Uint64(entry[5:]), binary.BigEndian.Uint32(entry[13:])
	switch {
	case prev < p.Head:
		return nil, Void, nil
	case prev > p.Head:
		// Whoever wrote it had accepted all of these, and they stand before it.
		return nil, 0, diverged(index, "it is behind head %d, and there are %d entries", prev, p.Head)
	case prevSum != p.Sum:
		return nil, 0, diverged(index, "checksum of the entry before: got %08x, want %08x", prevSum, p.Sum)
	}
	*p = Position{Index: index, Head: p.Head + 1, Sum: sum}
	return content[headerLen:], Accepted, nil
}

func diverged(index uint64, format string, args ...any) error {
	return fmt.Errorf("%w: entry %d: %s", ErrDiverged, index, fmt.Sprintf(format, args...))
}
