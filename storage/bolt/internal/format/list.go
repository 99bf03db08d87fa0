package format

import (
	"encoding/binary"
	"slices"

	"github.com/partita-go/partita/messages"
)

// A list of LSNs names consecutive events of a log, the first of which is in its key: in bucket plog of a partition's,
// in bucket index of a workspace's. It is sealed:
//
//	lsns = count { LSN }       uvarints; the first LSN, then differences, which are not 0

// AppendList appends a list as it is kept under a key.
func AppendList(b, bucket, key []byte, lsns []messages.LSN) []byte {
	start := len(b)
	return Seal(appendLSNs(b, lsns), start, bucket, key)
}

// DecodeList appends the LSNs of a list, which has one at least. It is safe on any bytes.
func DecodeList(lsns []messages.LSN, bucket, key, value []byte) ([]messages.LSN, error) {
	data, err := unsealAny(bucket, key, value)
	if err != nil {
		return lsns, err
	}
	r := ByteReader{Rest: data}
	before := len(lsns)
	lsns = readLSNs(&r, lsns)
	if r.Bad || len(r.Rest) != 0 || len(lsns) == before {
		return lsns[:before], ErrLayout
	}
	return lsns, nil
}

func appendLSNs(b []byte, lsns []messages.LSN) []byte {
	b = binary.AppendUvarint(b, uint64(len(lsns)))
	before := messages.LSN(0)
	for _, lsn := range lsns {
		b = binary.AppendUvarint(b, uint64(lsn-before))
		before = lsn
	}
	return b
}

func readLSNs(r *ByteReader, lsns []messages.LSN) []messages.LSN {
	n := r.Count(1)
	lsns = slices.Grow(lsns, n)
	rest, before := r.Rest, messages.LSN(0)
	for ; n > 0; n-- {
		more, width := binary.Uvarint(rest)
		if width <= 0 || before+messages.LSN(more) <= before {
			r.fail()
			return lsns
		}
		rest, before = rest[width:], before+messages.LSN(more)
		lsns = append(lsns, before)
	}
	r.Rest = rest
	return lsns
}
