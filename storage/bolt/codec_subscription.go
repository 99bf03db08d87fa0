package bolt

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

// definition is a subscription without its positions and parked events, but for how many
// there are.
type definition struct {
	storage.SubscriptionSource
	positions uint32
	parked    uint64
	stopped   string
}

func (d *definition) encode(key []byte) []byte {
	b := binary.BigEndian.AppendUint32(nil, d.positions)
	b = binary.BigEndian.AppendUint64(b, d.parked)
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
	return seal(append(b, d.stopped...), 0, bucketSubscriptions, key)
}

// decodeDefinition is safe on any bytes.
func decodeDefinition(key, value []byte) (definition, error) {
	b, err := unsealAll(bucketSubscriptions, key, value)
	if err != nil {
		return definition{}, err
	}
	if len(b) < subscriptionFixed {
		return definition{}, errLayout
	}
	d := definition{positions: be32(b), parked: be64(b[4:])}
	if !d.setSource(b[12], be64(b[13:])) {
		return definition{}, errLayout
	}
	kinds := int(binary.BigEndian.Uint16(b[21:]))
	b = b[subscriptionFixed:]
	if len(b) < 2*kinds {
		return definition{}, errLayout
	}
	for ; kinds > 0; kinds-- {
		d.Kinds = append(d.Kinds, messages.WSKind(binary.BigEndian.Uint16(b)))
		b = b[2:]
	}
	d.stopped = string(b)
	return d, nil
}

// setSource reports whether there is such a source.
func (d *definition) setSource(which byte, id uint64) bool {
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

// unsealAll returns the data of a sealed value of any length.
func unsealAll(bucket, key, value []byte) ([]byte, error) {
	if len(value) < sealedOverhead {
		return nil, errTruncated
	}
	return unseal(bucket, key, value, len(value)-sealedOverhead)
}

func encodeParked(key []byte, e *storage.ParkedEvent) []byte {
	b := binary.BigEndian.AppendUint64(nil, uint64(e.At))
	b = binary.BigEndian.AppendUint32(b, e.Tries)
	return seal(append(b, e.Reason...), 0, bucketParked, key)
}

// decodeParked is safe on any bytes. The key's end says which event it is.
func decodeParked(key, value []byte) (storage.ParkedEvent, error) {
	b, err := unsealAll(bucketParked, key, value)
	if err != nil {
		return storage.ParkedEvent{}, err
	}
	if len(b) < parkedFixed || len(key) < plogKeyLen {
		return storage.ParkedEvent{}, errLayout
	}
	place := key[len(key)-plogKeyLen:]
	return storage.ParkedEvent{
		Partition: messages.PartitionID(be32(place)),
		Offset:    be64(place[partitionKeyLen:]),
		At:        messages.Timestamp(be64(b)),
		Tries:     be32(b[8:]),
		Reason:    string(b[parkedFixed:]),
	}, nil
}

// subscriptionPrefix begins the keys of a subscription's positions and parked events. No
// name has a zero byte, so that none of them begins with another's.
func subscriptionPrefix(name string) []byte { return append([]byte(name), 0) }

func positionKey(name string, p messages.PartitionID) []byte {
	return appendPartitionKey(subscriptionPrefix(name), p)
}

func parkedKey(name string, p messages.PartitionID, offset uint64) []byte {
	return binary.BigEndian.AppendUint64(positionKey(name, p), offset)
}
