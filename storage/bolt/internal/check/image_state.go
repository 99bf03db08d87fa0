package check

import (
	"context"
	"encoding/binary"

	"go.etcd.io/bbolt"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage"
	"github.com/partita-go/partita/storage/bolt/internal/boltfile"
	"github.com/partita-go/partita/storage/bolt/internal/dedup"
	"github.com/partita-go/partita/storage/bolt/internal/format"
	"github.com/partita-go/partita/storage/verify"
)

// PLog implements [verify.Image].
func (m *Image) PLog(ctx context.Context, each func(verify.PLogEntry, error) error) error {
	return m.files.State.Scan(ctx, format.BucketPLog, nil, func(k, v []byte) error {
		if len(k) != format.PLogKeyLen {
			return m.files.State.BadKey(format.BucketPLog, k)
		}
		e := verify.PLogEntry{
			Partition: messages.PartitionID(format.Uint32(k)), PLogOffset: messages.PLogOffset(format.Uint64(k[format.PartitionKeyLen:])),
		}
		var ok bool
		if e.LSN, ok = format.ParseLSN(v); !ok {
			where := m.files.State.PlaceOf(format.BucketPLog, "partition %d, offset %d", e.Partition, e.PLogOffset)
			return each(e, &storage.DamagedError{Where: where, Cause: format.ErrLayout})
		}
		return each(e, nil)
	})
}

// WLog implements [verify.Image].
func (m *Image) WLog(ctx context.Context, from messages.WSID, each func(verify.WLogEntry, error) error) error {
	return m.files.State.Scan(ctx, format.BucketWLog, format.AppendWLogKey(nil, from, 0), func(k, v []byte) error {
		if len(k) != format.WLogKeyLen {
			return m.files.State.BadKey(format.BucketWLog, k)
		}
		e := verify.WLogEntry{
			Workspace: messages.WSID(format.Uint64(k)), WLogOffset: messages.WLogOffset(format.Uint64(k[format.WorkspaceKeyLen:])),
		}
		var ok bool
		if e.LSN, ok = format.ParseLSN(v); !ok {
			where := m.files.State.PlaceOf(format.BucketWLog, "workspace %d, offset %d", e.Workspace, e.WLogOffset)
			return each(e, &storage.DamagedError{Where: where, Cause: format.ErrLayout})
		}
		return each(e, nil)
	})
}

// Numbers implements [verify.Image].
func (m *Image) Numbers(ctx context.Context, each func(messages.WSID, messages.SequenceNumber, error) error) error {
	return m.files.State.Scan(ctx, format.BucketNumbers, nil, func(k, v []byte) error {
		if len(k) != format.NumberKeyLen {
			return m.files.State.BadKey(format.BucketNumbers, k)
		}
		ws, seq := messages.WSID(format.Uint64(k)), messages.SeqID(binary.BigEndian.Uint16(k[format.WorkspaceKeyLen:]))
		n, err := format.UnsealUint(format.BucketNumbers, k, v)
		if err != nil {
			err = format.DamagedNumber(ws, seq, err)
		}
		return each(ws, messages.SequenceNumber{Seq: seq, Number: messages.Number(n)}, err)
	})
}

// Rows implements [verify.Image].
func (m *Image) Rows(ctx context.Context, each func(*verify.RowEntry, error) error) error {
	var entry verify.RowEntry
	return m.files.State.Scan(ctx, format.BucketRecords, nil, func(k, v []byte) error {
		if len(k) != format.RecordKeyLen {
			return m.files.State.BadKey(format.BucketRecords, k)
		}
		key := format.ParseRecordKey(k)
		r, err := format.DecodeRow(key, v)
		entry = verify.RowEntry{
			Workspace: key.Workspace, ID: key.ID, Partition: r.Partition, PLogOffset: r.Offset, LSN: r.LSN, Data: r.Data,
		}
		if err != nil {
			return each(&entry, format.DamagedRow(key, err))
		}
		return each(&entry, nil)
	})
}

// Conflicts implements [verify.Image].
func (m *Image) Conflicts(ctx context.Context, each func(error) error) error {
	return m.files.State.Scan(ctx, format.BucketConflicts, nil, func(k, v []byte) error {
		e, err := format.DecodeConflict(k, v)
		if err != nil {
			return m.files.State.BadKey(format.BucketConflicts, k)
		}
		return each(e)
	})
}

// HashID implements [verify.Image].
func (m *Image) HashID(ws messages.WSID, id messages.DedupID) uint64 {
	key := format.DedupKey{Workspace: ws, ID: id}
	return key.Hash(m.files.ID)
}

// FindID implements [verify.Image].
func (m *Image) FindID(ctx context.Context, hash uint64) (lsns []messages.LSN, err error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	err = m.files.State.View(func(tx *bbolt.Tx) error {
		r, err := dedup.NewReader(tx)
		if err != nil {
			return err
		}
		lsns, err = r.Candidates(nil, hash)
		return err
	})
	return lsns, err
}

// IDs implements [verify.Image]: it merges the runs.
func (m *Image) IDs(ctx context.Context, each func(uint64, messages.LSN, error) error) error {
	return m.files.State.View(func(tx *bbolt.Tx) error {
		r, err := dedup.NewReader(tx)
		if err != nil {
			return each(0, 0, err)
		}
		runs := make([]dedup.RunReader, 0, len(r.Runs.All))
		for i := range r.Runs.All {
			runs = append(runs, dedup.NewRunReader(tx, &r.Runs, &r.Runs.All[i]))
		}
		for n := 0; ; n++ {
			if n%boltfile.ImageChunk == 0 && ctx.Err() != nil {
				return ctx.Err()
			}
			least := -1
			for i := range runs {
				if err := runs[i].Fill(); err != nil {
					if err := each(0, 0, err); err != nil {
						return err
					}
				}
				if len(runs[i].Entries) > 0 && (least < 0 || dedup.CompareEntries(runs[i].Entries[0], runs[least].Entries[0]) < 0) {
					least = i
				}
			}
			if least < 0 {
				return nil
			}
			e := runs[least].Entries[0]
			runs[least].Entries = runs[least].Entries[1:]
			if err := each(e.Hash, e.LSN, nil); err != nil {
				return err
			}
		}
	})
}
