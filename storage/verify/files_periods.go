package verify

import (
	"context"
	"unsafe"

	"github.com/partita-go/partita/messages"
)

const periodSlotSize = int64(unsafe.Sizeof(slot[period]{}))

// period hashes a period of a workspace's sequence.
func (s *sieve) period(ws messages.WSID, p messages.SequencePeriod) uint64 {
	return scramble(scramble(s.workspace(ws)+uint64(p.Period)) ^ uint64(p.Seq)<<32)
}

// checkPeriods checks an event's numbers of sequences that restart against those before them in their periods.
func (f *files) checkPeriods(e *messages.Event, k *kind, projected bool) {
	k.eachOfPeriod(e, func(n said) {
		if p, key := f.periodOf(e.Workspace, n.SequencePeriod()); p != nil {
			p.kind = f.kindIndex[k]
			since := f.mark()
			p.take(&f.run, e, n, projected)
			f.found.note(&f.report, since, key-f.sieve.first)
		}
	})
}

// periodOf returns what the pass remembers of a period, nil if the sieve does not select it. Of two with one hash, which
// another check will not have, only the first is remembered.
func (f *files) periodOf(ws messages.WSID, at messages.SequencePeriod) (p *period, key uint64) {
	key = f.sieve.period(ws, at)
	if !f.sieve.selects(key) {
		return nil, key
	}
	if p = f.periods.find(key); p == nil {
		f.maybeNarrow(f.periods.full(), int64(len(f.periods.slots))*periodSlotSize)
		if !f.sieve.selects(key) {
			return nil, key
		}
		p = f.periods.add(key, period{workspace: ws, SequencePeriod: at})
	}
	if p.workspace != ws || p.SequencePeriod != at {
		return nil, key
	}
	return p, key
}

// checkStoredPeriod compares the last number of a period with the log.
func (f *files) checkStoredPeriod(e *NumberEntry) {
	key, where := f.sieve.period(e.Workspace, e.SequencePeriod()), f.placeOf(e.Workspace)
	if !f.compares(key, e.Workspace) {
		return
	}
	p := f.periods.find(key)
	switch {
	case p == nil || p.projected == 0:
		f.fault(CheckNumbers, where, "workspace %d, %v: stored number is %d, no event before the checkpoint has one", e.Workspace, e.SequencePeriod(), e.Number)
		return
	case p.workspace != e.Workspace || p.SequencePeriod != e.SequencePeriod():
		return
	case p.projected != e.Number:
		f.fault(CheckNumbers, where, "workspace %d, %v: stored number is %d, want %d", e.Workspace, e.SequencePeriod(), e.Number, p.projected)
	}
	p.found = true
	if e.ClosedBelow != 0 {
		f.checkClosed(where, f.kindsByIndex[p.kind], messages.SequencePeriod{Seq: e.Seq, Period: e.ClosedBelow}, e.SequencePeriod())
	}
}

// checkMissingPeriods names the periods of which the number is not stored, though they are not closed.
func (f *files) checkMissingPeriods(ctx context.Context) error {
	for i := range f.periods.slots {
		s := &f.periods.slots[i]
		p := &s.value
		if s.free() || p.found || p.projected == 0 || f.lostNumbers[p.workspace] || !f.compares(s.key, p.workspace) {
			continue
		}
		closed, err := f.image.Closed(ctx, p.workspace)
		if err != nil {
			if err := f.ignoreDamage(err); err != nil {
				return err
			}
			continue
		}
		if !isClosed(closed, p.SequencePeriod) {
			f.fault(CheckNumbers, f.placeOf(p.workspace), "workspace %d, %v: no number is stored, want %d", p.workspace, p.SequencePeriod, p.projected)
		}
	}
	return nil
}
