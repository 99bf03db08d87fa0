package partition_test

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"sync"
	"testing"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/partition"
	"github.com/partita-go/partita/storage/storagetest"
)

// followFeed follows a feed.
func (l *library) followFeed(feed *partition.Feed) *following {
	l.t.Helper()
	return l.follow(func(ctx context.Context) iter.Seq2[messages.Event, error] { return feed.Follow(ctx) })
}

// TestFeedsShareWhatTheyRead: what one feed has read, another one that is followed does not read again, neither the
// events nor where the logs end.
func TestFeedsShareWhatTheyRead(t *testing.T) {
	l := memoryLibrary(t)
	faulty := l.store.(*storagetest.Faulty)
	reads := func() [2]int { return [2]int{faulty.Calls(storagetest.OpPLog), faulty.Calls(storagetest.OpRegister)} }
	first := l.followFeed(l.feed(""))
	first.waits()
	for n := 1; n <= 200; n++ {
		l.append(messages.WSID(n * n % 5))
		first.take(1)
		first.waits()
		if n%20 > 0 {
			continue
		}
		feed := l.feed("")
		before := reads()
		second := l.followFeed(feed)
		all := second.take(n)
		second.waits()
		equal(t, before, reads())
		second.cancel()
		isError(t, second.ends(), context.Canceled)
		l.sameLogs(all)
	}
}

// TestFollowedFeedTakesTurns: a follower that falls back gets the partitions in turns, not in the order of the
// commits.
func TestFollowedFeedTakesTurns(t *testing.T) {
	eachLibrary(t, func(t *testing.T, l *library) {
		l.append(2)
		n := 0
		for e, err := range l.feed("").Follow(l.ctx) {
			noError(t, err)
			switch n++; n {
			case 1:
				l.append(2)
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

// TestFollowedFeedsFail: each feed gets the events before one that cannot be read, then the error; and when reading
// works again, it goes on with what it has not given, whatever the others have read.
func TestFollowedFeedsFail(t *testing.T) {
	for name, fault := range map[string]storagetest.Fault{
		"an event":       {Op: storagetest.OpPLog, Do: storagetest.Break(3, errInjected), Skip: 1},
		"the first":      {Op: storagetest.OpPLog, Do: storagetest.Break(0, errInjected)},
		"where they end": {Op: storagetest.OpRegister, Do: storagetest.Fail(errInjected), Skip: 1},
	} {
		t.Run(name, func(t *testing.T) {
			l := memoryLibrary(t)
			l.fill(60, 0, 1, 2)
			faulty := l.store.(*storagetest.Faulty)
			feeds := [][]messages.Event{nil, nil, nil}
			for i := range feeds {
				feed := l.feed("")
				faulty.Plant(fault)
				for failed := false; len(feeds[i]) < 60; {
					for e, err := range feed.Follow(l.ctx) {
						if failed = failed || err != nil; err != nil {
							isError(t, err, errInjected)
							faulty.Heal()
							continue // the sequence itself must stop
						}
						if feeds[i] = append(feeds[i], e); len(feeds[i]) == 60 {
							break
						}
					}
					isTrue(t, i > 0 || failed, "it has not failed")
				}
				faulty.Heal()
				l.sameLogs(feeds[i])
			}
		})
	}
}

// TestFeedsBesideWriters: each of many feeds that are followed gets every event once, in the order of its partition,
// as it is in the log, wherever it begins.
func TestFeedsBesideWriters(t *testing.T) {
	eachLibrary(t, func(t *testing.T, l *library) {
		const total = 1800
		l.append(0, 1, 2)
		begin := []*partition.Feed{l.feed(""), l.feed("")}
		l.page(begin[1], 2)
		var running sync.WaitGroup
		all := make([][]messages.Event, 8)
		failures := make([]error, len(all))
		for i := range all {
			feed := l.feed(begin[i%2].Cursor().String())
			running.Go(func() {
				for e, err := range feed.Follow(l.ctx) {
					if failures[i] = err; err != nil {
						return
					}
					if all[i] = append(all[i], e); len(all[i]) == total+3-2*(i%2) {
						return
					}
				}
			})
		}
		for p, w := range l.writers {
			running.Go(func() {
				for i := range total / 3 / 10 {
					specs := slices.Repeat([]storagetest.Spec{{Workspace: messages.WSID(p), Body: fmt.Append(nil, p, i)}}, 10)
					w.Append(t, specs...)
				}
			})
		}
		running.Wait()
		for i := range all {
			noError(t, failures[i])
			logs := byPartition(all[i])
			for p := range messages.PartitionID(3) {
				log := l.read(l.reader.PLog(l.ctx, p, 1))
				equal(t, log[len(log)-len(logs[p]):], logs[p])
			}
		}
	})
}
