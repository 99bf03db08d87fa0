package partition_test

import (
	"context"
	"iter"
	"slices"
	"sync"
	"testing"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage"
	"github.com/partita-go/partita/storage/storagetest"
)

// merged is a store with one log of all partitions.
type merged struct {
	*storagetest.Faulty
	log storage.MergedLog

	mu sync.Mutex
	// shown counts the events that Since has returned.
	shown int
	// looking is called once, by the first call of Register; it may be nil.
	looking func()
	// spoil changes what Since returns, if it is not nil.
	spoil func([]messages.Event) ([]messages.Event, error)
}

func (m *merged) Register(ctx context.Context, p messages.PartitionID) (storage.Register, error) {
	if looking := m.looking; looking != nil {
		m.looking = nil
		looking()
	}
	return m.Faulty.Register(ctx, p)
}

func (m *merged) Since(ctx context.Context, seen uint64) ([]messages.Event, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	events, err := m.log.Since(ctx, seen)
	if m.spoil != nil {
		events, err = m.spoil(events)
	}
	m.shown += len(events)
	return events, err
}

func (m *merged) shownEvents() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.shown
}

func mergedLibrary(t *testing.T) (*library, *merged) {
	memory, err := storagetest.NewMemory(storagetest.Descriptor(messages.TrustNone))
	noError(t, err)
	m := &merged{Faulty: storagetest.NewFaulty(memory), log: memory}
	return newLibrary(t, m), m
}

// followFeed follows a feed from the beginning.
func (l *library) followFeed() *following {
	l.t.Helper()
	feed := l.feed("")
	return l.follow(func(ctx context.Context) iter.Seq2[messages.Event, error] { return feed.Follow(ctx) })
}

// TestFeedFollowsTheMergedLog once it has come to its end: in the order of the commits, and
// without looking at the partitions.
func TestFeedFollowsTheMergedLog(t *testing.T) {
	l, m := mergedLibrary(t)
	l.append(2, 1, 0)
	f := l.followFeed()
	f.take(3)
	f.waits()
	looked := m.Calls(storagetest.OpRegister)
	for range 5 {
		l.append(2, 2, 0, 1, 2, 0)
		order := []messages.PartitionID{2, 2, 0, 1, 2, 0}
		for i, e := range f.take(6) {
			equal(t, order[i], e.Partition)
		}
		f.waits()
	}
	equal(t, 30, m.shownEvents())
	equal(t, looked, m.Calls(storagetest.OpRegister))
}

// TestFeedNewsAgain: what is appended while the feed looks at the partitions is given with
// them, and not again with the merged log, which has it too.
func TestFeedNewsAgain(t *testing.T) {
	l, m := mergedLibrary(t)
	l.append(0, 1, 2)
	f := l.feed("")
	m.looking = func() { l.append(2, 1) }
	var all []messages.Event
	for e, err := range f.Follow(l.ctx) {
		noError(t, err)
		switch all = append(all, e); len(all) {
		case 5:
			equal(t, 0, m.shownEvents())
			l.append(1, 0, 2)
		}
		if len(all) == 8 {
			break
		}
	}
	equal(t, 5, m.shownEvents())
	l.sameLogs(all)
}

// TestFeedNewsTakeTurns: a follower that is far behind gets the partitions in turns, not in
// the order of the commits.
func TestFeedNewsTakeTurns(t *testing.T) {
	eachLibrary(t, func(t *testing.T, l *library) {
		l.append(0)
		n := 0
		for e, err := range l.feed("").Follow(l.ctx) {
			noError(t, err)
			switch n++; n {
			case 1:
				l.append(0)
			case 2:
				l.writers[0].Append(t, slices.Repeat([]storagetest.Spec{{Workspace: 0}}, 1500)...)
				l.append(1)
			}
			if e.Partition == 1 {
				break
			}
			isTrue(t, n < 500, "partition 1 still waits after %d events", n)
		}
	})
}

// TestFeedNewsThatAreWrong: whatever is wrong with the merged log, the partitions' logs are
// given as they are.
func TestFeedNewsThatAreWrong(t *testing.T) {
	for name, spoil := range map[string]func([]messages.Event) ([]messages.Event, error){
		"it fails":         func([]messages.Event) ([]messages.Event, error) { return nil, errInjected },
		"it fails later":   func(e []messages.Event) ([]messages.Event, error) { return e[:1], nil },
		"the first misses": func(e []messages.Event) ([]messages.Event, error) { return e[1:], nil },
		"the second misses": func(e []messages.Event) ([]messages.Event, error) {
			return slices.Delete(e, min(1, len(e)-1), min(2, len(e))), nil
		},
		"none is there": func([]messages.Event) ([]messages.Event, error) { return nil, nil },
	} {
		t.Run(name, func(t *testing.T) {
			l, m := mergedLibrary(t)
			m.spoil = spoil
			l.append(0)
			f := l.followFeed()
			all := f.take(1)
			f.waits()
			for range 10 {
				l.writers[0].Append(t, slices.Repeat([]storagetest.Spec{{Workspace: 3}}, 3)...)
				all = append(all, f.take(3)...)
				f.waits()
			}
			l.sameLogs(all)
		})
	}
}
