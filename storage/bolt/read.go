package bolt

import (
	"context"
	"fmt"
	"iter"
	"slices"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage"
	"github.com/partita-go/partita/storage/bolt/internal/boltfile"
	"github.com/partita-go/partita/storage/bolt/internal/format"
	"github.com/partita-go/partita/storage/bolt/internal/logdb"
	"github.com/partita-go/partita/storage/bolt/internal/statedb"
)

// A reader copies a chunk inside one short transaction, closes it and then yields.
// The first chunk is small, since many readers want one event only.
const (
	firstReadChunk = 16
	maxReadChunk   = 512
	maxReadBytes   = 1 << 20
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
	if err := s.enter(ctx); err != nil {
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
	arena := make([]messages.SequenceNumber, 0, p.tail.numbersEnd(end-1)-p.tail.at(from).numbers)
	for o := from; o < end; o++ {
		var n messages.Numbering
		n, arena = p.tail.numbering(o, arena)
		list = append(list, n)
	}
	return list, nil
}

// LogWithLSN is [Store.Log] with the LSNs.
func (s *Store) LogWithLSN(ctx context.Context, from messages.LSN) iter.Seq2[LoggedEvent, error] {
	return s.read(ctx, func() (source, error) {
		return logSource(from, messages.LSN(s.lastLSN.Load())), nil
	})
}

// logSource finds all events from an LSN to another.
func logSource(from, last messages.LSN) source {
	next := max(from, 1)
	return func(n int) ([]place, error) {
		var places []place
		for ; next <= last && n > 0; n-- {
			places = append(places, place{lsn: next})
			next++
		}
		return places, nil
	}
}

// PLogWithLSN is [Store.PLog] with the LSNs.
func (s *Store) PLogWithLSN(ctx context.Context, id messages.PartitionID, from messages.PLogOffset) iter.Seq2[LoggedEvent, error] {
	return s.read(ctx, func() (source, error) { return s.plogSource(id, from) })
}

// plogSource finds a partition's events from an offset on.
func (s *Store) plogSource(id messages.PartitionID, from messages.PLogOffset) (source, error) {
	p, err := s.partition(id)
	if err != nil {
		return nil, err
	}
	p.mu.RLock()
	end, failed := p.last+1, p.failed
	p.mu.RUnlock()
	next := max(from, 1)
	return func(n int) ([]place, error) {
		if next >= end {
			return nil, failed
		}
		places, err := p.plogPlaces(s.state, next, min(end, next+messages.PLogOffset(n)))
		next += messages.PLogOffset(len(places))
		return places, err
	}, nil
}

// plogPlaces finds entries of a partition's log: in the tail or, what has left the
// tail by now, in state.db.
func (p *partition) plogPlaces(state *boltfile.File, from, to messages.PLogOffset) ([]place, error) {
	var places []place
	p.mu.RLock()
	begin := max(from, p.tail.first())
	for o := begin; o < to; o++ {
		e := p.tail.at(o)
		places = append(places, place{lsn: e.lsn, partition: p.id, offset: o, ws: e.ws, wlog: e.wlog})
	}
	p.mu.RUnlock()
	if from >= begin {
		return places, nil
	}
	if len(places) > 0 {
		to = begin
	}
	return storedPLog(state, p.id, from, to)
}

// WLogWithLSN is [Store.WLog] with the LSNs.
func (s *Store) WLogWithLSN(ctx context.Context, ws messages.WSID, from messages.WLogOffset) iter.Seq2[LoggedEvent, error] {
	return s.read(ctx, func() (source, error) { return s.wlogSource(ws, from) })
}

// wlogSource finds a workspace's events from an offset on.
func (s *Store) wlogSource(ws messages.WSID, from messages.WLogOffset) (source, error) {
	next := max(from, 1)
	p := s.partitionOf(ws)
	last, inTail, failed, err := p.wlogEnd(s.state, ws)
	if err != nil {
		return nil, err
	}
	end := last + 1
	var tail []place
	return func(n int) ([]place, error) {
		if next >= end {
			return nil, failed
		}
		if inTail && len(tail) == 0 {
			tail = p.wlogTail(ws, next, end)
		}
		if len(tail) > 0 && tail[0].wlog == next {
			n = min(n, len(tail))
			places := tail[:n]
			tail = tail[n:]
			next += messages.WLogOffset(n)
			return places, nil
		}
		// What has left the tail by now is in state.db.
		to := next + min(messages.WLogOffset(n), end-next)
		if len(tail) > 0 {
			to = min(to, tail[0].wlog)
		}
		places, err := storedWLog(s.state, ws, next, to)
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
	if _, e := p.tail.lastOf(ws); e != nil {
		last, inTail = e.wlog, true
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
func (p *partition) wlogTail(ws messages.WSID, from, end messages.WLogOffset) []place {
	p.mu.RLock()
	defer p.mu.RUnlock()
	var places []place
	o, e := p.tail.lastOf(ws)
	for steps := 1; e != nil && e.wlog >= from; steps++ {
		if e.wlog < end {
			places = append(places, place{lsn: e.lsn, partition: p.id, offset: o, ws: ws, wlog: e.wlog})
		}
		if len(places) == 2*maxTailPlaces {
			places = append(places[:0], places[maxTailPlaces:]...)
		}
		if steps%trimStep == 0 {
			p.mu.RUnlock()
			p.mu.RLock()
			if o < p.tail.first() {
				break
			}
			e = p.tail.at(o)
		}
		o, e = p.tail.previous(o, e)
	}
	slices.Reverse(places)
	return places[:min(len(places), maxTailPlaces)]
}

// storedPLog finds entries of a partition's log in state.db.
func storedPLog(state *boltfile.File, p messages.PartitionID, from, to messages.PLogOffset) ([]place, error) {
	lsns, err := statedb.PLog(state, p, from, to)
	places := make([]place, len(lsns))
	for i, lsn := range lsns {
		places[i] = place{lsn: lsn, partition: p, offset: from + messages.PLogOffset(i)}
	}
	return places, err
}

// storedWLog finds entries of a workspace's log in state.db.
func storedWLog(state *boltfile.File, ws messages.WSID, from, to messages.WLogOffset) ([]place, error) {
	lsns, err := statedb.WLog(state, ws, from, to)
	places := make([]place, len(lsns))
	for i, lsn := range lsns {
		places[i] = place{lsn: lsn, ws: ws, wlog: from + messages.WLogOffset(i)}
	}
	return places, err
}

// place is where an event lies in the log, and what its index says that it is.
// What is zero is not known.
type place struct {
	lsn       messages.LSN
	partition messages.PartitionID
	offset    messages.PLogOffset
	ws        messages.WSID
	wlog      messages.WLogOffset
}

// check returns nil if the event is the one that the index says.
func (at *place) check(v *format.EventView) error {
	if at.offset != 0 {
		if err := v.Belongs(at.partition, at.offset); err != nil {
			return err
		}
	}
	if at.wlog != 0 && (v.Workspace != at.ws || v.WLogOffset != at.wlog) {
		return fmt.Errorf("%w: it is workspace %d, offset %d", format.ErrMisplaced, v.Workspace, v.WLogOffset)
	}
	return nil
}

// damaged names the place as exactly as it is known.
func (at *place) damaged(cause error) *storage.DamagedError {
	damage := format.DamagedEvent(at.lsn, at.partition, at.offset, cause)
	if at.offset == 0 && at.wlog != 0 {
		damage.Where += fmt.Sprintf(", workspace %d, offset %d", at.ws, at.wlog)
	}
	return damage
}

// source finds the next places of a read, at most n; none at its end.
type source func(n int) ([]place, error)

// read yields the events of a source.
func (s *Store) read(ctx context.Context, begin func() (source, error)) iter.Seq2[LoggedEvent, error] {
	return readEvents(ctx, s.log, s.enter, begin)
}

// readEvents yields the events of a source, chunk by chunk. Before each chunk, enter says whether it can be read.
func readEvents(
	ctx context.Context, log *logdb.Log, enter func(context.Context) error, begin func() (source, error),
) iter.Seq2[LoggedEvent, error] {
	return func(yield func(LoggedEvent, error) bool) {
		if err := enter(ctx); err != nil {
			yield(LoggedEvent{}, err)
			return
		}
		next, err := begin()
		if err != nil {
			yield(LoggedEvent{}, err)
			return
		}
		for size := firstReadChunk; ; size = min(2*size, maxReadChunk) {
			places, err := next(size)
			if goOn := yieldEvents(ctx, log, enter, places, yield); !goOn {
				return
			}
			if err != nil {
				yield(LoggedEvent{}, err)
				return
			}
			if len(places) == 0 {
				return
			}
		}
	}
}

// yieldEvents reads the events at the places given, as many at a time as the limit
// of bytes allows. It returns false when the read is over.
func yieldEvents(
	ctx context.Context, log *logdb.Log, enter func(context.Context) error, places []place, yield func(LoggedEvent, error) bool,
) bool {
	for len(places) > 0 {
		if err := enter(ctx); err != nil {
			yield(LoggedEvent{}, err)
			return false
		}
		warm(log, places)
		events, err := copyEvents(log, places)
		for i := range events {
			if i > 0 && ctx.Err() != nil {
				yield(LoggedEvent{}, ctx.Err())
				return false
			}
			if !yield(LoggedEvent{LSN: places[i].lsn, Event: events[i]}, nil) {
				return false
			}
		}
		if err != nil {
			yield(LoggedEvent{}, err)
			return false
		}
		places = places[len(events):]
	}
	return true
}

// warm brings events that lie apart into memory.
func warm(log *logdb.Log, places []place) {
	if len(places) < 2 || places[len(places)-1].lsn-places[0].lsn < 2*messages.LSN(len(places)) {
		return
	}
	lsns := make([]messages.LSN, len(places))
	for i := range places {
		lsns[i] = places[i].lsn
	}
	log.Warm(lsns)
}

// copyEvents copies events from the head of places until a limit is reached.
func copyEvents(log *logdb.Log, places []place) ([]messages.Event, error) {
	events := make([]messages.Event, 0, len(places))
	err := log.Read(func(log *logdb.Reader) error {
		var view format.EventView
		bytes := 0
		for i := range places {
			value := log.Value(places[i].lsn)
			if value == nil {
				return places[i].damaged(format.ErrMissing)
			}
			err := view.Decode(places[i].lsn, value)
			if err == nil {
				err = places[i].check(&view)
			}
			if err != nil {
				return places[i].damaged(err)
			}
			events = append(events, view.Event())
			if bytes += events[i].Memory(); bytes >= maxReadBytes {
				return nil
			}
		}
		return nil
	})
	return events, err
}

// LoggedEvent is an event, and where it stands in log.db. Errors and faults name that place.
type LoggedEvent struct {
	LSN messages.LSN
	messages.Event
}

// Log returns all events of the store in commit order from an LSN on (0 means 1):
// the plain scan. It obeys the rules of [storage.Reader].
func (s *Store) Log(ctx context.Context, from messages.LSN) iter.Seq2[messages.Event, error] {
	return withoutLSN(s.LogWithLSN(ctx, from))
}

// PLog implements [storage.Reader].
func (s *Store) PLog(ctx context.Context, id messages.PartitionID, from messages.PLogOffset) iter.Seq2[messages.Event, error] {
	return withoutLSN(s.PLogWithLSN(ctx, id, from))
}

// WLog implements [storage.Reader].
func (s *Store) WLog(ctx context.Context, ws messages.WSID, from messages.WLogOffset) iter.Seq2[messages.Event, error] {
	return withoutLSN(s.WLogWithLSN(ctx, ws, from))
}

func withoutLSN(logged iter.Seq2[LoggedEvent, error]) iter.Seq2[messages.Event, error] {
	return func(yield func(messages.Event, error) bool) {
		for e, err := range logged {
			if !yield(e.Event, err) {
				return
			}
		}
	}
}
