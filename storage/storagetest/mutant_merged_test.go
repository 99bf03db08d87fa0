package storagetest

import (
	"cmp"
	"context"
	"errors"
	"math"
	"slices"
	"testing"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage"
)

func (m *mutant) Since(ctx context.Context, seen uint64) ([]messages.Event, error) {
	if m.bug.since != nil {
		return m.bug.since(m, ctx, seen)
	}
	return m.Memory.Since(ctx, seen)
}

const (
	mergedOrder    = "MergedLogIsInTheOrderOfCommits"
	mergedAnywhere = "MergedLogFromAnywhere"
	mergedSurvives = "MergedLogSurvives"
	mergedBeside   = "MergedLogBesideAppends"
	mergedContext  = "MergedLogObeysContexts"
	mergedClosed   = "ClosedStoreRefusesMergedLog"
)

func mergedBugs() []bug {
	return slices.Concat(mergedPlaceBugs(), mergedEventBugs(), mergedLifeBugs())
}

// seenAs returns a bug that takes some positions for others.
func seenAs(name string, as func(m *mutant, seen uint64) uint64, by ...string) bug {
	return bug{name: name, by: by, since: func(m *mutant, ctx context.Context, seen uint64) ([]messages.Event, error) {
		return m.Memory.Since(ctx, as(m, seen))
	}}
}

// sinceIs returns a bug that changes what Since returns.
func sinceIs(name string, change func(*mutant, []messages.Event) []messages.Event, by ...string) bug {
	return bug{name: name, by: by, since: func(m *mutant, ctx context.Context, seen uint64) ([]messages.Event, error) {
		events, err := m.Memory.Since(ctx, seen)
		return change(m, events), err
	}}
}

// count returns how many events there are.
func (m *mutant) count() uint64 {
	m.disk.mu.Lock()
	defer m.disk.mu.Unlock()
	return uint64(len(m.disk.log))
}

func mergedPlaceBugs() []bug {
	return []bug{
		seenAs("a late reader misses an event at one place", func(_ *mutant, seen uint64) uint64 {
			if seen == 512 {
				seen++
			}
			return seen
		}, mergedAnywhere),
		seenAs("a late reader gets an event again at one place", func(_ *mutant, seen uint64) uint64 {
			if seen == 700 {
				seen--
			}
			return seen
		}, mergedAnywhere),
		seenAs("who is at the end gets the last event again", func(m *mutant, seen uint64) uint64 {
			if seen > 0 && seen == m.count() {
				seen--
			}
			return seen
		}, mergedBeside, mergedSurvives, mergedClosed),
		seenAs("who is beyond the end begins anew", func(m *mutant, seen uint64) uint64 {
			if seen > m.count() {
				seen = 0
			}
			return seen
		}, mergedOrder, mergedAnywhere),
		seenAs("who has seen as many as can be counted begins anew", func(_ *mutant, seen uint64) uint64 {
			if seen == math.MaxUint64 {
				seen = 0
			}
			return seen
		}, mergedAnywhere, mergedSurvives),
	}
}

