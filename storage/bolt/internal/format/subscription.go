package format

import (
	"encoding/binary"
	"math"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage"
)

// What a subscription reads, and why it delivers nothing, in bucket subscriptions, sealed.
// It says how many entries the subscription has in the other buckets, so that none is lost
// unnoticed: a position that is not there would be the beginning of the log.
//
//	 0           4        12      13       21      23
//	+-----------+--------+-------+--------+-------+----------+---------+-----+
//	| positions | parked | which | source | kinds | { kind } | stopped | CRC |
//	| 4         | 8      | 1     | 8      | 2     | 2        | to end  | 4   |
//	+-----------+--------+-------+--------+-------+----------+---------+-----+
//
// A position, in bucket positions, is encoded by [position.encode]. A parked event, in bucket parked,
// sealed, is
//
//	 0    8       12       n     n+4
//	+----+-------+--------+-----+
//	| at | tries | reason | CRC |
//	+----+-------+--------+-----+
const (
	subscriptionFixed = 23
	parkedFixed       = 12

	sourceAll       = 0
	sourcePartition = 1
	sourceWorkspace = 2
)

// Definition is a subscription without its positions and parked events, but for how many
// there are.
type Definition struct {
	storage.SubscriptionSource
	Positions uint32
	Parked    uint64
	Stopped   string
}

// Encode returns a definition as it is kept under a name.
func (d *Definition) Encode(key []byte) []byte {
	b := binary.BigEndian.AppendUint32(nil, d.Positions)
	b = binary.BigEndian.AppendUint64(b, d.Parked)
	switch {
	case d.Partition != nil:
		b = binary.BigEndian.AppendUint64(append(b, sourcePartition), uint64(*d.Partition))
	case d.Workspace != nil:
		b = binary.BigEndian.AppendUint64(append(b, sourceWorkspace), uint64(*d.Workspace))
	default:
		b = binary.BigEndian.AppendUint64(append(b, sourceAll), 0)
	}
	b = binary.BigEndian.AppendUint16(b, uint16(len(d.Kinds)))
	for _, k := range d.Kinds {
		b = binary.BigEndian.AppendUint16(b, uint16(k))
	}
	return Seal(append(b, d.Stopped...), 0, BucketSubscriptions, key)
}

// DecodeDefinition is safe on any bytes.
func DecodeDefinition(key, value []byte) (Definition, error) {
	b, err := UnsealAll(BucketSubscriptions, key, value)
	if err != nil {
		return Definition{}, err
	}
	if len(b) < subscriptionFixed {
		return Definition{}, ErrLayout
	}
	d := Definition{Positions: Uint32(b), Parked: Uint64(b[4:])}
	if !d.setSource(b[12], Uint64(b[13:])) {
		return Definition{}, ErrLayout
	}
	kinds := int(binary.BigEndian.Uint16(b[21:]))
	b = b[subscriptionFixed:]
	if len(b) < 2*kinds {
		return Definition{}, ErrLayout
	}
	for ; kinds > 0; kinds-- {
		d.Kinds = append(d.Kinds, messages.WSKind(binary.BigEndian.Uint16(b)))
		b = b[2:]
	}
	d.Stopped = string(b)
	return d, nil
}

// setSource reports whether there is such a source.
func (d *Definition) setSource(which byte, id uint64) bool {
	switch {
	case which == sourceAll && id == 0:
	case which == sourcePartition && id <= math.MaxUint32:
		d.Partition = new(messages.PartitionID(id))
	case which == sourceWorkspace:
		d.Workspace = new(messages.WSID(id))
	default:
		return false
	}
	return true
}

// UnsealAll returns the data of a sealed value of any length.
func UnsealAll(bucket, key, value []byte) ([]byte, error) {
	if len(value) < SealedOverhead {
		return nil, ErrTruncated
	}
	return Unseal(bucket, key, value, len(value)-SealedOverhead)
}

// EncodeParked returns a parked event as it is kept under a key.
func EncodeParked(key []byte, e *storage.ParkedEvent) []byte {
	b := binary.BigEndian.AppendUint64(nil, uint64(e.At))
	b = binary.BigEndian.AppendUint32(b, e.Tries)
	return Seal(append(b, e.Reason...), 0, BucketParked, key)
}

// DecodeParked is safe on any bytes. The key's end says which event it is.
func DecodeParked(key, value []byte) (storage.ParkedEvent, error) {
	b, err := UnsealAll(BucketParked, key, value)
	if err != nil {
		return storage.ParkedEvent{}, err
	}
	if len(b) < parkedFixed || len(key) < PLogKeyLen {
		return storage.ParkedEvent{}, ErrLayout
	}
	place := key[len(key)-PLogKeyLen:]
	return storage.ParkedEvent{
		Partition: messages.PartitionID(Uint32(place)),
		Offset:    Uint64(place[PartitionKeyLen:]),
		At:        messages.Timestamp(Uint64(b)),
		Tries:     Uint32(b[8:]),
		Reason:    string(b[parkedFixed:]),
	}, nil
}

// SubscriptionPrefix begins the keys of a subscription's positions and parked events. No
// name has a zero byte, so that none of them begins with another's.
func SubscriptionPrefix(name string) []byte { return append([]byte(name), 0) }

// PositionKey returns the key of a position.
func PositionKey(name string, p messages.PartitionID) []byte {
	return AppendPartitionKey(SubscriptionPrefix(name), p)
}

// ParkedKey returns the key of a parked event.
func ParkedKey(name string, p messages.PartitionID, offset uint64) []byte {
	return binary.BigEndian.AppendUint64(PositionKey(name, p), offset)
}
