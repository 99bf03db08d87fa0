package verify

import (
	"context"
	"errors"
	"math/bits"
	"slices"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage"
)

// workspaceState is what a pass remembers of a workspace.
type workspaceState struct {
	id messages.WSID
	// index stands for the entries that its index must have.
	index uint64
	// base is where its last numbers are.
	base uint32
	// kind is the index of its kind, never 0.
	kind uint16
	// hasTail says that it has events behind the checkpoint; indexed and counted that its
	// index and its numbers were found.
	hasTail, indexed, counted bool
}

// readLog reads the log in its order.
func (f *files) readLog(ctx context.Context) error {
	total := uint64(0)
	for i := range f.partitions {
		total += uint64(f.partitions[i].register.Last)
	}
	f.begin(PhaseLog, total)
	f.projection = false
	f.lastLSN = 0
	err := f.image.Log(ctx, func(lsn messages.LSN, e *messages.Event, damage error) error {
		f.tell(PhaseLog)
		return f.entry(ctx, lsn, e, damage)
	})
	if err != nil {
		return f.damage("the log", err)
	}
	f.end(PhaseLog)
	if f.first() {
		f.checkEnds()
	}
	return nil
}

// damage notes that a file cannot be read any further, if that is what the error says.
func (f *files) damage(what string, err error) error {
	if !errors.Is(err, storage.ErrDamaged) {
		return err
	}
	if !f.unreadable[what] {
		f.unreadable[what] = true
		f.fault(CheckDamage, place{file: what}, "it cannot be read any further: %v", err)
	}
	for i := range f.partitions {
		f.partitions[i].fail(allRead)
	}
	return nil
}

// entry checks one entry of the log.
func (f *files) entry(ctx context.Context, lsn messages.LSN, e *messages.Event, damage error) error {
	if f.first() {
		f.report.Events++
		f.checkLSN(lsn, damage)
	}
	f.lastLSN = lsn
	if e == nil {
		return nil
	}
	if uint64(e.Partition) >= uint64(len(f.partitions)) {
		if f.first() {
			f.lost++
			f.fault(CheckEvent, place{file: "log.db, LSN " + lsn.String()}, "event says partition %d, the application has %d", e.Partition, len(f.partitions))
		}
		return nil
	}
	p := &f.partitions[e.Partition]
	if p.failed && lsn >= p.unread {
		return nil
	}
	where := placeOf(e)
	known := f.kinds[e.WorkspaceKind]
	if f.first() {
		f.subscribed.see(e)
		known = f.checkPlace(p, lsn, e, where)
	}
	if known == nil {
		return nil
	}
	projected := p.written(e)
	f.checkSequences(lsn, e, known, projected)
	f.checkPeriods(e, known, projected)
	return f.checkWrites(ctx, lsn, e, projected)
}

// checkLSN makes sure that no entry of the log is damaged or missing.
func (f *files) checkLSN(lsn messages.LSN, damage error) {
	if want := f.lastLSN + 1; lsn != want {
		f.lost++
		f.fault(CheckLSN, place{file: "log.db, LSN " + want.String()}, "the entry is missing, the next one is LSN %d", lsn)
	}
	if damage != nil {
		f.lost++
		f.fault(CheckDamage, place{file: "log.db, LSN " + lsn.String()}, "%v", damage)
	}
}

// checkPlace checks what an event and its predecessors in the partition tell.
func (f *files) checkPlace(p *partition, lsn messages.LSN, e *messages.Event, where place) *kind {
	hole := e.PLogOffset != p.last+1
	f.checkOrder(&p.position, e, where)
	if hole && f.lost > 0 {
		p.fail(lsn)
		return nil
	}
	f.checkTogether(&p.position, e, where)
	f.checkCheckpoint(p, lsn, e, where)
	f.ids.add(f, lsn, e, p.projected(e))
	f.report.Numbers += 1 + uint64(len(e.Numbers))
	return f.checkIdentity(&p.position, e, where)
}

