package sim

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"time"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/partition"
	"github.com/partita-go/partita/storage"
	"github.com/partita-go/partita/storage/storagetest"
)

// feeder reads the feed of the application, and goes on from the cursor that it has kept as
// text, in whichever process: what it sees from there on is exactly what it has not seen.
type feeder struct {
	s    *sim
	name string
	// text is the cursor that was kept, next what it stands for.
	text string
	next []messages.PLogOffset
	done bool
}

func newFeeder(s *sim, i int) *feeder {
	return &feeder{
		s: s, name: fmt.Sprintf("feeder %d", i), next: slices.Repeat([]messages.PLogOffset{1}, int(s.desc.Partitions)),
	}
}

// feedStore is what a feed has of a store.
type feedStore struct {
	*storagetest.Memory
	st   *store
	name string
}

func (fs feedStore) call(o op, p messages.PartitionID, what string) call {
	return call{op: o, partition: p, what: what, who: fmt.Sprintf("%s/%d", fs.name, p)}
}

func (fs feedStore) Register(ctx context.Context, p messages.PartitionID) (storage.Register, error) {
	return do(ctx, fs.st, fs.call(opEnd, p, ""), func() (storage.Register, error) { return fs.Memory.Register(ctx, p) })
}

func (fs feedStore) PLog(ctx context.Context, p messages.PartitionID, from messages.PLogOffset) iter.Seq2[messages.Event, error] {
	return each(ctx, fs.st, fs.call(opPage, p, fmt.Sprintf("from %d", from)), fs.Memory.PLog(ctx, p, from))
}

func (fs feedStore) AwaitAny(ctx context.Context, seen uint64) (uint64, error) {
	total := func() (events uint64) {
		for p := range messages.PartitionID(fs.st.s.desc.Partitions) {
			r, _ := fs.Memory.Register(context.Background(), p)
			events += uint64(r.Last)
		}
		return events
	}
	err := fs.st.wait(ctx, fs.call(opNews, 0, fmt.Sprintf("after %d", seen)), func() bool { return total() > seen })
	return total(), err
}

func (f *feeder) run() {
	f.s.gate(nil, f.name)
	for {
		f.pause()
		if f.s.quit || f.s.drained {
			break
		}
		if live := f.s.live; len(live) > 0 {
			f.turn(live[f.s.random.IntN(len(live))])
		}
	}
	f.done = true
}

func (f *feeder) pause() {
	f.s.wait(&task{key: f.name, due: f.s.after(time.Duration(f.s.random.IntN(8000)) * time.Microsecond)})
}

// turn goes on from the kept cursor.
func (f *feeder) turn(n *node) {
	ctx, cancel := context.WithCancelCause(n.stopped)
	defer cancel(nil)
	limit := clock{&f.s.scheduler, nil}.AfterFunc(time.Duration(f.s.random.IntN(20_000))*time.Microsecond, func() { cancel(context.DeadlineExceeded) })
	defer limit.Stop()
	if _, err := f.read(ctx, n); err != nil {
		f.refused(err)
	}
}

// read goes on from the kept cursor, and returns how many events a page has.
func (f *feeder) read(ctx context.Context, n *node) (events int, err error) {
	reader := partition.NewReader(feedStore{Memory: f.s.disk, st: &store{s: f.s, node: n, disk: f.s.disk}, name: f.name})
	cursor, err := reader.ParseCursor(f.text)
	if err != nil {
		f.s.failf("%s: its own cursor %q: %v", f.name, f.text, err)
		return 0, err
	}
	feed, err := reader.Feed(ctx, cursor)
	f.s.gate(nil, f.name)
	if err != nil {
		return 0, err
	}
	at := slices.Clone(f.next)
	if f.s.random.IntN(3) == 0 && !f.s.drained {
		return 0, f.follow(ctx, feed, at)
	}
	return f.page(ctx, feed, at)
}

// refused checks that a feed says no to no cursor that it has given.
func (f *feeder) refused(err error) {
	f.s.notef("%s: %v", f.name, err)
	if errors.Is(err, partition.ErrCursor) {
		f.s.failf("%s: its own cursor %q: %v", f.name, f.text, err)
	}
}

// page reads a page. One that is short has come to the end of all logs.
func (f *feeder) page(ctx context.Context, feed *partition.Feed, at []messages.PLogOffset) (int, error) {
	ends := f.s.ledger.registers()
	limit := 1 + f.s.random.IntN(12)
	events, err := feed.Page(ctx, limit)
	f.s.gate(nil, f.name)
	if err != nil {
		if got := feed.Cursor().String(); f.text != "" && got != f.text {
			f.s.failf("%s: a page has failed, and moved the cursor from %q to %q", f.name, f.text, got)
		}
		return 0, err
	}
	for i := range events {
		f.see(&events[i], at)
	}
	for p, r := range ends {
		if len(events) < limit && at[p] <= r.Last {
			f.s.failf("%s: a page of %d, less than %d, ends in partition %d before %d, the log went to %d", f.name, len(events), limit, p, at[p], r.Last)
		}
	}
	f.keep(feed, at)
	return len(events), nil
}

// follow goes on with what comes, and leaves off in the middle.
func (f *feeder) follow(ctx context.Context, feed *partition.Feed, at []messages.PLogOffset) error {
	left := 1 + f.s.random.IntN(12)
	for e, err := range feed.Follow(ctx) {
		if err != nil {
			f.s.gate(nil, f.name)
			f.keep(feed, at)
			return err
		}
		f.see(&e, at)
		if left--; left == 0 {
			break
		}
	}
	f.keep(feed, at)
	return nil
}

// keep keeps the cursor, unless the reader's process dies before.
func (f *feeder) keep(feed *partition.Feed, at []messages.PLogOffset) {
	if f.s.random.IntN(4) > 0 {
		f.text, f.next = feed.Cursor().String(), at
		f.s.notef("%s has read up to %v", f.name, at)
	}
}

// see checks that an event is the next one of its partition.
func (f *feeder) see(e *messages.Event, at []messages.PLogOffset) {
	f.s.paged++
	if want := at[e.Partition]; e.PLogOffset != want {
		f.s.failf("%s: got offset %d of partition %d, want %d", f.name, e.PLogOffset, e.Partition, want)
	}
	for logged, err := range f.s.disk.PLog(context.Background(), e.Partition, e.PLogOffset) {
		if err != nil || logged.Epoch != e.Epoch || !bytes.Equal(logged.Body, e.Body) {
			f.s.failf("%s: got %q at offset %d of partition %d, the log has %q, %v", f.name, e.Body, e.PLogOffset, e.Partition, logged.Body, err)
		}
		break
	}
	at[e.Partition] = e.PLogOffset + 1
}

// finish reads to the end, without faults.
func (f *feeder) finish(n *node) {
	for f.s.failure == "" {
		if events, err := f.read(n.stopped, n); err != nil || events == 0 {
			break
		}
	}
	for p, r := range f.s.ledger.registers() {
		if f.next[p] != r.Last+1 {
			f.s.failf("%s ends in partition %d before offset %d, the log goes to %d", f.name, p, f.next[p], r.Last)
		}
	}
}
