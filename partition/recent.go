package partition

import (
	"context"
	"iter"
	"sync"
	"sync/atomic"

	"github.com/partita-go/partita/messages"
)

const (
	// recentChunk is how many bytes of events a feed reads before it gives the first of them.
	recentChunk = 1 << 20
	// recentBytes is how many bytes of events are kept for other feeds. One event more may come on top.
	recentBytes = 4 << 20
)

// recent is what the feeds of a reader have read last: the first feed that needs an event reads it for the others,
// and nobody waits for anybody. An event never changes, so what is here is never wrong. What is not here is read
// from the store.
type recent struct {
	ends atomic.Pointer[recentEnds]
	// logs are by partition. What they point to is never changed: a longer log takes its place.
	logs []atomic.Pointer[recentLog]

	// mu is held to change logs. It guards bytes: what was added since logs were emptied last.
	mu    sync.Mutex
	bytes int
}

// recentEnds are where the logs of all partitions ended when the store had so many events, or later.
type recentEnds struct {
	events uint64
	ends   []messages.PLogOffset
}

// recentLog is a part of a partition's log.
type recentLog struct {
	first  messages.PLogOffset
	events []messages.Event
}

func (l *recentLog) end() messages.PLogOffset { return l.first + messages.PLogOffset(len(l.events)) }

// recentEnds returns where the logs ended when the store had so many events, or later.
func (r *Reader) recentEnds(ctx context.Context, events uint64) ([]messages.PLogOffset, error) {
	if known := r.recent.ends.Load(); known != nil && known.events >= events {
		return known.ends, nil
	}
	ends, err := r.ends(ctx, len(r.recent.logs))
	if err != nil {
		return nil, err
	}
	r.recent.ends.Store(&recentEnds{events, ends})
	return ends, nil
}

// ownPLog is PLog.
func (r *Reader) ownPLog(ctx context.Context, p messages.PartitionID, from, _ messages.PLogOffset) iter.Seq2[messages.Event, error] {
	return r.store.PLog(ctx, p, from)
}

// recentPLog is PLog up to an offset that the log has come to. The events are shared.
func (r *Reader) recentPLog(ctx context.Context, p messages.PartitionID, from, last messages.PLogOffset) iter.Seq2[messages.Event, error] {
	return func(yield func(messages.Event, error) bool) {
		for from <= last {
			events, err := r.recentEvents(ctx, p, from, last)
			for i := range events {
				if ctx.Err() != nil {
					yield(messages.Event{}, ctx.Err())
					return
				}
				if !yield(events[i], nil) {
					return
				}
			}
			if err != nil {
				yield(messages.Event{}, err)
				return
			}
			from += messages.PLogOffset(len(events))
		}
	}
}

// recentEvents returns some events from an offset on, perhaps more than up to last, and the error that came behind
// them.
func (r *Reader) recentEvents(ctx context.Context, p messages.PartitionID, from, last messages.PLogOffset) (events []messages.Event, err error) {
	if log := r.recent.logs[p].Load(); log != nil && from >= log.first && from < log.end() {
		return log.events[from-log.first:], nil
	}
	bytes := 0
	for e, err := range r.store.PLog(ctx, p, from) {
		if err != nil {
			return events, err
		}
		events = append(events, e)
		if bytes += e.Memory(); from+messages.PLogOffset(len(events)) > last || bytes >= recentChunk {
			break
		}
	}
	r.recent.add(p, recentLog{first: from, events: events}, bytes)
	return events, nil
}

// add takes in what goes beyond what is here: a feed that is far behind does not take it from the others.
func (r *recent) add(p messages.PartitionID, read recentLog, bytes int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	log := r.logs[p].Load()
	if log != nil && read.end() <= log.end() {
		return
	}
	if r.bytes += bytes; r.bytes > recentBytes {
		for i := range r.logs {
			r.logs[i].Store(nil)
		}
		log, r.bytes = nil, bytes
	}
	if log != nil && read.first <= log.end() {
		read = recentLog{first: log.first, events: append(log.events, read.events[log.end()-read.first:]...)}
	}
	r.logs[p].Store(&read)
}
