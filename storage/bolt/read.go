package bolt

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage"
	"github.com/partita-go/partita/storage/bolt/internal/boltfile"
	"github.com/partita-go/partita/storage/bolt/internal/fetch"
	"github.com/partita-go/partita/storage/bolt/internal/statedb"
	"github.com/partita-go/partita/storage/bolt/internal/tail"
)

// Register implements [storage.Reader].
func (s *Store) Register(ctx context.Context, id messages.PartitionID) (storage.Register, error) {
	p, err := s.enterPartition(ctx, id)
	if err != nil {
		return storage.Register{}, err
	}
	p.mu.RLock()
	defer p.mu.RUnlock()
	return p.register(), p.failed
}

func (s *Store) enterPartition(ctx context.Context, id messages.PartitionID) (*partition, error) {
	if err := s.enterRead(ctx); err != nil {
		return nil, err
	}
	return s.partition(id)
}

// Tail implements [storage.Reader]. It reads memory only. A limit below 1 is taken
// for 1.
func (s *Store) Tail(ctx context.Context, id messages.PartitionID, from messages.PLogOffset, limit int) ([]messages.Numbering, error) {
	p, err := s.enterPartition(ctx, id)
	if err != nil {
		return nil, err
	}
	p.mu.RLock()
	defer p.mu.RUnlock()
	if p.failed != nil {
		return nil, p.failed
	}
	if from < p.checkpoint {
		return nil, fmt.Errorf("%w: partition %d: got tail from %d, want at least %d", storage.ErrCheckpoint, id, from, p.checkpoint)
	}
	if from > p.last {
		return nil, nil
	}
	end := from + min(messages.PLogOffset(max(limit, 1)), p.last+1-from)
	list := make([]messages.Numbering, 0, end-from)
	arena := make([]messages.SequenceNumber, 0, p.tail.NumbersEnd(end-1)-p.tail.At(from).Numbers)
	for o := from; o < end; o++ {
		var n messages.Numbering
		n, arena = p.tail.Numbering(o, arena)
		list = append(list, n)
	}
	return list, nil
}

// LogWithLSN is [Store.Log] with the LSNs.
func (s *Store) LogWithLSN(ctx context.Context, from messages.LSN) iter.Seq2[LoggedEvent, error] {
	return s.reader().Events(ctx, func() (fetch.Source, error) {
		return fetch.LogSource(from, messages.LSN(s.lastLSN.Load())), nil
	})
}

// PLogWithLSN is [Store.PLog] with the LSNs.
func (s *Store) PLogWithLSN(ctx context.Context, id messages.PartitionID, from messages.PLogOffset) iter.Seq2[LoggedEvent, error] {
	return s.reader().Events(ctx, func() (fetch.Source, error) {
		p, err := s.partition(id)
		if err != nil {
			return nil, err
		}
		return p.plogSource(s.state, from), nil
	})
}

// plogSource finds the partition's events from an offset on.
func (p *partition) plogSource(state *boltfile.File, from messages.PLogOffset) fetch.Source {
	p.mu.RLock()
	end, failed := p.last+1, p.failed
	p.mu.RUnlock()
	next := max(from, 1)
	return func(n int) ([]fetch.Place, error) {
		if next >= end {
			return nil, failed
		}
		places, err := p.plogPlaces(state, next, min(end, next+messages.PLogOffset(n)))
		next += messages.PLogOffset(len(places))
		return places, err
	}
}

// plogPlaces finds entries of a partition's log: in the tail or, what has left the
// tail by now, in state.db.
func (p *partition) plogPlaces(state *boltfile.File, from, to messages.PLogOffset) ([]fetch.Place, error) {
	var places []fetch.Place
	p.mu.RLock()
	begin := max(from, p.tail.First())
	for o := begin; o < to; o++ {
		e := p.tail.At(o)
		places = append(places, e.Place(p.id, o))
	}
	p.mu.RUnlock()
	if from >= begin {
		return places, nil
	}
	if len(places) > 0 {
		to = begin
	}
	return fetch.StoredPLog(state, p.id, from, to)
}

