package bolt

import (
	"context"
	"encoding/binary"

	"go.etcd.io/bbolt"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage"
	"github.com/partita-go/partita/storage/bolt/internal/boltfile"
	"github.com/partita-go/partita/storage/bolt/internal/format"
	"github.com/partita-go/partita/storage/verify"
)

// image shows a store's files to [verify.Files]. The store is open read-only, so that
// nobody writes, and a read may begin inside another one.
type image struct {
	s *Store
	// projected and checkpoints are as stored.
	projected   messages.LSN
	checkpoints []format.Checkpoint
	// stop ends the reading ahead of the pass under way, nil if there is none.
	stop func()
}

var _ verify.Image = (*image)(nil)

// newImage reads the checkpoints again: the store's own have moved on to the end of the
// log.
func newImage(s *Store) (*image, error) {
	m := &image{s: s, projected: s.projected, checkpoints: make([]format.Checkpoint, len(s.partitions))}
	err := s.state.View(func(tx *bbolt.Tx) error {
		b := tx.Bucket(format.BucketCheckpoints)
		for i := range m.checkpoints {
			key := format.AppendPartitionKey(nil, messages.PartitionID(i))
			if v := b.Get(key); v != nil {
				c, err := format.DecodeCheckpoint(key, v)
				if err != nil {
					return &storage.DamagedError{Where: s.state.PlaceOf(format.BucketCheckpoints, "partition %d", i), Cause: err}
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
	return verify.Standing{Register: r, LSN: c.LSN, At: c.RegisteredAt, Epoch: c.Epoch}, err
}

// Log implements [verify.Image]. A pass over the files begins with it: whatever of them is
// not in memory any more is read ahead, since bbolt's map has single pages read.
func (m *image) Log(ctx context.Context, each func(messages.LSN, *messages.Event, error) error) error {
	m.close()
	names := []string{format.LogFileName}
	if m.s.state != nil {
		names = append(names, format.StateFileName)
	}
	m.stop = boltfile.ReadAhead(ctx, m.s.directory, names...)
	var view format.EventView
	var e messages.Event
	take := func(lsn messages.LSN, v []byte) error {
		if err := view.Decode(lsn, v); err != nil {
			return each(lsn, nil, err)
		}
		view.Lend(&e)
		return each(lsn, &e, nil)
	}
	err := m.s.log.File.Scan(ctx, format.BucketLog, nil, func(k, v []byte) error {
		lsn, ok := format.ParseLSN(k)
		if !ok {
			return m.s.log.File.BadKey(format.BucketLog, k)
		}
		return take(lsn, v)
	})
	if err != nil {
		return err
	}
	first, values := m.s.log.Pending()
	for i, v := range values {
		if err := take(first+messages.LSN(i), v); err != nil {
			return err
		}
	}
	return nil
}

// Event implements [verify.Image].
func (m *image) Event(ctx context.Context, lsn messages.LSN) (e messages.Event, err error) {
	if err := m.s.enter(ctx); err != nil {
		return e, err
	}
	err = m.s.log.Events([]messages.LSN{lsn}, func(v *format.EventView) error {
		e = v.Event()
		return nil
	})
	return e, err
}

// PLog implements [verify.Image].
func (m *image) PLog(ctx context.Context, each func(verify.PLogEntry, error) error) error {
	return m.s.state.Scan(ctx, format.BucketPLog, nil, func(k, v []byte) error {
		if len(k) != format.PLogKeyLen {
			return m.s.state.BadKey(format.BucketPLog, k)
		}
		e := verify.PLogEntry{Partition: messages.PartitionID(format.Uint32(k)), PLogOffset: messages.PLogOffset(format.Uint64(k[format.PartitionKeyLen:]))}
		var ok bool
		if e.LSN, ok = format.ParseLSN(v); !ok {
			return each(e, &storage.DamagedError{Where: m.s.state.PlaceOf(format.BucketPLog, "partition %d, offset %d", e.Partition, e.PLogOffset), Cause: format.ErrLayout})
		}
		return each(e, nil)
	})
}

// WLog implements [verify.Image].
func (m *image) WLog(ctx context.Context, from messages.WSID, each func(verify.WLogEntry, error) error) error {
	return m.s.state.Scan(ctx, format.BucketWLog, format.AppendWLogKey(nil, from, 0), func(k, v []byte) error {
		if len(k) != format.WLogKeyLen {
			return m.s.state.BadKey(format.BucketWLog, k)
		}
		e := verify.WLogEntry{Workspace: messages.WSID(format.Uint64(k)), WLogOffset: messages.WLogOffset(format.Uint64(k[format.WorkspaceKeyLen:]))}
		var ok bool
		if e.LSN, ok = format.ParseLSN(v); !ok {
			return each(e, &storage.DamagedError{Where: m.s.state.PlaceOf(format.BucketWLog, "workspace %d, offset %d", e.Workspace, e.WLogOffset), Cause: format.ErrLayout})
		}
		return each(e, nil)
	})
}

// Numbers implements [verify.Image].
func (m *image) Numbers(ctx context.Context, each func(messages.WSID, messages.SequenceNumber, error) error) error {
	return m.s.state.Scan(ctx, format.BucketNumbers, nil, func(k, v []byte) error {
		if len(k) != format.NumberKeyLen {
			return m.s.state.BadKey(format.BucketNumbers, k)
		}
		ws, seq := messages.WSID(format.Uint64(k)), messages.SeqID(binary.BigEndian.Uint16(k[format.WorkspaceKeyLen:]))
		n, err := format.UnsealUint(format.BucketNumbers, k, v)
		if err != nil {
			err = damagedNumber(ws, seq, err)
		}
		return each(ws, messages.SequenceNumber{Seq: seq, Number: messages.Number(n)}, err)
	})
}

// Rows implements [verify.Image].
func (m *image) Rows(ctx context.Context, each func(*verify.RowEntry, error) error) error {
	var entry verify.RowEntry
	return m.s.state.Scan(ctx, format.BucketRecords, nil, func(k, v []byte) error {
		if len(k) != format.RecordKeyLen {
			return m.s.state.BadKey(format.BucketRecords, k)
		}
		key := format.ParseRecordKey(k)
		r, err := format.DecodeRow(key, v)
		entry = verify.RowEntry{Workspace: key.Workspace, ID: key.ID, Partition: r.Partition, PLogOffset: r.Offset, LSN: r.LSN, Data: r.Data}
		if err != nil {
			return each(&entry, damagedRow(key, err))
		}
		return each(&entry, nil)
	})
}

// Conflicts implements [verify.Image].
func (m *image) Conflicts(ctx context.Context, each func(error) error) error {
	return m.s.state.Scan(ctx, format.BucketConflicts, nil, func(k, v []byte) error {
		e, err := format.DecodeConflict(k, v)
		if err != nil {
			return m.s.state.BadKey(format.BucketConflicts, k)
		}
		return each(e)
	})
}
