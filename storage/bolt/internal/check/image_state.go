package check

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"go.etcd.io/bbolt"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage"
	"github.com/partita-go/partita/storage/bolt/internal/boltfile"
	"github.com/partita-go/partita/storage/bolt/internal/dedup"
	"github.com/partita-go/partita/storage/bolt/internal/format"
	"github.com/partita-go/partita/storage/bolt/internal/statedb"
	"github.com/partita-go/partita/storage/verify"
)

// PLog implements [verify.Image].
func (m *Image) PLog(ctx context.Context, each func(verify.PLogEntry, error) error) error {
	var lsns []messages.LSN
	return m.files.State.Scan(ctx, format.BucketPLog, nil, func(k, v []byte) (err error) {
		if len(k) != format.PLogKeyLen {
			return m.files.State.BadKey(format.BucketPLog, k)
		}
		e := verify.PLogEntry{
			Partition: messages.PartitionID(format.Uint32(k)), PLogOffset: messages.PLogOffset(format.Uint64(k[format.PartitionKeyLen:])),
		}
		if lsns, err = format.DecodeList(lsns[:0], format.BucketPLog, k, v); err != nil {
			where := m.files.State.PlaceOf(format.BucketPLog, "partition %d, offset %d", e.Partition, e.PLogOffset)
			return each(e, &storage.DamagedError{Where: where, Cause: err})
		}
		for _, e.LSN = range lsns {
			if err := each(e, nil); err != nil {
				return err
			}
			e.PLogOffset++
		}
		return nil
	})
}

// heads reads the heads of the workspaces, in order, from one on.
func (m *Image) heads(ctx context.Context, from messages.WSID, each func(messages.WSID, *format.Head, error) error) error {
	var h format.Head
	return m.files.State.Scan(ctx, format.BucketWorkspaces, format.AppendWorkspaceKey(nil, from), func(k, v []byte) error {
		if len(k) != format.WorkspaceKeyLen {
			return m.files.State.BadKey(format.BucketWorkspaces, k)
		}
		ws, err := statedb.DecodeHead(k, v, &h)
		return each(ws, &h, err)
	})
}

// WLog implements [verify.Image].
func (m *Image) WLog(ctx context.Context, from messages.WSID, each func(verify.WLogEntry, error) error) error {
	return m.heads(ctx, from, func(ws messages.WSID, h *format.Head, damage error) error {
		e := verify.WLogEntry{Workspace: ws, WLogOffset: 1}
		if damage != nil {
			return each(e, damage)
		}
		var lsns []messages.LSN
		for e.WLogOffset <= h.Last {
			to := min(e.WLogOffset+wlogChunk, h.Last+1)
			err := m.files.State.View(func(tx *bbolt.Tx) (err error) {
				lsns, err = statedb.WLogIn(tx, ws, h, e.WLogOffset, to)
				return err
			})
			for _, e.LSN = range lsns {
				if err := each(e, nil); err != nil {
					return err
				}
				e.WLogOffset++
			}
			if err != nil {
				return each(e, err)
			}
		}
		return nil
	})
}

// wlogChunk is how many entries of a workspace's log are read at a time.
const wlogChunk = 1024

// Numbers implements [verify.Image].
func (m *Image) Numbers(ctx context.Context, each func(*verify.NumberEntry, error) error) error {
	var numbers []messages.SequenceNumber
	return m.heads(ctx, 0, func(ws messages.WSID, h *format.Head, damage error) error {
		e := verify.NumberEntry{Workspace: ws}
		if damage != nil {
			return each(&e, damage)
		}
		numbers = append(numbers[:0], messages.SequenceNumber{Seq: format.KindSeq, Number: messages.Number(h.Kind)})
		e.Zones = h.Zones
		for _, e.SequenceNumber = range statedb.NumbersOf(numbers, h) {
			e.ClosedBelow = h.ClosedBelow(e.Seq)
			if err := each(&e, nil); err != nil {
				return err
			}
		}
		return m.olderNumbers(ctx, ws, h, each)
	})
}

// olderNumbers reads the last numbers of periods that are not in the head.
func (m *Image) olderNumbers(ctx context.Context, ws messages.WSID, h *format.Head, each func(*verify.NumberEntry, error) error) error {
	for i := range h.Sequences {
		s := &h.Sequences[i]
		if !s.Older {
			continue
		}
		e := verify.NumberEntry{Workspace: ws, ClosedBelow: s.ClosedBelow}
		err := m.files.State.View(func(tx *bbolt.Tx) error {
			return statedb.EachOlder(tx, ws, s, func(p format.PeriodNumber) error {
				e.SequenceNumber = messages.SequenceNumber{Seq: s.Seq, Period: p.Period, Number: p.Number}
				return cmp.Or(ctx.Err(), each(&e, nil))
			})
		})
		if _, damaged := errors.AsType[*storage.DamagedError](err); damaged {
			err = each(&e, err)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// Closed implements [verify.Image].
func (m *Image) Closed(ctx context.Context, ws messages.WSID) (closed []messages.SequencePeriod, err error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	err = m.files.State.View(func(tx *bbolt.Tx) error {
		var h format.Head
		err := statedb.ReadHead(tx, ws, &h)
		closed = h.Closed()
		return err
	})
	return closed, err
}

// Rows implements [verify.Image].
func (m *Image) Rows(ctx context.Context, each func(*verify.RowEntry, error) error) error {
	if err := m.rows(ctx, each); err != nil {
		return err
	}
	return m.astray(ctx, each)
}

func (m *Image) rows(ctx context.Context, each func(*verify.RowEntry, error) error) error {
	var entry verify.RowEntry
	return m.heads(ctx, 0, func(ws messages.WSID, h *format.Head, damage error) error {
		if damage != nil {
			entry = verify.RowEntry{Workspace: ws}
			return each(&entry, damage)
		}
		for i := range h.Sequences {
			r := statedb.AllRows(h.Sequences[i].Seq)
			for more := true; more; {
				if err := ctx.Err(); err != nil {
					return err
				}
				rows, next, err := statedb.Rows(m.files.State, ws, r, rowsChunk, rowsBytes)
				for j := range rows {
					damage := m.row(ws, &rows[j], &entry)
					if err := each(&entry, damage); err != nil {
						return err
					}
				}
				if err != nil {
					entry = verify.RowEntry{Workspace: ws, ID: messages.RecordID{Seq: r.Seq}}
					if err := each(&entry, err); err != nil {
						return err
					}
				}
				r.From, more = next, err == nil && next != 0
			}
		}
		return nil
	})
}

// rowsChunk and rowsBytes bound how many rows are read at a time, and how much data.
const (
	rowsChunk = 1024
	rowsBytes = 1 << 20
)

// row makes the entry of a row. Where there is a pointer only, the event that it leads to has it.
func (m *Image) row(ws messages.WSID, row *statedb.Row, entry *verify.RowEntry) error {
	*entry = verify.RowEntry{
		Workspace: ws, ID: row.ID, Partition: row.Partition, PLogOffset: row.PLogOffset, LSN: row.LSN, Data: row.Data,
	}
	if !row.Pointed {
		return nil
	}
	return m.files.Log.Events([]messages.LSN{row.LSN}, func(v *format.EventView) error {
		entry.Partition, entry.PLogOffset = v.Partition, v.PLogOffset
		for _, rec := range slices.Backward(v.Records) {
			if rec.ID == row.ID && v.Workspace == ws {
				entry.Data = statedb.CloneData(rec.Data)
				return nil
			}
		}
		return format.DamagedEvent(row.LSN, v.Partition, v.PLogOffset, format.ErrMisplaced)
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