// WLogWithLSN is [Store.WLog] with the LSNs.
func (s *Store) WLogWithLSN(ctx context.Context, ws messages.WSID, from messages.WLogOffset) iter.Seq2[LoggedEvent, error] {
	return s.reader().Events(ctx, func() (fetch.Source, error) { return s.partitionOf(ws).wlogSource(s.state, ws, from) })
}

// wlogSource finds a workspace's events from an offset on.
func (p *partition) wlogSource(state *boltfile.File, ws messages.WSID, from messages.WLogOffset) (fetch.Source, error) {
	next := max(from, 1)
	last, inTail, failed, err := p.wlogEnd(state, ws)
	if err != nil {
		return nil, err
	}
	end := last + 1
	var tail []fetch.Place
	return func(n int) ([]fetch.Place, error) {
		if next >= end {
			return nil, failed
		}
		if inTail && len(tail) == 0 {
			tail = p.wlogTail(ws, next, end)
		}
		if len(tail) > 0 && tail[0].WLog == next {
			n = min(n, len(tail))
			places := tail[:n]
			tail = tail[n:]
			next += messages.WLogOffset(n)
			return places, nil
		}
		// What has left the tail by now is in state.db.
		to := next + min(messages.WLogOffset(n), end-next)
		if len(tail) > 0 {
			to = min(to, tail[0].WLog)
		}
		places, err := fetch.StoredWLog(state, ws, next, to)
		next += messages.WLogOffset(len(places))
		return places, err
	}, nil
}

// wlogEnd returns the last offset of a workspace's log, 0 if it has none, whether that is in the tail, and why
// its partition has failed. If it is not in the tail, all of the log up to there is in state.db.
func (p *partition) wlogEnd(state *boltfile.File, ws messages.WSID) (last messages.WLogOffset, inTail bool, failed, err error) {
	// First the tail's view: what has left it by then is in state.db.
	p.mu.RLock()
	failed = p.failed
	if _, e := p.tail.LastOf(ws); e != nil {
		last, inTail = e.WLog, true
	}
	p.mu.RUnlock()
	if !inTail {
		last, err = statedb.WLogEnd(state, ws)
	}
	return last, inTail, failed, err
}

// maxTailPlaces is how many entries of a workspace's tail a reader keeps in mind.
const maxTailPlaces = 4096

// wlogTail returns the tail's first entries of a workspace's log between two offsets. The
// entries are linked backwards: it goes from the last to the first, and lets others have the
// lock now and then. Entries that are dropped meanwhile are in state.db.
func (p *partition) wlogTail(ws messages.WSID, from, end messages.WLogOffset) []fetch.Place {
	p.mu.RLock()
	defer p.mu.RUnlock()
	var places []fetch.Place
	o, e := p.tail.LastOf(ws)
	for steps := 1; e != nil && e.WLog >= from; steps++ {
		if e.WLog < end {
			places = append(places, e.Place(p.id, o))
		}
		if len(places) == 2*maxTailPlaces {
			places = append(places[:0], places[maxTailPlaces:]...)
		}
		if steps%tail.TrimStep == 0 {
			p.mu.RUnlock()
			p.mu.RLock()
			if o < p.tail.First() {
				break
			}
			e = p.tail.At(o)
		}
		o, e = p.tail.Previous(o, e)
	}
	slices.Reverse(places)
	return places[:min(len(places), maxTailPlaces)]
}

// LoggedEvent is an event, and where it stands in log.db. Errors and faults name that place.
type LoggedEvent = fetch.LoggedEvent

// reader reads the log as long as the store is open.
func (s *Store) reader() fetch.Reader { return fetch.Reader{Log: s.log, Enter: s.enterRead} }

