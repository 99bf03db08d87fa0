package partition

import (
	"context"
	"fmt"
	"iter"
	"slices"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage"
)

// feedRun is how many events of one partition a feed gives before it goes on to the next:
// a partition with a long backlog does not keep the others waiting. So many are the first
// three chunks that a store reads.
const feedRun = 112

// Feed gives the events of all partitions of an application. The order within each partition
// is kept, also after it was idle; that of events of different partitions means nothing. It
// is not safe for concurrent use.
type Feed struct {
	reader *Reader
	cursor Cursor
}

// Feed returns the feed from a cursor on. It returns ErrCursor if the cursor is of another
// application, or ahead of its log: that was restored from an older copy.
func (r *Reader) Feed(ctx context.Context, c Cursor) (*Feed, error) {
	d := r.store.Descriptor()
	if c.IsZero() {
		c = Cursor{application: d.Application, next: slices.Repeat([]messages.PLogOffset{1}, int(d.Partitions))}
	}
	if c.application != d.Application || len(c.next) != int(d.Partitions) {
		return nil, fmt.Errorf("%w: got one of application %q with %d partitions, want %q with %d",
			ErrCursor, c.application, len(c.next), d.Application, d.Partitions)
	}
	ends, err := r.ends(ctx, len(c.next))
	if err != nil {
		return nil, err
	}
	for p, next := range c.next {
		if next > ends[p]+1 {
			return nil, fmt.Errorf("%w: it is ahead of the log: partition %d ends at %d, the cursor is behind %d", ErrCursor, p, ends[p], next-1)
		}
	}
	c.next = slices.Clone(c.next)
	return &Feed{reader: r, cursor: c}, nil
}

// Cursor returns the position behind the last event that was given.
func (f *Feed) Cursor() Cursor {
	c := f.cursor
	c.next = slices.Clone(c.next)
	return c
}

// Events goes on to where all logs end when the loop begins.
func (f *Feed) Events(ctx context.Context) iter.Seq2[messages.Event, error] {
	return func(yield func(messages.Event, error) bool) { f.toTheEnd(ctx, yield) }
}

// Follow goes on with what is appended, until ctx ends. It is woken by the append. The events
// may be shared with others who follow: what they point to must not be changed.
func (f *Feed) Follow(ctx context.Context) iter.Seq2[messages.Event, error] {
	return func(yield func(messages.Event, error) bool) {
		// seen is how many of the store's events, in the order of their commits, the feed has
		// given. It begins anew with each loop, for the one before may have broken off.
		for seen := uint64(0); ; {
			there, err := f.reader.store.AwaitAny(ctx, seen)
			if err != nil {
				yield(messages.Event{}, err)
				return
			}
			var goOn bool
			if news := f.news(ctx, seen, there); len(news) > 0 {
				seen += uint64(len(news))
				goOn = f.give(ctx, news, yield)
			} else {
				seen = there
				goOn = f.toTheEnd(ctx, yield)
			}
			if !goOn {
				return
			}
		}
	}
}

// news returns events behind the first seen ones of the store in the order of the commits,
// none if the partitions are to be looked at one by one: as long as the feed has not been at
// the end of all, when something is wrong, which is told best so, and when an event would wait
// for more events of other partitions than where they take turns.
func (f *Feed) news(ctx context.Context, seen, there uint64) []messages.Event {
	merged, ok := f.reader.store.(storage.MergedLog)
	if !ok || seen == 0 || there-seen > feedRun*uint64(len(f.cursor.next)) {
		return nil
	}
	news, err := merged.Since(ctx, seen)
	if err != nil {
		return nil
	}
	return news
}

// give yields those of the events that were not given yet. It reports whether the caller
// wants to go on.
func (f *Feed) give(ctx context.Context, news []messages.Event, yield func(messages.Event, error) bool) bool {
	for i := range news {
		e := &news[i]
		switch next := &f.cursor.next[e.Partition]; {
		case ctx.Err() != nil:
			return yield(messages.Event{}, ctx.Err()) && false
		case e.PLogOffset > *next:
			// One is missing.
			return f.toTheEnd(ctx, yield)
		case e.PLogOffset == *next:
			*next++
			if !yield(*e, nil) {
				return false
			}
		}
	}
	return true
}

// Page returns at most limit events; less only if all logs end there. A limit below 1 is
// taken for 1. If it fails, the feed stays where it was.
func (f *Feed) Page(ctx context.Context, limit int) ([]messages.Event, error) {
	before := f.Cursor()
	events, err := page(f.Events(ctx), limit)
	if err != nil {
		f.cursor = before
	}
	return events, err
}

// Await waits until the feed has another event.
func (f *Feed) Await(ctx context.Context) error {
	for seen := uint64(0); ; {
		var err error
		if seen, err = f.reader.store.AwaitAny(ctx, seen); err != nil {
			return err
		}
		if there, err := f.hasMore(ctx); there || err != nil {
			return err
		}
	}
}

func (f *Feed) hasMore(ctx context.Context) (bool, error) {
	ends, err := f.reader.ends(ctx, len(f.cursor.next))
	for p, next := range f.cursor.next {
		if err == nil && ends[p] >= next {
			return true, nil
		}
	}
	return false, err
}

// toTheEnd yields runs of the partitions in turn until it has come to where their logs ended
// when it began. It reports whether the caller wants to go on.
func (f *Feed) toTheEnd(ctx context.Context, yield func(messages.Event, error) bool) bool {
	ends, err := f.reader.ends(ctx, len(f.cursor.next))
	if err != nil {
		return yield(messages.Event{}, err) && false
	}
	for idle := 0; idle < len(ends); idle++ {
		p := f.cursor.turn
		// Before the run, so that a cursor taken in it goes on with the next partition:
		// short pages take turns, too.
		f.cursor.turn = (p + 1) % uint32(len(ends))
		if f.cursor.next[p] > ends[p] {
			continue
		}
		if !f.run(ctx, messages.PartitionID(p), ends[p], yield) {
			return false
		}
		idle = -1
	}
	return true
}

// run yields some events of a partition that has some up to end.
func (f *Feed) run(ctx context.Context, p messages.PartitionID, end messages.PLogOffset, yield func(messages.Event, error) bool) bool {
	next := &f.cursor.next[p]
	last := min(end, *next+feedRun-1)
	for e, err := range f.reader.store.PLog(ctx, p, *next) {
		if err != nil {
			return yield(messages.Event{}, err) && false
		}
		*next++
		if !yield(e, nil) {
			return false
		}
		if *next > last {
			break
		}
	}
	return true
}
