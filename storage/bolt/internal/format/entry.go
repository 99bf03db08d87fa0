package format

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage/replog"
)

// Epoch is the current epoch of a partition.
type Epoch struct {
	Partition messages.PartitionID
	Epoch     messages.Epoch
}

// Entry is what one commit writes to a replicated log:
//
//	version  1
//	epochs   count { partition epoch }
//	events   count { length value }
//
// The integers are unsigned varints. The values are sealed for the LSNs behind the store's last one: an entry at any other
// place is damaged.
type Entry struct {
	// Epochs are those that were taken, as they are behind the events.
	Epochs []Epoch
	Values [][]byte
}

const entryVersion = 1

// Encode returns the entry's bytes.
func (e *Entry) Encode() []byte {
	size := 1 + (1+2*len(e.Epochs)+len(e.Values))*binary.MaxVarintLen64
	for _, v := range e.Values {
		size += len(v)
	}
	b := append(make([]byte, 0, size), entryVersion)
	b = binary.AppendUvarint(b, uint64(len(e.Epochs)))
	for _, taken := range e.Epochs {
		b = binary.AppendUvarint(b, uint64(taken.Partition))
		b = binary.AppendUvarint(b, uint64(taken.Epoch))
	}
	b = binary.AppendUvarint(b, uint64(len(e.Values)))
	for _, v := range e.Values {
		b = append(binary.AppendUvarint(b, uint64(len(v))), v...)
	}
	return b
}

// DecodeEntry is safe on any bytes. The values are part of them.
func DecodeEntry(b []byte) (e Entry, err error) {
	r := ByteReader{Rest: b}
	if version := r.byte(); version != entryVersion && !r.Bad {
		return e, fmt.Errorf("%w: got %d, want %d", errVersion, version, entryVersion)
	}
	for n := r.Count(2); n > 0 && !r.Bad; n-- {
		e.Epochs = append(e.Epochs, Epoch{
			Partition: messages.PartitionID(r.Uvarint(math.MaxUint32)), Epoch: messages.Epoch(r.Uvarint(math.MaxUint64)),
		})
	}
	for n := r.Count(1); n > 0 && !r.Bad; n-- {
		e.Values = append(e.Values, r.bytes())
	}
	if r.Bad || len(r.Rest) != 0 {
		return Entry{}, ErrLayout
	}
	return e, nil
}

// A position in a replicated log stands in bucket header of log.db under key "replica", sealed:
//
//	index  8, BE
//	head   8, BE
//	sum    4, BE
const positionLen = 8 + 8 + 4

// EncodePosition returns what log.db says of a replicated log that it has up to there.
func EncodePosition(at replog.Position) []byte {
	b := binary.BigEndian.AppendUint64(make([]byte, 0, positionLen+SealedOverhead), at.Index)
	b = binary.BigEndian.AppendUint64(b, at.Head)
	b = binary.BigEndian.AppendUint32(b, at.Sum)
	return Seal(b, 0, BucketHeader, KeyReplica)
}

// DecodePosition is safe on any bytes.
func DecodePosition(value []byte) (replog.Position, error) {
	data, err := Unseal(BucketHeader, KeyReplica, value, positionLen)
	if err != nil {
		return replog.Position{}, err
	}
	return replog.Position{
		Index: binary.BigEndian.Uint64(data), Head: binary.BigEndian.Uint64(data[8:]), Sum: binary.BigEndian.Uint32(data[16:]),
	}, nil
}