// Log returns all events of the store in commit order from an LSN on (0 means 1):
// the plain scan. It obeys the rules of [storage.Reader].
func (s *Store) Log(ctx context.Context, from messages.LSN) iter.Seq2[messages.Event, error] {
	return fetch.WithoutLSN(s.LogWithLSN(ctx, from))
}

// PLog implements [storage.Reader].
func (s *Store) PLog(ctx context.Context, id messages.PartitionID, from messages.PLogOffset) iter.Seq2[messages.Event, error] {
	return fetch.WithoutLSN(s.PLogWithLSN(ctx, id, from))
}

// WLog implements [storage.Reader].
func (s *Store) WLog(ctx context.Context, ws messages.WSID, from messages.WLogOffset) iter.Seq2[messages.Event, error] {
	return fetch.WithoutLSN(s.WLogWithLSN(ctx, ws, from))
}

// Part is a part of a store's events. The zero value means all of them. Of one that is named twice there is one.
type Part struct {
	// Partitions or Workspaces are those whose events are wanted, if either is not empty.
	Partitions []messages.PartitionID
	Workspaces []messages.WSID
}

func (p *Part) validate(partitions int) error {
	if len(p.Partitions) > 0 && len(p.Workspaces) > 0 {
		return fmt.Errorf("%w: got partitions and workspaces, want either", ErrPart)
	}
	for _, id := range p.Partitions {
		if err := mustHave(id, partitions); err != nil {
			return fmt.Errorf("%w: %w", ErrPart, err)
		}
	}
	return nil
}

// CountEvents returns how many events a part of the store has.
func (s *Store) CountEvents(ctx context.Context, part Part) (n uint64, err error) {
	if err := s.enterRead(ctx); err != nil {
		return 0, err
	}
	if err := part.validate(len(s.partitions)); err != nil {
		return 0, err
	}
	if len(part.Workspaces) == 0 {
		for _, id := range part.partitions(len(s.partitions)) {
			p := &s.partitions[id]
			p.mu.RLock()
			n += uint64(p.last)
			p.mu.RUnlock()
		}
		return n, nil
	}
	for _, ws := range sorted(part.Workspaces) {
		last, _, failed, err := s.partitionOf(ws).wlogEnd(s.state, ws)
		if err := errors.Join(err, failed); err != nil {
			return 0, err
		}
		n += uint64(last)
	}
	return n, nil
}

func sorted[T messages.WSID | messages.PartitionID](list []T) []T {
	return slices.Compact(slices.Sorted(slices.Values(list)))
}

// partitions returns those whose logs are wanted.
func (p *Part) partitions(all int) []messages.PartitionID {
	if len(p.Partitions) > 0 {
		return sorted(p.Partitions)
	}
	ids := make([]messages.PartitionID, all)
	for i := range ids {
		ids[i] = messages.PartitionID(i)
	}
	return ids
}

// ByTime returns the events of a part of the store in the order of their registration times; where these are equal,
// in commit order. Events that were appended together stay together. So each workspace's events are in the order of
// its log, and the order does not depend on how many partitions there are.
//
// It takes memory for each partition, or each workspace that is named, but not for each event. Damage ends it up to 512
// events of its log before the one that is damaged: what came until then is the beginning of that order.
func (s *Store) ByTime(ctx context.Context, part Part) iter.Seq2[messages.Event, error] {
	return fetch.WithoutLSN(s.reader().Events(ctx, func() (fetch.Source, error) {
		if err := part.validate(len(s.partitions)); err != nil {
			return nil, err
		}
		if len(part.Workspaces) > 0 {
			return fetch.ByTime(s.log, sorted(part.Workspaces), func(ws messages.WSID) (fetch.Source, error) {
				return s.partitionOf(ws).wlogSource(s.state, ws, 1)
			})
		}
		return fetch.ByTime(s.log, part.partitions(len(s.partitions)), func(id messages.PartitionID) (fetch.Source, error) {
			return s.partitions[id].plogSource(s.state, 1), nil
		})
	}))
}
