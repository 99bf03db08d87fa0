package verify

import (
	"context"
	"iter"

	"github.com/partita-go/partita/messages"
)

// checkWorkspace reads the workspace's log and records and compares them with
// what the partition's log said.
func (r *run) checkWorkspace(ctx context.Context, w *workspace) error {
	rows := make(rows)
	same, err := r.checkWLog(ctx, w, rows)
	if err != nil || !same {
		// Records compared with a wrong log would be faults of the log again.
		return err
	}
	return r.checkRecords(ctx, w, rows)
}

// checkWLog reads the workspace's log, gathers the records that it writes, looks its
// deduplication ids up, and reports whether it is what the partition's log holds.
func (r *run) checkWLog(ctx context.Context, w *workspace, rows rows) (same bool, err error) {
	var count, sum uint64
	for e, err := range r.store.WLog(ctx, w.id, 1) {
		if err != nil {
			return false, r.readFault(w.place(), "log of the workspace", err)
		}
		count++
		sum = r.sum(sum, &e)
		r.collect(w, rows, &e)
		if err := r.checkID(ctx, w, &e); err != nil {
			return false, err
		}
	}
	if count == w.events && sum == w.sum {
		return true, nil
	}
	if r.report.FaultCount >= uint64(r.options.maxFaults()) {
		// Only counted: the place is not worth another pass over the log.
		r.fault(CheckWLog, w.place(), "")
		return false, nil
	}
	return false, r.locate(ctx, w)
}

// locate reads both logs side by side and names the first difference.
func (r *run) locate(ctx context.Context, w *workspace) error {
	next, stop := iter.Pull2(r.store.WLog(ctx, w.id, 1))
	defer stop()
	position := uint64(0)
	for want, err := range r.store.PLog(ctx, w.partition, 1) {
		if err != nil {
			return r.readFault(w.place(), "log", err)
		}
		if want.Workspace != w.id || want.WorkspaceKind != w.kind.id {
			continue
		}
		position++
		got, err, ok := next()
		if err != nil {
			return r.readFault(w.place(), "log of the workspace", err)
		}
		if !ok {
			r.fault(CheckWLog, placeOf(&want), "workspace %d: WLog ends before event %d, want %d", w.id, position, w.events)
			return nil
		}
		if r.sum(0, &got) != r.sum(0, &want) {
			r.fault(CheckWLog, placeOf(&want), "workspace %d: event %d of WLog differs from PLog: got PLog offset %d, WLog offset %d, want %d and %d",
				w.id, position, got.PLogOffset, got.WLogOffset, want.PLogOffset, want.WLogOffset)
			return nil
		}
	}
	r.fault(CheckWLog, w.place(), "workspace %d: WLog goes on after event %d, the last in PLog", w.id, position)
	return nil
}

// sum continues a checksum over an event, all of it.
func (r *run) sum(before uint64, e *messages.Event) uint64 {
	h := newHasher(r.seed)
	h.number(before, uint64(e.Kind), uint64(e.Epoch), uint64(e.Partition), uint64(e.PLogOffset),
		uint64(e.Workspace), uint64(e.WorkspaceKind), uint64(e.WLogOffset), uint64(e.RegisteredAt))
	for _, numbers := range [...][]messages.SequenceNumber{e.Numbers, e.Moves} {
		h.number(uint64(len(numbers)))
		for _, n := range numbers {
			h.number(uint64(n.Seq), uint64(n.Period), uint64(n.Number))
		}
	}
	h.number(uint64(e.Brought))
	h.number(uint64(e.Date))
	h.bytes(e.Body)
	h.number(uint64(len(e.Records)))
	for i := range e.Records {
		rec := &e.Records[i]
		isNew := uint64(0)
		if rec.New {
			isNew = 1
		}
		h.number(uint64(rec.ID.Seq), uint64(rec.ID.Number), isNew)
		h.bytes(rec.Data)
	}
	h.number(uint64(len(e.Sections)))
	for _, s := range e.Sections {
		h.number(uint64(s.Tag))
		h.bytes(s.Data)
	}
	if !e.DedupID.IsZero() || e.Together != 0 {
		h.bytes(e.DedupID[:])
		h.number(uint64(e.Together))
	}
	return h.Sum64()
}
