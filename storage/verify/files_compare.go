package verify

import (
	"context"
	"errors"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage"
)

// compare reads the projections in the order of their keys.
func (f *files) compare(ctx context.Context) error {
	f.begin(PhaseProjections, f.expected())
	f.projection = true
	if f.first() {
		if err := f.checkConflicts(ctx); err != nil {
			return err
		}
		if err := f.checkPLogIndex(ctx); err != nil {
			return err
		}
		if err := f.checkIDs(ctx); err != nil {
			return err
		}
	}
	if err := f.checkWLogIndex(ctx); err != nil {
		return err
	}
	if err := f.checkStoredNumbers(ctx); err != nil {
		return err
	}
	if err := f.checkRows(ctx); err != nil {
		return err
	}
	f.end(PhaseProjections)
	return nil
}

// expected estimates how many entries the projections have.
func (f *files) expected() uint64 {
	projected := uint64(0)
	for i := range f.partitions {
		projected += uint64(max(f.partitions[i].register.Checkpoint, 1) - 1)
	}
	n := projected + uint64(float64(f.records.used+f.periods.used+len(f.numbers)+f.workspaces.used)/f.sieve.share())
	if f.first() {
		n += projected
	}
	return n
}

func (f *files) checkConflicts(ctx context.Context) error {
	err := f.image.Conflicts(ctx, func(conflict error) error {
		f.fault(CheckConflict, place{file: "state.db, bucket conflicts"}, "a projection met a foreign key: %v", conflict)
		return nil
	})
	if err != nil {
		return f.damage("state.db, bucket conflicts", err)
	}
	return nil
}

// partitionIndex is what the pass over the index has seen of a partition.
type partitionIndex struct {
	last messages.PLogOffset
	sum  uint64
	bad  bool
}

// checkPLogIndex compares the index of the partitions' logs with the log.
func (f *files) checkPLogIndex(ctx context.Context) error {
	seen := make([]partitionIndex, len(f.partitions))
	err := f.image.PLog(ctx, func(entry PLogEntry, damage error) error {
		f.tell(PhaseProjections)
		if uint64(entry.Partition) >= uint64(len(seen)) {
			f.fault(CheckPLogIndex, place{file: "state.db, bucket plog"}, "entry of partition %d, the application has %d", entry.Partition, len(seen))
			return nil
		}
		if !f.partitions[entry.Partition].failed {
			f.checkPLogEntry(&seen[entry.Partition], entry, damage)
		}
		return nil
	})
	if err != nil {
		return f.damage("state.db, bucket plog", err)
	}
	for i := range seen {
		p, s := &f.partitions[i], &seen[i]
		if p.failed || s.bad {
			continue
		}
		if s.last+1 != p.register.Checkpoint {
			f.fault(CheckPLogIndex, place{partition: p.partition}, "the index ends at offset %d, want %d", s.last, p.register.Checkpoint-1)
		} else if s.sum != p.index {
			if err := f.locatePLog(ctx, p); err != nil {
				return err
			}
		}
	}
	return nil
}

func (f *files) checkPLogEntry(s *partitionIndex, entry PLogEntry, damage error) {
	where := place{partition: entry.Partition, offset: entry.PLogOffset}
	switch {
	case damage != nil:
		f.fault(CheckDamage, where, "index: %v", damage)
		s.bad = true
	case entry.PLogOffset >= f.partitions[entry.Partition].register.Checkpoint:
		f.fault(CheckPLogIndex, where, "the index has offset %d, the checkpoint is %d", entry.PLogOffset, f.partitions[entry.Partition].register.Checkpoint)
		s.bad = true
	case entry.PLogOffset != s.last+1:
		f.fault(CheckPLogIndex, where, "the index has offset %d, want %d", entry.PLogOffset, s.last+1)
		s.bad = true
	}
	s.last = entry.PLogOffset
	s.sum += entrySum(uint64(entry.PLogOffset), entry.LSN)
}

// locatePLog names the entries of a partition's index that lead elsewhere.
func (f *files) locatePLog(ctx context.Context, p *partition) error {
	return f.image.PLog(ctx, func(entry PLogEntry, _ error) error {
		if entry.Partition != p.partition {
			return nil
		}
		e, err := f.image.Event(ctx, entry.LSN)
		where := place{partition: p.partition, offset: entry.PLogOffset}
		if err != nil {
			return f.readFault(where, "index", err)
		}
		if e.Partition != p.partition || e.PLogOffset != entry.PLogOffset {
			f.fault(CheckPLogIndex, where, "the index names LSN %d, which is partition %d, offset %d", entry.LSN, e.Partition, e.PLogOffset)
		}
		return nil
	})
}

// workspaceIndex is what the pass over the index has seen of a workspace.
type workspaceIndex struct {
	id       messages.WSID
	key      uint64
	last     messages.WLogOffset
	sum      uint64
	selected bool
	bad      bool
}

// checkWLogIndex compares the index of the workspaces' logs with the log.
func (f *files) checkWLogIndex(ctx context.Context) error {
	var seen workspaceIndex
	var wrong []messages.WSID
	begun := false
	finish := func() {
		if f.finishIndex(&seen) {
			wrong = append(wrong, seen.id)
		}
	}
	err := f.image.WLog(ctx, 0, func(entry WLogEntry, damage error) error {
		f.tell(PhaseProjections)
		if !begun || entry.Workspace != seen.id {
			begun = true
			finish()
			key := f.sieve.workspace(entry.Workspace)
			seen = workspaceIndex{id: entry.Workspace, key: key, selected: f.compares(key, entry.Workspace)}
		}
		if seen.selected {
			f.checkWLogEntry(&seen, entry, damage)
		}
		return nil
	})
	if err != nil {
		return f.damage("state.db, the logs of workspaces", err)
	}
	finish()
	for i := range f.workspaces.slots {
		w := &f.workspaces.slots[i]
		if w.free() || w.value.indexed || f.projectedOf(w.key, &w.value) == nil || !f.compares(w.key, w.value.id) {
			continue
		}
		f.fault(CheckWLog, f.placeOf(w.value.id), "workspace %d: no event is in its index, want %d", w.value.id, f.projectedOf(w.key, &w.value)[0])
	}
	for _, ws := range wrong {
		if err := f.locateWLog(ctx, ws); err != nil {
			return err
		}
	}
	return nil
}

