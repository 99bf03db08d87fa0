package verify

import (
	"context"
	"errors"
	"slices"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage"
)

// idSums stand for the deduplication ids of the events before the checkpoints, and for
// those that the index has.
type idSums struct {
	logged, indexed uint64
	// tail are the events behind the checkpoints that have an id, by its hash.
	tail map[uint64][]messages.LSN
}

func newIDSums() idSums { return idSums{tail: make(map[uint64][]messages.LSN)} }

// add takes an event over.
func (s *idSums) add(f *files, lsn messages.LSN, e *messages.Event, projected bool) {
	if e.DedupID.IsZero() {
		return
	}
	hash := f.image.HashID(e.Workspace, e.DedupID)
	if projected {
		s.logged += entrySum(hash, lsn)
		return
	}
	s.tail[hash] = append(s.tail[hash], lsn)
}

// checkIDs compares the index of deduplication ids with the log, and finds ids that
// two events have.
func (f *files) checkIDs(ctx context.Context) error {
	same := []messages.LSN{}
	hash := uint64(0)
	damaged := false
	err := f.image.IDs(ctx, func(h uint64, lsn messages.LSN, damage error) error {
		f.tell(PhaseProjections)
		if damage != nil {
			f.fault(CheckDamage, place{file: "state.db, bucket dedup"}, "%v", damage)
			damaged = true
			return nil
		}
		f.ids.indexed += entrySum(h, lsn)
		if h != hash {
			hash, same = h, append(same[:0], f.ids.tail[h]...)
			delete(f.ids.tail, h)
		}
		same = append(same, lsn)
		return f.checkTwins(ctx, same)
	})
	if err != nil {
		return f.damage("state.db, bucket dedup", err)
	}
	for _, lsns := range f.ids.tail {
		for n := 2; n <= len(lsns); n++ {
			if err := f.checkTwins(ctx, lsns[:n]); err != nil {
				return err
			}
		}
	}
	if f.ids.indexed == f.ids.logged || damaged || f.anyFailed() {
		return nil
	}
	return f.locateIDs(ctx)
}

// checkTwins makes sure that the last of some events whose ids have the same hash has
// another id than the others.
func (f *files) checkTwins(ctx context.Context, same []messages.LSN) error {
	if len(same) < 2 {
		return nil
	}
	last := same[len(same)-1]
	e, err := f.image.Event(ctx, last)
	if err != nil {
		return f.ignoreDamage(err)
	}
	for _, lsn := range same[:len(same)-1] {
		before, err := f.image.Event(ctx, lsn)
		if err != nil {
			return f.ignoreDamage(err)
		}
		if lsn != last && before.Workspace == e.Workspace && before.DedupID == e.DedupID {
			first, second := &before, &e
			if first.WLogOffset > second.WLogOffset {
				first, second = second, first
			}
			f.projection = false
			f.fault(CheckDedup, placeOf(second), "workspace %d: id %v is found at offset %d, want %d", e.Workspace, e.DedupID, first.WLogOffset, second.WLogOffset)
			f.projection = true
			return nil
		}
	}
	return nil
}

// locateIDs names the entries of the index that no event explains, and the ids that it
// lacks.
func (f *files) locateIDs(ctx context.Context) error {
	begun := f.report.FaultCount
	err := f.image.IDs(ctx, func(hash uint64, lsn messages.LSN, _ error) error {
		if lsn == 0 {
			return nil
		}
		return f.explainID(ctx, hash, lsn)
	})
	if err != nil {
		return err
	}
	err = f.image.Log(ctx, func(lsn messages.LSN, e *messages.Event, _ error) error {
		if e == nil || !f.idIsProjected(e) {
			return nil
		}
		lsns, err := f.image.FindID(ctx, f.image.HashID(e.Workspace, e.DedupID))
		if err != nil {
			return f.readFault(placeOf(e), "find id", err)
		}
		if n := count(lsns, lsn); n != 1 {
			f.fault(CheckDedup, placeOf(e), "workspace %d: id %v is in the index %d times, want once", e.Workspace, e.DedupID, n)
		}
		return nil
	})
	if err == nil && f.report.FaultCount == begun {
		f.fault(CheckDedup, place{file: "state.db, bucket dedup"}, "the index is not what the log says")
	}
	return err
}

// explainID makes sure that an entry of the index is an event's.
func (f *files) explainID(ctx context.Context, hash uint64, lsn messages.LSN) error {
	e, err := f.image.Event(ctx, lsn)
	if err != nil {
		if err := f.ignoreDamage(err); err != nil {
			return err
		}
		e = messages.Event{}
	}
	if !f.idIsProjected(&e) || f.image.HashID(e.Workspace, e.DedupID) != hash {
		f.fault(CheckDedup, place{file: "state.db, bucket dedup"}, "hash %016x names LSN %d, which has no such id before the checkpoint", hash, lsn)
	}
	return nil
}

// idIsProjected reports whether an event has an id that the index must have.
func (f *files) idIsProjected(e *messages.Event) bool {
	return !e.DedupID.IsZero() && e.PLogOffset < f.partitions[e.Partition].register.Checkpoint
}

func count(lsns []messages.LSN, lsn messages.LSN) int {
	return len(slices.DeleteFunc(slices.Clone(lsns), func(l messages.LSN) bool { return l != lsn }))
}

func (f *files) anyFailed() bool {
	return slices.ContainsFunc(f.partitions, func(p partition) bool { return p.failed })
}

// ignoreDamage returns an error unless it says that an entry is damaged, which is a
// fault already.
func (f *files) ignoreDamage(err error) error {
	if errors.Is(err, storage.ErrDamaged) {
		return nil
	}
	return err
}
