package verify

import (
	"context"
	"hash/maphash"
	"unsafe"

	"github.com/partita-go/partita/messages"
)

// recordState is what a pass remembers of a record: its last write before the
// checkpoint.
type recordState struct {
	// lsn is the event's, with the bits below.
	lsn messages.LSN
	sum uint64
}

const (
	// recordFound says that the row was found.
	recordFound messages.LSN = 1 << 63
	// recordOfTail says that no event before the checkpoint writes it.
	recordOfTail messages.LSN = 1 << 62

	recordSlotSize = int64(unsafe.Sizeof(slot[recordState]{}))
)

func (s *recordState) at() messages.LSN { return s.lsn &^ (recordFound | recordOfTail) }

// checkWrites takes over the records that an event writes.
func (f *files) checkWrites(ctx context.Context, lsn messages.LSN, e *messages.Event, projected bool) error {
	for i := range e.Records {
		rec := &e.Records[i]
		key := f.sieve.record(e.Workspace, rec.ID)
		if !f.sieve.selects(key) {
			continue
		}
		if err := f.checkWrite(ctx, key, lsn, e, rec, projected); err != nil {
			return err
		}
	}
	return nil
}

func (f *files) checkWrite(ctx context.Context, key uint64, lsn messages.LSN, e *messages.Event, rec *messages.Record, projected bool) error {
	r := f.records.find(key)
	if r != nil && rec.New && f.desc.TrustLevel == messages.TrustNone {
		before, err := f.wrote(ctx, r.at(), e.Workspace, rec.ID)
		if err != nil {
			return err
		}
		if before != 0 {
			since := f.mark()
			f.fault(CheckRecords, placeOf(e), "workspace %d: record %v is created again, it was written at offset %d", e.Workspace, rec.ID, before)
			f.found.note(&f.report, since, key-f.sieve.first)
		}
	}
	state := recordState{lsn: lsn, sum: f.rowSum(e.PLogOffset, rec.Data)}
	if !projected {
		state.lsn |= recordOfTail
	}
	switch {
	case r == nil:
		f.maybeNarrow(f.records.full(), int64(len(f.records.slots))*recordSlotSize)
		if f.sieve.selects(key) {
			f.records.add(key, state)
		}
	case projected:
		*r = state
	}
	return nil
}

func (f *files) rowSum(offset messages.PLogOffset, data []byte) uint64 {
	return maphash.Bytes(f.seed, data) ^ scramble(uint64(offset))
}

// wrote returns the PLog offset of an event if it writes a record, else 0.
func (f *files) wrote(ctx context.Context, lsn messages.LSN, ws messages.WSID, id messages.RecordID) (messages.PLogOffset, error) {
	e, err := f.image.Event(ctx, lsn)
	if err != nil {
		return 0, f.ignoreDamage(err)
	}
	if e.Workspace != ws {
		return 0, nil
	}
	for i := range e.Records {
		if e.Records[i].ID == id {
			return e.PLogOffset, nil
		}
	}
	return 0, nil
}

// checkRows compares the records with what the log wrote last.
func (f *files) checkRows(ctx context.Context) error {
	err := f.image.Rows(ctx, func(row *RowEntry, damage error) error {
		f.tell(PhaseProjections)
		if damage != nil && row.ID.Number == 0 {
			return f.hideRows(row.Workspace, damage)
		}
		key := f.sieve.record(row.Workspace, row.ID)
		if !f.sieve.selects(key) {
			return nil
		}
		return f.checkRowEntry(ctx, key, row, damage)
	})
	if err != nil {
		return f.damage("state.db, records", err)
	}
	return f.checkMissingRows(ctx)
}

// hideRows notes damage that hides records of a workspace: nobody knows which. It is told in the first pass.
func (f *files) hideRows(ws messages.WSID, damage error) error {
	p := &f.partitions[messages.PartitionOf(ws, f.desc.Partitions)]
	if f.first() && !p.failed {
		f.fault(CheckDamage, place{partition: p.partition, workspace: ws}, "records: %v", damage)
	}
	f.hidden[ws] = true
	return nil
}

func (f *files) checkRowEntry(ctx context.Context, key uint64, row *RowEntry, damage error) error {
	f.report.Rows++
	p := &f.partitions[messages.PartitionOf(row.Workspace, f.desc.Partitions)]
	if p.failed {
		return nil
	}
	want := f.records.find(key)
	if want != nil {
		want.lsn |= recordFound
	}
	if damage != nil {
		f.fault(CheckDamage, place{partition: p.partition, workspace: row.Workspace}, "records: %v", damage)
		return nil
	}
	if want != nil && want.lsn&recordOfTail == 0 && want.at() == row.LSN && row.Partition == p.partition &&
		want.sum == f.rowSum(row.PLogOffset, row.Data) {
		return nil
	}
	return f.explainRow(ctx, p, want, row)
}

// explainRow says what is wrong with a row, if anything is: another record may have
// the same hash.
func (f *files) explainRow(ctx context.Context, p *partition, want *recordState, row *RowEntry) error {
	where := place{partition: p.partition, offset: row.PLogOffset, workspace: row.Workspace}
	offset := messages.PLogOffset(0)
	var err error
	if want != nil && want.lsn&recordOfTail == 0 {
		if offset, err = f.wrote(ctx, want.at(), row.Workspace, row.ID); err != nil {
			return err
		}
	}
	if offset != 0 && (offset != row.PLogOffset || row.Partition != p.partition || want.at() != row.LSN) {
		f.fault(CheckRecords, where, "workspace %d: record %v names partition %d, offset %d, LSN %d as its writer, want %d, %d, %d",
			row.Workspace, row.ID, row.Partition, row.PLogOffset, row.LSN, p.partition, offset, want.at())
		return nil
	}
	return f.explainOwnRow(ctx, p, row, where)
}

// explainOwnRow compares a row with the event that it names as its writer.
func (f *files) explainOwnRow(ctx context.Context, p *partition, row *RowEntry, where place) error {
	e, err := f.image.Event(ctx, row.LSN)
	if err != nil {
		if err := f.ignoreDamage(err); err != nil {
			return err
		}
	}
	own := -1
	if e.Workspace == row.Workspace && e.PLogOffset == row.PLogOffset && p.written(&e) {
		for i := range e.Records {
			if e.Records[i].ID == row.ID {
				own = i
			}
		}
	}
	switch {
	case own < 0:
		f.fault(CheckRecords, where, "workspace %d: record %v is there, no event before the checkpoint wrote it", row.Workspace, row.ID)
	case string(e.Records[own].Data) != string(row.Data):
		f.fault(CheckRecords, where, "workspace %d: record %v holds other data than its event wrote", row.Workspace, row.ID)
	}
	return nil
}

// checkMissingRows names the records that were not found.
func (f *files) checkMissingRows(ctx context.Context) error {
	for i := range f.records.slots {
		s := &f.records.slots[i]
		if s.free() || s.value.lsn&(recordFound|recordOfTail) != 0 {
			continue
		}
		e, err := f.image.Event(ctx, s.value.at())
		if err != nil {
			if err := f.ignoreDamage(err); err != nil {
				return err
			}
			continue
		}
		if f.partitions[e.Partition].failed || f.hidden[e.Workspace] {
			continue
		}
		for i := range e.Records {
			if id := e.Records[i].ID; f.sieve.record(e.Workspace, id) == s.key {
				f.fault(CheckRecords, placeOf(&e), "workspace %d: record %v, written at this offset, is not there", e.Workspace, id)
				break
			}
		}
	}
	return nil
}