// compares reports whether this pass compares what a workspace has.
func (f *files) compares(key uint64, ws messages.WSID) bool {
	return f.sieve.selects(key) && !f.partitions[messages.PartitionOf(ws, f.desc.Partitions)].failed
}

func (f *files) placeOf(ws messages.WSID) place {
	return place{partition: messages.PartitionOf(ws, f.desc.Partitions), workspace: ws}
}

func (f *files) checkWLogEntry(s *workspaceIndex, entry WLogEntry, damage error) {
	where := f.placeOf(entry.Workspace)
	switch {
	case damage != nil:
		f.fault(CheckDamage, where, "index: %v", damage)
		s.bad = true
	case entry.WLogOffset != s.last+1:
		f.fault(CheckWLog, where, "workspace %d: the index has offset %d, want %d", entry.Workspace, entry.WLogOffset, s.last+1)
		s.bad = true
	}
	s.last = entry.WLogOffset
	s.sum += entrySum(uint64(entry.WLogOffset), entry.LSN)
}

// finishIndex compares a workspace's index with the log. It returns true if some
// entries lead elsewhere.
func (f *files) finishIndex(s *workspaceIndex) bool {
	if !s.selected {
		return false
	}
	want := messages.Number(0)
	sum := uint64(0)
	if w := f.workspaces.find(s.key); w != nil {
		w.indexed = true
		sum = w.index
		if projected := f.projectedOf(s.key, w); projected != nil {
			want = projected[0]
		}
	}
	switch {
	case s.bad:
	case want == 0:
		f.fault(CheckWLog, f.placeOf(s.id), "workspace %d: the index has %d events, no event before the checkpoint is its", s.id, s.last)
	case s.last != messages.WLogOffset(want):
		f.fault(CheckWLog, f.placeOf(s.id), "workspace %d: the index ends at offset %d, want %d", s.id, s.last, want)
	default:
		return s.sum != sum
	}
	return false
}

// locateWLog names the entries of a workspace's index that lead elsewhere.
func (f *files) locateWLog(ctx context.Context, ws messages.WSID) error {
	err := f.image.WLog(ctx, ws, func(entry WLogEntry, _ error) error {
		if entry.Workspace != ws {
			return errEnough
		}
		e, err := f.image.Event(ctx, entry.LSN)
		if err != nil {
			return f.readFault(f.placeOf(ws), "index", err)
		}
		if e.Workspace != ws || e.WLogOffset != entry.WLogOffset {
			f.fault(CheckWLog, f.placeOf(ws), "workspace %d: offset %d of the index names LSN %d, which is workspace %d, offset %d",
				ws, entry.WLogOffset, entry.LSN, e.Workspace, e.WLogOffset)
		}
		return nil
	})
	if errors.Is(err, errEnough) {
		return nil
	}
	return err
}

// checkStoredNumbers compares the last numbers with the log.
func (f *files) checkStoredNumbers(ctx context.Context) error {
	var got storage.WorkspaceNumbers
	var key uint64
	selected, damaged := false, false
	finish := func() {
		if selected {
			f.finishNumbers(key, got, damaged)
		}
	}
	begun := false
	err := f.image.Numbers(ctx, func(n *NumberEntry, damage error) error {
		f.tell(PhaseProjections)
		ws := n.Workspace
		if !begun || ws != got.Workspace {
			finish()
			key, begun, damaged = f.sieve.workspace(ws), true, false
			got = storage.WorkspaceNumbers{Workspace: ws, Numbers: got.Numbers[:0]}
			selected = f.compares(key, ws)
		}
		switch {
		case damage != nil:
			f.lostNumbers[ws] = true
			if selected {
				f.fault(CheckDamage, f.placeOf(ws), "numbers: %v", damage)
				damaged = true
			}
		case n.Period != 0:
			f.checkStoredPeriod(n)
		case !selected:
		case n.Seq == 0:
			got.Kind, got.Zones = messages.WSKind(n.Number), n.Zones
		default:
			got.Numbers = append(got.Numbers, n.SequenceNumber)
		}
		return nil
	})
	if err != nil {
		return f.damage("state.db, last numbers", err)
	}
	finish()
	for i := range f.workspaces.slots {
		if w := &f.workspaces.slots[i]; !w.free() && !w.value.counted && f.compares(w.key, w.value.id) {
			f.finishNumbers(w.key, storage.WorkspaceNumbers{Workspace: w.value.id}, false)
		}
	}
	return f.checkMissingPeriods(ctx)
}

// finishNumbers compares a workspace's numbers with the log.
func (f *files) finishNumbers(key uint64, got storage.WorkspaceNumbers, damaged bool) {
	w := f.workspaces.find(key)
	if w == nil {
		f.fault(CheckNumbers, f.placeOf(got.Workspace), "workspace %d: stored numbers are %v, no event is its", got.Workspace, listed(got.Numbers))
		return
	}
	w.counted = true
	if damaged {
		return
	}
	s := f.sequencesOf(w)
	f.compareNumbers(f.placeOf(got.Workspace), &s, f.projectedOf(key, w), nil, got)
	f.compareZones(f.placeOf(got.Workspace), f.zones[key], got.Zones)
}
