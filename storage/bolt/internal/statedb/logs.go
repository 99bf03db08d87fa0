package statedb

import (
	"slices"
	"sort"

	"go.etcd.io/bbolt"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage"
	"github.com/partita-go/partita/storage/bolt/internal/boltfile"
	"github.com/partita-go/partita/storage/bolt/internal/format"
)

// listLen is how many events of a partition's log a list names at most.
const listLen = 256

// PLog finds entries of a partition's log, all of which must be there: the LSNs of their events.
func PLog(state *boltfile.File, p messages.PartitionID, from, to messages.PLogOffset) (lsns []messages.LSN, err error) {
	err = state.View(func(tx *bbolt.Tx) error {
		lsns, err = PLogIn(tx, p, from, to)
		return err
	})
	return lsns, err
}

// PLogIn is PLog in a transaction.
func PLogIn(tx *bbolt.Tx, p messages.PartitionID, from, to messages.PLogOffset) ([]messages.LSN, error) {
	lsns := make([]messages.LSN, 0, to-from+listLen)
	c := tx.Bucket(format.BucketPLog).Cursor()
	k, v, err := atOrBefore(c, format.BucketPLog, format.AppendPLogKey(nil, p, from))
	if err != nil {
		return nil, err
	}
	for next := from; next < to; k, v = c.Next() {
		first, ok := plogKeyOf(k, p)
		if !ok || first > next || first < next && next != from {
			return lsns, missingEvent(p, next, format.ErrMissing)
		}
		before := len(lsns)
		if lsns, err = format.DecodeList(lsns, format.BucketPLog, k, v); err != nil {
			return lsns, missingEvent(p, next, err)
		}
		if end := first + messages.PLogOffset(len(lsns)-before); end <= next {
			return lsns[:before], missingEvent(p, next, format.ErrMissing)
		}
		lsns = slices.Delete(lsns, before, before+int(next-first))
		next = from + messages.PLogOffset(len(lsns))
	}
	return lsns[:to-from], nil
}

// plogKeyOf returns the first offset of a list of a partition.
func plogKeyOf(k []byte, p messages.PartitionID) (messages.PLogOffset, bool) {
	if len(k) != format.PLogKeyLen || messages.PartitionID(format.Uint32(k)) != p {
		return 0, false
	}
	return messages.PLogOffset(format.Uint64(k[format.PartitionKeyLen:])), true
}

func missingEvent(p messages.PartitionID, o messages.PLogOffset, cause error) error {
	return &storage.DamagedError{
		Where: format.PlaceOf(format.BucketPLog, "partition %d, offset %d", p, o), Partition: p, PLogOffset: o, Cause: cause,
	}
}

// TakenPLog returns the first offset of a partition's log, at or behind one, that a list names. A list that cannot be
// read takes the place that its key says.
func TakenPLog(tx *bbolt.Tx, p messages.PartitionID, from messages.PLogOffset) (messages.PLogOffset, bool) {
	c := tx.Bucket(format.BucketPLog).Cursor()
	sought := format.AppendPLogKey(nil, p, from)
	k, v, _ := atOrBefore(c, format.BucketPLog, sought)
	if first, ours := plogKeyOf(k, p); ours {
		lsns, err := format.DecodeList(nil, format.BucketPLog, k, v)
		if first == from || err == nil && first+messages.PLogOffset(len(lsns)) > from {
			return from, true
		}
	}
	k, _ = c.Seek(sought)
	return plogKeyOf(k, p)
}

// PutPLog appends the LSNs of events to a partition's log, the first of which has an offset. Lists are filled up.
func PutPLog(b *bbolt.Bucket, p messages.PartitionID, first messages.PLogOffset, lsns []messages.LSN) error {
	b.FillPercent = boltfile.StateFill
	var list []messages.LSN
	k, v, err := atOrBefore(b.Cursor(), format.BucketPLog, format.AppendPLogKey(nil, p, first))
	if err != nil {
		return err
	}
	if begin, ours := plogKeyOf(k, p); ours {
		last, err := format.DecodeList(nil, format.BucketPLog, k, v)
		if err == nil && len(last) < listLen && begin+messages.PLogOffset(len(last)) == first {
			first, list = begin, last
		}
	}
	for len(lsns) > 0 {
		n := min(len(lsns), listLen-len(list))
		list = append(list, lsns[:n]...)
		lsns = lsns[n:]
		key := format.AppendPLogKey(nil, p, first)
		if err := b.Put(key, format.AppendList(nil, format.BucketPLog, key, list)); err != nil {
			return err
		}
		first += messages.PLogOffset(len(list))
		list = list[:0]
	}
	return nil
}

// Projected returns how far the log is projected.
func Projected(state *boltfile.File) (messages.LSN, error) {
	n := uint64(1)
	err := state.View(func(tx *bbolt.Tx) (err error) {
		if v := tx.Bucket(format.BucketHeader).Get(format.KeyProjected); v != nil {
			n, err = format.UnsealUint(format.BucketHeader, format.KeyProjected, v)
		}
		return err
	})
	return messages.LSN(n), err
}

// HasPLog reports whether an entry of the log is in the projection of a partition's log, where LSNs go up with the offsets,
// below a checkpoint.
func HasPLog(tx *bbolt.Tx, p messages.PartitionID, checkpoint messages.PLogOffset, lsn messages.LSN) bool {
	at := func(o int) messages.LSN {
		lsns, err := PLogIn(tx, p, messages.PLogOffset(o+1), messages.PLogOffset(o+2))
		if err != nil {
			return 0
		}
		return lsns[0]
	}
	n := int(checkpoint - 1)
	o := sort.Search(n, func(o int) bool { return at(o) >= lsn })
	return o < n && at(o) == lsn
}
