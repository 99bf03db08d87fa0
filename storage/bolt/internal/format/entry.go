package format

import (
	"bytes"
	"encoding/binary"
	"math"
	"slices"

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
//	changes  count { what 1, bucket 1, length key, if something is put: length value }
//	numbers  count { launch number }, in version 2 alone
//
// The integers are unsigned varints, what and bucket are bytes. The values of events are sealed for the LSNs behind the
// store's last one: an entry at any other place is damaged. The version is the lowest that has what there is to say: so
// programs that know no version 2 read all entries without generators.
type Entry struct {
	// Epochs are those that were taken, as they are behind the events.
	Epochs []Epoch
	Values [][]byte
	// Changes are those of subscriptions.db, in their order.
	Changes []Change
	// Generators are those of ids that were numbered.
	Generators []Generator
}

// Generator is one of decimal ids. Of its launch it is the last, unless that is ahead already: no number is given twice.
type Generator struct{ Launch, Number uint32 }

// Change is one entry of subscriptions.db that is written, or deleted if value is nil.
type Change struct {
	Bucket, Key, Value []byte
	// All says that all entries are deleted whose keys begin with Key.
	All bool
}

// What a change does.
const (
	changePut byte = iota + 1
	changeDelete
	changeDeleteAll
)

// changedBuckets are those that changes may be about. The place of each is its byte in an entry: only add to their end.
var changedBuckets = [][]byte{BucketHeader, BucketSubscriptions, BucketPositions, BucketParked}

// Size is about how many bytes the change takes.
func (c *Change) Size() int { return len(c.Key) + len(c.Value) + 2 + 2*binary.MaxVarintLen32 }

func (c *Change) append(b []byte) []byte {
	what := changePut
	switch {
	case c.All:
		what = changeDeleteAll
	case c.Value == nil:
		what = changeDelete
	}
	bucket := slices.IndexFunc(changedBuckets, func(name []byte) bool { return bytes.Equal(name, c.Bucket) })
	b = append(b, what, byte(bucket))
	b = append(binary.AppendUvarint(b, uint64(len(c.Key))), c.Key...)
	if what == changePut {
		b = append(binary.AppendUvarint(b, uint64(len(c.Value))), c.Value...)
	}
	return b
}

// readChange reads a change. What it says is of the bytes.
func readChange(r *ByteReader) (c Change) {
	what, bucket := r.byte(), int(r.byte())
	c.Key, c.All = r.bytes(), what == changeDeleteAll
	if what == changePut {
		c.Value = r.bytes()
	}
	if what < changePut || what > changeDeleteAll || bucket >= len(changedBuckets) || len(c.Key) == 0 {
		r.fail()
		return c
	}
	c.Bucket = changedBuckets[bucket]
	return c
}

const (
	entryVersion           = 1
	entryVersionGenerators = 2
)

// Encode returns the entry's bytes.
func (e *Entry) Encode() []byte {
	size := 1 + (4+2*len(e.Epochs)+len(e.Values)+2*len(e.Generators))*binary.MaxVarintLen64
	for _, v := range e.Values {
		size += len(v)
	}
	for i := range e.Changes {
		size += e.Changes[i].Size()
	}
	version := byte(entryVersion)
	if len(e.Generators) > 0 {
		version = entryVersionGenerators
	}
	b := append(make([]byte, 0, size), version)
	b = binary.AppendUvarint(b, uint64(len(e.Epochs)))
	for _, taken := range e.Epochs {
		b = binary.AppendUvarint(b, uint64(taken.Partition))
		b = binary.AppendUvarint(b, uint64(taken.Epoch))
	}
	b = binary.AppendUvarint(b, uint64(len(e.Values)))
	for _, v := range e.Values {
		b = append(binary.AppendUvarint(b, uint64(len(v))), v...)
	}
	b = binary.AppendUvarint(b, uint64(len(e.Changes)))
	for i := range e.Changes {
		b = e.Changes[i].append(b)
	}
	if version == entryVersion {
		return b
	}
	b = binary.AppendUvarint(b, uint64(len(e.Generators)))
	for _, g := range e.Generators {
		b = binary.AppendUvarint(b, uint64(g.Launch))
		b = binary.AppendUvarint(b, uint64(g.Number))
	}
	return b
}

// readGenerators reads those that were numbered. An entry of their version has one at least.
func readGenerators(r *ByteReader) (all []Generator) {
	n := r.Count(2)
	for ; n > 0 && !r.Bad; n-- {
		all = append(all, Generator{uint32(r.Uvarint(math.MaxUint32)), uint32(r.Uvarint(math.MaxUint32))})
		if all[len(all)-1].Number == 0 {
			r.fail()
		}
	}
	if len(all) == 0 {
		r.fail()
	}
	return all
}

// DecodeEntry is safe on any bytes. The values and the changes are part of them.
func DecodeEntry(b []byte) (e Entry, err error) {
	r := ByteReader{Rest: b}
	version := r.byte()
	if (version < entryVersion || version > entryVersionGenerators) && !r.Bad {
		return e, unknownVersion(version, entryVersion, entryVersionGenerators)
	}
	for n := r.Count(2); n > 0 && !r.Bad; n-- {
		e.Epochs = append(e.Epochs, Epoch{
			Partition: messages.PartitionID(r.Uvarint(math.MaxUint32)), Epoch: messages.Epoch(r.Uvarint(math.MaxUint64)),
		})
	}
	for n := r.Count(1); n > 0 && !r.Bad; n-- {
		e.Values = append(e.Values, r.bytes())
	}
	for n := r.Count(3); n > 0 && !r.Bad; n-- {
		e.Changes = append(e.Changes, readChange(&r))
	}
	if version == entryVersionGenerators {
		e.Generators = readGenerators(&r)
	}
	if r.Bad || len(r.Rest) != 0 {
		return Entry{}, ErrLayout
	}
	return e, nil
}

// A position in a replicated log stands in bucket header, sealed: in log.db under "replica" and "kept", in subscriptions.db
// under "replica":
//
//	index  8, BE
//	head   8, BE
//	sum    4, BE
const positionLen = 8 + 8 + 4

// EncodePosition returns a position as it is kept under a key of bucket header.
func EncodePosition(key []byte, at replog.Position) []byte {
	b := binary.BigEndian.AppendUint64(make([]byte, 0, positionLen+SealedOverhead), at.Index)
	b = binary.BigEndian.AppendUint64(b, at.Head)
	b = binary.BigEndian.AppendUint32(b, at.Sum)
	return Seal(b, 0, BucketHeader, key)
}

// DecodePosition is safe on any bytes.
func DecodePosition(key, value []byte) (replog.Position, error) {
	data, err := Unseal(BucketHeader, key, value, positionLen)
	if err != nil {
		return replog.Position{}, err
	}
	return replog.Position{
		Index: binary.BigEndian.Uint64(data), Head: binary.BigEndian.Uint64(data[8:]), Sum: binary.BigEndian.Uint32(data[16:]),
	}, nil
}