// checkCheckpoint compares the partition's checkpoint with the events around it, and
// adds those before it to what the index must have.
func (f *files) checkCheckpoint(p *partition, lsn messages.LSN, e *messages.Event, where place) {
	f.projection = true
	defer func() { f.projection = false }()
	s := &p.standing
	if !p.projected(e) {
		if lsn < f.image.Projected() && !p.behind {
			p.behind = true
			f.fault(CheckCheckpoint, where, "LSN %d is not projected, the checkpoint is %d, and the projections say that all before LSN %d are",
				lsn, s.Checkpoint, f.image.Projected())
		}
		return
	}
	p.index += entrySum(uint64(e.PLogOffset), lsn)
	if e.PLogOffset+1 == s.Checkpoint && (s.LSN != lsn || s.At != e.RegisteredAt || s.Epoch != e.Epoch) {
		f.fault(CheckCheckpoint, where, "the checkpoint says LSN %d at %d us, epoch %d, the event is LSN %d at %d us, epoch %d",
			s.LSN, s.At, s.Epoch, lsn, e.RegisteredAt, e.Epoch)
	}
}

// entrySum is what an entry of an index adds to the sum of its index. Two indexes
// with other entries have the same sum by chance only.
func entrySum(offset uint64, lsn messages.LSN) uint64 {
	hi, lo := bits.Mul64(offset^0xa0761d6478bd642f, uint64(lsn)^0xe7037ed1a0b428db)
	return scramble(hi ^ lo)
}

// checkEnds compares the ends of the partitions' logs with their registers.
func (f *files) checkEnds() {
	for i := range f.partitions {
		p := &f.partitions[i]
		if p.failed {
			continue
		}
		if sound := f.checkRegister(&p.position); !sound || f.lost > 0 && p.last != p.register.Last {
			p.fail(allRead)
		}
	}
}

// checkSequences checks an event's numbers against those before it in its workspace.
func (f *files) checkSequences(lsn messages.LSN, e *messages.Event, k *kind, projected bool) {
	key := f.sieve.workspace(e.Workspace)
	if !f.sieve.selects(key) {
		return
	}
	w := f.workspaces.find(key)
	if w == nil {
		if w = f.addWorkspace(key, e.Workspace, k); w == nil {
			return
		}
	}
	defer f.found.note(&f.report, f.mark(), key-f.sieve.first)
	s := f.sequencesOf(w)
	if !f.sameKind(s.kind, k, e, placeOf(e)) {
		return
	}
	if projected {
		w.index += entrySum(uint64(e.WLogOffset), lsn)
		if e.Zone != "" {
			f.zones[key] = messages.MergeZone(f.zones[key], e.Zone, e.RegisteredAt)
		}
	} else if !w.hasTail {
		w.hasTail = true
		f.tails[key] = slices.Clone(s.last)
	}
	f.explicit = messages.AppendExplicit(f.explicit[:0], e.Numbers, e.Records)
	s.take(&f.run, e, f.explicit)
}

// addWorkspace returns a new workspace's state, nil if the sieve had to be narrowed and
// does not select it any more.
func (f *files) addWorkspace(key uint64, id messages.WSID, k *kind) *workspaceState {
	f.maybeNarrow(f.workspaces.full(), f.memory()-int64(len(f.records.slots))*recordSlotSize-int64(len(f.periods.slots))*periodSlotSize)
	if !f.sieve.selects(key) {
		return nil
	}
	base := len(f.numbers)
	for range k.sequences {
		f.numbers = append(f.numbers, 0)
	}
	return f.workspaces.add(key, workspaceState{id: id, base: uint32(base), kind: f.kindIndex[k]})
}

func (f *files) sequencesOf(w *workspaceState) sequences {
	return sequences{id: w.id, kind: f.kindsByIndex[w.kind], last: f.numbersOf(w)}
}

func (f *files) numbersOf(w *workspaceState) []messages.Number {
	end := w.base + uint32(len(f.kindsByIndex[w.kind].sequences))
	return f.numbers[w.base:end:end]
}

// projectedOf returns a workspace's last numbers as of the checkpoint, nil if no event
// is before it.
func (f *files) projectedOf(key uint64, w *workspaceState) []messages.Number {
	last := f.numbersOf(w)
	if w.hasTail {
		last = f.tails[key]
	}
	if last[0] == 0 {
		return nil
	}
	return last
}
