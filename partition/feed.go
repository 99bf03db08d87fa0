package partition

import (
	"context"
	"fmt"
	"iter"
	"slices"

	"github.com/partita-go/partita/messages"
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
	return func(yield func(messages.Event, error) bool) {
		ends, err := f.reader.ends(ctx, len(f.cursor.next))
		if err != nil {
			yield(messages.Event{}, err)
			return
		}
		f.upTo(ctx, ends, f.reader.ownPLog, yield)
	}
}

// Follow goes on with what is appended, until ctx ends. It is woken by the append. Feeds of one Reader share the
// events: what they point to must not be changed.
func (f *Feed) Follow(ctx context.Context) iter.Seq2[messages.Event, error] {
	return func(yield func(messages.Event, error) bool) {
		// seen is how many of the store's events the feed has given. It begins anew with each loop, for the one
		// before may have broken off.
		for seen := uint64(0); ; {
			there, err := f.reader.store.AwaitAny(ctx, seen)
			if err != nil {
				yield(messages.Event{}, err)
				return
			}
			ends, err := f.reader.recentEnds(ctx, there)
			if err != nil {
				yield(messages.Event{}, err)
				return
			}
			read := f.reader.recentPLog
			if there-f.given() > feedRun*uint64(len(ends)) {
				// It is far behind: others need other events.
				read = f.reader.ownPLog
			}
			if !f.upTo(ctx, ends, read, yield) {
				return
			}
			seen = max(there, f.given())
		}
	}
}

// given returns how many events the feed has given, from the beginning of all logs.
func (f *Feed) given() (events uint64) {
	for _, next := range f.cursor.next {
		events += uint64(next) - 1
	}
	return events
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

// readPLog reads a partition's log from an offset on, at least up to last, to which it has come.
type readPLog func(ctx context.Context, p messages.PartitionID, from, last messages.PLogOffset) iter.Seq2[messages.Event, error]

// upTo yields runs of the partitions in turn until it has come to their ends. It reports whether the caller wants
// to go on.
func (f *Feed) upTo(ctx context.Context, ends []messages.PLogOffset, read readPLog, yield func(messages.Event, error) bool) bool {
	for idle := 0; idle < len(ends); idle++ {
		p := f.cursor.turn
		// Before the run, so that a cursor taken in it goes on with the next partition:
		// short pages take turns, too.
		f.cursor.turn = (p + 1) % uint32(len(ends))
		if f.cursor.next[p] > ends[p] {
			continue
		}
		last := min(ends[p], f.cursor.next[p]+feedRun-1)
		if !f.run(read(ctx, messages.PartitionID(p), f.cursor.next[p], last), &f.cursor.next[p], last, yield) {
			return false
		}
		idle = -1
	}
	return true
}

// run yields the events of a partition up to last. It reports whether the caller wants to go on.
func (f *Feed) run(events iter.Seq2[messages.Event, error], next *messages.PLogOffset, last messages.PLogOffset, yield func(messages.Event, error) bool) bool {
	for e, err := range events {
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
