package bolt

import (
	"bytes"
	"context"
	"encoding/binary"

	"go.etcd.io/bbolt"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage"
	"github.com/partita-go/partita/storage/verify"
)

// image shows a store's files to [verify.Files]. The store is open read-only, so that
// nobody writes, and a read may begin inside another one.
type image struct {
	s *Store
	// projected and checkpoints are as stored.
	projected   messages.LSN
	checkpoints []checkpoint
	// stop ends the reading ahead of the pass under way, nil if there is none.
	stop func()
}

var _ verify.Image = (*image)(nil)

// imageChunk is how many entries are read in one transaction.
const imageChunk = 16384

// newImage reads the checkpoints again: the store's own have moved on to the end of the
// log.
func newImage(s *Store) (*image, error) {
	m := &image{s: s, projected: s.projected, checkpoints: make([]checkpoint, len(s.partitions))}
	err := s.state.view(func(tx *bbolt.Tx) error {
		b := tx.Bucket(bucketCheckpoints)
		for i := range m.checkpoints {
			key := appendPartitionKey(nil, messages.PartitionID(i))
			if v := b.Get(key); v != nil {
				c, err := decodeCheckpoint(key, v)
				if err != nil {
					return &storage.DamagedError{Where: s.state.placeOf(bucketCheckpoints, "partition %d", i), Cause: err}
				}
				m.checkpoints[i] = c
			}
		}
		return nil
	})
	return m, err
}

// close ends what goes on in the background.
func (m *image) close() {
	if m.stop != nil {
		m.stop()
	}
}

// Descriptor implements [verify.Image].
func (m *image) Descriptor() messages.Descriptor { return m.s.Descriptor() }

// Projected implements [verify.Image].
func (m *image) Projected() messages.LSN { return m.projected }

// Standing implements [verify.Image].
func (m *image) Standing(ctx context.Context, p messages.PartitionID) (verify.Standing, error) {
	r, err := m.s.Register(ctx, p)
	c := m.checkpoints[p]
	return verify.Standing{Register: r, LSN: c.lsn, At: c.at, Epoch: c.epoch}, err
}

