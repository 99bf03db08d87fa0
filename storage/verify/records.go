package verify

import (
	"context"
	"hash/maphash"
	"slices"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage"
)

// rows are a workspace's records as the log wrote them last.
type rows map[messages.RecordID]*written

// written is the last write of a record.
type written struct {
	offset messages.PLogOffset
	data   uint64
	// found says that the store has a row for it.
	found bool
}

// collect takes over the records that an event writes.
func (r *run) collect(w *workspace, rows rows, e *messages.Event) {
	for i := range e.Records {
		rec := &e.Records[i]
		if rec.New && rows[rec.ID] != nil && r.desc.TrustLevel == messages.TrustNone {
			r.fault(CheckRecords, placeOf(e), "workspace %d: record %v is created again, it was written at offset %d", w.id, rec.ID, rows[rec.ID].offset)
		}
		rows[rec.ID] = &written{offset: e.PLogOffset, data: maphash.Bytes(r.seed, rec.Data)}
	}
}

// checkRecords compares the rows of all the workspace's sequences with the log.
func (r *run) checkRecords(ctx context.Context, w *workspace, rows rows) error {
	for _, s := range w.kind.sequences {
		if err := r.checkSequenceRows(ctx, w, s.ID, rows); err != nil {
			return err
		}
	}
	var missing []messages.RecordID
	for id, row := range rows {
		if !row.found {
			missing = append(missing, id)
		}
	}
	slices.SortFunc(missing, compareIDs)
	for _, id := range missing {
		r.fault(CheckRecords, place{partition: w.partition, offset: rows[id].offset, workspace: w.id},
			"workspace %d: record %v, written at this offset, is not there", w.id, id)
	}
	return nil
}

func compareIDs(a, b messages.RecordID) int {
	switch {
	case a == b:
		return 0
	case a.Seq < b.Seq || (a.Seq == b.Seq && a.Number < b.Number):
		return -1
	}
	return 1
}

func (r *run) checkSequenceRows(ctx context.Context, w *workspace, seq messages.SeqID, rows rows) error {
	var previous messages.RecordID
	for row, err := range r.store.Records(ctx, w.id, storage.RecordRange{Seq: seq}) {
		if err != nil {
			return r.readFault(w.place(), "records", err)
		}
		r.report.Rows++
		if row.ID.Seq != seq || (previous.Seq != 0 && row.ID.Number <= previous.Number) {
			r.fault(CheckRecords, w.place(), "workspace %d: record %v follows %v among those of sequence %d", w.id, row.ID, previous, seq)
		}
		previous = row.ID
		r.checkRow(w, &row, rows[row.ID])
	}
	return nil
}

func (r *run) checkRow(w *workspace, row *storage.Row, want *written) {
	where := place{partition: w.partition, offset: row.PLogOffset, workspace: w.id}
	if want == nil {
		r.fault(CheckRecords, where, "workspace %d: record %v is there, no event wrote it", w.id, row.ID)
		return
	}
	want.found = true
	if row.PLogOffset != want.offset || row.Partition != w.partition {
		r.fault(CheckRecords, where, "workspace %d: record %v names partition %d, offset %d as its writer, want %d, %d",
			w.id, row.ID, row.Partition, row.PLogOffset, w.partition, want.offset)
		return
	}
	if maphash.Bytes(r.seed, row.Data) != want.data {
		r.fault(CheckRecords, where, "workspace %d: record %v holds other data than its event wrote", w.id, row.ID)
	}
}
