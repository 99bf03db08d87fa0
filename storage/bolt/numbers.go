package bolt

import (
	"bytes"
	"context"
	"encoding/binary"

	"go.etcd.io/bbolt"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage"
	"github.com/partita-go/partita/storage/bolt/internal/format"
)

// numberEntry encodes an entry of bucket numbers.
func numberEntry(n numberPut) (key, value []byte) {
	b := make([]byte, 0, format.NumberKeyLen+format.SealedNumberLen)
	b = format.AppendNumberKey(b, n.ws, n.seq)
	key = b[:format.NumberKeyLen:format.NumberKeyLen]
	return key, format.SealedUint(b, format.BucketNumbers, key, uint64(n.number))[format.NumberKeyLen:]
}

// storedNumber returns the last number of a sequence, or the kind of a workspace, 0
// if there is none.
func storedNumber(b *bbolt.Bucket, ws messages.WSID, seq messages.SeqID) (messages.Number, error) {
	key := format.AppendNumberKey(make([]byte, 0, format.NumberKeyLen), ws, seq)
	v := b.Get(key)
	if v == nil {
		return 0, nil
	}
	n, err := format.UnsealUint(format.BucketNumbers, key, v)
	if err != nil {
		return 0, format.DamagedNumber(ws, seq, err)
	}
	return messages.Number(n), nil
}

// decodeNumber returns what an entry says of its sequence.
func decodeNumber(k, v []byte) (messages.SeqID, messages.Number, error) {
	if len(k) != format.NumberKeyLen {
		return 0, 0, &storage.DamagedError{Where: format.PlaceOf(format.BucketNumbers, "key %x", k), Cause: format.ErrLayout}
	}
	seq := messages.SeqID(binary.BigEndian.Uint16(k[format.WorkspaceKeyLen:]))
	n, err := format.UnsealUint(format.BucketNumbers, k, v)
	if err != nil {
		return 0, 0, format.DamagedNumber(messages.WSID(format.Uint64(k)), seq, err)
	}
	return seq, messages.Number(n), nil
}

// checkBefore makes sure that the entry before a workspace's first one is sound. A
// page has no checksum: an entry whose key is damaged seems to be another
// workspace's, or nobody's, and its number would be given again. But it still lies
// where it lay, between its neighbours. So who reads a workspace's entries looks at
// the one before them and the one behind them too. Where a key of a branch is damaged,
// the search ends beside another place.
func checkBefore(c *bbolt.Cursor, first []byte) error {
	k, _ := c.Seek(first)
	var v []byte
	if k == nil {
		k, v = c.Last()
	} else {
		if bytes.Compare(k, first) < 0 {
			return astray(format.BucketNumbers, first)
		}
		k, v = c.Prev()
	}
	if k == nil {
		return nil
	}
	if bytes.Compare(k, first) >= 0 {
		return astray(format.BucketNumbers, first)
	}
	_, _, err := decodeNumber(k, v)
	return err
}

// settleNumbers merges what the log says with what is stored, by maximum, and
// leaves in derived only what changes. What the caller gave must be the same: each
// key that changes, with the new value. A key that does not change may be given,
// with the stored value or with the largest that these events say. An error is a
// [*storage.NumbersError] or damage.
func (r *flushRequest) settleNumbers(tx *bbolt.Tx) error {
	b := tx.Bucket(format.BucketNumbers)
	given := r.given
	changed := r.derived[:0]
	for _, n := range r.derived {
		for len(given) > 0 && compareNumbers(given[0], n) < 0 {
			if err := r.checkUnchanged(b, given[0]); err != nil {
				return err
			}
			given = given[1:]
		}
		stored, err := storedNumber(b, n.ws, n.seq)
		if err != nil {
			return err
		}
		want := n.merged(stored)
		got := messages.Number(0)
		if len(given) > 0 && compareNumbers(given[0], n) == 0 {
			got, given = given[0].number, given[1:]
		}
		if !r.derive && !n.agrees(got, stored, want) {
			return r.numbersError(numberPut{n.ws, n.seq, got}, want)
		}
		if want != stored {
			changed = append(changed, numberPut{n.ws, n.seq, want})
		}
	}
	for _, n := range given {
		if err := r.checkUnchanged(b, n); err != nil {
			return err
		}
	}
	r.derived = changed
	return nil
}

// merged is what will be stored: the larger number; a kind once and for all.
func (n numberPut) merged(stored messages.Number) messages.Number {
	if n.seq == format.KindSeq && stored != 0 {
		return stored
	}
	return max(stored, n.number)
}

// agrees reports whether what was given, 0 if nothing, is right for a number that
// the log derives.
func (n numberPut) agrees(got, stored, want messages.Number) bool {
	switch {
	case got == want:
		return true
	case want != stored:
		return false
	}
	return got == 0 || got == n.number && n.seq != format.KindSeq
}

// checkUnchanged makes sure that a number given is the stored one.
func (r *flushRequest) checkUnchanged(b *bbolt.Bucket, n numberPut) error {
	stored, err := storedNumber(b, n.ws, n.seq)
	if err != nil || stored == n.number {
		return err
	}
	return r.numbersError(n, stored)
}

func (r *flushRequest) numbersError(got numberPut, want messages.Number) error {
	return &storage.NumbersError{
		Partition: r.partition.id, Workspace: got.ws, Seq: got.seq, Got: got.number, Want: want, Checkpoint: r.to,
	}
}

// checkRepeated makes sure that a flush that has happened gave what is stored.
func (s *Store) checkRepeated(r *flushRequest) error {
	return s.state.View(func(tx *bbolt.Tx) error {
		b := tx.Bucket(format.BucketNumbers)
		for _, n := range r.given {
			stored, err := storedNumber(b, n.ws, n.seq)
			if err != nil {
				return err
			}
			if n.number > stored || n.seq == format.KindSeq && n.number != stored {
				return r.numbersError(n, stored)
			}
		}
		return nil
	})
}

// Numbers implements [storage.Projections].
func (s *Store) Numbers(ctx context.Context, ws messages.WSID) (storage.WorkspaceNumbers, error) {
	if err := s.enter(ctx); err != nil {
		return storage.WorkspaceNumbers{}, err
	}
	w := storage.WorkspaceNumbers{Workspace: ws}
	err := s.state.View(func(tx *bbolt.Tx) error {
		first := format.AppendNumberKey(make([]byte, 0, format.NumberKeyLen), ws, 0)
		c := tx.Bucket(format.BucketNumbers).Cursor()
		if err := checkBefore(c, first); err != nil {
			return err
		}
		for k, v := c.Seek(first); k != nil; k, v = c.Next() {
			seq, n, err := decodeNumber(k, v)
			if err != nil {
				return err
			}
			if !bytes.HasPrefix(k, first[:format.WorkspaceKeyLen]) {
				break
			}
			if seq == format.KindSeq {
				w.Kind = messages.WSKind(n)
				continue
			}
			w.Numbers = append(w.Numbers, messages.SequenceNumber{Seq: seq, Number: n})
		}
		return nil
	})
	if err != nil {
		return storage.WorkspaceNumbers{}, err
	}
	return w, nil
}