// scan reads a bucket from a key on, in short transactions. Without the bucket there is
// nothing to read.
func (f *file) scan(ctx context.Context, bucket, from []byte, each func(k, v []byte) error) error {
	next := append([]byte(nil), from...)
	var last []byte // bbolt's, as long as the transaction
	for more := true; more; {
		if err := ctx.Err(); err != nil {
			return err
		}
		err := f.view(func(tx *bbolt.Tx) error {
			more = false
			b := tx.Bucket(bucket)
			if b == nil {
				return nil
			}
			c := b.Cursor()
			k, v := c.Seek(next)
			for n := 0; k != nil; n++ {
				if err := f.mustAscend(bucket, last, k); err != nil {
					return err
				}
				if n == imageChunk {
					next, last, more = append(next[:0], k...), bytes.Clone(last), true
					return nil
				}
				if err := each(k, v); err != nil {
					return err
				}
				last = k
				k, v = c.Next()
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// badKey says that an entry's key is not one of its bucket.
func (f *file) badKey(bucket, k []byte) *storage.DamagedError {
	return &storage.DamagedError{Where: f.placeOf(bucket, "key %x", k), Cause: errLayout}
}

// Log implements [verify.Image]. A pass over the files begins with it: whatever of them is
// not in memory any more is read ahead, since bbolt's map has single pages read.
func (m *image) Log(ctx context.Context, each func(messages.LSN, *messages.Event, error) error) error {
	m.close()
	names := []string{logFileName}
	if m.s.state != nil {
		names = append(names, stateFileName)
	}
	m.stop = readAhead(ctx, m.s.directory, names...)
	var view eventView
	var e messages.Event
	take := func(lsn messages.LSN, v []byte) error {
		if err := view.decode(lsn, v); err != nil {
			return each(lsn, nil, err)
		}
		view.lend(&e)
		return each(lsn, &e, nil)
	}
	err := m.s.log.scan(ctx, bucketLog, nil, func(k, v []byte) error {
		lsn, ok := parseLSN(k)
		if !ok {
			return m.s.log.badKey(bucketLog, k)
		}
		return take(lsn, v)
	})
	if err != nil {
		return err
	}
	return m.s.pending.each(take)
}

// lend makes an event of the view that shares everything with it.
func (v *eventView) lend(e *messages.Event) {
	*e = messages.Event{
		Kind: v.kind, Epoch: v.epoch, Partition: v.partition, PLogOffset: v.offset, Workspace: v.ws,
		WorkspaceKind: v.wsKind, WLogOffset: v.wlog, RegisteredAt: v.at, Numbers: v.numbers, Body: v.body,
		Records: v.records, DedupID: v.dedup, Together: v.together, Sections: v.sections,
	}
}

// Event implements [verify.Image].
func (m *image) Event(ctx context.Context, lsn messages.LSN) (e messages.Event, err error) {
	if err := m.s.enter(ctx); err != nil {
		return e, err
	}
	err = m.s.scanLog([]messages.LSN{lsn}, func(v *eventView) error {
		e = v.event()
		return nil
	})
	return e, err
}

// PLog implements [verify.Image].
func (m *image) PLog(ctx context.Context, each func(verify.PLogEntry, error) error) error {
	return m.s.state.scan(ctx, bucketPLog, nil, func(k, v []byte) error {
		if len(k) != plogKeyLen {
			return m.s.state.badKey(bucketPLog, k)
		}
		e := verify.PLogEntry{Partition: messages.PartitionID(be32(k)), PLogOffset: messages.PLogOffset(be64(k[partitionKeyLen:]))}
		var ok bool
		if e.LSN, ok = parseLSN(v); !ok {
			return each(e, &storage.DamagedError{Where: m.s.state.placeOf(bucketPLog, "partition %d, offset %d", e.Partition, e.PLogOffset), Cause: errLayout})
		}
		return each(e, nil)
	})
}

// WLog implements [verify.Image].
func (m *image) WLog(ctx context.Context, from messages.WSID, each func(verify.WLogEntry, error) error) error {
	return m.s.state.scan(ctx, bucketWLog, appendWLogKey(nil, from, 0), func(k, v []byte) error {
		if len(k) != wlogKeyLen {
			return m.s.state.badKey(bucketWLog, k)
		}
		e := verify.WLogEntry{Workspace: messages.WSID(be64(k)), WLogOffset: messages.WLogOffset(be64(k[workspaceKeyLen:]))}
		var ok bool
		if e.LSN, ok = parseLSN(v); !ok {
			return each(e, &storage.DamagedError{Where: m.s.state.placeOf(bucketWLog, "workspace %d, offset %d", e.Workspace, e.WLogOffset), Cause: errLayout})
		}
		return each(e, nil)
	})
}

// Numbers implements [verify.Image].
func (m *image) Numbers(ctx context.Context, each func(messages.WSID, messages.SequenceNumber, error) error) error {
	return m.s.state.scan(ctx, bucketNumbers, nil, func(k, v []byte) error {
		if len(k) != numberKeyLen {
			return m.s.state.badKey(bucketNumbers, k)
		}
		ws, seq := messages.WSID(be64(k)), messages.SeqID(binary.BigEndian.Uint16(k[workspaceKeyLen:]))
		n, err := unsealUint(bucketNumbers, k, v)
		if err != nil {
			err = damagedNumber(ws, seq, err)
		}
		return each(ws, messages.SequenceNumber{Seq: seq, Number: messages.Number(n)}, err)
	})
}

// Rows implements [verify.Image].
func (m *image) Rows(ctx context.Context, each func(*verify.RowEntry, error) error) error {
	var entry verify.RowEntry
	return m.s.state.scan(ctx, bucketRecords, nil, func(k, v []byte) error {
		if len(k) != recordKeyLen {
			return m.s.state.badKey(bucketRecords, k)
		}
		key := parseRecordKey(k)
		r, err := decodeRow(key, v)
		entry = verify.RowEntry{Workspace: key.ws, ID: key.id, Partition: r.partition, PLogOffset: r.offset, LSN: r.lsn, Data: r.data}
		if err != nil {
			return each(&entry, damagedRow(key, err))
		}
		return each(&entry, nil)
	})
}

func parseRecordKey(k []byte) recordKey {
	return recordKey{ws: messages.WSID(be64(k)), id: messages.RecordID{
		Seq:    messages.SeqID(binary.BigEndian.Uint16(k[workspaceKeyLen:])),
		Number: messages.Number(be64(k[recordPrefixLen:])),
	}}
}

// Conflicts implements [verify.Image].
func (m *image) Conflicts(ctx context.Context, each func(error) error) error {
	return m.s.state.scan(ctx, bucketConflicts, nil, func(k, v []byte) error {
		e, err := decodeConflict(k, v)
		if err != nil {
			return m.s.state.badKey(bucketConflicts, k)
		}
		return each(e)
	})
}