func mergedEventBugs() []bug {
	var kept []messages.Event
	return []bug{
		sinceIs("the last two events are swapped", func(_ *mutant, events []messages.Event) []messages.Event {
			if n := len(events); n > 1 && events[n-1].Partition == events[n-2].Partition {
				events[n-1], events[n-2] = events[n-2], events[n-1]
			}
			return events
		}, mergedOrder, mergedAnywhere, mergedBeside),
		sinceIs("the partitions come one after the other", func(_ *mutant, events []messages.Event) []messages.Event {
			slices.SortStableFunc(events, func(a, b messages.Event) int { return byPartitionOf(&a, &b) })
			return events
		}, mergedOrder, mergedAnywhere, mergedBeside),
		sinceIs("now and then there is nothing", func(m *mutant, events []messages.Event) []messages.Event {
			if m.loops.Add(1)%7 == 0 {
				return nil
			}
			return events
		}, mergedOrder, mergedAnywhere, mergedBeside),
		sinceIs("what is flushed is gone", func(m *mutant, events []messages.Event) []messages.Event {
			return slices.DeleteFunc(events, func(e messages.Event) bool { return e.PLogOffset < m.checkpoint(e.Partition) })
		}, mergedOrder, mergedAnywhere, mergedSurvives, mergedBeside),
		sinceIs("an event without its body", func(_ *mutant, events []messages.Event) []messages.Event {
			for i := range events {
				events[i].Body = nil
			}
			return events
		}, mergedOrder, mergedAnywhere, mergedSurvives),
		sinceIs("what was returned is written over", func(_ *mutant, events []messages.Event) []messages.Event {
			kept = append(kept[:0], events...)
			return kept
		}, mergedAnywhere),
		{name: "it shows an event before it is counted", by: []string{mergedBeside},
			awaitAny: func(m *mutant, ctx context.Context, seen uint64) (uint64, error) {
				n, err := m.Memory.AwaitAny(ctx, seen)
				return max(n, seen+2) - 1, err
			}},
		{name: "refused events are in it", by: []string{mergedOrder},
			append: func(m *mutant, ctx context.Context, b storage.Batch) error {
				err := m.Memory.Append(ctx, b)
				if err != nil {
					m.disk.mu.Lock()
					defer m.disk.mu.Unlock()
					m.disk.countMore(b.Partition, len(b.Events))
				}
				return err
			}},
	}
}

func mergedLifeBugs() []bug {
	return []bug{
		{name: "a start sorts it by partitions", by: []string{mergedSurvives},
			reopened: func(d *disk) { slices.SortStableFunc(d.log, byPartitionOf) }},
		{name: "a crash sorts it by partitions", by: []string{mergedSurvives},
			crashed: func(d *disk) { slices.SortStableFunc(d.log, byPartitionOf) }},
		{name: "it ignores its context", by: []string{mergedContext},
			since: func(m *mutant, ctx context.Context, seen uint64) ([]messages.Event, error) {
				return m.Memory.Since(context.WithoutCancel(ctx), seen)
			}},
		{name: "at the end it ignores its context", by: []string{mergedContext},
			since: func(m *mutant, ctx context.Context, seen uint64) ([]messages.Event, error) {
				events, err := m.Memory.Since(context.WithoutCancel(ctx), seen)
				if len(events) > 0 {
					err = ctx.Err()
				}
				return events, err
			}},
		{name: "a closed store has an empty one", by: []string{mergedClosed},
			since: func(m *mutant, ctx context.Context, seen uint64) ([]messages.Event, error) {
				events, err := m.Memory.Since(ctx, seen)
				if errors.Is(err, storage.ErrClosed) {
					err = nil
				}
				return events, err
			}},
	}
}

// mergedWaitBugs are found by who waits for ever.
func mergedWaitBugs() []bug {
	return []bug{
		{name: "at the end it waits", by: []string{mergedOrder, mergedAnywhere, mergedSurvives},
			since: func(m *mutant, ctx context.Context, seen uint64) ([]messages.Event, error) {
				if _, err := m.Memory.AwaitAny(ctx, seen); err != nil {
					return nil, err
				}
				return m.Memory.Since(ctx, seen)
			}},
	}
}

func byPartitionOf(a, b *messages.Event) int { return cmp.Compare(a.Partition, b.Partition) }

// TestMergedRaceKnowsTheOrder: events of two partitions may be in any order if they were
// appended at the same time, and in one only if not.
func TestMergedRaceKnowsTheOrder(t *testing.T) {
	first, second := messages.Event{Partition: 0, PLogOffset: 1}, messages.Event{Partition: 1, PLogOffset: 1}
	for _, c := range []struct {
		name  string
		order []messages.Event
		begun uint64
		fails bool
	}{
		{"one after the other", []messages.Event{first, second}, 3, false},
		{"turned round", []messages.Event{second, first}, 3, true},
		{"at the same time", []messages.Event{first, second}, 1, false},
		{"at the same time, turned round", []messages.Event{second, first}, 1, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := mergedRace{batches: []mergedBatch{
				{begun: 0, ended: 2, events: []messages.Event{first}},
				{begun: c.begun, ended: 4, events: []messages.Event{second}},
			}}
			if err := r.inTime(c.order); (err != nil) != c.fails {
				t.Errorf("got %v", err)
			}
		})
	}
}
